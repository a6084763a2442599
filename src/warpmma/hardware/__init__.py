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
"""

from .archives import Recording, Replay, execute_fields, open_recording, shipped
from .emitting import ptx_kernel, ptx_module, ptx_statement

__all__ = [
    "Recording", "Replay", "execute_fields", "open_recording", "ptx_kernel", "ptx_module", "ptx_statement", "shipped",
]  # fmt: skip
