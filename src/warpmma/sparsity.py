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

Sources: PTX ISA 9.1, 9.7.14.6.1 "Sparse matrix storage" (patterns, codes), 9.7.14.6.2 (metadata, as figures);
docs/specification/ptx.md 3; measured on an H200 (docs/specification/h200.md 2): 88 mnemonics with every selector,
819,200 outputs, 0 differences, and all sixteen nibbles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arrays import as_array, is_integer
from .errors import MetadataError, OperandError
from .formats import FloatFormat
from .instructions import Instruction, parse
from .layouts import Layout
from .registers import LANES, Packing

__all__ = [
    "SORTED_CODES", "Pattern", "check_metadata", "compress", "expand", "halves", "legal_codes", "metadata_place",
    "pack_metadata", "pattern", "positions", "prune", "selectors", "unpack_metadata",
]  # fmt: skip

Array = npt.NDArray[Any]
UInt8 = npt.NDArray[np.uint8]
Mnemonic = str | Instruction

_WARPS = 1024  # checked at a time
_PLACES = 4  # of a group: what a 2-bit index tells apart
SORTED_CODES = frozenset(i0 | i1 << 2 for i1 in range(_PLACES) for i0 in range(i1))
"""Nibbles whose first index is below the second."""

_DISTINCT = SORTED_CODES | {i1 | i0 << 2 for i1 in range(_PLACES) for i0 in range(i1)}
_WHOLE = frozenset({0b0100, 0b1110})
_RULE = {SORTED_CODES: "i0 < i1", _DISTINCT: "i0 != i1", _WHOLE: "(i0, i1) = (0, 1) or (2, 3), whole elements"}


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """What a group of A's logical columns is.

    `width` is 4 columns for elements in 8 or 16 bits (8-bit containers too), 2 for tf32, 8 for 4-bit ones.
    """

    width: int

    @property
    def kept(self) -> int:
        """Stored elements of a group."""
        return self.width // 2

    @property
    def unit(self) -> int:
        """Elements kept together, which one index addresses; of tf32, two indices address the one."""
        return max(1, self.width // _PLACES)

    @property
    def units(self) -> int:
        """Units of a group; half of them are kept."""
        return self.width // self.unit


def pattern(instruction: Mnemonic) -> Pattern:
    """Sparsity pattern of an instruction's A.

    Examples
    --------
    >>> pattern("mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32")
    Pattern(width=8)
    """
    record = parse(instruction)
    if not record.sparse:
        raise MetadataError(f"{record} is dense, without pattern and metadata; expected an mma.sp")
    # An index addresses at least 8 bits, which may be two elements, and at most 16, which may be half of one.
    slot = record.packing("A").slot
    return Pattern(width=_PLACES * min(max(slot, 8), 16) // slot)


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
    >>> A = np.tile(np.float16([0, 5, 0, 6, 0, 0, 7, 0]), (16, 2))
    >>> stored, indices = compress(A, "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    >>> stored[0, :4], indices[0, :2].tolist()
    (array([5., 6., 0., 7.], dtype=float16), [[1, 3], [0, 2]])
    """
    record, law = parse(instruction), pattern(instruction)
    array, values = _matrix(record, matrix, record.k)
    occupied = np.any(values != 0, axis=-1)
    over = occupied.sum(axis=-1) > law.units // 2
    if over.any():
        *warp, row, group = np.argwhere(over)[0].tolist()
        raise MetadataError(
            f"{record}: A breaks the {law.kept}:{law.width} pattern at {_name(law, warp, row, group)}: "
            f"{values[(*warp, row, group)].ravel().tolist()}; expected at most "
            f"{law.units // 2} nonzero {'pairs' if law.unit == 2 else 'elements'} (see prune)"
        )
    each = _PLACES // law.units  # places of a unit: 1, or the two halves of a tf32 element
    places = _heaviest(occupied)[..., None] * each + np.arange(each)
    indices = places.reshape(*over.shape, 2).astype(np.uint8)
    return np.take_along_axis(array, _stand(record, _nibbles(record, indices)), axis=-1), indices


def prune(matrix: npt.ArrayLike, instruction: Mnemonic) -> Array:
    """Zero what must go for `compress` to accept a matrix; what it accepts comes back as it is.

    Of each group the largest magnitudes stay, and of equals the one at the lower index: two of four, or one
    of two for tf32. 4-bit types keep two pairs of four, ranked by the sum of a pair's two magnitudes. NaN is
    larger than infinity. What goes is +0 in the result, which has the dtype that came; zeros stay, -0 too.

    Examples
    --------
    >>> i = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> prune(np.tile(np.float16([1, -3, 2, -2]), (16, 4)), i)[0, :4]
    array([ 0., -3.,  2.,  0.], dtype=float16)
    """
    record = parse(instruction)
    array, values = _matrix(record, matrix, record.k)
    # Infinity makes way for NaN: float64's largest is above every finite value of A's types.
    magnitude = np.nan_to_num(np.abs(values.astype(np.float64)), nan=np.inf, posinf=np.finfo(np.float64).max)
    weight = magnitude.sum(axis=-1)
    goes = np.ones(weight.shape, bool)
    np.put_along_axis(goes, _heaviest(weight), False, axis=-1)
    goes = (goes[..., None] & (values != 0)).reshape(array.shape)
    return np.where(goes, np.zeros((), array.dtype), array)


def expand(stored: npt.ArrayLike, indices: npt.ArrayLike, instruction: Mnemonic) -> Array:
    """Put stored elements where their indices say, +0 elsewhere: the inverse of `compress`.

    Indices come in either order. The result is `[..., m, k]`, of the dtype of `stored`; batches broadcast.
    Equal indices, and for tf32 all but (0, 1) and (2, 3), are a `MetadataError`.
    """
    record, law = parse(instruction), pattern(instruction)
    array, _ = _matrix(record, stored, record.k // 2)
    nibbles = _nibbles(record, indices)
    codes = _WHOLE if law.units == 2 else _DISTINCT
    bad = _outside(nibbles, codes)
    if bad.any():
        *warp, row, group = np.argwhere(bad)[0].tolist()
        nibble = nibbles[(*warp, row, group)]
        raise MetadataError(
            f"{record}: cannot expand {_name(law, warp, row, group)}: its indices are "
            f"({nibble & 3}, {nibble >> 2}); expected {_RULE[codes]}"
        )
    batch = _batch(record, stored=array.shape[:-2], indices=nibbles.shape[:-2])
    columns = np.broadcast_to(_stand(record, nibbles), (*batch, *array.shape[-2:]))
    matrix = np.zeros((*batch, record.m, record.k), array.dtype)
    np.put_along_axis(matrix, columns, np.broadcast_to(array, columns.shape), axis=-1)
    return matrix


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

    Lanes that the selector leaves out are 0, or as in the registers `into`; the batches broadcast.

    Examples
    --------
    >>> i = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> words = pack_metadata(np.tile([1, 3], (16, 4, 1)), i, selector=2)
    >>> [hex(word) for word in words[:4]], unpack_metadata(words, i, selector=2)[0].tolist()
    (['0x0', '0x0', '0xdddddddd', '0x0'], [[1, 3], [1, 3], [1, 3], [1, 3]])
    """
    record = parse(instruction)
    places, packing = _places(record, selector), _layout(record).packing
    nibbles = _nibbles(record, indices)
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
        return _WHOLE
    fp8 = isinstance(record.format("A"), FloatFormat) and record.packing("A").slot == 8
    return _DISTINCT if record.sparsity == "sp" and not fp8 else SORTED_CODES


def check_metadata(
    words: npt.ArrayLike, instruction: Mnemonic, *, selector: int = 0, legal: Iterable[int] | None = None
) -> None:
    """Raise `MetadataError` unless every nibble in the selected lanes is legal; no other lanes are looked at.

    Legal are `legal_codes(instruction)`, or the nibbles in `legal`. The error names the first that is not by
    warp, lane and number, and says what is legal and why.
    """
    record, codes = parse(instruction), legal_codes(instruction) if legal is None else frozenset(legal)
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
        bad = _outside(nibbles, codes) & here
        if not bad.any():
            continue
        first, lane, number = np.argwhere(bad)[0].tolist()
        warp = [int(x) for x in np.unravel_index(start + first, batch)] if batch else []
        _, row, group = (int(place[lane, number]) for place in layout.places)
        nibble = nibbles[first, lane, number]
        rule = f"PTX: {_RULE[codes]}" if legal is None else "as asked"
        raise MetadataError(
            f"{record}: metadata nibble {number} of lane {lane} is {nibble:#x}, indices ({nibble & 3}, "
            f"{nibble >> 2}), for {_name(pattern(record), warp, row, group)}; legal are "
            f"{', '.join(map(hex, sorted(codes)))} ({rule})"
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
    nibble, stored = np.arange(16)[:, None], np.arange(law.kept)
    index = nibble >> 2 * (2 * stored // law.kept) & 3  # i0 for the first half of them, and for tf32
    column = index * law.width // _PLACES + stored % law.unit
    return (np.arange(0, record.k, law.width)[:, None, None] + column).reshape(-1, law.kept)


def _stand(record: Instruction, nibbles: Array) -> Array:
    """Columns at which the stored elements stand, `[..., m, k/2]`."""
    rows = nibbles + np.arange(0, 16 * nibbles.shape[-1], 16)
    return _table(record).take(rows, axis=0).reshape(*nibbles.shape[:-1], record.k // 2)


def _outside(nibbles: Array, codes: frozenset[int]) -> Array:
    """Where a nibble is none of these codes, which make a mask of sixteen bits."""
    mask = np.uint32(sum(1 << code for code in range(16) if code in codes))
    return np.asarray(mask >> nibbles & 1 == 0)


def _heaviest(weight: Array) -> Array:
    """Return the half of the units in the last axis that weighs most, ascending; of equals the lower."""
    order = np.argsort(-weight.astype(np.float64), axis=-1, kind="stable")
    return np.sort(order[..., : weight.shape[-1] // 2], axis=-1)


def _matrix(record: Instruction, matrix: npt.ArrayLike, columns: int) -> tuple[Array, Array]:
    """Check A or its stored elements; return it, and its values by row, group, unit and element."""
    array, fmt, law = as_array(matrix, f"{record}: A"), record.format("A"), pattern(record)
    if array.shape[-2:] != (record.m, columns):
        raise OperandError(f"{record}: A is {array.shape}; expected [..., {record.m}, {columns}]")
    try:
        values = fmt.decode(fmt.codes(array))
    except OperandError as error:
        raise OperandError(f"{record}: A: {error}") from None
    groups = record.k // law.width
    return array, values.reshape(*array.shape[:-1], groups, columns // groups // law.unit, law.unit)


def _nibbles(record: Instruction, indices: npt.ArrayLike) -> Array:
    array, groups = as_array(indices, f"{record}: indices", MetadataError), record.k // pattern(record).width
    shape = (record.m, groups, 2)
    if array.shape[-3:] != shape or array.dtype.kind not in "iu":
        tail = ", ".join(map(str, shape))
        raise MetadataError(f"{record}: indices are {array.dtype} {array.shape}; expected int [..., {tail}]")
    if array.size and not 0 <= array.min() <= array.max() <= 3:
        raise MetadataError(f"{record}: indices go from {array.min()} to {array.max()}; expected 0 to 3")
    return np.asarray(array[..., 0] | array[..., 1] << 2, np.uint8)


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
        raise MetadataError(f"{record}: {name} is {value!r}; legal are {', '.join(map(str, range(count)))}")


def _name(law: Pattern, warp: list[int], row: int, group: int) -> str:
    at = f"warp {tuple(warp)}, " if warp else ""
    return f"{at}row {row}, group {group} (columns {law.width * group} to {law.width * (group + 1) - 1})"
