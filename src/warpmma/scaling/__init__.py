"""Block scales: which elements share one, where it sits in a warp's registers, and how a matrix gets its own.

`D = (A * scale_A) * (B * scale_B) + C`: scale_A is M x S, scale_B is S x N; S is 1, 2, 4 for 1X, 2X, 4X.
Block s of a row of A or a column of B is its K/S elements from s*K/S on. K is logical: of a sparse A they are
columns of the dense matrix (PTX ISA 9.1, 9.7.14.3; docs/specification/ptx.md 4).

Each lane gives a 32-bit word of scales, and where a scale sits renames bits. Its byte in the word has, low to
high, the bits of s, then those of the byte-id that s leaves over. Its lane, l4 to l0, is i2 i1 i0 t0 i3 for a
row i of A, so a pair of lanes in each quad, and i2 i1 i0 t1 t0 for a column i of B; t is the thread-id.

The functions whose names end in `_checked`, `check_ids` and `check_scaled` are the core of the others: they take
records and arrays, and do not look at them again.
"""

from .quantizing import Quantized, quantize
from .words import (
    block_size,
    block_size_checked,
    byte_ids,
    check_ids,
    check_scaled,
    checked_ids,
    pack_scales,
    pack_scales_checked,
    scale_codes,
    scale_codes_checked,
    scale_ids,
    scale_layout,
    scale_place,
    thread_ids,
    unpack_scales,
    unpack_scales_checked,
)

__all__ = [
    "Quantized",
    "block_size",
    "block_size_checked",
    "byte_ids",
    "check_ids",
    "check_scaled",
    "checked_ids",
    "pack_scales",
    "pack_scales_checked",
    "quantize",
    "scale_codes",
    "scale_codes_checked",
    "scale_ids",
    "scale_layout",
    "scale_place",
    "thread_ids",
    "unpack_scales",
    "unpack_scales_checked",
]
