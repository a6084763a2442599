"""Tables: the recipe of each instruction on each target, and the evidence for it.

`__all__` is what the documentation names; the other names are for the package alone.
"""

from .evidence import Evidence, evidence_of
from .library_products import LIBRARY_SUMS, LibrarySums, library_note, library_sums
from .lowerings import (
    GENERATIONS,
    LOWERINGS,
    SINCE_AMPERE,
    Lowering,
    lowering,
    lowering_of,
    recipe,
    recipe_of,
    variants,
)
from .scopes import group
from .sequences import (
    SEQUENCES,
    ApproximateForm,
    CodeRange,
    FusedStep,
    KeptBits,
    OperandScaling,
    check_count,
    find_sequence,
    machine_text,
)
from .units import FloatChains, FmaChain, FusedDotAdd, GroupedDotAdd, IntegerSum, Popcount, Recipe, Unit, steps
from .units import steps as fused_steps

__all__ = [
    "GENERATIONS",
    "LOWERINGS",
    "SINCE_AMPERE",
    "Lowering",
    "lowering",
    "lowering_of",
    "recipe",
    "recipe_of",
    "variants",
]
