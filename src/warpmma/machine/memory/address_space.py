"""The address space of a device: pieces of memory, and lookup of the piece that holds an address.

The rules:

1. A piece begins at a multiple of 256, the least alignment of cudaMalloc, or at the address that the caller gives.
   Pieces do not overlap.
2. The device places a piece after all earlier ones, so a freed address stays invalid. Only addresses of memory of a
   single launch are reused: the same arrays have the same addresses in every launch.
3. Constant memory is in its window of generic addresses (`operations.WINDOWS`).
4. The written bytes of a piece are tracked as long as it exists.
5. Pieces are found by bisection, by their addresses and by their addresses in the process; adding or removing a piece
   moves its neighbours in the tables of `bounds`, which are not rebuilt.
6. Launches in several threads share a space: a thread holds its `lock` while it changes the space or searches `bounds`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from threading import RLock

import numpy as np

from ..._arrays import Array
from ...errors import OperandError
from ...operations import WINDOWS
from ..order import ThreadScope
from .shadow_memory import Grains, WrittenGrains

_ALIGNMENT = 256
_BASE = 0x7F0000000000
_END = (1 << 64) - 1
PHASE = 32
"""Bytes of the largest access: of how many a region's first byte has a place in `Grains`."""
_ROOM = 64
"""Pieces that the tables of a new space have room for."""


@dataclass(eq=False, kw_only=True)
class Region:
    """A piece of memory.

    Attributes
    ----------
    data : ndarray of uint8
    """

    name: str  # as hazards call it: "array 0"
    start: int  # its generic address
    data: Array
    written: WrittenGrains | bool = True  # which of its bytes are written
    cause: str = ""  # what reports say about unwritten bytes
    held: range = range(0)  # its addresses in the process, if it is memory of the caller
    live: bool = True  # whether it has not been freed
    heap: bool = False  # whether a kernel asked for it (`malloc`)

    @property
    def stop(self) -> int:
        """The address after its last byte."""
        return self.start + self.data.size

    @property
    def writeable(self) -> bool:
        """Whether a kernel may write it."""
        return bool(self.data.flags.writeable)

    def mark(self, offset: int, size: int, written: bool) -> None:
        """Mark some of its bytes as written or unwritten."""
        if size == self.data.size:
            self.written = written
        elif size:
            grains = Grains(self.data.size, written=self.written, scope=ThreadScope.GPU, phase=self.start % PHASE)
            grains.mark(offset, offset + size, written)
            self.written = grains.known

    def __str__(self) -> str:
        return f"{self.name} ({self.data.size} bytes from {self.start:#x})"


