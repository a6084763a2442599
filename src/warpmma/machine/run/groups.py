"""Groups: lanes of a batch of blocks that are at the same program counter and continue together.

The rules:

1. A group is a set of lanes, `[block, warp, lane]`, and their call depth. If it contains all lanes that have not
   exited, its `bits` are `lanes.alive` itself, and its results replace whole registers, since no other lanes matter.
2. Otherwise it writes its own lanes only: old ^ ((old ^ new) & mask), where each lane's mask is all ones or all zeros.
   `np.where` takes ten times as long if lanes alternate.
3. If a group has lanes in few of the warps, only these warps are computed (`index`, `scattered`).
4. A register records which lanes have written it (`RegisterShadow`). Lanes without a thread count as written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._arrays import Array
from ..base import Site, WarpRegister, merged_shadow

Advance = Callable[["Group"], int]
"""A step: from the group that reaches it to the program counter at which the group continues."""

_FIRST = 1 << 62  # more lanes than exist: the group has not branched backwards yet


class Group:
    """Lanes that continue together.

    Parameters
    ----------
    bits : ndarray of bool
        `[block, warp, lane]`.
    count : int
        How many lanes it has.
    full : bool
        Whether it contains all lanes that have not exited.
    depth : int
        Their call depth.

    Attributes
    ----------
    observed, changed : bool
        Whether they have executed an instruction that observes other threads since they last branched backwards, and
        whether it returned anything new.
    looked : int
        How many lanes the group had when it last branched backwards.
    used : int
        Steps that it has run since it was late, or had all lanes.
    """

    __slots__ = (
        "_index",
        "_masks",
        "_warps",
        "bits",
        "changed",
        "count",
        "depth",
        "full",
        "looked",
        "observed",
        "used",
    )

    def __init__(self, bits: Array, count: int, full: bool, depth: int = 0) -> None:
        self.bits, self.count, self.full, self.depth = bits, count, full, depth
        self.observed = self.changed = False
        self.looked, self.used = _FIRST, 0
        self._warps: int = -1
        self._index: tuple[Array, Array] | None = None
        self._masks: dict[np.dtype[Any], Array] = {}

    @property
    def warps(self) -> int:
        """The number of warps with lanes in it."""
        if self._warps < 0:
            self._warps = int(np.count_nonzero(words(self.bits)))
        return self._warps

    @property
    def index(self) -> tuple[Array, Array]:
        """The warps with lanes in it: their blocks and their numbers, each `[n]`."""
        if self._index is None:
            blocks, warps = np.nonzero(words(self.bits))
            self._index = blocks, warps
        return self._index

    def part(self, bits: Array, count: int) -> Group:
        """Return some of its lanes, not all, as a group with the same history."""
        made = Group(bits, count, False, self.depth)
        made.observed, made.changed, made.looked, made.used = self.observed, self.changed, self.looked, self.used
        return made

    def some(self, bits: Array) -> Group | None:
        """Return some of its lanes, or all; None if there are none."""
        count = int(np.count_nonzero(bits))
        return None if not count else self if count == self.count else self.part(bits, count)

    def joined(self, other: Group) -> Group:
        """Return its lanes and those of another group at the same key, as one group with the history of both."""
        made = Group(self.bits | other.bits, self.count + other.count, False, self.depth)
        made.observed, made.changed = self.observed or other.observed, self.changed or other.changed
        made.looked, made.used = max(self.looked, other.looked), max(self.used, other.used)
        return made

    def merged(self, old: WarpRegister, new: WarpRegister, site: Site | None) -> WarpRegister:
        """Return a register with `new` in the group's lanes, and `old` in others (rules 1, 2 and 4)."""
        if self.full:
            return new
        mask = self._masks.get(old.bits.dtype)
        if mask is None:
            mask = self._mask(old.bits.dtype)
        bits = old.bits ^ new.bits
        bits &= mask
        bits ^= old.bits
        return WarpRegister(bits, merged_shadow(old.shadow, new.shadow, self.bits, site, bits.dtype))

    def scattered(self, old: WarpRegister, new: Array, site: Site | None) -> WarpRegister:
        """Return a register with `new`, `[n, lane]` of its warps, in the group's lanes, and `old` in others."""
        bits = old.bits.copy()
        bits[self.index] = np.where(self.bits[self.index], new, bits[self.index])
        return WarpRegister(bits, merged_shadow(old.shadow, None, self.bits, site, bits.dtype))

    def _mask(self, dtype: np.dtype[Any]) -> Array:
        """Rule 2."""
        mask = self.bits if dtype.kind == "b" else np.negative(self.bits.astype(dtype))
        self._masks[dtype] = mask
        return mask


def words(lanes: Array) -> Array:
    """Pack lanes, bool `[block, warp, lane]`, into masks, uint32 `[block, warp]`: lane i is bit i.

    Examples
    --------
    >>> lanes = np.zeros((1, 1, 32), bool)
    >>> lanes[..., [0, 5]] = True
    >>> words(lanes)
    array([[33]], dtype=uint32)
    """
    packed = np.packbits(lanes, axis=None, bitorder="little").view("<u4")
    made: Array = packed.reshape(lanes.shape[:-1])
    return made
