"""Sparse A: the pattern of its columns, its stored elements, and the metadata that says where they stand.

A row of a sparse A is cut into groups of four *places*, and two places of each are stored. A place is one
element of 8 or 16 bits, a pair of 4-bit elements, or half a tf32 element. A 2-bit index names a place; two
make a group's *nibble* of metadata, `i0 | i1 << 2`: the first stored place stands at i0, the second at i1.

The metadata register is a fragment layout like any other: its elements are a lane's nibbles, e0 e1 e2, its
rows those of A, its columns the groups of a row, and the selector names one of several matrices. The law:

* The row's bits are l2 l3 l4, then e2 for types of 16 and 32 bits and l0 for narrower ones.
* Of the rest, in the order e0 e1 e2 l0 l1, the group takes as many as it needs, the selector what is left.

In every function `instruction` is a mnemonic or a record, `selector` one of `selectors(instruction)`, `words`
metadata registers, uint32 `[..., 32]`, and `indices` i0 and i1 of every group, 0 to 3, `[..., m, groups, 2]`.
Anything else, a dense instruction too, is a `MetadataError`. A matrix is A, `[..., m, k]`, or its stored
elements, `[..., m, k/2]`, of A's NumPy or ml_dtypes type or raw unsigned codes; another shape or dtype, and
batches that do not broadcast, are an `OperandError`.

Functions of matrices take them whole, of any m and any k that the group's width divides, as `matmul` does; those of
metadata registers work on the m and k of one instruction.

Sources: PTX ISA 9.1, 9.7.14.6.1 "Sparse matrix storage" (patterns, codes), 9.7.14.6.2 (metadata, as figures);
docs/specification/ptx.md 3; measured on an H200 (docs/specification/h200.md 2): 88 mnemonics with every selector,
819,200 outputs, 0 differences, and all sixteen nibbles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arguments import is_integer
from ._arrays import as_array, frozen
from ._groups import (
    DISTINCT,
    RULE,
    SORTED_CODES,
    WHOLE,
    Pattern,
    checked_indices,
    checked_matrix,
    columns,
    first_outside,
    heaviest,
    legal_are,
    named,
    nibble_of,
    outside,
    pattern,
    pieces,
    what_is_one,
)
from .errors import MetadataError, OperandError, shown
from .formats import FloatFormat
from .isa import Instruction, parse
from .layouts import Layout
from .registers import LANES, Packing

__all__ = [
    "SORTED_CODES", "Pattern", "check_indices", "check_metadata", "compress", "expand", "halves", "legal_codes",
    "metadata_place", "pack_metadata", "pattern", "positions", "prune", "rows_met", "selectors", "unpack_metadata",
]  # fmt: skip

Array = npt.NDArray[Any]
UInt8 = npt.NDArray[np.uint8]
Mnemonic = str | Instruction

_WARPS = 1024  # checked at a time


def compress(matrix: npt.ArrayLike, instruction: Mnemonic) -> tuple[Array, UInt8]:
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
    record, law = parse(instruction), pattern(instruction)
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
    indices = np.stack([nibbles & 3, nibbles >> 2], axis=-1).reshape(*batch, 2)
    return stored.reshape(*array.shape[:-1], array.shape[-1] // 2), indices


def prune(matrix: npt.ArrayLike, instruction: Mnemonic) -> Array:
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
    record, law = parse(instruction), pattern(instruction)
    array, read = checked_matrix(record, matrix, law.width)
    pruned = array.copy()
    groups, zero = pruned.reshape(-1, law.width), np.zeros((), array.dtype)
    for piece in pieces(len(groups)):
        values = read(piece)
        # Infinity makes way for NaN: float64's largest is above every finite value of A's types.
        magnitude = np.nan_to_num(np.abs(values.astype(np.float64)), nan=np.inf, posinf=np.finfo(np.float64).max)
        goes = ~heaviest(magnitude.sum(axis=-1))[..., None] & (values != 0)
        groups[piece][goes.reshape(-1, law.width)] = zero
    return pruned


def expand(stored: npt.ArrayLike, indices: npt.ArrayLike, instruction: Mnemonic) -> Array:
    """Put stored elements where their indices say, +0 elsewhere: the inverse of `compress`.

    Indices come in either order. The result is `[..., m, k]`, of the dtype of `stored`; batches broadcast.
    Equal indices, and for tf32 all but (0, 1) and (2, 3), are a `MetadataError`.
    """
    record, law = parse(instruction), pattern(instruction)
    array, _ = checked_matrix(record, stored, law.kept, stored=True)
    shape = (array.shape[-2], array.shape[-1] // law.kept)
    nibbles = checked_indices(record, indices, shape)
    codes = WHOLE if law.units == 2 else DISTINCT
    if place := first_outside(nibbles, codes):
        raise MetadataError(
            f"{record}: cannot expand {named(law, place, what_is_one(record, array, law.kept))}: its indices are "
            f"({nibbles[place] & 3}, {nibbles[place] >> 2}); expected {RULE[codes]}"
        )
    batch = _batch(record, stored=array.shape[:-2], indices=nibbles.shape[:-2])
    given = np.broadcast_to(array, (*batch, *array.shape[-2:])).reshape(-1, law.kept)
    which = np.broadcast_to(nibbles, (*batch, *shape)).reshape(-1)
    matrix, table = np.zeros((len(which), law.width), array.dtype), columns(law)
    for piece in pieces(len(which)):
        np.put_along_axis(matrix[piece], table.take(which[piece], axis=0), given[piece], axis=-1)
    return matrix.reshape(*batch, shape[0], shape[1] * law.width)


def check_indices(indices: npt.ArrayLike, instruction: Mnemonic, *, legal: Iterable[int] | None = None) -> None:
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
    nibbles, codes = checked_indices(record, indices), legal_codes(record) if legal is None else _asked(legal)
    if place := first_outside(nibbles, codes):
        raise MetadataError(
            f"{record}: indices ({nibbles[place] & 3}, {nibbles[place] >> 2}), nibble {nibbles[place]:#x}, of "
            f"{named(pattern(record), place, 'matrix')}; {legal_are(codes, legal)}"
        )


def rows_met(indices: npt.ArrayLike, instruction: Mnemonic) -> UInt8:
    """Row of B that every stored element meets in its instruction: uint8 `[..., m, k/2]`.

    It is the column at which `expand` puts the element, counted from the beginning of its instruction's k. Indices
    that tell no element of tf32 are a `MetadataError`; others need not be legal.

    Examples
    --------
    >>> rows_met([[[0, 1], [2, 3], [0, 3], [1, 2], [0, 2]]], "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    array([[ 0,  1,  6,  7,  8, 11, 13, 14,  0,  2]], dtype=uint8)
    """
    record, law = parse(instruction), pattern(instruction)
    if law.units == 2:
        check_indices(indices, record)
    nibbles = checked_indices(record, indices)
    each, flat = record.k // law.width, nibbles.reshape(-1)
    rows, table = np.empty((flat.size, law.kept), np.uint8), _table(record)
    for piece in pieces(flat.size):
        group = np.arange(piece.start, piece.stop) % max(1, nibbles.shape[-1]) % each
        rows[piece] = table.take(flat[piece] + 16 * group, axis=0)
    return rows.reshape(*nibbles.shape[:-1], nibbles.shape[-1] * law.kept)


def selectors(instruction: Mnemonic) -> tuple[int, ...]:
    """Legal sparsity selectors of an instruction: each chooses lanes of every quad that hold metadata."""
    return tuple(range(_layout(parse(instruction)).matrices))


def metadata_place(instruction: Mnemonic, row: int, group: int, *, selector: int = 0) -> tuple[int, int]:
    """Lane that holds the nibble of one group of a row, and the nibble's lowest bit.

    Examples
    --------
    >>> metadata_place("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 9, 6, selector=1)
    (7, 24)
    """
    record = parse(instruction)
    lane, number = _places(record, selector)
    _check_index(record, "row", row, lane.shape[0])
    _check_index(record, "group", group, lane.shape[1])
    return int(lane[row, group]), 4 * int(number[row, group])


def pack_metadata(
    indices: npt.ArrayLike, instruction: Mnemonic, *, selector: int = 0, into: npt.ArrayLike | None = None
) -> npt.NDArray[np.uint32]:
    """Pack indices, whether legal or not, into metadata registers, uint32 `[..., 32]`.

    Lanes that the selector leaves out are 0, or as in the registers `into`; the batches broadcast. Indices of a whole
    matrix, of rows and k that tiles of the instruction fill, become those of its tiles by
    `indices.reshape(m // 16, 16, -1, groups, 2).swapaxes(1, 2)`, groups being those of one tile.

    Examples
    --------
    >>> i = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> words = pack_metadata(np.tile([1, 3], (16, 4, 1)), i, selector=2)
    >>> [hex(word) for word in words[:4]], unpack_metadata(words, i, selector=2)[0].tolist()
    (['0x0', '0x0', '0xdddddddd', '0x0'], [[1, 3], [1, 3], [1, 3], [1, 3]])
    """
    record = parse(instruction)
    places, packing = _places(record, selector), _layout(record).packing
    nibbles = checked_indices(record, indices, (record.m, record.k // pattern(record).width))
    words = np.zeros(LANES, np.uint32) if into is None else _words(record, into)
    batch = _batch(record, indices=nibbles.shape[:-2], into=words.shape[:-1])
    fields = np.broadcast_to(packing.unpack(words), (*batch, LANES, packing.per_register)).copy()
    fields[(..., *places)] = nibbles
    return packing.pack(fields)


def unpack_metadata(words: npt.ArrayLike, instruction: Mnemonic, *, selector: int = 0) -> UInt8:
    """Unpack metadata registers into indices, uint8 `[..., m, groups, 2]`, whether legal or not."""
    nibbles = _read(parse(instruction), words, selector)
    return np.stack([nibbles & 3, nibbles >> 2], axis=-1).astype(np.uint8)


def legal_codes(instruction: Mnemonic) -> frozenset[int]:
    """Nibbles that PTX defines for an instruction; an H200 reads all sixteen by the one rule.

    Two for tf32; the six with i0 < i1 for `mma.sp::ordered_metadata` and for 8-bit floating point, where the
    manual lists no others for `mma.sp`; the twelve with i0 other than i1 for `mma.sp` of the other types.
    """
    record = parse(instruction)
    if pattern(record).units == 2:
        return WHOLE
    fp8 = isinstance(record.format("A"), FloatFormat) and record.packing("A").slot == 8
    return DISTINCT if record.sparsity == "sp" and not fp8 else SORTED_CODES


def check_metadata(
    words: npt.ArrayLike, instruction: Mnemonic, *, selector: int = 0, legal: Iterable[int] | None = None
) -> None:
    """Raise `MetadataError` unless every nibble in the selected lanes is legal; no other lanes are looked at.

    Legal are `legal_codes(instruction)`, or the nibbles in `legal`, 0 to 15. The error names the first that is not by
    warp, lane and number, and says what is legal and why.
    """
    record, codes = parse(instruction), legal_codes(instruction) if legal is None else _asked(legal)
    layout = _layout(record)
    _check_index(record, "selector", selector, layout.matrices)
    array = _words(record, words)
    batch = array.shape[:-1]
    here = layout.places[0] == selector
    # As many warps at a time as fit in cache: the nibbles of all of them would be many times the words.
    for start in range(0, math.prod(batch), _WARPS):
        flat = np.arange(start, min(start + _WARPS, math.prod(batch)))
        chunk = array[flat] if len(batch) == 1 else array[np.unravel_index(flat, batch)] if batch else array[None]
        nibbles = layout.packing.unpack(chunk)
        bad = outside(nibbles, codes) & here
        if not bad.any():
            continue
        first, lane, number = np.argwhere(bad)[0].tolist()
        warp = [int(x) for x in np.unravel_index(start + first, batch)] if batch else []
        _, row, group = (int(place[lane, number]) for place in layout.places)
        nibble = nibbles[first, lane, number]
        raise MetadataError(
            f"{record}: metadata nibble {number} of lane {lane} is {nibble:#x}, indices ({nibble & 3}, "
            f"{nibble >> 2}), for {named(pattern(record), (*warp, row, group))}; {legal_are(codes, legal)}"
        )


def positions(words: npt.ArrayLike, instruction: Mnemonic, *, selector: int = 0) -> npt.NDArray[np.intp]:
    """Logical column of A at which every stored element stands, intp `[..., m, k/2]`.

    All sixteen nibbles act, as measured: equal indices put two elements, or pairs, at one place. Only tf32
    nibbles other than 0x4 and 0xE, which mix halves of elements (see `halves`), are a `MetadataError`.

    Examples
    --------
    >>> i = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> positions(np.full(32, 0x9E4E_9E4E, np.uint32), i)[0]
    array([ 2,  3,  4,  5, 10, 11, 13, 14])
    """
    record = parse(instruction)
    if pattern(record).units == 2:
        check_metadata(words, record, selector=selector)
    return _stand(record, _read(record, words, selector))


def halves(words: npt.ArrayLike, instruction: Mnemonic, *, selector: int = 0) -> UInt8:
    """Which half of a tf32 group becomes the low and which the high half of its stored element.

    uint8 `[..., m, groups, 2]`: 0 and 1 are the low and high half of element 0, 2 and 3 of element 1.
    """
    if pattern(instruction).units != 2:
        raise MetadataError(f"{parse(instruction)}: an index addresses whole elements; expected tf32")
    return unpack_metadata(words, instruction, selector=selector)


def _asked(legal: Iterable[int]) -> frozenset[int]:
    """Take nibbles one by one: what is none ends it, however many follow."""
    codes = set()
    try:
        for code in legal:
            if not is_integer(code) or not 0 <= code < 1 << 4:
                raise MetadataError(f"legal is {shown(legal)}; {shown(code)} is no nibble, an integer of 0 to 15")
            codes.add(int(code))
    except MetadataError:
        raise
    except Exception:  # no iterable, or one that fails
        raise MetadataError(f"legal is {shown(legal)}; expected nibbles, integers of 0 to 15") from None
    return frozenset(codes)


@cache
def _layout(record: Instruction) -> Layout:
    """Layout of the metadata register, by the law."""
    high = "e2" if record.packing("A").slot >= 16 else "l0"
    rest = tuple(bit for bit in ("e0", "e1", "e2", "l0", "l1") if bit != high)
    needed = (record.k // pattern(record).width).bit_length() - 1
    packing = Packing(slot=4, bits=4)
    return Layout(row=("l2", "l3", "l4", high), column=rest[:needed], matrix=rest[needed:], packing=packing)


def _places(record: Instruction, selector: int) -> tuple[Array, Array]:
    """Lane and number of the nibble of every group, two arrays `[m, groups]`."""
    layout = _layout(record)
    _check_index(record, "selector", selector, layout.matrices)
    lane, number = (x.reshape(layout.matrices, *layout.shape[-2:])[selector] for x in layout.slots)
    return lane, number


def _read(record: Instruction, words: npt.ArrayLike, selector: int) -> Array:
    """Nibble of every group, `[..., m, groups]`."""
    lane, number = _places(record, selector)
    return _words(record, words).take(lane, axis=-1) >> _layout(record).packing.shifts[number] & np.uint32(15)


@cache
def _table(record: Instruction) -> Array:
    """Columns of a group's stored elements, `[16 * group + nibble, stored element]`."""
    law = pattern(record)
    return frozen((np.arange(0, record.k, law.width)[:, None, None] + columns(law)).reshape(-1, law.kept))


def _stand(record: Instruction, nibbles: Array) -> Array:
    """Columns at which the stored elements stand, `[..., m, k/2]`."""
    rows = nibbles + np.arange(0, 16 * nibbles.shape[-1], 16)
    return _table(record).take(rows, axis=0).reshape(*nibbles.shape[:-1], record.k // 2)


def _words(record: Instruction, words: npt.ArrayLike) -> Array:
    array = as_array(words, f"{record}: metadata", MetadataError)
    if array.shape[-1:] != (LANES,) or array.dtype != np.uint32:
        raise MetadataError(f"{record}: metadata is {array.dtype} {array.shape}; expected uint32 [..., 32]")
    return array


def _batch(record: Instruction, **shapes: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        raise OperandError(f"{record}: batches do not broadcast: {shapes}") from None


def _check_index(record: Instruction, name: str, value: int, count: int) -> None:
    if not is_integer(value) or not 0 <= value < count:
        raise MetadataError(f"{record}: {name} is {shown(value)}; legal are {', '.join(map(str, range(count)))}")
