"""Sparse A: the pattern of its columns, its stored elements, and the metadata with their positions.

A row of a sparse A is cut into groups of four *places*, and two places of each are stored. A place is one
element of 8 or 16 bits, a pair of 4-bit elements, or half a tf32 element. A 2-bit index names a place; two
make a group's *nibble* of metadata, `i0 | i1 << 2`: i0 is the first stored place, i1 the second.

The metadata register is a fragment layout like any other: its elements are a lane's nibbles, e0 e1 e2, its
rows those of A, its columns the groups of a row, and the selector names one of several matrices. The law:

* The row's bits are l2 l3 l4, then e2 for types of 16 and 32 bits and l0 for narrower ones.
* Of the rest, in the order e0 e1 e2 l0 l1, the group takes as many as it needs, the selector what is left.

* In a `wgmma` each warp has the metadata of its 16 rows: l5 l6, which number the warps, are bits 4 and 5 of the row.

In every function `instruction` is a mnemonic or a record of `mma` or `wgmma`, `selector` one of
`selectors(instruction)`, `words` metadata registers, uint32 `[..., 32]` (of `wgmma` `[..., 128]`; `[..., 4, 32]` is
read as well), and `indices` i0 and i1 of every group, 0 to 3, `[..., m, groups, 2]`.
Anything else, a dense instruction too, is a `MetadataError`. A matrix is A, `[..., m, k]`, or its stored
elements, `[..., m, k/2]`, of A's NumPy or ml_dtypes type or raw unsigned codes; another shape or dtype, and
batches that do not broadcast, are an `OperandError`.

Functions of matrices take them whole, of any m and any k that the group's width divides, as `matmul` does; those of
metadata registers work on the m and k of one instruction.

Inside the package, `sparse_a(record)` gives the core of these functions: `SparseA`, which takes checked arrays, and
nibbles in place of indices.

Sources: PTX ISA 9.1, 9.7.14.6.1 "Sparse matrix storage" (patterns, codes), 9.7.14.6.2 (metadata, as figures);
docs/specification/ptx.md 3; measured on an H200 (docs/specification/h200.md 2): 88 mnemonics with every selector,
819,200 outputs, 0 differences, and all sixteen nibbles.
"""

from .patterns import SORTED_CODES, UNDEFINED_MEASURED, Pattern, stored_columns
from .patterns import Codes as Codes
from .patterns import nibble_of as nibble_of
from .sparse_functions import (
    check_indices,
    check_metadata,
    compress,
    expand,
    halves,
    legal_codes,
    metadata_layout,
    metadata_place,
    pack_metadata,
    pattern,
    positions,
    prune,
    rows_met,
    selectors,
    unpack_metadata,
)
from .sparse_operand import SparseA, sparse_a

__all__ = [
    "SORTED_CODES", "UNDEFINED_MEASURED", "Pattern", "SparseA", "check_indices", "check_metadata", "compress",
    "expand", "halves", "legal_codes", "metadata_layout", "metadata_place", "pack_metadata", "pattern", "positions",
    "prune", "rows_met", "selectors", "sparse_a", "stored_columns", "unpack_metadata",
]  # fmt: skip
