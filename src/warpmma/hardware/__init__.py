"""Results of real GPUs: recorded registers and their replay, and PTX kernels that record them.

An archive is a NumPy `.npz` without pickled objects. Its keys are `MNEMONIC|field`:

* `a`, `b`, `c`: operand registers, `[warp, register, lane]`, uint32 (uint64 for f64);
* `d`: registers that the hardware returned. Of a sparse instruction instead `e`, metadata `[warp, lane]`, and `d0`,
  `d1`, ...: one result for each selector;
* of a block-scaled instruction also `sa` and `sb`, scales `[warp, lane]`, and `ids`, four integers: byte-id and
  thread-id of A, byte-id and thread-id of B;

and, without a mnemonic and all optional, texts of up to 1,000 characters: `target` (such as "sm_90a"), `device` (GPU,
driver, toolkit), and `undefined`, "hardware" where the metadata is such as PTX leaves undefined.

Nothing of an archive is read before its directory and the headers of its arrays agree with that and with each other. It
may inflate to 256 MiB, or to 64 times its own length.

`comparing` runs instructions of a GPU beside the simulator, and writes reports; `generators` draws operands.
"""

from typing import TYPE_CHECKING

from .._lazy import on_demand as _on_demand

if TYPE_CHECKING:  # what `_ORIGINS` says
    from .archives import Recording, Replay, execute_fields, open_recording, shipped
    from .comparing import EXPERIMENTS as EXPERIMENTS
    from .comparing import LAUNCHED_PARTS as LAUNCHED_PARTS
    from .comparing import MOST_BYTES as MOST_BYTES
    from .comparing import MOVED_BYTES as MOVED_BYTES
    from .comparing import Answer as Answer
    from .comparing import AnyGpu as AnyGpu
    from .comparing import Asked as Asked
    from .comparing import Campaign as Campaign
    from .comparing import Candidate as Candidate
    from .comparing import ComparedGroup as ComparedGroup
    from .comparing import Counts as Counts
    from .comparing import Experiment as Experiment
    from .comparing import Found as Found
    from .comparing import LaneDifference as LaneDifference
    from .comparing import LaunchComparison as LaunchComparison
    from .comparing import LaunchedForm as LaunchedForm
    from .comparing import LaunchedWork as LaunchedWork
    from .comparing import MatrixComparison as MatrixComparison
    from .comparing import MatrixDifference as MatrixDifference
    from .comparing import MoveComparison as MoveComparison
    from .comparing import Operands as Operands
    from .comparing import PlaceDifference as PlaceDifference
    from .comparing import Refused as Refused
    from .comparing import Report as Report
    from .comparing import Room as Room
    from .comparing import RowJob as RowJob
    from .comparing import WmmaForm as WmmaForm
    from .comparing import Worker as Worker
    from .comparing import answer as answer
    from .comparing import archive_of as archive_of
    from .comparing import compared_lanes as compared_lanes
    from .comparing import comparisons as comparisons
    from .comparing import device_of as device_of
    from .comparing import different_lanes as different_lanes
    from .comparing import every_variant as every_variant
    from .comparing import experiments_of as experiments_of
    from .comparing import function_plan as function_plan
    from .comparing import lane_shown as lane_shown
    from .comparing import launched_groups as launched_groups
    from .comparing import launched_in_simulator as launched_in_simulator
    from .comparing import launched_left_out as launched_left_out
    from .comparing import matched as matched
    from .comparing import matrix_groups as matrix_groups
    from .comparing import move_inputs as move_inputs
    from .comparing import move_kernel as move_kernel
    from .comparing import move_launched as move_launched
    from .comparing import move_simulated as move_simulated
    from .comparing import not_compared as not_compared
    from .comparing import process_worker as process_worker
    from .comparing import recorded as recorded
    from .comparing import row_immediates as row_immediates
    from .comparing import row_kernel as row_kernel
    from .comparing import row_simulated as row_simulated
    from .comparing import row_statement as row_statement
    from .comparing import separating as separating
    from .comparing import target_of as target_of
    from .comparing import thread_worker as thread_worker
    from .comparing import variant_inputs as variant_inputs
    from .comparing import wmma_forms as wmma_forms
    from .comparing import wmma_fragments as wmma_fragments
    from .comparing import wmma_inputs as wmma_inputs
    from .comparing import wmma_kernel as wmma_kernel
    from .comparing import wmma_result as wmma_result
    from .emitting import ptx_kernel, ptx_module, ptx_statement
    from .generators import ITEM_BYTES as ITEM_BYTES
    from .generators import STYLES as STYLES
    from .generators import TENSOR_BYTES as TENSOR_BYTES
    from .generators import MmaJob as MmaJob
    from .generators import copy_case as copy_case
    from .generators import drawn_nibbles as drawn_nibbles
    from .generators import im2col_case as im2col_case
    from .generators import instruction_inputs as instruction_inputs
    from .generators import map_modes as map_modes
    from .generators import map_of as map_of
    from .generators import map_row as map_row
    from .generators import map_strides as map_strides
    from .generators import metadata_words as metadata_words
    from .generators import mixed as mixed
    from .generators import mma_jobs as mma_jobs
    from .generators import operands as operands
    from .generators import operation_inputs as operation_inputs
    from .generators import outer_codes as outer_codes
    from .generators import picked as picked
    from .generators import random_codes as random_codes
    from .generators import signature as signature
    from .generators import styles as styles
    from .generators import tensor_bytes as tensor_bytes
    from .generators import with_exponents as with_exponents

