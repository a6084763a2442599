"""How PTX spells instructions, and the base of their records."""

from .instruction_forms import InstructionForm, InstructionTable
from .lines import Spelling, SpellingSlot, Words, kept_words, left_words
from .mnemonic_slots import Choices, Grammar, MnemonicRow, MnemonicSlot, Refusal
from .nearest import near
from .record import Convergence, FormInstruction, PtxInstruction, convergence_of
from .signatures import (
    POLICY,
    OperandSpec,
    RegisterType,
    Signature,
    Signed,
    address,
    fragments,
    numbered,
    packed,
    present,
    printed,
    register_type,
    value,
)
from .vocabulary import ABSENT, KEPT, OPCODES, REQUIRED, SIMULATED, TYPE_WORDS, WORDS, Door, Version, bare, wanted
