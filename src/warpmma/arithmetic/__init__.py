"""What comes out: recipes per target with their evidence, and the units they are made of, each slow and fast.

`recipes` says how each instruction computes on each target, `evidence` how that is known; `units` has the parameters,
`reference` the rules and what computes them slowly, `evaluation` what computes them fast, with the same bits.
"""

from . import native, recipes
from .engine import Engine, Resolved, engines, resolve
from .evaluation import compute, compute_checked, product
from .evidence import Evidence, evidence_of
from .fma import fma64
from .instruction_groups import group
from .pairs import take_rows
from .recipes import (
    GENERATIONS,
    LOWERINGS,
    UNDEFINED_MEASURED,
    Lowering,
    lowering,
    recipe,
    recipe_of,
    reversed_unknown,
    variants,
)
from .units import FloatChains, FmaChain, FusedDotAdd, GroupedDotAdd, IntegerSum, Popcount, Recipe, Unit

__all__ = [
    "GENERATIONS",
    "LOWERINGS",
    "UNDEFINED_MEASURED",
    "Engine",
    "Evidence",
    "FloatChains",
    "FmaChain",
    "FusedDotAdd",
    "GroupedDotAdd",
    "IntegerSum",
    "Lowering",
    "Popcount",
    "Recipe",
    "Resolved",
    "Unit",
    "compute",
    "compute_checked",
    "engines",
    "evidence_of",
    "fma64",
    "group",
    "lowering",
    "native",
    "product",
    "recipe",
    "recipe_of",
    "recipes",
    "resolve",
    "reversed_unknown",
    "take_rows",
    "variants",
]
