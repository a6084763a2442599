"""Which elements of a product are poison.

The rules:

1. D[i, j] is poison if a bit of row i of A is, or of column j of B, of C[i, j], or of the metadata or a scale of that
   row or column: also where the other factor is 0, because 0 times infinity is NaN.
2. A poison element is poison in all its bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._arrays import Array, all_ones
from ...execution import Ids
from ...isa import Instruction
from ...layouts import Layout
from ...scaling import block_scales
from ...sparsity import SORTED_CODES, sparse_a


def poison_of_mma(
    row: Instruction, masks: Mapping[str, Array], selector: int, ids: Ids, rows: Array | None = None
) -> Array:
    """Return the poison bits of D's registers, `[block, warp, register, lane]`.

    Parameters
    ----------
    row : Instruction
    masks : mapping of str to ndarray
        The poison bits of A, B and C, `[block, warp, register, lane]`, and of metadata and scales,
        `[block, warp, lane]`.
    selector, ids
        Of the instruction.
    rows : ndarray of bool, optional
        Rows of A that are poison besides, `[block, warp, row]`.
    """
    a, b, c = (collected(row.layout(name), masks[name]) != 0 for name in ("A", "B", "C"))
    if row.sparse:
        a = a | _of_rows(sparse_a(row).read(masks["metadata"], selector))[:, :, None]
    if rows is not None:
        a = a | rows[:, :, None, :, None]
    if row.block_scale:
        scales = block_scales(row)
        a = a | _of_rows(scales.unpack("A", masks["scale_a"], **ids["A"]))[:, :, None]
        b = b | _of_rows(scales.unpack("B", masks["scale_b"], **ids["B"]))[:, :, None].swapaxes(-1, -2)
    return spread(row.layout("D"), poison_of_product(a, b, c))


def undefined_rows(row: Instruction, words: Array, selector: int, target: str) -> Array:
    """Return which rows of A, `[..., row]`, have metadata that PTX or a target leaves undefined."""
    sparse = sparse_a(row)
    legal = np.isin(sparse.read(words, selector), sorted(sparse.legal_codes(target)))
    return np.asarray(~legal.all(axis=-1))


def _of_rows(words: Array) -> Array:
    """Return which rows, `[..., row, 1]`, have a bit in one of several words."""
    return np.asarray((words != 0).any(axis=-1, keepdims=True))


def rows_of(row: Instruction, words: Array, selector: int) -> Array:
    """Return which rows of A, `[..., row]`, have a bit in words of metadata."""
    return _of_rows(sparse_a(row).read(words, selector))[..., 0]


def legal_rows(row: Instruction, words: Array, rows: Array, selector: int) -> Array:
    """Return words of metadata in which some rows, bool `[..., row]`, have legal indices."""
    sparse = sparse_a(row)
    nibbles, bad = sparse.read(words, selector), rows[..., None]
    legal: Any = nibbles.dtype.type(min(sparse.legal_codes() & SORTED_CODES))
    return sparse.pack(np.where(bad, legal, nibbles), selector, words.copy())


def poison_of_product(a: Array, b: Array, c: Array) -> Array:
    """Return the poison elements of D, `[..., copy, row, column]`, from those of A, B and C (rule 1)."""
    rows, columns = np.asarray(a.any(axis=-1, keepdims=True)), np.asarray(b.any(axis=-2, keepdims=True))
    if rows.shape[2] != c.shape[2]:  # a fragment that holds elements in several lanes
        rows, columns, c = (np.asarray(x.any(axis=2, keepdims=True)) for x in (rows, columns, c))
    return np.asarray(rows | columns | c)


def collected(layout: Layout, registers: Array) -> Array:
    """Make matrices `[block, warp, copy, row, column]` of registers."""
    word, position = layout.slots
    words = registers.reshape(*registers.shape[:2], -1)[..., word]
    if layout.packing.per_register > 1:
        words = words >> layout.packing.shifts[position] & registers.dtype.type(layout.packing.mask)
    return words.reshape(*registers.shape[:2], layout.matrices, *layout.shape[-2:])


def spread(layout: Layout, elements: Array) -> Array:
    """Return registers in which all bits of some elements, bool `[block, warp, copy, row, column]`, are set."""
    codes = all_ones(elements.reshape(*elements.shape[:2], -1)[..., layout.flat], layout.packing.dtype)
    mask: Any = layout.packing.dtype.type(layout.packing.mask)
    return layout.packing.join(codes & mask)
