"""Lanes: which are threads, which of them run, wait or have exited.

The rules:

1. A warp has 32 lanes. In the last warp of a block, lanes beyond the block's threads count as exited from the start.
2. A thread runs until it exits or waits at a barrier of its block; it continues when the barrier is complete.
3. Lanes of one warp may be at different places (`scheduling`), and exit one by one.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..._arrays import Array
from ...registers import LANES, WARPS


@lru_cache(maxsize=64)
def _at_first(blocks: int, threads: int, warps: int) -> tuple[Array, Array]:
    """Return the lanes that are threads, and no lane, which waits: read-only arrays."""
    exists = np.arange(warps * LANES).reshape(1, warps, LANES) < threads
    return np.broadcast_to(exists, (blocks, warps, LANES)), np.broadcast_to(np.False_, (blocks, warps, LANES))


def of_warpgroups(values: Array, join: np.ufunc = np.logical_or) -> Array:
    """Return the values of warps, `[block, warp]`, joined over the warps of each one's warpgroup."""
    found = join.reduceat(values, np.arange(0, values.shape[1], WARPS), axis=1)
    return np.asarray(np.repeat(found, WARPS, axis=1)[:, : values.shape[1]])


class Lanes:
    """The lanes of a batch of blocks.

    Parameters
    ----------
    blocks, threads : int
        Blocks, and threads of each.

    Attributes
    ----------
    shape : (int, int, int)
        `[block, warp, lane]`, the shape of all arrays here.
    threads : int
        Of each block.
    exists, alive, waiting : ndarray of bool
        Lanes that are threads; those that have not exited; those that wait at a barrier.
    """

    def __init__(self, blocks: int, threads: int) -> None:
        warps = -(-threads // LANES)
        self.shape, self.threads = (blocks, warps, LANES), threads
        self.exists, self.waiting = _at_first(blocks, threads, warps)
        self.alive = self.exists
        self.any_waiting = False

    def exit(self, lanes: Array) -> None:
        """End threads."""
        self.alive = self.alive & ~lanes

    def wait(self, lanes: Array) -> None:
        """Let threads wait."""
        self.waiting = self.waiting | lanes
        self.any_waiting = bool(self.waiting.any())

    def release(self, lanes: Array) -> None:
        """Let threads continue."""
        self.waiting = self.waiting & ~lanes
        self.any_waiting = bool(self.waiting.any())

    def whole(self, lanes: Array) -> Array:
        """Return which warps, `[block, warp]`, have all or none of their live threads among some lanes."""
        return np.asarray(np.all(lanes | ~self.alive, axis=-1) | ~np.any(lanes, axis=-1))
