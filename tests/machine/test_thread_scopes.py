"""Scopes nest; a released clock is acquired only if both scopes include both threads."""

from __future__ import annotations

import itertools
from typing import get_args

import numpy as np
import pytest

from warpmma.machine.order import access_words
from warpmma.machine.order.access_words import outside_scopes
from warpmma.machine.order.causality import Released
from warpmma.machine.order.thread_scopes import LEVELS, ThreadScope, ThreadScopes
from warpmma.machine.order.vector_clock import VectorClock
from warpmma.operations import MemoryScope


@pytest.mark.parametrize("cluster", [1, 2])
def test_every_scope_of_ptx_is_one_of_the_lattice(cluster: int) -> None:
    assert [x.name.lower() for x in ThreadScope] == ["thread", "warp", "warpgroup", "cta", "cluster", "gpu", "system"]
    scopes = ThreadScopes(cluster)
    assert {scopes.of(name) for name in get_args(MemoryScope)} == set(scopes.levels)
    assert set(scopes.levels) <= set(LEVELS)


def test_where_blocks_are_clusters_the_scopes_are_one() -> None:
    scopes = ThreadScopes(1)
    assert scopes.of("cluster") == scopes.of("cta") == ThreadScope.CTA


@pytest.mark.parametrize("cluster", [1, 2, 4])
def test_sets_of_a_scope_are_parts_of_those_of_a_wider_one(cluster: int) -> None:
    group = ThreadScopes(cluster).group
    scopes = (ThreadScope.CTA, ThreadScope.CLUSTER, ThreadScope.GPU, ThreadScope.SYSTEM)
    assert [len({group(scope, block) for block in range(8)}) for scope in scopes] == [8, 8 // cluster, 1, 1]
    for narrow, wide in itertools.pairwise(scopes):
        for a, b in itertools.product(range(8), repeat=2):
            assert group(narrow, a) != group(narrow, b) or group(wide, a) == group(wide, b)


@pytest.mark.parametrize("release", LEVELS)
@pytest.mark.parametrize("acquire", LEVELS)
@pytest.mark.parametrize("block", [2, 3, 4])
def test_of_two_scopes_the_narrower_decides(release: ThreadScope, acquire: ThreadScope, block: int) -> None:
    """Of a clock that block 3 has released, and of two strong accesses; clusters have two blocks."""
    scopes, both = ThreadScopes(2), min(release, acquire)
    held = scopes.group(both, block) == scopes.group(both, 3)
    released, clock = Released(scopes), VectorClock(0, np.ones((8, 1), np.int64))
    released.add(3, {level: clock for level in LEVELS if level <= release})
    assert (released.found(block, acquire) is clock) == held
    a, b = (
        np.array([(x + 1) << 34 | LEVELS.index(scope) + 1], np.uint64) for x, scope in ((3, release), (block, acquire))
    )
    assert int(access_words.BLOCK_BIT) == 34 and outside_scopes(a, b, scopes).tolist() == [not held]
