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
from .instruction_words import Named, every_fitting, named, qualifiers, words_of
from .kinds import AnyInstruction, FragmentHolder, check_target
from .known import check_known, since
from .matrix_moves import MATRIX_MOVES, MATRIX_TRANSPOSE, FragmentMove, FragmentTranspose
from .mma import Instruction, instructions
from .mnemonic_words import STAND_FOR, TYPES, VOCABULARY, fragment_test, has_place, type_named
from .names import OPCODES, SIMULATED, Door, explained, near
from .parsing import parse, parse_any, parse_holder, plainest
from .signatures import (
    POLICY,
    OperandSpec,
    RegisterType,
    Signature,
    Signed,
    address,
    numbered,
    packed,
    present,
    printed,
    register_type,
    value,
)
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
    "POLICY",
    "REQUIRED",
    "SIMULATED",
    "STAND_FOR",
    "TARGETS",
    "TARGET_NAMES",
    "TYPES",
    "TYPE_WORDS",
    "VOCABULARY",
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
    "Named",
    "OperandSpec",
    "RegisterType",
    "Signature",
    "Signed",
    "Spelling",
    "SpellingSlot",
    "Target",
    "Version",
    "WarpgroupFamily",
    "WarpgroupInstruction",
    "WmmaProduct",
    "WmmaTransfer",
    "Words",
    "address",
    "bare",
    "check_known",
    "check_target",
    "every_fitting",
    "explained",
    "find",
    "fragment_instructions",
    "fragment_test",
    "has_place",
    "instructions",
    "kept_words",
    "left_words",
    "named",
    "near",
    "numbered",
    "packed",
    "parse",
    "parse_any",
    "parse_fragments",
    "parse_holder",
    "parse_warpgroup",
    "plainest",
    "present",
    "printed",
    "qualifiers",
    "register_type",
    "since",
    "type_named",
    "value",
    "wanted",
    "warpgroup_instructions",
    "words_of",
]
