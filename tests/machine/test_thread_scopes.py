"""Scopes nest; a released clock is acquired only if both scopes include both threads."""

from __future__ import annotations

import itertools
from typing import get_args

import numpy as np
import pytest

from warpmma.machine.order import access_words, thread_scopes
from warpmma.machine.order.access_words import outside_scopes
from warpmma.machine.order.causality import _Released
from warpmma.machine.order.thread_scopes import LEVELS, ThreadScope
from warpmma.machine.order.vector_clock import VectorClock
from warpmma.operations import MemoryScope


def test_every_scope_of_ptx_is_one_of_the_lattice() -> None:
    assert [x.name.lower() for x in ThreadScope] == ["thread", "warp", "warpgroup", "cta", "cluster", "gpu", "system"]
    assert {ThreadScope.of(name) for name in get_args(MemoryScope)} == set(LEVELS)


def test_a_cluster_is_one_block() -> None:
    assert thread_scopes.CLUSTER_BLOCKS == 1 and ThreadScope.of("cluster") == ThreadScope.of("cta")


def test_sets_of_a_scope_are_parts_of_those_of_a_wider_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for blocks in (1, 2, 4):
        monkeypatch.setattr(thread_scopes, "CLUSTER_BLOCKS", blocks)
        scopes = (ThreadScope.CTA, ThreadScope.CLUSTER, ThreadScope.GPU, ThreadScope.SYSTEM)
        assert [len({scope.group(block) for block in range(8)}) for scope in scopes] == [8, 8 // blocks, 1, 1]
        for narrow, wide in itertools.pairwise(scopes):
            for a, b in itertools.product(range(8), repeat=2):
                assert narrow.group(a) != narrow.group(b) or wide.group(a) == wide.group(b)


@pytest.mark.parametrize("release", LEVELS)
@pytest.mark.parametrize("acquire", LEVELS)
@pytest.mark.parametrize("block", [3, 4])
def test_of_two_scopes_the_narrower_decides(release: ThreadScope, acquire: ThreadScope, block: int) -> None:
    """Of a clock that block 3 has released, and of two strong accesses."""
    both = min(release, acquire)
    held = both.group(block) == both.group(3)
    released, clock = _Released(), VectorClock(0, np.ones((8, 1), np.int64))
    released.add(3, {level: clock for level in LEVELS if level <= release})
    assert (released.found(block, acquire) is clock) == held
    words = [
        np.array([(x + 1) << 34 | LEVELS.index(scope) + 1], np.uint64) for x, scope in ((3, release), (block, acquire))
    ]
    assert int(access_words.BLOCK_BIT) == 34 and outside_scopes(*words).tolist() == [not held]
