"""What comes out: recipes per target with their evidence, and the units they are made of, each slow and fast.

`recipes` says how each instruction computes on each target, `evidence` how that is known; `units` has the parameters,
`reference` the rules and what computes them slowly, `evaluation` what computes them fast, with the same bits.
"""

from . import native, recipes
from .engine import Engine, EngineWarning, Resolved, engine_text, engines, resolve, warn_of_numpy
from .evaluation import compute, compute_checked, product
from .evidence import Evidence, evidence_of
from .exact_numbers import as_fraction, exact_product
from .fma import fma64, sum_to_odd
from .functions import special_function
from .instruction_groups import group
from .interpolation import Interpolator, Squarer, interpolators, squarer
from .library_products import LIBRARY_SUMS, LibrarySums, library_note, library_sums
from .native import Registers as NativeRegisters
from .native import product as native_product
from .native_elements import ElementForm, run_elements, runs_elements
from .pairs import take_rows
from .quotients import quotient, quotient_reference, square_root, square_root_reference
from .recipes import (
    GENERATIONS,
    LOWERINGS,
    Lowering,
    lowering,
    recipe,
    recipe_of,
    variants,
)
from .reference import dot as reference_dot
from .reference import rounded_step
from .reference import trace as reference_trace
from .sequence_arrays import approximate, quotient_factors
from .sequence_reference import approximate_reference
from .sequences import SEQUENCES, ApproximateForm, machine_text
from .special_functions import SPECIAL_FUNCTIONS, SpecialFunction, special_function_reference
from .sum_steps import Addend, SumStep
from .units import FloatChains, FmaChain, FusedDotAdd, GroupedDotAdd, IntegerSum, Popcount, Recipe, Unit
from .units import steps as fused_steps

__all__ = [
    "GENERATIONS",
    "LIBRARY_SUMS",
    "LOWERINGS",
    "SEQUENCES",
    "SPECIAL_FUNCTIONS",
    "Addend",
    "ApproximateForm",
    "ElementForm",
    "Engine",
    "EngineWarning",
    "Evidence",
    "FloatChains",
    "FmaChain",
    "FusedDotAdd",
    "GroupedDotAdd",
    "IntegerSum",
    "Interpolator",
    "LibrarySums",
    "Lowering",
    "NativeRegisters",
    "Popcount",
    "Recipe",
    "Resolved",
    "SpecialFunction",
    "Squarer",
    "SumStep",
    "Unit",
    "approximate",
    "approximate_reference",
    "as_fraction",
    "compute",
    "compute_checked",
    "engine_text",
    "engines",
    "evidence_of",
    "exact_product",
    "fma64",
    "fused_steps",
    "group",
    "interpolators",
    "library_note",
    "library_sums",
    "lowering",
    "machine_text",
    "native",
    "native_product",
    "product",
    "quotient",
    "quotient_factors",
    "quotient_reference",
    "recipe",
    "recipe_of",
    "recipes",
    "reference_dot",
    "reference_trace",
    "resolve",
    "rounded_step",
    "run_elements",
    "runs_elements",
    "special_function",
    "special_function_reference",
    "square_root",
    "square_root_reference",
    "squarer",
    "sum_to_odd",
    "take_rows",
    "variants",
    "warn_of_numpy",
]
