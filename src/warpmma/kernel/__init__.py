"""Simulated blocks of warps: kernels in Python against PTX's instructions, with hazards found and costs counted.

`launch` runs a kernel; `Threads` is what it computes with. The instructions around `mma` are rows keyed by their PTX
mnemonic (`operation`, `matrix_move`), registers in and registers out.
"""

from .costs import Costs, Swizzle
from .fragments import MatrixMove, matrix_move, matrix_moves
from .hazards import KINDS, Hazard, HazardError, HazardWarning, Site
from .launch import Launch, Output, launch
from .operations import Operation, operation, operations
from .registers import Register
from .threads import Threads

__all__ = [
    "KINDS",
    "Costs",
    "Hazard",
    "HazardError",
    "HazardWarning",
    "Launch",
    "MatrixMove",
    "Operation",
    "Output",
    "Register",
    "Site",
    "Swizzle",
    "Threads",
    "launch",
    "matrix_move",
    "matrix_moves",
    "operation",
    "operations",
]
