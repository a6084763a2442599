"""Thread scopes: sets of threads that nest, from one thread to the whole system.

The rules (PTX ISA 9.1, 8.4):

1. Scopes are ordered: thread < warp < warpgroup < CTA < cluster < GPU < system. Each divides the threads of a launch
   into sets, and each set is part of one set of every wider scope.
2. An operation of a scope affects the threads of its own set. Of two operations, the narrower scope counts.
3. A cluster has `CLUSTER_BLOCKS` blocks, and one GPU is simulated: `cluster` and `sys` have the same sets as a narrower
   scope. `ThreadScope.of` returns the narrowest scope with these sets, so that no other code needs to care.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any

from ...operations import MemoryScope

CLUSTER_BLOCKS: int = 1
"""Blocks of a cluster. Clusters of several blocks are not simulated."""


class ThreadScope(IntEnum):
    """A scope: the threads that an operation synchronizes.

    Examples
    --------
    >>> ThreadScope.of("sys"), ThreadScope.WARP < ThreadScope.CTA
    (<ThreadScope.GPU: 5>, True)
    >>> ThreadScope.CTA.group(7), ThreadScope.GPU.group(7)
    (7, 0)
    """

    THREAD = 0
    WARP = 1
    WARPGROUP = 2
    CTA = 3
    CLUSTER = 4
    GPU = 5
    SYSTEM = 6

    @classmethod
    def of(cls, name: MemoryScope) -> ThreadScope:
        """Return the narrowest scope with the sets of the scope that PTX calls by a name (rule 3)."""
        return _NAMED[name]

    @property
    def divides_grid(self) -> bool:
        """Whether threads of different blocks may be in different sets."""
        return self < ThreadScope.GPU

    def group(self, block: Any) -> Any:
        """Return the number of the set that contains a block of the grid, or each of an array; for CTA and wider."""
        if self >= ThreadScope.GPU:
            return block * 0
        return block if self == ThreadScope.CTA else block // CLUSTER_BLOCKS


_NAMED: Mapping[str, ThreadScope] = MappingProxyType({
    "cta": ThreadScope.CTA,
    "cluster": ThreadScope.CTA if CLUSTER_BLOCKS == 1 else ThreadScope.CLUSTER,
    "gpu": ThreadScope.GPU,
    "sys": ThreadScope.GPU,
})  # fmt: skip

LEVELS: tuple[ThreadScope, ...] = tuple(sorted(set(_NAMED.values())))
"""The different scopes that operations on memory may have, the narrowest first."""
