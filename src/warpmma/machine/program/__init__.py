"""Programs of the machine: numbered steps."""

from .flights import loads_in_flight
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
    LoadsInFlight,
    Program,
    ReadOnly,
    Return,
    SharedAddress,
    Slot,
    StepOperand,
    Sum,
)
