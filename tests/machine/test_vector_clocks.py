"""Vector clocks, with times of warps or of lanes, in rows of few or many blocks: against a time for every thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpmma.machine.order import VectorClock, joined
from warpmma.machine.order.access_words import BLOCK_BIT, THREAD_BIT, TIME_BIT

FIRST, BLOCKS, WARPS, LANES = 7, 24, 3, 32
FORMS = ("nothing", "warps", "warps and lanes", "lanes")


def drawn(rng: np.random.Generator, form: str) -> VectorClock:
    """Draw a clock: few blocks in a row, rarely all of them."""
    if form == "nothing":
        return VectorClock(FIRST, np.zeros((0, WARPS), np.int64))
    rows = int(rng.choice([1, 1, 2, 15, BLOCKS]))
    low = int(rng.integers(0, BLOCKS - rows + 1))
    shape = (rows, WARPS, LANES) if form == "lanes" else (rows, WARPS)
    lanes = {}
    if form == "warps and lanes":
        for row, warp in {(int(rng.integers(rows)), int(rng.integers(WARPS))) for _ in range(3)}:
            lanes[low + row, warp] = rng.integers(0, 9, LANES)
    return VectorClock(FIRST, rng.integers(0, 6, shape), lanes, low=low)


def dense(clock: VectorClock | None) -> Any:
    """Return the time of every thread, `[block, warp, lane]`, from what the clock says of accesses."""
    assert clock is not None
    places = np.indices((BLOCKS, WARPS, LANES), np.uint64).reshape(3, -1)
    of = (places[0] + np.uint64(FIRST + 1)) << BLOCK_BIT | (places[1] * np.uint64(LANES) + places[2]) << THREAD_BIT
    return np.sum([clock.covers(of | np.uint64(time) << TIME_BIT) for time in range(12)], axis=0).reshape(
        BLOCKS, WARPS, LANES
    )


@pytest.mark.parametrize("other", FORMS)
@pytest.mark.parametrize("form", FORMS)
def test_joins_and_comparisons(form: str, other: str) -> None:
    rng, held = np.random.default_rng([FORMS.index(form), FORMS.index(other)]), 0
    for _ in range(60):
        a, b, c = drawn(rng, form), drawn(rng, other), drawn(rng, form)
        if rng.random() < 0.3:  # one that holds the other
            a = a | b
        times = [dense(x) for x in (a, b, c)]
        assert a.holds(b) == (times[0] >= times[1]).all() and b.holds(a) == (times[1] >= times[0]).all()
        held += a.holds(b)
        assert (dense(a | b) == np.maximum(times[0], times[1])).all()
        assert (dense(joined([a, None, b, c])) == np.maximum.reduce(times)).all()
        for block in (0, int(rng.integers(BLOCKS)), BLOCKS - 1):
            assert (a.of_block(FIRST, block) == times[0][block].reshape(-1)).all()
            assert not a.of_block(FIRST + 1, block).any()
    assert held


def test_few_rows_keep_times_of_lanes_and_many_do_not() -> None:
    one, near, far = (VectorClock(FIRST, np.ones((1, WARPS, LANES), np.int64), low=low) for low in (0, 15, 16))
    assert (one | near).until.shape == (16, WARPS, LANES)
    assert (one | far).until.shape == (17, WARPS)
    assert (dense(one | far) == np.maximum(dense(one), dense(far))).all()
