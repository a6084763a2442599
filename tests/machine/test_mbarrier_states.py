"""Every event on every small state of an mbarrier, against a model that counts one thing at a time."""

from __future__ import annotations

from itertools import product

import pytest

from warpmma.machine.sync import FAULTS, MOST, Event, MbarrierState, applied

STATES = [MbarrierState(*x, 1) for x in product(range(4), range(4), range(-2, 3), range(2)) if x[0] <= x[1]]
EVENTS = [
    Event(arrivals, expects, drops, raises, last)
    for arrivals, expects, drops, raises, last in product(range(3), range(-2, 3), range(3), range(2), (True, False))
    if drops <= arrivals
]


def counted(state: MbarrierState, event: Event) -> tuple[dict[str, int], bool] | None:
    """Return what a phase is left with, and whether it ended; None for what a GPU traps on."""
    left = {"pending": state.pending, "expected": state.expected, "bytes": state.bytes, "phase": state.phase}
    left["bytes"] += event.expects
    for _ in range(event.drops):
        left["expected"] -= 1
    for _ in range(event.raises):
        left["pending"] += 1
    for _ in range(event.arrivals):
        left["pending"] -= 1
        if left["pending"] < 0:
            return None
    if left["expected"] < 0:
        return None
    ends = left["pending"] == 0 and left["bytes"] == 0
    if ends:
        left["pending"], left["phase"] = left["expected"], 1 - left["phase"]
    return left, ends


def test_every_event_on_every_state() -> None:
    ended = faults = 0
    for state, event in product(STATES, EVENTS):
        outcome, expected = applied(state, event), counted(state, event)
        assert MbarrierState.of(outcome.state.word) == outcome.state
        if expected is None:
            assert outcome == (state, False, "count")
            faults += 1
            continue
        assert (outcome.state._asdict(), outcome.completed) == ({**expected[0], "valid": 1}, expected[1])
        assert outcome.fault == ("completes" if expected[1] and not event.last else "")
        ended += expected[1]
    assert ended > 500 and faults > 1000


@pytest.mark.parametrize(
    ("state", "event", "fault"),
    [
        (MbarrierState(1, 1, 0, 0, 0), Event(arrivals=1), "absent"),
        (MbarrierState(1, 1, MOST, 0, 1), Event(expects=1), "bytes"),
        (MbarrierState(1, 1, -MOST, 0, 1), Event(expects=-1), "bytes"),
        (MbarrierState(MOST, MOST, 0, 0, 1), Event(raises=1), "count"),
    ],
)
def test_faults_change_nothing(state: MbarrierState, event: Event, fault: str) -> None:
    assert applied(state, event) == (state, False, fault) and fault in FAULTS


def test_who_all_drop_out_leave_an_open_phase() -> None:
    """Measured: it stays open until bytes have come and gone."""
    state = applied(MbarrierState(1, 1, 0, 0, 1), Event(arrivals=1, drops=1)).state
    assert state == (0, 0, 0, 1, 1)
    state = applied(state, Event(expects=64)).state
    assert state == (0, 0, 64, 1, 1)
    assert applied(state, Event(expects=-64)) == (MbarrierState(0, 0, 0, 0, 1), True, "")
    assert applied(state, Event(arrivals=1)).fault == "count"
