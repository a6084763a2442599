"""Words by which accesses are kept: block, thread, time and how strong, in 64 bits; and the threads of several.

Bits: a block has at most 1024 threads, and 30 bits are left to the number of the block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..._arrays import Array
from ...operations import MemoryScope
from ...registers import LANES
from .causality import NEAR

_STRENGTH, _TIME, _THREAD = 2, 22, 10
_BLOCK = _STRENGTH + _TIME + _THREAD
_U = np.uint64
LAST_TIME = (1 << _TIME) - 1
TIME_BIT, STRONG = _U(_STRENGTH), _U((1 << _STRENGTH) - 1)
THREAD_BIT, BLOCK_BIT = _U(_STRENGTH + _TIME), _U(_BLOCK)
THREADS = _U((1 << _THREAD) - 1)
WARP_BIT = THREAD_BIT + _U(LANES.bit_length() - 1)
"""Where in a word the time begins, the thread, above its lane its warp, and the block; and what the parts hold."""


def block_of(word: Any) -> int:
    """Return the block of the grid of an access."""
    return (int(word) >> _BLOCK) - 1


def thread_of(word: Any) -> tuple[int, int]:
    """Return the warp and the lane of an access."""
    return divmod(int(word) >> (_STRENGTH + _TIME) & ((1 << _THREAD) - 1), LANES)


def time_of(words: Any) -> Any:
    """Return the times of accesses."""
    return words >> TIME_BIT & _U(LAST_TIME)


@dataclass(frozen=True)
class Who:
    """Threads that access memory at one time, n of them.

    Attributes
    ----------
    words : ndarray of uint64
        As accesses are kept, `[n]`.
    first : int
        Number of the first block of the batch.
    """

    words: Array
    first: int

    @cached_property
    def block(self) -> Array:
        """Their blocks, of the batch."""
        return (self.words >> BLOCK_BIT).astype(np.int64) - (self.first + 1)

    @cached_property
    def warp(self) -> Array:
        """Their warps, of the block."""
        return (self.words >> WARP_BIT & _U((1 << _THREAD) // LANES - 1)).astype(np.int64)

    @cached_property
    def lane(self) -> Array:
        """Their lanes, of the warp."""
        return (self.words >> THREAD_BIT & _U(LANES - 1)).astype(np.int64)

    def some(self, which: Array) -> Who:
        """Return these of them, by number."""
        return Who(self.words[which], self.first)

    def strong(self, scope: MemoryScope) -> Who:
        """Return the same, whose accesses are strong."""
        return replace(self, words=self.words | _U(1 if scope in NEAR else 2))
