"""Spare memory: large pieces that a batch of blocks or a launch needs for a while, kept for the next one.

New memory costs a page fault and the zeroing of each page, which takes longer than a copy: and where pages are huge, a
word here and there makes the kernel zero all of a table.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from threading import Lock

import numpy as np

from ..._arrays import Array

MOST = 1 << 29
"""Bytes that are kept, at most."""
LARGEST = 1 << 26
"""Bytes of a piece that is kept, at most: larger ones are mostly untouched."""
_LEAST = 1 << 20  # smaller ones cost little


class Spare:
    """Pieces of memory without contents; several threads may take and give back."""

    def __init__(self) -> None:
        self._free: list[Array] = []  # by size
        self._lock = Lock()

    def take(self, size: int) -> Array:
        """Return at least so many bytes, uint8, of any contents."""
        if _LEAST <= size <= LARGEST:
            with self._lock:
                at = bisect_left(self._free, size, key=len)
                if at < len(self._free):
                    return self._free.pop(at)
        return np.empty(size, np.uint8)

    def give_back(self, pieces: Iterable[Array]) -> None:
        """Take back pieces that are not used any more."""
        large = [x for x in pieces if _LEAST <= len(x) <= LARGEST]
        if not large:
            return
        with self._lock:
            self._free = sorted([*self._free, *large], key=len)
            while sum(map(len, self._free)) > MOST:
                del self._free[0]


SPARE = Spare()
"""That of the process."""
