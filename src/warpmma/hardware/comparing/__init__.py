"""Instructions, operations, functions and copies of a GPU beside the simulator: kernels, pieces of work, reports."""

from .campaign import Campaign
from .candidates import Candidate, separating
from .everything import comparisons, device_of, matched, not_compared, target_of
from .experiments import EXPERIMENTS, Answer, Experiment, answer, experiments_of
from .findings import ComparedGroup, Found, LaneDifference, MatrixDifference, PlaceDifference, Refused
from .form_groups import LAUNCHED_PARTS, launched_groups, launched_left_out
from .function_operands import Operands, function_plan
from .launched_cases import LaunchComparison, LaunchedForm, LaunchedWork, launched_in_simulator
from .matrix_cases import MatrixComparison, matrix_groups
from .move_cases import MOVED_BYTES, MoveComparison, move_inputs, move_kernel, move_launched, move_simulated
from .recording import archive_of, recorded
from .reports import MOST_BYTES, Counts, Report
from .rooms import AnyGpu, Room
from .row_jobs import RowJob, compared_lanes, different_lanes, lane_shown, row_immediates, row_simulated
from .row_kernels import row_kernel, row_statement
from .row_variants import every_variant, variant_inputs
from .wmma_cases import WmmaForm, wmma_forms, wmma_fragments, wmma_inputs, wmma_kernel, wmma_result
from .workers import Asked, Worker, process_worker, thread_worker

__all__ = [
    "EXPERIMENTS", "LAUNCHED_PARTS", "MOST_BYTES", "MOVED_BYTES", "Answer", "AnyGpu", "Asked", "Campaign",
    "Candidate", "ComparedGroup", "Counts", "Experiment", "Found", "LaneDifference", "LaunchComparison",
    "LaunchedForm", "LaunchedWork", "MatrixComparison", "MatrixDifference", "MoveComparison", "Operands",
    "PlaceDifference", "Refused", "Report", "Room", "RowJob", "WmmaForm", "Worker", "answer", "archive_of",
    "compared_lanes", "comparisons", "device_of", "different_lanes", "every_variant", "experiments_of",
    "function_plan", "lane_shown", "launched_groups", "launched_in_simulator", "launched_left_out", "matched",
    "matrix_groups", "move_inputs", "move_kernel", "move_launched", "move_simulated", "not_compared", "process_worker",
    "recorded", "row_immediates", "row_kernel", "row_simulated", "row_statement", "separating", "target_of",
    "thread_worker", "variant_inputs", "wmma_forms", "wmma_fragments", "wmma_inputs", "wmma_kernel", "wmma_result",
]  # fmt: skip
