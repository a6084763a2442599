"""The grid of a launch: how large, what its target takes, and which blocks run together.

The rules:

1. A cluster is a box of blocks, and the grid a whole number of clusters along x, y and z. Blocks of a cluster have
   ranks, along x first; clusters of the grid have numbers, along x first.
2. The machine numbers blocks cluster by cluster: block n is the one of rank n % size in cluster n // size. A batch has
   whole clusters. `linear` returns the number that CUDA C++ gives to such a block, along x first in the whole grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Literal

import numpy as np

from ..._arguments import is_integer
from ..._arrays import Array
from ..._records import Shown
from ...errors import OperandError, shown
from ...isa import TARGETS, Target
from ...registers import LANES

# Threads that go through a kernel together, and bytes of shared memory of theirs: enough to hide the cost of a NumPy
# call, few enough that their registers stay in cache and that progress can be seen.
_THREADS, _SHARED = 1 << 15, 132 * (228 << 10)  # about what an H200 holds at once, of shared memory


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
        Blocks of a cluster along x, y and z, where the kernel or the launch says it; without it each block is a cluster
        of its own.
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
            An extent that is not positive, or larger than the target takes; a grid that is not a whole number of
            clusters; `cooperative` that is not a bool.
        """
        limits = TARGETS[target]
        if not isinstance(cooperative, bool):
            raise OperandError(f"cooperative is {shown(cooperative)}; expected True or False")
        made = cls(_extent("grid", grid, limits), _extent("block", block, limits), _shared(shared, limits))
        made = made if cluster is None else made.in_clusters(sizes_of("cluster", cluster), target)
        return replace(made, cooperative=True) if cooperative else made

    def in_clusters(self, sizes: tuple[int, int, int], target: str) -> Grid:
        """Return the same grid with clusters of some size; `OperandError` if the grid or the target has no such."""
        most = TARGETS[target].cluster
        if prod(sizes) > most:
            says = f"{prod(sizes)} blocks; on {target} expected {most} at most"
            raise OperandError(f"cluster is {plain_sizes(sizes)}: {says}")
        if any(n % by for n, by in zip(self.blocks, sizes, strict=True)):
            x, y, z = (-(-n // by) * by for n, by in zip(self.blocks, sizes, strict=True))
            raise OperandError(
                f"grid is {plain_sizes(self.blocks)} and cluster {plain_sizes(sizes)}; expected a grid of whole "
                f"clusters: the nearest larger one is {plain_sizes((x, y, z))}"
            )
        return replace(self, cluster=sizes)

    @cached_property
    def total(self) -> int:
        """Blocks in all."""
        x, y, z = self.blocks
        return x * y * z

    @cached_property
    def ranks(self) -> int:
        """Blocks of a cluster."""
        return 1 if self.cluster is None else prod(self.cluster)

    @cached_property
    def clusters(self) -> tuple[int, int, int]:
        """Clusters of the grid, along x, y and z."""
        (a, b, c), (x, y, z) = self.blocks, self.cluster or (1, 1, 1)
        return a // x, b // y, c // z

    @cached_property
    def threads_per_block(self) -> int:
        """Threads of a block."""
        x, y, z = self.threads
        return x * y * z

    def batches(self, resident: int | None = None) -> Iterator[range]:
        """Cut the grid into blocks that run together, by their numbers (rule 2).

        If `resident` is given these are so many, or whole clusters of about so many.
        """
        width, total = -(-self.threads_per_block // LANES) * LANES, self.total
        size = max(1, min(_THREADS // width, _SHARED // max(self.shared, 1)))
        size = resident or (total if self.cooperative else size)
        size = max(size // self.ranks, 1) * self.ranks
        return (range(first, min(first + size, total)) for first in range(0, total, size))

    def tid(self) -> tuple[Array, ...]:
        """Return %tid's x, y and z of all lanes, `[1, warp, lane]`."""
        warps = -(-self.threads_per_block // LANES)
        return _coordinates(np.arange(warps * LANES).reshape(1, warps, LANES), self.threads)

    def ctaid(self, blocks: range) -> tuple[Array, ...]:
        """Return %ctaid's x, y and z, `[block, 1, 1]`."""
        if self.ranks == 1:
            return _coordinates(np.array(blocks).reshape(-1, 1, 1), self.blocks)
        sizes = self.cluster or (1, 1, 1)
        inside, where = self.cluster_ctaid(blocks), self.clusterid(blocks)
        return tuple(at * n + i for at, n, i in zip(where, sizes, inside, strict=True))

    def clusterid(self, blocks: range) -> tuple[Array, ...]:
        """Return %clusterid's x, y and z, `[block, 1, 1]`."""
        return _coordinates(np.array(blocks).reshape(-1, 1, 1) // self.ranks, self.clusters)

    def rank(self, blocks: range) -> Array:
        """Return %cluster_ctarank, `[block, 1, 1]`."""
        return np.asarray(np.array(blocks).reshape(-1, 1, 1) % self.ranks)

    def cluster_ctaid(self, blocks: range) -> tuple[Array, ...]:
        """Return %cluster_ctaid's x, y and z, `[block, 1, 1]`."""
        return _coordinates(self.rank(blocks), self.cluster or (1, 1, 1))

    def linear(self, block: int) -> int:
        """Return the number of a block along x first, then y and z (rule 2)."""
        x, y, z = (int(n[0, 0, 0]) for n in self.ctaid(range(block, block + 1)))
        return x + self.blocks[0] * (y + self.blocks[1] * z)


def _coordinates(linear: Array, extent: tuple[int, int, int]) -> tuple[Array, ...]:
    x, y, _ = extent
    return linear % x, linear // x % y, linear // (x * y)


def sizes_of(name: str, given: int | Sequence[int]) -> tuple[int, int, int]:
    """Return one to three positive integers as three."""
    if type(given) is int and given > 0:  # most are
        return given, 1, 1
    sizes = tuple(given) if isinstance(given, list | tuple) else (given,)
    if not 1 <= len(sizes) <= 3 or not all(is_integer(n) and n > 0 for n in sizes):
        raise OperandError(f"{name} is {shown(given)}; expected one to three positive integers")
    x, y, z = (int(n) for n in (*sizes, 1, 1)[:3])
    return x, y, z


def plain_sizes(sizes: tuple[int, int, int]) -> str:
    """Write sizes without those of 1 at their end."""
    most = max((i for i, n in enumerate(sizes, 1) if n > 1), default=1)
    return str(sizes[0] if most == 1 else sizes[:most])


def _extent(name: Literal["grid", "block"], given: int | Sequence[int], target: Target) -> tuple[int, int, int]:
    """Check the size of a grid or block against the limits of its target."""
    x, y, z = sizes_of(name, given)
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
