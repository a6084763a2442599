"""What exists: targets, a record each with generation and limits; mnemonics of `mma` and `wgmma`, and their rows.

`names` of instructions, what other names mean, and the words of mnemonics are here for those who read mnemonics of
other kinds.
"""

from .families import FAMILIES, Family
from .finding import find
from .gpus import GPUS, Gpus
from .grammar import Version, bare
from .kinds import AnyInstruction, check_target, parse_any
from .known import check_known, since
from .mma import Instruction, instructions, parse
from .names import OPCODES, SIMULATED, Door, explained, near
from .targets import TARGET_NAMES, TARGETS, Target
from .warpgroups import WarpgroupFamily
from .wgmma import WarpgroupInstruction, parse_warpgroup, warpgroup_instructions

__all__ = [
    "FAMILIES",
    "GPUS",
    "OPCODES",
    "SIMULATED",
    "TARGETS",
    "TARGET_NAMES",
    "AnyInstruction",
    "Door",
    "Family",
    "Gpus",
    "Instruction",
    "Target",
    "Version",
    "WarpgroupFamily",
    "WarpgroupInstruction",
    "bare",
    "check_known",
    "check_target",
    "explained",
    "find",
    "instructions",
    "near",
    "parse",
    "parse_any",
    "parse_warpgroup",
    "since",
    "warpgroup_instructions",
]
