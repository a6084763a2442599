"""Programs as the machine runs them: numbered steps."""

from .liveness import let_go
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
    Inverted,
    Program,
    ReadOnly,
    Return,
    RowStep,
    Slot,
    StepOperand,
    Sum,
)
