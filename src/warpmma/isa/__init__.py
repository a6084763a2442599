"""What exists: targets, a record each with generation and limits; mnemonics of `mma` and `wgmma`, and their rows."""

from .families import Family
from .finding import find
from .mma import FAMILIES, Instruction, check_known, check_target, instructions, parse, since
from .targets import TARGETS, Target
from .wgmma import (
    AnyInstruction,
    WarpgroupFamily,
    WarpgroupInstruction,
    parse_any,
    parse_warpgroup,
    warpgroup_instructions,
)

__all__ = [
    "FAMILIES",
    "TARGETS",
    "AnyInstruction",
    "Family",
    "Instruction",
    "Target",
    "WarpgroupFamily",
    "WarpgroupInstruction",
    "check_known",
    "check_target",
    "find",
    "instructions",
    "parse",
    "parse_any",
    "parse_warpgroup",
    "since",
    "warpgroup_instructions",
]
