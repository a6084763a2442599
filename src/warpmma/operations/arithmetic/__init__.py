"""Instructions that compute on the registers of one lane."""

from . import (
    approximations,
    bit_positions,
    bounded_products,
    carries,
    comparison_results,
    comparisons,
    conversions,
    divisions,
    floats,
    integer_arithmetic,
    integers,
    multiply_adds,
    selections,
    video,
    video_pairs,
)
from .approximations import divided_factors, folded_function
from .floats import float_operation
from .integers import shl, shr
from .vector_moves import packing, unpacking

FORMS = (
    *comparisons.FORMS,
    *floats.FORMS,
    *divisions.FORMS,
    *approximations.FORMS,
    *conversions.FORMS,
    *integers.FORMS,
    *integer_arithmetic.FORMS,
    *carries.FORMS,
    *bit_positions.FORMS,
    *comparison_results.FORMS,
    *selections.FORMS,
    *multiply_adds.FORMS,
    *bounded_products.FORMS,
    *video.FORMS,
    *video_pairs.FORMS,
)
