"""Whole matrices of a sparse A: their stored elements, their indices, and the rows of B that these meet."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from .._lazy import later
from ..errors import MetadataError
from ..isa import Instruction, parse
from .legal import DISTINCT, RULE, WHOLE, Codes, check_codes, codes_asked, codes_legal, first_outside, legal_are, said
from .metadata import batch_of, rows_of_groups
from .patterns import (
    checked_matrix,
    columns,
    heaviest,
    indices_of,
    named,
    nibble_of,
    nibbles_asked,
    pattern_checked,
    pieces,
    what_is_one,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .. import _arrays
    from .._arrays import Array

    UInt8 = npt.NDArray[np.uint8]
else:  # places of metadata need no NumPy
    np, _arrays = later("numpy"), later(".._arrays", __package__)


def compress(matrix: npt.ArrayLike, instruction: str | Instruction) -> tuple[Array, UInt8]:
    """Take the stored elements out of a matrix that obeys the pattern.

    Returns
    -------
    stored : ndarray
        `[..., m, k/2]`, of the dtype that came, bits preserved.
    indices : ndarray of uint8
        `[..., m, groups, 2]`, ascending. Where nonzeros are too few, the lowest free places are stored. Zeros
        are +0, -0, and tf32 codes with bits in their padding only.

    Raises
    ------
    MetadataError
        Names the first group that breaks the pattern.

    Examples
    --------
    >>> A = np.tile(np.float16([0, 5, 0, 6, 0, 0, 7, 0]), (100, 50))
    >>> stored, indices = compress(A, "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    >>> stored.shape, indices.shape
    ((100, 200), (100, 100, 2))
    >>> stored[0, :4], indices[0, :2].tolist()
    (array([5., 6., 0., 7.], dtype=float16), [[1, 3], [0, 2]])
    """
    record = parse(instruction)
    stored, nibbles = compress_checked(record, _arrays.as_array(matrix, f"{record}: A"))
    return stored, indices_of(nibbles)


def compress_checked(record: Instruction, matrix: Array) -> tuple[Array, UInt8]:
    """`compress` of a record and an array; instead of indices nibbles, `[..., m, groups]`."""
    law = pattern_checked(record)
    array, read = checked_matrix(record, matrix, law.width)
    batch = (*array.shape[:-1], array.shape[-1] // law.width)
    groups, table = array.reshape(-1, law.width), columns(law)
    stored, nibbles = np.empty((len(groups), law.kept), array.dtype), np.empty(len(groups), np.uint8)
    for piece in pieces(len(groups)):
        values = read(piece)
        occupied = np.any(values != 0, axis=-1)
        over = np.flatnonzero(occupied.sum(axis=-1) > law.units // 2)
        if over.size:
            at = named(law, np.unravel_index(piece.start + over[0], batch), what_is_one(record, array, law.width))
            raise MetadataError(
                f"{record}: A breaks the {law.kept}:{law.width} pattern at {at}: {values[over[0]].ravel().tolist()}; "
                f"expected at most {law.units // 2} nonzero {'pairs' if law.unit == 2 else 'elements'} (see prune)"
            )
        found = nibbles[piece] = nibble_of(law).take(np.packbits(occupied, axis=-1, bitorder="little")[:, 0])
        stored[piece] = np.take_along_axis(groups[piece], table.take(found, axis=0), axis=-1)
    return stored.reshape(*array.shape[:-1], array.shape[-1] // 2), nibbles.reshape(batch)


def prune(matrix: npt.ArrayLike, instruction: str | Instruction) -> Array:
    """Zero what must go for `compress` to accept a matrix; what it accepts comes back as it is.

    Of each group the largest magnitudes stay, and of equals the one at the lower index: two of four, or one
    of two for tf32. 4-bit types keep two pairs of four, ranked by the sum of a pair's two magnitudes. NaN is
    larger than infinity. What goes is +0 in the result, which has the dtype that came; zeros stay, -0 too.

    Examples
    --------
    >>> i = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> prune(np.tile(np.float16([1, -3, 2, -2]), (3, 5)), i)[0, :4]
    array([ 0., -3.,  2.,  0.], dtype=float16)
    """
    record = parse(instruction)
    law = pattern_checked(record)
    array, read = checked_matrix(record, _arrays.as_array(matrix, f"{record}: A"), law.width)
    pruned = array.copy()
    groups, zero = pruned.reshape(-1, law.width), np.zeros((), array.dtype)
    for piece in pieces(len(groups)):
        values = read(piece)
        # Infinity makes way for NaN: float64's largest is above every finite value of A's types.
        magnitude = np.nan_to_num(np.abs(values.astype(np.float64)), nan=np.inf, posinf=np.finfo(np.float64).max)
        goes = ~heaviest(magnitude.sum(axis=-1))[..., None] & (values != 0)
        groups[piece][goes.reshape(-1, law.width)] = zero
    return pruned


def expand(stored: npt.ArrayLike, indices: npt.ArrayLike, instruction: str | Instruction) -> Array:
    """Put stored elements where their indices say, +0 elsewhere: the inverse of `compress`.

    Indices come in either order. The result is `[..., m, k]`, of the dtype of `stored`; batches broadcast.
    Equal indices, and for tf32 all but (0, 1) and (2, 3), are a `MetadataError`.
    """
    record = parse(instruction)
    law = pattern_checked(record)
    array, _ = checked_matrix(record, _arrays.as_array(stored, f"{record}: A"), law.kept, stored=True)
    shape = (array.shape[-2], array.shape[-1] // law.kept)
    nibbles = nibbles_asked(record, indices, shape)
    codes = WHOLE if law.units == 2 else DISTINCT
    if place := first_outside(nibbles, codes):
        raise MetadataError(
            f"{record}: cannot expand {named(law, place, what_is_one(record, array, law.kept))}: its indices are "
            f"{said(nibbles[place])}; expected {RULE[codes]}"
        )
    batch = batch_of(record, stored=array.shape[:-2], indices=nibbles.shape[:-2])
    given = np.broadcast_to(array, (*batch, *array.shape[-2:])).reshape(-1, law.kept)
    which = np.broadcast_to(nibbles, (*batch, *shape)).reshape(-1)
    matrix, table = np.zeros((len(which), law.width), array.dtype), columns(law)
    for piece in pieces(len(which)):
        np.put_along_axis(matrix[piece], table.take(which[piece], axis=0), given[piece], axis=-1)
    return matrix.reshape(*batch, shape[0], shape[1] * law.width)


def check_indices(
    indices: npt.ArrayLike, instruction: str | Instruction, *, legal: Iterable[int] | None = None
) -> None:
    """Raise `MetadataError` unless the indices of every group are legal: `check_metadata` of whole matrices.

    Legal are `legal_codes(instruction)`, or the nibbles in `legal`, 0 to 15. The error names the first that are not.

    Examples
    --------
    >>> i = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    >>> check_indices(np.tile([1, 3], (100, 50, 1)), i)
    >>> check_indices(np.tile([3, 1], (100, 50, 1)), i)
    Traceback (most recent call last):
        ...
    warpmma.errors.MetadataError: mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32:
    indices (3, 1), nibble 0x7, of row 0, group 0 (columns 0 to 3);
    legal are 0x4, 0x8, 0x9, 0xc, 0xd, 0xe (PTX: i0 < i1)
    """
    record = parse(instruction)
    nibbles = nibbles_asked(record, indices)
    _check(record, nibbles, codes_legal(record) if legal is None else codes_asked(legal), legal is None)


def check_indices_on(record: Instruction, nibbles: Array, target: str) -> None:
    """Raise `MetadataError` for nibbles that are undefined, `UnsupportedError` for ones of unknown effect on a target.

    Nibbles are `[..., m, groups]`, of whole matrices.
    """
    check_codes(record, target, partial(_check, record, nibbles))


def _check(record: Instruction, nibbles: Array, codes: Codes, by_rule: bool) -> None:
    if place := first_outside(nibbles, codes):
        raise MetadataError(
            f"{record}: indices {said(nibbles[place])}, nibble {nibbles[place]:#x}, of "
            f"{named(pattern_checked(record), place, 'matrix')}; {legal_are(codes, by_rule)}"
        )


def rows_met(indices: npt.ArrayLike, instruction: str | Instruction) -> UInt8:
    """Row of B that every stored element meets in its instruction: uint8 `[..., m, k/2]`.

    It is the column at which `expand` puts the element, counted from the beginning of its instruction's k. Indices
    that tell no element of tf32 are a `MetadataError`; others need not be legal.

    Examples
    --------
    >>> rows_met([[[0, 1], [2, 3], [0, 3], [1, 2], [0, 2]]], "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    array([[ 0,  1,  6,  7,  8, 11, 13, 14,  0,  2]], dtype=uint8)
    """
    record = parse(instruction)
    law = pattern_checked(record)
    nibbles = nibbles_asked(record, indices)
    if law.units == 2:
        _check(record, nibbles, WHOLE, True)
    return rows_met_checked(record, nibbles)


def rows_met_checked(record: Instruction, nibbles: Array) -> UInt8:
    """`rows_met` of nibbles, `[..., m, groups]`, each of which tells an element."""
    law = pattern_checked(record)
    each, flat = record.k // law.width, nibbles.reshape(-1)
    rows, table = np.empty((flat.size, law.kept), np.uint8), rows_of_groups(record)
    for piece in pieces(flat.size):
        group = np.arange(piece.start, piece.stop) % max(1, nibbles.shape[-1]) % each
        rows[piece] = table.take(flat[piece] + 16 * group, axis=0)
    return rows.reshape(*nibbles.shape[:-1], nibbles.shape[-1] * law.kept)
