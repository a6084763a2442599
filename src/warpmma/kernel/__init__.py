"""Simulated blocks of warps: kernels in Python against PTX's instructions, with hazards found and costs counted.

`launch` runs a kernel; `Threads` is what it computes with. The instructions around `mma` are rows keyed by their PTX
mnemonic (`operation`, `matrix_move`), registers in and registers out.
"""

from ..machine import KINDS, Costs, Hazard, HazardError, HazardWarning, Launch, Site, Swizzle, Watch
from ..operations import MatrixMove, Operation, matrix_move, matrix_moves, operation, operations
from .launching import Output, launch
from .threads import Threads
from .values import Register

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
    "Watch",
    "launch",
    "matrix_move",
    "matrix_moves",
    "operation",
    "operations",
]
