"""How PTX spells instructions, and the base class of their records."""

from .instruction_forms import InstructionForm, InstructionTable
from .lines import Spelling, Words
from .mnemonic_slots import Choices, Grammar, MnemonicRow, MnemonicSlot, Refusal
from .nearest import near
from .record import Convergence, FormInstruction, PtxInstruction
from .signatures import (
    POLICY,
    OperandSpec,
    RegisterType,
    Signature,
    address,
    check_since,
    fragments,
    numbered,
    packed,
    present,
    printed,
    register_type,
    value,
)
from .vocabulary import ABSENT, KEPT, OPCODES, REQUIRED, SIMULATED, TYPE_WORDS, WORDS, Door, Version, bare, wanted
