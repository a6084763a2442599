"""Programs of the machine: numbered steps."""

from .accumulators import product_registers
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
    ProductRegister,
    ProductRegisters,
    Program,
    ReadOnly,
    Return,
    SharedAddress,
    Slot,
    StepOperand,
    Sum,
)
from .stores_before_waits import early_stores
