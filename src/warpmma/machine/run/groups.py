"""Groups: lanes of a batch of blocks that stand at one place of a program and go on together.

The rules:

1. A group is a set of lanes, `[block, warp, lane]`, and how deep they are in calls. Where it is all lanes that have not
   exited its `bits` are `lanes.alive` itself, and what it writes replaces registers: nobody else's lanes count.
2. Otherwise it writes its own lanes, and the others keep theirs: old ^ ((old ^ new) & mask), with a mask of all ones or
   zeros in as many bits as the register has. A choice by `where` takes ten times as long where lanes alternate.
3. Where a group has lanes in few of the warps it computes for these warps alone (`index`, `scattered`).
4. A register knows who has written it: `defined` is None where all threads have. Lanes that are no threads count as if
   they had.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._arrays import Array
from ..base import Site, WarpRegister, merged_shadow

Advance = Callable[["Group"], int]
"""A step: from the group that has come to it to the place where the group goes on."""

_FIRST = 1 << 62  # more lanes than there are: a group that has not looked yet


class Group:
    """Lanes that go on together.

    Parameters
    ----------
    bits : ndarray of bool
        `[block, warp, lane]`.
    count : int
        How many these are.
    full : bool
        Whether they are all that have not exited.
    depth : int
        How many calls they are in.

    Attributes
    ----------
    observed, changed : bool
        Whether they have executed what observes other threads since they last went back, and whether it gave them
        anything new.
    looked : int
        How many of them there were when they last went back.
    used : int
        Steps that they have gone since others had a turn.
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
        """Warps that have lanes in it."""
        if self._warps < 0:
            self._warps = int(np.count_nonzero(words(self.bits)))
        return self._warps

    @property
    def index(self) -> tuple[Array, Array]:
        """Blocks and warps of those that have lanes in it, each `[n]`."""
        if self._index is None:
            blocks, warps = np.nonzero(words(self.bits))
            self._index = blocks, warps
        return self._index

    def part(self, bits: Array, count: int) -> Group:
        """Return some of its lanes, not all, as a group that remembers what this one does."""
        made = Group(bits, count, False, self.depth)
        made.observed, made.changed, made.looked, made.used = self.observed, self.changed, self.looked, self.used
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
        return WarpRegister(bits, merged_shadow(old.shadow, new.shadow, self.bits, site))

    def scattered(self, old: WarpRegister, new: Array, site: Site | None) -> WarpRegister:
        """Return a register with `new`, `[n, lane]` of its warps, in the group's lanes, and `old` in others."""
        bits = old.bits.copy()
        bits[self.index] = np.where(self.bits[self.index], new, bits[self.index])
        return WarpRegister(bits, merged_shadow(old.shadow, None, self.bits, site))

    def _mask(self, dtype: np.dtype[Any]) -> Array:
        """Rule 2."""
        mask = self.bits if dtype.kind == "b" else np.negative(self.bits.astype(dtype))
        self._masks[dtype] = mask
        return mask


def words(lanes: Array) -> Array:
    """Masks of lanes, uint32 `[block, warp]`, of bool `[block, warp, lane]`: lane i is bit i.

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
