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
    from .comparing import (
        EXPERIMENTS,
        MOST_BYTES,
        MOVED_BYTES,
        Answer,
        AnyGpu,
        Campaign,
        Candidate,
        ComparedGroup,
        Counts,
        Experiment,
        Found,
        LaneDifference,
        MatrixComparison,
        MatrixDifference,
        MoveComparison,
        Operands,
        Refused,
        Report,
        Room,
        RowJob,
        answer,
        archive_of,
        compared_lanes,
        comparisons,
        device_of,
        different_lanes,
        every_variant,
        experiments_of,
        function_plan,
        lane_shown,
        matched,
        matrix_groups,
        move_inputs,
        move_kernel,
        move_simulated,
        not_compared,
        recorded,
        row_immediates,
        row_kernel,
        row_simulated,
        row_statement,
        separating,
        target_of,
        variant_inputs,
    )
    from .emitting import ptx_kernel, ptx_module, ptx_statement
    from .generators import (
        STYLES,
        MmaJob,
        instruction_inputs,
        metadata_words,
        mixed,
        mma_jobs,
        operands,
        operation_inputs,
        random_codes,
        signature,
        styles,
        with_exponents,
    )

_ORIGINS = {
    ".archives": ("Recording", "Replay", "execute_fields", "open_recording", "shipped"),
    ".comparing": (
        "EXPERIMENTS", "MOST_BYTES", "MOVED_BYTES", "Answer", "AnyGpu", "Campaign", "Candidate", "ComparedGroup",
        "Counts", "Experiment", "Found", "LaneDifference", "MatrixComparison", "MatrixDifference", "MoveComparison",
        "Operands", "Refused", "Report", "Room", "RowJob", "answer", "archive_of", "compared_lanes", "comparisons",
        "device_of", "different_lanes", "every_variant", "experiments_of", "function_plan", "lane_shown", "matched",
        "matrix_groups", "move_inputs", "move_kernel", "move_simulated", "not_compared", "recorded", "row_immediates",
        "row_kernel", "row_simulated", "row_statement", "separating", "target_of", "variant_inputs",
    ),
    ".emitting": ("ptx_kernel", "ptx_module", "ptx_statement"),
    ".generators": (
        "STYLES", "MmaJob", "instruction_inputs", "metadata_words", "mixed", "mma_jobs", "operands",
        "operation_inputs", "random_codes", "signature", "styles", "with_exponents",
    ),
}  # fmt: skip

__all__ = [
    "EXPERIMENTS", "MOST_BYTES", "MOVED_BYTES", "STYLES", "Answer", "AnyGpu", "Campaign", "Candidate", "ComparedGroup",
    "Counts", "Experiment", "Found", "LaneDifference", "MatrixComparison", "MatrixDifference", "MmaJob",
    "MoveComparison", "Operands", "Recording", "Refused", "Replay", "Report", "Room", "RowJob", "answer", "archive_of",
    "compared_lanes", "comparisons", "device_of", "different_lanes", "every_variant", "execute_fields",
    "experiments_of", "function_plan", "instruction_inputs", "lane_shown", "matched", "matrix_groups",
    "metadata_words", "mixed", "mma_jobs", "move_inputs", "move_kernel", "move_simulated", "not_compared",
    "open_recording", "operands", "operation_inputs", "ptx_kernel", "ptx_module", "ptx_statement", "random_codes",
    "recorded", "row_immediates", "row_kernel", "row_simulated", "row_statement", "separating", "shipped", "signature",
    "styles", "target_of", "variant_inputs", "with_exponents",
]  # fmt: skip

if not TYPE_CHECKING:  # to which every name would be one
    __getattr__, __dir__ = _on_demand(__name__, _ORIGINS)
