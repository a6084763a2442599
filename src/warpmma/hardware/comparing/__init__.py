"""Instructions, operations and functions of a GPU beside the simulator: kernels, pieces of work, reports."""

from .campaign import Campaign
from .candidates import Candidate, separating
from .everything import comparisons, device_of, matched, not_compared, target_of
from .experiments import EXPERIMENTS, Answer, Experiment, answer, experiments_of
from .findings import ComparedGroup, Found, LaneDifference, MatrixDifference, Refused
from .function_operands import Operands, function_plan
from .matrix_cases import MatrixComparison, matrix_groups
from .move_cases import MOVED_BYTES, MoveComparison, move_inputs, move_kernel, move_simulated
from .recording import archive_of, recorded
from .reports import MOST_BYTES, Counts, Report
from .rooms import AnyGpu, Room
from .row_jobs import RowJob, compared_lanes, different_lanes, lane_shown, row_immediates, row_simulated
from .row_kernels import row_kernel, row_statement
from .row_variants import every_variant, variant_inputs
from .workers import Asked, Worker, process_worker, thread_worker

__all__ = [
    "EXPERIMENTS", "MOST_BYTES", "MOVED_BYTES", "Answer", "AnyGpu", "Asked", "Campaign", "Candidate",
    "ComparedGroup", "Counts", "Experiment", "Found", "LaneDifference", "MatrixComparison", "MatrixDifference",
    "MoveComparison", "Operands", "Refused", "Report", "Room", "RowJob", "Worker", "answer", "archive_of",
    "compared_lanes", "comparisons", "device_of", "different_lanes", "every_variant", "experiments_of",
    "function_plan", "lane_shown", "matched", "matrix_groups", "move_inputs", "move_kernel", "move_simulated",
    "not_compared", "process_worker", "recorded", "row_immediates", "row_kernel", "row_simulated", "row_statement",
    "separating", "target_of", "thread_worker", "variant_inputs",
]  # fmt: skip
