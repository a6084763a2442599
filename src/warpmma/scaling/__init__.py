"""Block scales: which elements share one, where it sits in a warp's registers, and how to quantize a matrix.

`D = (A * scale_A) * (B * scale_B) + C`: scale_A is M x S, scale_B is S x N; S is 1, 2, 4 for 1X, 2X, 4X.
Block s of a row of A or a column of B is its K/S elements from s*K/S on. K is logical: of a sparse A they are
columns of the dense matrix (PTX ISA 9.1, 9.7.14.3; docs/specification/ptx.md 4).

Each lane provides a 32-bit word of scales, and the position of a scale is a renaming of bits. Its byte in the word has,
low to high, the bits of s, then those of the byte-id that s leaves over. Its lane, l4 to l0, is i2 i1 i0 t0 i3 for a
row i of A, so a pair of lanes in each quad, and i2 i1 i0 t1 t0 for a column i of B; t is the thread-id.

Inside the package, `block_scales(record)` gives the core of these functions: `BlockScales`, which takes checked arrays
and ids.
"""

from .quantizing import Quantized, quantize
from .words import (
    BlockScales,
    block_scales,
    block_size,
    byte_ids,
    checked_ids,
    pack_scales,
    scale_codes,
    scale_ids,
    scale_layout,
    scale_place,
    thread_ids,
    unpack_scales,
)

__all__ = [
    "BlockScales", "Quantized", "block_scales", "block_size", "byte_ids", "checked_ids", "pack_scales", "quantize",
    "scale_codes", "scale_ids", "scale_layout", "scale_place", "thread_ids", "unpack_scales",
]  # fmt: skip
