"""Thread scopes: sets of threads that nest, from one thread to the whole system.

The rules (PTX ISA 9.1, 8.4):

1. Scopes are ordered: thread < warp < warpgroup < CTA < cluster < GPU < system. Each divides the threads of a launch
   into sets, and each set is part of one set of every wider scope.
2. An operation of a scope affects the threads of its own set. Of two operations, the narrower scope counts.
3. The blocks of a cluster have consecutive numbers (`Grid`). One GPU is simulated, so `sys` has the sets of `gpu`;
   where a cluster has one block, `cluster` has those of `cta`. `ThreadScopes.of` returns the narrowest scope with these
   sets, so that no other code needs to care.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

from ...operations import MemoryScope


class ThreadScope(IntEnum):
    """A scope: the threads that an operation synchronizes.

    Examples
    --------
    >>> ThreadScope.WARP < ThreadScope.CTA
    True
    """

    THREAD = 0
    WARP = 1
    WARPGROUP = 2
    CTA = 3
    CLUSTER = 4
    GPU = 5
    SYSTEM = 6


LEVELS: tuple[ThreadScope, ...] = (ThreadScope.CTA, ThreadScope.CLUSTER, ThreadScope.GPU)
"""The different scopes that operations on memory may have, the narrowest first."""


@dataclass(frozen=True)
class ThreadScopes:
    """The scopes of a launch.

    Attributes
    ----------
    cluster : int
        Blocks of a cluster.

    Examples
    --------
    >>> alone, pairs = ThreadScopes(1), ThreadScopes(2)
    >>> alone.of("cluster"), pairs.of("cluster"), pairs.of("sys")
    (<ThreadScope.CTA: 3>, <ThreadScope.CLUSTER: 4>, <ThreadScope.GPU: 5>)
    >>> [pairs.group(scope, 7) for scope in pairs.levels]
    [7, 3, 0]
    """

    cluster: int = 1

    @cached_property
    def levels(self) -> tuple[ThreadScope, ...]:
        """Those of `LEVELS` whose sets differ."""
        return LEVELS if self.cluster > 1 else (ThreadScope.CTA, ThreadScope.GPU)

    def of(self, name: MemoryScope) -> ThreadScope:
        """Return the narrowest scope with the sets of the scope that PTX calls by a name (rule 3)."""
        if name == "cluster":
            return ThreadScope.CLUSTER if self.cluster > 1 else ThreadScope.CTA
        return ThreadScope.CTA if name == "cta" else ThreadScope.GPU

    def group(self, scope: ThreadScope, block: Any) -> Any:
        """Return the number of the set that contains a block of the grid, or each of an array; for CTA and wider."""
        if scope >= ThreadScope.GPU:
            return block * 0
        return block if scope == ThreadScope.CTA else block // self.cluster
