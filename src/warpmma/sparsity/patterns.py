"""A sparse A group by group: its pattern, and matrices and indices of any size cut into groups.

What `sparsity` says of a matrix it says of every group of a row, so work is done on so many groups at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from .._lazy import later
from .._records import Shown
from ..errors import MetadataError, OperandError
from ..isa import Instruction, parse

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .. import _arrays
    from .._arrays import Array

    UInt8 = npt.NDArray[np.uint8]
else:  # places of metadata need no NumPy
    np, _arrays = later("numpy"), later(".._arrays", __package__)


_GROUPS = 1 << 15  # of a matrix at a time: their values as float64 stay in cache, and memory is that of the results
PLACES = 4  # of a group: what a 2-bit index tells apart


@dataclass(frozen=True, kw_only=True)
class Pattern(Shown):
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
        return max(1, self.width // PLACES)

    @property
    def units(self) -> int:
        """Units of a group; half of them are kept."""
        return self.width // self.unit


def pattern(instruction: str | Instruction) -> Pattern:
    """Sparsity pattern of an instruction's A.

    Examples
    --------
    >>> pattern("mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32")
    Pattern(width=8)
    """
    return pattern_checked(parse(instruction))


def pattern_checked(record: Instruction) -> Pattern:
    """`pattern` of a record."""
    if not record.sparse:
        raise MetadataError(f"{record} is dense, without pattern and metadata; expected an mma.sp")
    # An index addresses at least 8 bits, which may be two elements, and at most 16, which may be half of one.
    slot = record.packing("A").slot
    return Pattern(width=PLACES * min(max(slot, 8), 16) // slot)


def stored_columns(law: Pattern, nibble: int) -> tuple[int, ...]:
    """Columns of a group's stored elements within it; of tf32 those that whole elements, 0x4 and 0xE, have."""
    return tuple(
        (nibble >> 2 * (2 * stored // law.kept) & 3) * law.width // PLACES + stored % law.unit
        for stored in range(law.kept)  # i0 for the first half of them, and for tf32
    )


@cache
def columns(law: Pattern) -> Array:
    """Columns of a group's stored elements within it, `[nibble, stored element]`."""
    return _arrays.frozen(np.array([stored_columns(law, nibble) for nibble in range(16)]))


@cache
def nibble_of(law: Pattern) -> UInt8:
    """Nibble that `compress` stores for every set of occupied units, a bit for each."""
    occupied = np.arange(1 << law.units)[:, None] >> np.arange(law.units) & 1
    kept = np.nonzero(heaviest(occupied))[1].reshape(len(occupied), -1, 1)
    each = PLACES // law.units  # places of a unit: 1, or the two halves of a tf32 element
    i0, i1 = (kept * each + np.arange(each)).reshape(len(occupied), 2).T
    return _arrays.frozen(np.asarray(i0 | i1 << 2, np.uint8))


def pieces(groups: int) -> Iterator[slice]:
    """Cut so many groups."""
    return (slice(start, min(start + _GROUPS, groups)) for start in range(0, groups, _GROUPS))


def heaviest(weight: Array) -> Array:
    """Mark the half of the units of `[group, unit]` that weighs most; of equals the lower."""
    units = np.ascontiguousarray(weight.T)  # so that NumPy's loops run along the groups
    before = [
        sum((other >= one if j < i else other > one).view(np.uint8) for j, other in enumerate(units) if i != j)
        for i, one in enumerate(units)
    ]
    return np.less(before, len(units) // 2).T


def checked_matrix(
    record: Instruction, array: Array, width: int, *, stored: bool = False
) -> tuple[Array, Callable[[slice], Array]]:
    """Check A, or its stored elements, of which a group has so many.

    Return it, contiguous, and a function from groups, counted through all of it, to their values `[group, unit,
    element]`.
    """
    fmt, law = record.format("A"), pattern_checked(record)
    if array.ndim < 2 or array.shape[-1] % width:
        shape = f"[..., m, {'k/2' if stored else 'k'}], the latter a multiple of {width}"
        raise OperandError(f"{record}: A is {array.shape}; expected {shape}")
    array = np.ascontiguousarray(array)
    try:
        codes = fmt.codes(array).reshape(-1, width // law.unit, law.unit)
    except OperandError as error:
        raise OperandError(f"{record}: A: {error}") from None
    return array, lambda piece: fmt.decode(codes[piece])


def nibbles_asked(record: Instruction, indices: npt.ArrayLike, shape: tuple[int, int] | None = None) -> UInt8:
    """Check indices, of so many rows and groups if these are given, and return them as nibbles."""
    return nibbles_checked(record, _arrays.as_array(indices, f"{record}: indices", MetadataError), shape)


def nibbles_checked(record: Instruction, array: Array, shape: tuple[int, int] | None = None) -> UInt8:
    """Nibbles of indices that are an array; `MetadataError` for what are no indices."""
    expected = array.shape[-3:-1] if shape is None else shape
    if array.ndim < 3 or array.shape[-3:] != (*expected, 2) or array.dtype.kind not in "iu":
        tail = "m, groups" if shape is None else ", ".join(map(str, shape))
        raise MetadataError(f"{record}: indices are {array.dtype} {array.shape}; expected int [..., {tail}, 2]")
    if array.size and not 0 <= array.min() <= array.max() <= 3:
        raise MetadataError(f"{record}: indices go from {array.min()} to {array.max()}; expected 0 to 3")
    i0, i1 = (array[..., x].astype(np.uint8) for x in (0, 1))
    return np.asarray(i0 | i1 << 2)


def indices_of(nibbles: Array) -> UInt8:
    """Take nibbles apart, `[..., m, groups]`: indices, `[..., m, groups, 2]`."""
    return np.stack([nibbles & 3, nibbles >> 2], axis=-1).astype(np.uint8, copy=False)


def named(law: Pattern, place: Iterable[int], what: str = "warp") -> str:
    """Name a group, its place being that in the batch of `what`, row and number."""
    *batch, row, group = map(int, place)
    at = f"{what} {tuple(batch)}, " if batch else ""
    return f"{at}row {row}, group {group} (columns {law.width * group} to {law.width * (group + 1) - 1})"


def what_is_one(record: Instruction, array: Array, width: int) -> str:
    """Say what one matrix of a batch is: a warp's if it is what one instruction takes."""
    tile = (record.m, record.k // pattern_checked(record).width * width)
    return "warp" if array.shape[-2:] == tile else "matrix"
