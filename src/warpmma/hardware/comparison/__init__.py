"""What comparing with a GPU takes: kernels of PTX, a runner of them, what this package computes, recorded lanes.

`InstructionGpu`, `OperationGpu` and `MoveGpu` run on this machine's GPU, and need `ptxas` on the PATH and CuPy; nothing
else here does.
"""

from .instruction_jobs import InstructionGpu, MmaJob, mma_jobs, mma_simulated
from .lane_archives import LaneRecorder, recorded_lanes
from .move_kernels import MoveGpu, move_kernel
from .row_jobs import OperationGpu, RowJob, compared_lanes, different_lanes, lane_shown, row_immediates, row_simulated
from .row_kernels import row_kernel, row_statement
from .runner import KernelGpu

__all__ = [
    "InstructionGpu",
    "KernelGpu",
    "LaneRecorder",
    "MmaJob",
    "MoveGpu",
    "OperationGpu",
    "RowJob",
    "compared_lanes",
    "different_lanes",
    "lane_shown",
    "mma_jobs",
    "mma_simulated",
    "move_kernel",
    "recorded_lanes",
    "row_immediates",
    "row_kernel",
    "row_simulated",
    "row_statement",
]
