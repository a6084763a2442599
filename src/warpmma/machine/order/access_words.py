"""Access words: block, agent, time and strength of an access in 64 bits, as shadow memory keeps them.

An agent is a thread, or what completes an asynchronous operation (`Completes`): a thread's groups, an mbarrier, or the
`wgmma` groups of a warpgroup, which have the number of its first thread. The number of a block has 28 bits; the two
above it say which kind of agent it is, so that an asynchronous access looks like one of another block. A block has at
most 1024 threads, and as many numbers for mbarriers; the block of an mbarrier is the one in whose shared memory it
lies. The strength is 0 for a weak access, otherwise the number of its scope in `LEVELS`, counted from 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np

from ..._arrays import Array
from ...registers import LANES, WARPS
from .thread_scopes import LEVELS, ThreadScope, ThreadScopes

_STRENGTH, _TIME, _THREAD = 2, 22, 10
_BLOCK = _STRENGTH + _TIME + _THREAD
_U = np.uint64
LAST_TIME = (1 << _TIME) - 1
AFTER_ALL = 1 << 62
TIME_BIT, STRONG = _U(_STRENGTH), _U((1 << _STRENGTH) - 1)
THREAD_BIT, BLOCK_BIT = _U(_STRENGTH + _TIME), _U(_BLOCK)
THREADS = _U((1 << _THREAD) - 1)
WARP_BIT = THREAD_BIT + _U(LANES.bit_length() - 1)
"""The lowest bit of the time, the thread, the thread's warp and the block in a word; and masks of the parts."""

_KIND = 62
_BLOCKS = _U((1 << _KIND - _BLOCK) - 1)
_OF_WARPGROUP = _U(WARPS * LANES - 1) << THREAD_BIT
_AGENT = _BLOCKS << _U(_THREAD) | THREADS


class Completes(IntEnum):
    """What completes an access: its thread itself, the groups of its thread, an mbarrier, or the warpgroup's groups."""

    THREAD = 0
    GROUPS = 1
    MBARRIER = 2
    WARPGROUP = 3


_STRENGTHS = {scope: _U(number) for number, scope in enumerate(LEVELS, 1)}


def block_of(word: Any) -> int:
    """Return the block of the grid of an access."""
    return (int(word) >> _BLOCK & (1 << _KIND - _BLOCK) - 1) - 1


def blocks_of(words: Any) -> Any:
    """Return the blocks of the grid of accesses."""
    return (words >> BLOCK_BIT & _BLOCKS).astype(np.int64) - 1


def thread_of(word: Any) -> tuple[int, int]:
    """Return the warp and the lane of an access; nothing of an mbarrier's."""
    return divmod(int(word) >> (_STRENGTH + _TIME) & ((1 << _THREAD) - 1), LANES)


def completed_by(word: Any) -> Completes:
    """Return what completes an access."""
    return Completes(int(word) >> _KIND)


def kinds_of(words: Any) -> Any:
    """Return what completes accesses, as numbers (`Completes`)."""
    return (words >> _U(_KIND)).astype(np.int64)


def asynchronous(words: Any) -> Any:
    """Return which accesses are those of asynchronous operations."""
    return words >> _U(_KIND) != 0


def agents_of(words: Any) -> Any:
    """Return the numbers of the agents of accesses, which differ in a launch."""
    return words >> THREAD_BIT


def time_of(words: Any) -> Any:
    """Return the times of accesses."""
    return words >> TIME_BIT & _U(LAST_TIME)


def at_time(words: Any, time: int) -> Any:
    """Return the words of the same agents at another time."""
    return words & ~(_U(LAST_TIME) << TIME_BIT) | _U(time) << TIME_BIT


def outside_scopes(a: Array, b: Array, scopes: ThreadScopes) -> Array:
    """Mark pairs of accesses where one is weak, or where the narrower scope does not include both threads."""
    both = np.minimum(a & STRONG, b & STRONG)
    outside = both == 0
    for scope in scopes.levels:
        if scope < ThreadScope.GPU and (some := both == _STRENGTHS[scope]).any():
            outside = outside | (some & (scopes.group(scope, blocks_of(a)) != scopes.group(scope, blocks_of(b))))
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

    def completed(self, how: Completes, numbers: Array | None = None) -> Agents:
        """Return what completes operations of these threads: their groups, or mbarriers by their numbers `[n]`.

        The number of an mbarrier is that of its block in the batch, times 1024, plus one of up to 1024 in the block.
        """
        if how is Completes.WARPGROUP:
            return Agents(self.words & ~_OF_WARPGROUP | _U(how << _KIND), self.first)
        if numbers is None:
            return Agents(self.words | _U(how << _KIND), self.first)
        named = (numbers + (self.first + 1 << _THREAD)).astype(_U)
        words = self.words & ~(_AGENT << THREAD_BIT) | named << THREAD_BIT | _U(how << _KIND)
        return Agents(words, self.first)

    def strong(self, scope: ThreadScope) -> Agents:
        """Return the same agents with strong accesses of a scope."""
        return Agents(self.words | _STRENGTHS[scope], self.first)
