"""The slow reference: one element at a time, on Python integers."""

from .exact_numbers import as_fraction, exact_product
from .interpolation import Interpolator, Squarer, interpolators, squarer
from .quotients import normalised, quotient, quotient_reference, rounded_from_odd, square_root, square_root_reference
from .reference import dot as reference_dot
from .reference import rounded_step
from .reference import trace as reference_trace
from .rounded_functions import ROUNDED_FUNCTIONS, rounded_function
from .sequence_reference import approximate_reference, folded_divisor, folded_reference
from .special_functions import (
    LG2_POINT,
    SPECIAL_FUNCTIONS,
    TANH_FIELDS,
    Law,
    SpecialFunction,
    find_function,
    special_function_reference,
)
from .sum_steps import Addend, SumStep