class AddressSpace:
    """Pieces of memory.

    Attributes
    ----------
    regions : list of Region
        By address.
    bounds : (ndarray, ndarray) of uint64
        Where they begin, and where they end: valid until a piece is added or removed.
    """

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self._starts: list[int] = []
        self._next = {"global": _BASE, "const": WINDOWS["const"].base}
        self._table = np.zeros((2, _ROOM), np.uint64)
        self.bounds: tuple[Array, Array] = self._table[0, :0], self._table[1, :0]
        self._held: list[Region] = []  # memory of the process, by where the process has it
        self._held_from: list[int] = []
        self.lock = RLock()

    def mark(self, space: str = "global") -> int:
        """Return the address at which the device places the next piece, for `give_back`."""
        return self._next[space]

    def give_back(self, mark: int, space: str = "global") -> None:
        """Place from an address on again: no piece after it is live (rule 2)."""
        self._next[space] = mark

    def place(self, region: Region, *, alignment: int = _ALIGNMENT, space: str = "global") -> Region:
        """Give a region an address after all others, and add it."""
        with self.lock:
            start = -(-self._next[space] // alignment) * alignment
            while (other := self._overlapped(start, region.data.size)) is not None:
                start = -(-other.stop // alignment) * alignment
            region.start = start
            self._next[space] = region.stop + 1  # two that are empty have two addresses
            self._take(region)
        return region

    def place_at(self, region: Region, who: str) -> Region:
        """Add a region that has its address.

        Raises
        ------
        OperandError
            It overlaps other memory or a window of another space.
        """
        start, stop = region.start, region.stop
        if start < 0 or stop > _END:
            raise OperandError(f"{who}: {start:#x} to {stop:#x} is beyond the 64 bits of an address")
        for space, window in WINDOWS.items():
            if start < window.base + window.size and stop > window.base:
                raise OperandError(
                    f"{who}: {region} lies in the window of generic addresses of .{space}, {window.base:#x} to "
                    f"{window.base + window.size - 1:#x}"
                )
        with self.lock:
            if (other := self._overlapped(start, region.data.size)) is not None:
                raise OperandError(f"{who}: {region} overlaps {other}, which lies there")
            self._take(region)
        return region

    def remove(self, region: Region) -> None:
        """Free a region."""
        with self.lock:
            at = bisect_left(self._starts, region.start)
            del self.regions[at], self._starts[at]
            self._table[:, at : len(self._starts)] = self._table[:, at + 1 : len(self._starts) + 1]
            self._renew()
            if region.held:
                at = self._held.index(region, bisect_left(self._held_from, region.held.start))
                del self._held[at], self._held_from[at]
            region.live = False

    def restore(self, region: Region) -> None:
        """Add a region again that was freed, where it was."""
        with self.lock:
            self._take(region)
            region.live = True

    def find(self, address: int) -> Region | None:
        """Return the region that holds an address, or None."""
        at = bisect_right(self._starts, address) - 1
        return self.regions[at] if at >= 0 and address < self.regions[at].stop else None

    def holder(self, held: range, name: str) -> Region | None:
        """Return the region that is memory of the process, all of a range, or None.

        Raises
        ------
        OperandError
            One that has a part of it.
        """
        if not held:
            return None
        at = bisect_right(self._held_from, held.start)
        for region in self._held[max(at - 1, 0) : at + 1]:  # they do not overlap: only neighbours can share any
            if held.start in region.held and held.stop <= region.held.stop:
                return region
            if max(held.start, region.held.start) < min(held.stop, region.held.stop):
                raise OperandError(f"{name} shares a part of its memory with {region}; give the whole once")
        return None

    def _overlapped(self, start: int, size: int) -> Region | None:
        """Return a region that has an address from `start` on in common, or the address `start` itself."""
        at = bisect_right(self._starts, max(start + size, start + 1) - 1) - 1
        if at >= 0 and max(self.regions[at].stop, self.regions[at].start + 1) > start:
            return self.regions[at]
        return None

    def _take(self, region: Region) -> None:
        at = bisect_right(self._starts, region.start)
        self.regions.insert(at, region)
        self._starts.insert(at, region.start)
        count = len(self._starts)
        if count > self._table.shape[1]:
            self._table = np.concatenate([self._table, np.zeros_like(self._table)], axis=1)
        self._table[:, at + 1 : count] = self._table[:, at : count - 1]
        self._table[:, at] = region.start, region.stop
        self._renew()
        if region.held:
            at = bisect_right(self._held_from, region.held.start)
            self._held.insert(at, region)
            self._held_from.insert(at, region.held.start)

    def _renew(self) -> None:
        count = len(self._starts)
        self.bounds = self._table[0, :count], self._table[1, :count]


def nearest(pieces: Iterable[tuple[str, int, int]], address: int, size: int) -> str:
    """Say which of some pieces, names with where they begin and end, so many bytes at an address are nearest to.

    Examples
    --------
    >>> nearest([("x", 0, 8), ("y", 64, 72)], 58, 4)
    'y (8 bytes from 0x40), begins 6 bytes later'
    """
    name, start, stop = min(pieces, key=lambda piece: max(piece[1] - address, address + size - piece[2]))
    early = address + size - stop
    off = f"begins {start - address} bytes later" if address < start else f"ends {early} bytes too early"
    return f"{name} ({stop - start} bytes from {start:#x}), {off}"
