"""Programs of the machine: numbered steps."""

from .liveness import dead_slots
from .steps import (
    Alternative,
    AnyStep,
    Argument,
    Branch,
    BranchTable,
    Call,
    Callee,
    Constant,
    Frame,
    Guard,
    InstructionStep,
    Inverted,
    Program,
    ReadOnly,
    Return,
    SharedAddress,
    Slot,
    StepOperand,
    Sum,
)
