"""Sparse A: the pattern of its columns, its stored elements, and the metadata that says where they stand.

A row of a sparse A is cut into groups of four *places*, and two places of each group are stored. A place is one
element of 8 or 16 bits, a pair of 4-bit elements, or half a tf32 element. A 2-bit index names a place, and a
group's two indices are a *nibble* of metadata, `i0 | i1 << 2`: the first stored place stands at i0, the second at i1.

The metadata register is a fragment layout like any other: its elements are the eight nibbles of each lane, e0 e1
e2, its rows those of A, its columns the groups of a row, and the selector names one of several matrices. The law:

* The row's bits are l2 l3 l4, then e2 for types of 16 and 32 bits and l0 for narrower ones.
* Of the rest, in the order e0 e1 e2 l0 l1, the group takes as many as it needs and the selector what is left.

In every function `instruction` is a mnemonic or a record, `selector` one of `selectors(instruction)`, `words` metadata
registers, uint32 `[..., 32]`, and `indices` i0 and i1 of every group, integers 0 to 3, `[..., m, groups, 2]`. What is
none of these, and a dense instruction, is a `MetadataError`; a matrix of another shape or dtype, and batches that do
not broadcast, are an `OperandError`.

Sources: PTX ISA 9.1, 9.7.14.6.1 "Sparse matrix storage" (patterns, codes) and 9.7.14.6.2 (metadata, there as figures);
`../shared/facts/ptx_isa.md` 3.1 to 3.4; measured on an H200: 88 mnemonics with every selector, 819,200 outputs,
0 differences, and all sixteen nibbles (`h200.md`, "Sparse").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import MetadataError, OperandError, WarpmmaError
from .formats import FloatFormat
from .instructions import Instruction, parse
from .layouts import Layout
from .registers import LANES, Packing

__all__ = [
    "Pattern", "check_metadata", "compress", "expand", "halves", "legal_codes", "metadata_place", "pack_metadata",
    "pattern", "positions", "prune", "selectors", "unpack_metadata",
]  # fmt: skip

Array = npt.NDArray[Any]
UInt8 = npt.NDArray[np.uint8]
Columns = npt.NDArray[np.intp]

_PLACES = 4  # of a group: what a 2-bit index tells apart
_SORTED = frozenset(i0 | i1 << 2 for i1 in range(_PLACES) for i0 in range(i1))
_DISTINCT = _SORTED | {i1 | i0 << 2 for i1 in range(_PLACES) for i0 in range(i1)}
_WHOLE = frozenset({0b0100, 0b1110})
_WHY = {
    _WHOLE: "the indices of tf32 are (0, 1) or (2, 3), the two halves of one element",
    _SORTED: "the first index is below the second",
    _DISTINCT: "the two indices differ",
}


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """What a group of A's logical columns is.

    Attributes
    ----------
    width : int
        Logical columns of a group: 4 for elements of 8 and 16 bits (narrower ones in 8-bit containers too), 2 for
        tf32, 8 for 4-bit elements.
    """

    width: int

    def __str__(self) -> str:
        return f"{self.kept}:{self.width}" + (" in pairs" if self.unit == 2 else "")

    @property
    def kept(self) -> int:
        """Stored elements of a group."""
        return self.width // 2

    @property
    def unit(self) -> int:
        """Elements kept or left out together, which one index addresses; of tf32, two indices address the one."""
        return max(1, self.width // _PLACES)

    @property
    def units(self) -> int:
        """Units of a group; half of them are kept."""
        return self.width // self.unit


def pattern(instruction: str | Instruction) -> Pattern:
    """Sparsity pattern of an instruction's A.

    Examples
    --------
    >>> p = pattern("mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32")
    >>> str(p), p.width, p.kept, p.unit
    ('4:8 in pairs', 8, 4, 2)
    """
    record = parse(instruction)
    if not record.sparse:
        raise MetadataError(f"{record} is dense: it has no sparsity pattern and no metadata; expected an mma.sp")
    # An index addresses at least 8 bits, which may be two elements, and at most 16, which may be half of one.
    slot = record.packing("A").slot
    return Pattern(width=_PLACES * min(max(slot, 8), 16) // slot)


def compress(matrix: npt.ArrayLike, instruction: str | Instruction) -> tuple[Array, UInt8]:
    """Take the stored elements out of a matrix that obeys the pattern.

    Parameters
    ----------
    matrix : array_like
        A, `[..., m, k]`, of its NumPy or ml_dtypes type, or raw unsigned codes. What decodes to 0 is a zero: -0 too,
        and tf32 codes with bits in their padding only.

    Returns
    -------
    stored : ndarray
        `[..., m, k/2]`, of the dtype that came, bits preserved.
    indices : ndarray of uint8
        `[..., m, groups, 2]`, ascending. A group with too few nonzeros is filled up with its lowest free places.

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
    occupied = (values != 0).reshape(*array.shape[:-1], -1, law.units, law.unit).any(axis=-1)
    over = occupied.sum(axis=-1) > law.units // 2
    if over.any():
        *warp, row, group = np.argwhere(over)[0].tolist()
        shown = values[(*warp, row)][law.width * group :][: law.width].tolist()
        raise MetadataError(
            f"{record}: A breaks the {law} pattern at {_at(warp)}row {row}, {_columns(law, group)}: {shown} has "
            f"{occupied[(*warp, row, group)].sum()} nonzero {'pairs' if law.unit == 2 else 'elements'}; "
            f"expected at most {law.units // 2} (prune makes it so)"
        )
    each = _PLACES // law.units  # places of a unit: 1, or the two halves of a tf32 element
    indices = (_heaviest(occupied)[..., None] * each + np.arange(each)).astype(np.uint8).reshape(*over.shape, 2)
    return np.take_along_axis(array, _stand(record, _nibbles(record, indices)), axis=-1), indices


