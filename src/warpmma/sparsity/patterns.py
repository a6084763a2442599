"""The pattern of a sparse A and its nibbles: which are legal by PTX's rules, and the known effects of the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from .._arguments import is_integer
from .._lazy_numpy import Array, UInt8, _arrays, np
from .._records import Shown
from ..errors import MetadataError, shown
from ..isa import TARGETS

_GROUPS = 1 << 15  # of a matrix at a time: their values as float64 stay in cache, and memory is that of the results
PLACES = 4  # of a group: the values of a 2-bit index


@dataclass(frozen=True, kw_only=True)
class Pattern(Shown):
    """A group of A's logical columns.

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
    """Cut a number of groups into pieces."""
    return (slice(start, min(start + _GROUPS, groups)) for start in range(0, groups, _GROUPS))


def heaviest(weight: Array) -> Array:
    """Mark the half of the units of `[group, unit]` that weighs most; of equals the lower."""
    units = np.ascontiguousarray(weight.T)  # so that NumPy's loops run along the groups
    before = [
        sum((other >= one if j < i else other > one).view(np.uint8) for j, other in enumerate(units) if i != j)
        for i, one in enumerate(units)
    ]
    return np.less(before, len(units) // 2).T


def indices_of(nibbles: Array) -> UInt8:
    """Take nibbles apart, `[..., m, groups]`: indices, `[..., m, groups, 2]`."""
    return np.stack([nibbles & 3, nibbles >> 2], axis=-1).astype(np.uint8, copy=False)


def named(law: Pattern, place: Iterable[int], what: str = "warp") -> str:
    """Name a group, its place being that in the batch of `what`, row and number."""
    *batch, row, group = map(int, place)
    at = f"{what} {tuple(batch)}, " if batch else ""
    return f"{at}row {row}, group {group} (columns {law.width * group} to {law.width * (group + 1) - 1})"


Codes = frozenset[int]

SORTED_CODES: Codes = frozenset(i0 | i1 << 2 for i1 in range(PLACES) for i0 in range(i1))
"""Nibbles whose first index is below the second."""

DISTINCT: Codes = SORTED_CODES | {i1 | i0 << 2 for i1 in range(PLACES) for i0 in range(i1)}
WHOLE: Codes = frozenset({0b0100, 0b1110})
RULE: Mapping[Codes, str] = MappingProxyType(
    {SORTED_CODES: "i0 < i1", DISTINCT: "i0 != i1", WHOLE: "(i0, i1) = (0, 1) or (2, 3), whole elements"}
)

UNDEFINED_MEASURED: tuple[str, ...] = tuple(t.name for t in TARGETS.values() if t.generation == "Hopper")
"""Targets on which the effect of metadata that PTX leaves undefined was measured."""

UNSORTED: tuple[tuple[str, tuple[str, ...]], ...] = (("bf16", ("Blackwell", "RTX Blackwell")),)
"""Types whose unordered metadata reaches the hardware unsorted, by generation.

From sm_100 on the hardware expects ordered metadata. For f16 and integers ptxas sorts them in software first; for
bf16 it does not, so what a reversed pair of indices does there is not known (machine code of ptxas 13.5).
"""


def codes_asked(legal: Iterable[int]) -> Codes:
    """Take nibbles one by one; the first invalid one raises, however many follow."""
    codes = set()
    try:
        for code in legal:
            if not is_integer(code) or not 0 <= code < 1 << 4:
                raise MetadataError(f"legal is {shown(legal)}; {shown(code)} is not a nibble, an integer from 0 to 15")
            codes.add(int(code))
    except MetadataError:
        raise
    except Exception:  # no iterable, or one that fails
        raise MetadataError(f"legal is {shown(legal)}; expected nibbles, integers from 0 to 15") from None
    return frozenset(codes)


def outside(nibbles: Array, codes: Codes) -> Array:
    """Return a mask of the nibbles that are not among these codes."""
    mask = np.uint32(sum(1 << code for code in range(16) if code in codes))
    return np.asarray(mask >> nibbles & 1 == 0)


def first_outside(nibbles: Array, codes: Codes) -> tuple[int, ...]:
    """Return the position of the first nibble that is not one of these codes, if any."""
    flat = nibbles.reshape(-1)
    for piece in pieces(flat.size):
        bad = np.flatnonzero(outside(flat[piece], codes))
        if bad.size:
            return tuple(int(x) for x in np.unravel_index(piece.start + bad[0], nibbles.shape))
    return ()


def said(nibble: int) -> str:
    """Write a nibble's indices."""
    return f"({nibble & 3}, {nibble >> 2})"


def legal_are(codes: Codes, by_rule: bool) -> str:
    """Describe which nibbles are legal, and why."""
    rule = f"PTX: {RULE[codes]}" if by_rule else "as asked"
    return f"legal are {', '.join(map(hex, sorted(codes)))} ({rule})"