_ORIGINS = {
    ".archives": ("Recording", "Replay", "execute_fields", "open_recording", "shipped"),
    ".comparing": (
        "EXPERIMENTS", "LAUNCHED_PARTS", "MOST_BYTES", "MOVED_BYTES", "Answer", "AnyGpu", "Asked", "Campaign",
        "Candidate", "ComparedGroup", "Counts", "Experiment", "Found", "LaneDifference", "LaunchComparison",
        "LaunchedForm", "LaunchedWork", "MatrixComparison", "MatrixDifference", "MoveComparison", "Operands",
        "PlaceDifference", "Refused", "Report", "Room", "RowJob", "WmmaForm", "Worker", "answer", "archive_of",
        "compared_lanes", "comparisons", "device_of", "different_lanes", "every_variant", "experiments_of",
        "function_plan", "lane_shown", "launched_groups", "launched_in_simulator", "launched_left_out", "matched",
        "matrix_groups", "move_inputs", "move_kernel", "move_launched", "move_simulated", "not_compared",
        "process_worker", "recorded", "row_immediates", "row_kernel", "row_simulated", "row_statement", "separating",
        "target_of", "thread_worker", "variant_inputs", "wmma_forms", "wmma_fragments", "wmma_inputs", "wmma_kernel",
        "wmma_result",
    ),
    ".emitting": ("ptx_kernel", "ptx_module", "ptx_statement"),
    ".generators": (
        "ITEM_BYTES", "STYLES", "TENSOR_BYTES", "MmaJob", "copy_case", "drawn_nibbles", "im2col_case",
        "instruction_inputs", "map_modes", "map_of", "map_row", "map_strides", "metadata_words", "mixed", "mma_jobs",
        "operands", "operation_inputs", "outer_codes", "picked", "random_codes", "signature", "styles", "tensor_bytes",
        "with_exponents",
    ),
}  # fmt: skip

__all__ = [
    "Recording", "Replay", "execute_fields", "open_recording", "ptx_kernel", "ptx_module", "ptx_statement", "shipped",
]  # fmt: skip

if not TYPE_CHECKING:  # to which every name would be one
    __getattr__, __dir__ = _on_demand(__name__, _ORIGINS)
