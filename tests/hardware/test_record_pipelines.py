"""Sequences of events on an mbarrier, and random pipelines of copies, as an H200 computes them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from lab.record.pipelines import digest, simulated
from warpmma.machine.sync import Event, MbarrierState, applied

DATA = Path(__file__).parents[1] / "data"
PIPELINES = json.loads((DATA / "h200_pipelines.json").read_text())["digests"]
EVENTS = {
    "arrive": lambda n: Event(arrivals=1),
    "arriven": lambda n: Event(arrivals=n),
    "nocomp": lambda n: Event(arrivals=n, last=False),
    "drop": lambda n: Event(arrivals=1, drops=1),
    "arrexp": lambda n: Event(arrivals=1, expects=n),
    "expect": lambda n: Event(expects=n),
    "complete": lambda n: Event(expects=-n),
}


def test_states_and_tokens() -> None:
    """Of a token an H200 returns the upper word of the state; the lower one is left over from something else."""
    with gzip.open(DATA / "h200_mbarriers.json.gz", "rt") as file:
        recorded = json.load(file)["sequences"]
    tokens = 0
    for sequence in recorded:
        state = MbarrierState(0, 0, 0, 0, 0)
        rows = zip(*(sequence[key] for key in ("ops", "upper", "even", "odd")), strict=True)
        for (action, number), upper, even, odd in rows:
            if action == "init":
                state = MbarrierState(number, number, 0, 0, 1)
            else:
                outcome = applied(state, EVENTS[action](number))
                assert not outcome.fault
                if action not in ("expect", "complete"):
                    assert state.word >> 32 == upper
                    tokens += 1
                state = outcome.state
            assert (even, odd) == (int(state.phase != 0), int(state.phase != 1))
    assert len(recorded) == 96 and tokens > 500


@pytest.mark.alike(16)
@pytest.mark.parametrize("number", range(len(PIPELINES)))
def test_pipelines(number: int) -> None:
    for options in ({"hazards": "off"}, {}, {"seed": 1 + number}):
        assert digest(simulated(number, **options)) == PIPELINES[number], options
