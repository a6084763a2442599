"""The grid of a launch: how large, what its target takes, and which blocks run together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ..._arguments import is_integer
from ..._arrays import Array
from ..._records import Shown
from ...errors import OperandError, UnsupportedError, shown
from ...isa import TARGETS, Target
from ...registers import LANES

# Threads that go through a kernel together, and bytes of shared memory of theirs: enough to hide the cost of a NumPy
# call, few enough that their registers stay in cache and that progress can be seen.
_THREADS, _SHARED = 1 << 15, 1 << 24


@dataclass(frozen=True)
class Grid(Shown):
    """The extent of a launch, and its attributes.

    Attributes
    ----------
    blocks, threads : (int, int, int)
        Blocks of the grid, and threads of a block, along x, y and z.
    shared : int
        Bytes of shared memory of a block.
    cluster : (int, int, int) or None
        Blocks of a cluster, where the kernel or the launch says it: one, as each block is a cluster of its own.
    cooperative : bool
        Whether all blocks are resident together.
    """

    blocks: tuple[int, int, int]
    threads: tuple[int, int, int]
    shared: int
    cluster: tuple[int, int, int] | None = None
    cooperative: bool = False

    @classmethod
    def checked(
        cls, grid: int | Sequence[int], block: int | Sequence[int], shared: int, target: str, *,
        cluster: int | Sequence[int] | None = None, cooperative: bool = False,
    ) -> Grid:  # fmt: skip
        """Return the extent that a caller asks for.

        Raises
        ------
        OperandError
            An extent that is not positive, or larger than the target takes; `cooperative` that is not a bool.
        UnsupportedError
            A cluster of more than one block.
        """
        limits = TARGETS[target]
        if not isinstance(cooperative, bool):
            raise OperandError(f"cooperative is {shown(cooperative)}; expected True or False")
        return cls(
            _extent("grid", grid, limits), _extent("block", block, limits), _shared(shared, limits),
            None if cluster is None else _cluster(cluster), cooperative,
        )  # fmt: skip

    @cached_property
    def total(self) -> int:
        """Blocks in all."""
        x, y, z = self.blocks
        return x * y * z

    @cached_property
    def threads_per_block(self) -> int:
        """Threads of a block."""
        x, y, z = self.threads
        return x * y * z

    def batches(self, resident: int | None = None) -> Iterator[range]:
        """Cut the grid into blocks that run together, by their linear numbers: `resident` of them if that is given."""
        width, total = -(-self.threads_per_block // LANES) * LANES, self.total
        size = max(1, min(_THREADS // width, _SHARED // max(self.shared, 1)))
        size = resident or (total if self.cooperative else size)
        return (range(first, min(first + size, total)) for first in range(0, total, size))

    def tid(self) -> tuple[Array, ...]:
        """Return %tid's x, y and z of all lanes, `[1, warp, lane]`."""
        warps = -(-self.threads_per_block // LANES)
        return _coordinates(np.arange(warps * LANES).reshape(1, warps, LANES), self.threads)

    def ctaid(self, blocks: range) -> tuple[Array, ...]:
        """Return %ctaid's x, y and z, `[block, 1, 1]`."""
        return _coordinates(np.array(blocks).reshape(-1, 1, 1), self.blocks)


def _coordinates(linear: Array, extent: tuple[int, int, int]) -> tuple[Array, ...]:
    x, y, _ = extent
    return linear % x, linear // x % y, linear // (x * y)


def _sizes(name: str, given: int | Sequence[int]) -> tuple[int, int, int]:
    """Return one to three positive integers as three."""
    if type(given) is int and given > 0:  # most are
        return given, 1, 1
    sizes = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not 1 <= len(sizes) <= 3 or not all(is_integer(n) and n > 0 for n in sizes):
        raise OperandError(f"{name} is {shown(given)}; expected one to three positive integers")
    x, y, z = (int(n) for n in (*sizes, 1, 1)[:3])
    return x, y, z


def _cluster(given: int | Sequence[int]) -> tuple[int, int, int]:
    """Check the size of a cluster."""
    sizes = _sizes("cluster", given)
    if sizes != (1, 1, 1):
        raise UnsupportedError(f"cluster is {shown(given)}; clusters of more than one block are not simulated")
    return sizes


def _extent(name: Literal["grid", "block"], given: int | Sequence[int], target: Target) -> tuple[int, int, int]:
    """Check the size of a grid or block against the limits of its target."""
    x, y, z = _sizes(name, given)
    for axis, n, most in zip("xyz", (x, y, z), getattr(target, name), strict=True):
        if n > most:
            raise OperandError(
                f"{name} is {shown(given)}: {shown(n)} along {axis}; on {target} expected {most} at most"
            )
    if name == "block" and x * y * z > target.threads_per_block:
        raise OperandError(f"block is {shown(given)}: {x * y * z} threads; expected {target.threads_per_block} at most")
    return x, y, z


def _shared(given: object, target: Target) -> int:
    most = target.shared_per_block
    if not is_integer(given) or not 0 <= given <= most:
        raise OperandError(f"shared is {shown(given)}; on {target} expected a number of bytes, {most} at most")
    return int(given)
