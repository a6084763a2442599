"""Instructions, operations and functions of a GPU beside the simulator: kernels, pieces of work, reports."""

from .function_operands import Operands, function_plan
from .row_jobs import RowJob, compared_lanes, different_lanes, lane_shown, row_immediates, row_simulated
from .row_kernels import row_kernel, row_statement
from .row_variants import row_variants, variant_inputs

__all__ = [
    "Operands", "RowJob", "compared_lanes", "different_lanes", "function_plan", "lane_shown", "row_immediates",
    "row_kernel", "row_simulated", "row_statement", "row_variants", "variant_inputs",
]  # fmt: skip
