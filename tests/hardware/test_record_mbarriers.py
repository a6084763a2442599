"""Sequences of events on an mbarrier, as an H200 computes them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.record import mbarriers
from lab.record.mbarriers import EVENTS, RECORDED, read, rows, simulated, text, written
from warpmma.kernel import HazardError
from warpmma.machine.sync import Event, MbarrierState, applied

RECORDING = read()
SEQUENCES = RECORDING["sequences"]
APPLIED = {
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
    tokens = 0
    for sequence in SEQUENCES:
        state = MbarrierState(0, 0, 0, 0, 0)
        for (action, number), (upper, even, odd) in zip(sequence["ops"], rows(sequence).tolist(), strict=True):
            if action == "init":
                state = MbarrierState(number, number, 0, 0, 1)
            else:
                outcome = applied(state, APPLIED[action](number))
                assert not outcome.fault
                if action not in ("expect", "complete"):
                    assert state.word >> 32 == upper
                    tokens += 1
                state = outcome.state
            assert (even, odd) == (int(state.phase != 0), int(state.phase != 1))
    assert len(SEQUENCES) == 96 and tokens == 763


@pytest.mark.parametrize("number", range(len(SEQUENCES)))
def test_programs(number: int) -> None:
    """The PTX that runs on the GPU, in the machine."""
    sequence = SEQUENCES[number]
    for options in ({"hazards": "off"}, {}, {"seed": 1 + number}):
        np.testing.assert_array_equal(simulated(sequence["ops"], **options), rows(sequence), str(options))


def test_sequences_have_every_event() -> None:
    assert {name for sequence in SEQUENCES for name, _ in sequence["ops"]} == set(EVENTS)
    assert {sequence["ops"][0][0] for sequence in SEQUENCES} == {"init"}


def test_a_recording_of_the_same_results_is_the_same_text() -> None:
    about = {name: RECORDING[name] for name in ("gpu", "driver")}
    again = written(about, [(x["ops"], rows(x)) for x in SEQUENCES])
    assert again == gzip.decompress(RECORDED.read_bytes()).decode()


class FakeDriver:
    """What names a GPU."""

    @staticmethod
    def about() -> dict[str, str]:
        return {name: RECORDING[name] for name in ("gpu", "driver")}


@pytest.mark.parametrize("wrong", [False, True])
def test_the_recorder_compares_and_writes(
    wrong: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With results of the recording in place of a GPU's, or with one bit wrong in the third event of the last."""
    came = [rows(x) for x in SEQUENCES]
    came[-1][2, 0] ^= wrong
    results, out = iter(came), tmp_path / "made.json.gz"
    monkeypatch.setattr(mbarriers, "Driver", FakeDriver)
    monkeypatch.setattr(mbarriers, "on_gpu", lambda driver, operations: next(results))
    assert mbarriers.main(["--out", str(out)]) == wrong
    assert (read(out) == RECORDING) is not wrong
    printed = capsys.readouterr().out
    for name in ("warpmma", "the recording"):
        assert (f"sequence 95 differs from {name} first after event 2, ['arriven', 262144]: GPU [1073741825" in printed
                ) is wrong  # fmt: skip


@pytest.mark.parametrize(
    ("operations", "says"),
    [
        ([("init", 1), ("arriven", 2)], "more arrivals"),
        ([("init", 1), ("nocomp", 1)], "noComplete completes the phase"),
    ],
)
def test_faults_are_reported(operations: Any, says: str) -> None:
    """So that `test_programs` shows that the recorded sequences have none."""
    with pytest.raises(HazardError, match=says):
        simulated(operations)


def test_each_event_is_one_statement() -> None:
    lines = text([("init", 3), ("drop", 1), ("complete", 16)]).splitlines()
    assert sum(x.startswith(("mbarrier.init", "mbarrier.arrive_drop", "mbarrier.complete_tx")) for x in lines) == 3
    assert lines.count("mov.u32 %upper, 0;") == 2 and lines.count("mov.b64 {%low, %upper}, %token;") == 1
