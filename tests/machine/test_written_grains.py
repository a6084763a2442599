"""Which grains of a piece of memory are written: what is remembered of large accesses is given up in time."""

from __future__ import annotations

import numpy as np

from warpmma.machine.base import GrainRuns
from warpmma.machine.memory.shadow_memory import Grains
from warpmma.machine.order import ThreadScope

LARGE = 8192  # bytes: 512 grains


def of_large(grains: Grains, *places: int) -> GrainRuns:
    return grains.at(np.array(places) * LARGE, LARGE)


def test_large_accesses_are_written_until_a_part_is_forgotten() -> None:
    grains = Grains(4 * LARGE, written=False, scope=ThreadScope.CTA)
    for _ in range(2):
        assert not grains.all_written(of_large(grains, 0, 2))
        grains.note_written(of_large(grains, 0, 2))
        assert grains.all_written(of_large(grains, 0, 2)) and grains.all_written(of_large(grains, 2))
        assert grains.all_written(of_large(grains, 0, 2)) and not grains.all_written(of_large(grains, 0, 1))
        grains.note_written(of_large(grains, 0, 2))
        grains.forget(grains.at(np.array([2 * LARGE + 32]), 16))
        assert grains.all_written(of_large(grains, 0)) and not grains.all_written(of_large(grains, 2))


def test_marks_and_smaller_grains_count_too() -> None:
    grains = Grains(4 * LARGE, written=False, scope=ThreadScope.CTA)
    grains.note_written(of_large(grains, 1))
    assert grains.all_written(of_large(grains, 1))
    grains.mark(LARGE + 8, LARGE + 12, written=False)
    assert not grains.all_written(of_large(grains, 1))
    grains.note_written(of_large(grains, 1))
    assert grains.all_written(of_large(grains, 1))
    assert grains.all_written(grains.at(np.array([LARGE + 8]), 4)) and not grains.all_written(of_large(grains, 0))


def test_many_large_accesses() -> None:
    """More than are remembered."""
    grains = Grains(128 * LARGE, written=False, scope=ThreadScope.CTA)
    for place in range(100):
        grains.note_written(of_large(grains, place))
        assert all(grains.all_written(of_large(grains, x)) == (x <= place) for x in (0, place, place + 1))


def test_everything_is_written() -> None:
    grains = Grains(2 * LARGE, written=True, scope=ThreadScope.CTA)
    assert grains.all_written(of_large(grains, 0, 1))
