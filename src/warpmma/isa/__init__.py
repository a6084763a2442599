"""What exists: targets, a record each with generation and limits; mnemonics and their rows.

There are two tables: products, `mma` and `wgmma`; and what moves fragments or hides them, `ldmatrix`, `stmatrix`,
`movmatrix` and `wmma`. `names` of instructions, what other names mean, the words of mnemonics and how forms spell them
are here for those who read mnemonics of other kinds.
"""

from .families import FAMILIES, Family
from .finding import find
from .form_spelling import Spelling, SpellingSlot, Words, kept_words, left_words
from .fragment_record import MEASURED_ON, FragmentForm, FragmentInstruction
from .fragment_table import FRAGMENT_FORMS, FRAGMENT_OPCODES, fragment_instructions, parse_fragments
from .gpus import GPUS, Gpus
from .grammar import Version, bare
from .kinds import AnyInstruction, FragmentHolder, check_target, parse_any, parse_holder
from .known import check_known, since
from .matrix_moves import MATRIX_MOVES, MATRIX_TRANSPOSE, FragmentMove, FragmentTranspose
from .mma import Instruction, instructions, parse
from .names import OPCODES, SIMULATED, Door, explained, near
from .targets import TARGET_NAMES, TARGETS, Target
from .vocabulary import ABSENT_WORDS, KEPT, REQUIRED, TYPE_WORDS, WORDS, wanted
from .warpgroups import WarpgroupFamily
from .wgmma import WarpgroupInstruction, parse_warpgroup, warpgroup_instructions
from .wmma_instructions import WMMA_MOVES, WMMA_PRODUCTS, WmmaProduct, WmmaTransfer

__all__ = [
    "ABSENT_WORDS",
    "FAMILIES",
    "FRAGMENT_FORMS",
    "FRAGMENT_OPCODES",
    "GPUS",
    "KEPT",
    "MATRIX_MOVES",
    "MATRIX_TRANSPOSE",
    "MEASURED_ON",
    "OPCODES",
    "REQUIRED",
    "SIMULATED",
    "TARGETS",
    "TARGET_NAMES",
    "TYPE_WORDS",
    "WMMA_MOVES",
    "WMMA_PRODUCTS",
    "WORDS",
    "AnyInstruction",
    "Door",
    "Family",
    "FragmentForm",
    "FragmentHolder",
    "FragmentInstruction",
    "FragmentMove",
    "FragmentTranspose",
    "Gpus",
    "Instruction",
    "Spelling",
    "SpellingSlot",
    "Target",
    "Version",
    "WarpgroupFamily",
    "WarpgroupInstruction",
    "WmmaProduct",
    "WmmaTransfer",
    "Words",
    "bare",
    "check_known",
    "check_target",
    "explained",
    "find",
    "fragment_instructions",
    "instructions",
    "kept_words",
    "left_words",
    "near",
    "parse",
    "parse_any",
    "parse_fragments",
    "parse_holder",
    "parse_warpgroup",
    "since",
    "wanted",
    "warpgroup_instructions",
]
