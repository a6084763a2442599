"""What exists: targets, a record each with generation and limits; mnemonics of `mma` and `wgmma`, and their rows.

`names` of instructions, what other names mean, and the words of mnemonics are here for those who read mnemonics of
other kinds.
"""

from .families import FAMILIES, Family
from .finding import find
from .gpus import GPUS, Gpus
from .grammar import Version, bare
from .instruction_words import Named, every_fitting, named, qualifiers, words_of
from .kinds import AnyInstruction, check_target
from .known import check_known, since
from .mma import Instruction, instructions
from .mnemonic_words import STAND_FOR, TYPES, VOCABULARY, fragment_test, has_place, type_named
from .names import OPCODES, SIMULATED, Door, explained, near
from .parsing import parse, parse_any, plainest
from .targets import TARGET_NAMES, TARGETS, Target
from .warpgroups import WarpgroupFamily
from .wgmma import WarpgroupInstruction, parse_warpgroup, warpgroup_instructions

__all__ = [
    "FAMILIES",
    "GPUS",
    "OPCODES",
    "SIMULATED",
    "STAND_FOR",
    "TARGETS",
    "TARGET_NAMES",
    "TYPES",
    "VOCABULARY",
    "AnyInstruction",
    "Door",
    "Family",
    "Gpus",
    "Instruction",
    "Named",
    "Target",
    "Version",
    "WarpgroupFamily",
    "WarpgroupInstruction",
    "bare",
    "check_known",
    "check_target",
    "every_fitting",
    "explained",
    "find",
    "fragment_test",
    "has_place",
    "instructions",
    "named",
    "near",
    "parse",
    "parse_any",
    "parse_warpgroup",
    "plainest",
    "qualifiers",
    "since",
    "type_named",
    "warpgroup_instructions",
    "words_of",
]