def prune(matrix: npt.ArrayLike, instruction: str | Instruction) -> Array:
    """Zero what must go for `compress` to accept a matrix; what it accepts comes back as it is.

    Takes A as `compress` does, and returns `[..., m, k]` of the dtype that came, with +0 for what had to go. Zeros, -0
    too, never have to. Of each group the largest magnitudes stay, and of equals the one at the lower index: two of
    four, or one of two for tf32. 4-bit types keep two pairs of four, ranked by the sum of a pair's two magnitudes. NaN
    counts as larger than infinity.

    Examples
    --------
    >>> i = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> prune(np.tile(np.float16([1, -3, 2, -2]), (16, 4)), i)[0, :4]
    array([ 0., -3.,  2.,  0.], dtype=float16)
    """
    record, law = parse(instruction), pattern(instruction)
    array, values = _matrix(record, matrix, record.k)
    # Infinity makes way for NaN: float64's largest is above every finite value of A's types.
    magnitude = np.nan_to_num(np.abs(values.astype(np.float64)), nan=np.inf, posinf=np.finfo(np.float64).max)
    weight = magnitude.reshape(*array.shape[:-1], -1, law.units, law.unit).sum(axis=-1)
    stays = np.zeros(weight.shape, bool)
    np.put_along_axis(stays, _heaviest(weight), True, axis=-1)
    goes = ~stays.repeat(law.unit, axis=-1).reshape(array.shape) & (values != 0)
    return np.where(goes, np.zeros((), array.dtype), array)


