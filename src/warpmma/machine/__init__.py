"""The simulated device: memory, warps, barriers, asynchronous copies, hazards and costs."""

from .banks import BANKS, BankPattern, SharedSite, wavefronts
from .batch import Batch
from .clocks import History
from .costs import Costs, no_site
from .device import Device, DeviceArray
from .door import execute
from .element_types import contradicts, expected
from .global_memory import GlobalMemory
from .grid import Grid
from .hazards import KINDS, Hazard, HazardError, HazardWarning, Policy, Reporter
from .interpreting import Limit, run_program
from .literals import fits, literal
from .liveness import let_go
from .outcome import Launch
from .provided import Provided
from .register_file import RegisterFile
from .retyping import Retyped, retyped
from .site import Site
from .special import special_kind
from .steps import (
    Alternative,
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
from .swizzles import CANDIDATES, Swizzle
from .unpredicted import Unpredicted
from .warp_register import WarpRegister, merged
from .watching import Watch, WatchedProduct, Watching

__all__ = [
    "BANKS",
    "CANDIDATES",
    "KINDS",
    "Alternative",
    "Argument",
    "BankPattern",
    "Batch",
    "Branch",
    "BranchTable",
    "Call",
    "Callee",
    "Constant",
    "Costs",
    "Device",
    "DeviceArray",
    "Frame",
    "GlobalMemory",
    "Grid",
    "Guard",
    "Hazard",
    "HazardError",
    "HazardWarning",
    "History",
    "Inverted",
    "Launch",
    "Limit",
    "Policy",
    "Program",
    "Provided",
    "ReadOnly",
    "RegisterFile",
    "Reporter",
    "Return",
    "Retyped",
    "RowStep",
    "SharedSite",
    "Site",
    "Slot",
    "StepOperand",
    "Sum",
    "Swizzle",
    "Unpredicted",
    "WarpRegister",
    "Watch",
    "WatchedProduct",
    "Watching",
    "contradicts",
    "execute",
    "expected",
    "fits",
    "let_go",
    "literal",
    "merged",
    "no_site",
    "retyped",
    "run_program",
    "special_kind",
    "wavefronts",
]
