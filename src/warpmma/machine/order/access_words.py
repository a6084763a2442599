"""Access words: block, thread, time and strength of an access in 64 bits, as shadow memory keeps them.

A block has at most 1024 threads, so 30 bits are left for its number. The strength is 0 for a weak access, otherwise the
number of its scope in `LEVELS`, counted from 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..._arrays import Array
from ...registers import LANES
from .thread_scopes import LEVELS, ThreadScope

_STRENGTH, _TIME, _THREAD = 2, 22, 10
_BLOCK = _STRENGTH + _TIME + _THREAD
_U = np.uint64
LAST_TIME = (1 << _TIME) - 1
TIME_BIT, STRONG = _U(_STRENGTH), _U((1 << _STRENGTH) - 1)
THREAD_BIT, BLOCK_BIT = _U(_STRENGTH + _TIME), _U(_BLOCK)
THREADS = _U((1 << _THREAD) - 1)
WARP_BIT = THREAD_BIT + _U(LANES.bit_length() - 1)
"""The lowest bit of the time, the thread, the thread's warp and the block in a word; and masks of the parts."""

_STRENGTHS = {scope: _U(number) for number, scope in enumerate(LEVELS, 1)}
_DIVIDING = tuple((scope, number) for scope, number in _STRENGTHS.items() if scope.divides_grid)


def block_of(word: Any) -> int:
    """Return the block of the grid of an access."""
    return (int(word) >> _BLOCK) - 1


def thread_of(word: Any) -> tuple[int, int]:
    """Return the warp and the lane of an access."""
    return divmod(int(word) >> (_STRENGTH + _TIME) & ((1 << _THREAD) - 1), LANES)


def time_of(words: Any) -> Any:
    """Return the times of accesses."""
    return words >> TIME_BIT & _U(LAST_TIME)


def outside_scopes(a: Array, b: Array) -> Array:
    """Mark pairs of accesses where one is weak, or where the narrower scope does not include both threads."""
    both = np.minimum(a & STRONG, b & STRONG)
    outside = both == 0
    for scope, strength in _DIVIDING:
        outside = outside | ((both == strength) & (scope.group(a >> BLOCK_BIT) != scope.group(b >> BLOCK_BIT)))
    return np.asarray(outside)


@dataclass(frozen=True)
class Agents:
    """The n threads that access memory in one event."""

    words: Array  # their access words, `[n]`
    first: int  # number of the first block of the batch

    @cached_property
    def block(self) -> Array:
        """Their blocks, counted within the batch."""
        return (self.words >> BLOCK_BIT).astype(np.int64) - (self.first + 1)

    @cached_property
    def warp(self) -> Array:
        """Their warps, counted within the block."""
        return (self.words >> WARP_BIT & _U((1 << _THREAD) // LANES - 1)).astype(np.int64)

    @cached_property
    def lane(self) -> Array:
        """Their lanes, counted within the warp."""
        return (self.words >> THREAD_BIT & _U(LANES - 1)).astype(np.int64)

    def some(self, which: Array) -> Agents:
        """Return some of them, by index."""
        return Agents(self.words[which], self.first)

    def strong(self, scope: ThreadScope) -> Agents:
        """Return the same agents with strong accesses of a scope."""
        return replace(self, words=self.words | _STRENGTHS[scope])