def expand(stored: npt.ArrayLike, indices: npt.ArrayLike, instruction: str | Instruction) -> Array:
    """Put stored elements where their indices say: the inverse of `compress`.

    Parameters
    ----------
    stored : array_like
        `[..., m, k/2]`, of A's NumPy or ml_dtypes type, or raw unsigned codes.
    indices : array_like of int
        `[..., m, groups, 2]`, in either order; the batch broadcasts with that of `stored`.

    Returns
    -------
    ndarray
        `[..., m, k]`, of the dtype of `stored`; +0 where nothing is stored.

    Raises
    ------
    MetadataError
        Names the first group with equal indices, or of tf32 with others than (0, 1) and (2, 3).
    """
    record, law = parse(instruction), pattern(instruction)
    array, _ = _matrix(record, stored, record.k // 2, "stored A")
    nibbles = _nibbles(record, indices)
    codes = _WHOLE if law.units == 2 else _DISTINCT
    bad = _outside(nibbles, codes)
    if bad.any():
        *warp, row, group = np.argwhere(bad)[0].tolist()
        raise MetadataError(
            f"{record}: cannot expand {_at(warp)}row {row}, group {group} ({_columns(law, group)}): indices "
            f"{tuple(_split(nibbles[(*warp, row, group)]).tolist())}; expected that {_WHY[codes]}"
        )
    batch = _batch(record, stored=array.shape[:-2], indices=nibbles.shape[:-2])
    stand = np.broadcast_to(_stand(record, nibbles), (*batch, *array.shape[-2:]))
    matrix = np.zeros((*batch, record.m, record.k), array.dtype)
    np.put_along_axis(matrix, stand, np.broadcast_to(array, stand.shape), axis=-1)
    return matrix


def selectors(instruction: str | Instruction) -> tuple[int, ...]:
    """Legal sparsity selectors of an instruction: they choose the lanes of each quad that hold metadata."""
    return tuple(range(_layout(parse(instruction)).matrices))


def metadata_place(
    instruction: str | Instruction, row: int, group: int, *, selector: int = 0
) -> tuple[int, int]:
    """Lane that holds the nibble of one group of a row, and the nibble's lowest bit.

    Examples
    --------
    >>> metadata_place("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 9, 6, selector=1)
    (7, 24)
    """
    record = parse(instruction)
    lane, number = _places(record, selector)
    _check_index(record, "row", row, record.m)
    _check_index(record, "group", group, lane.shape[1])
    return int(lane[row, group]), 4 * int(number[row, group])


def pack_metadata(
    indices: npt.ArrayLike, instruction: str | Instruction, *, selector: int = 0, into: npt.ArrayLike | None = None
) -> npt.NDArray[np.uint32]:
    """Pack indices `[..., m, groups, 2]`, whether legal or not, into metadata registers, uint32 `[..., 32]`.

    Lanes that the selector leaves out are 0, or as in `into`, uint32 `[..., 32]`; the batches broadcast.

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


def unpack_metadata(words: npt.ArrayLike, instruction: str | Instruction, *, selector: int = 0) -> UInt8:
    """Unpack metadata registers `[..., 32]` into indices, uint8 `[..., m, groups, 2]`, whether legal or not."""
    return _split(_read(parse(instruction), words, selector))


def legal_codes(instruction: str | Instruction) -> frozenset[int]:
    """Nibbles that PTX defines for an instruction; an H200 reads all sixteen by the one rule.

    Two for tf32; the six with i0 < i1 for `mma.sp::ordered_metadata` and for 8-bit floating-point types, whose
    `mma.sp` the manual gives no others; all twelve with i0 other than i1 for `mma.sp` of the remaining types.
    """
    record = parse(instruction)
    if pattern(record).units == 2:
        return _WHOLE
    fp8 = isinstance(record.format("A"), FloatFormat) and record.packing("A").slot == 8
    return _DISTINCT if record.sparsity == "sp" and not fp8 else _SORTED


def check_metadata(
    words: npt.ArrayLike, instruction: str | Instruction, *, selector: int = 0, legal: Iterable[int] | None = None
) -> None:
    """Raise `MetadataError` unless every nibble that the selector chooses is legal.

    Parameters
    ----------
    words : array_like of uint32
        `[..., 32]`; lanes that the selector leaves out are not looked at.
    legal : iterable of int, optional
        Legal nibbles, `legal_codes(instruction)` by default.

    Raises
    ------
    MetadataError
        Names the first illegal nibble by warp, lane and number, and what is legal and why.
    """
    record = parse(instruction)
    lane, number = _places(record, selector)
    codes = legal_codes(record) if legal is None else frozenset(legal)
    nibbles = _read(record, words, selector)
    bad = _outside(nibbles, codes)
    if bad.any():
        *warp, row, group = min(np.argwhere(bad).tolist(), key=lambda at: (at[:-2], lane[*at[-2:]], number[*at[-2:]]))
        at, bit, nibble = lane[row, group], 4 * number[row, group], nibbles[(*warp, row, group)]
        raise MetadataError(
            f"{record}: metadata of {_at(warp)}lane {at}, nibble {bit // 4} (bits {bit + 3}:{bit}; row {row}, "
            f"{_columns(pattern(record), group)}) is {nibble:#x}, indices {tuple(_split(nibble).tolist())}; "
            f"legal are {', '.join(map(hex, sorted(codes)))}: {_WHY.get(codes, 'as asked')}"
        )
