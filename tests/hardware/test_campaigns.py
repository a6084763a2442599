"""Campaigns of `warpmma compare` and their workers, in threads and in processes, without a GPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from compared_groups import AskedForCounting, Counting, Memory

from warpmma.errors import UnsupportedError
from warpmma.hardware import Campaign, Report, Worker, process_worker, thread_worker

ROOT = Path(__file__).parents[2]


class Ran:
    """A campaign."""

    def __init__(self) -> None:
        self.report, self.saved, self.stop = Report(device={}, seed=0), 0, Event()
        self.tell: Callable[[str], object] = lambda line: None

    def run(self, compared: list[Any], outputs: int, workers: list[Worker], until: float = float("inf")) -> None:
        def save() -> None:
            self.saved += 1

        Campaign(
            report=self.report, explain=lambda name, found: f"explains {name}", save=save, tell=self.tell,
            stop=self.stop,
        ).run(compared, outputs, workers, until)  # fmt: skip

    def counts(self, what: str = "outputs") -> dict[str, int]:
        return {name: getattr(x, what) for name, x in self.report.counts["operation"].items()}


def threads(compared: list[Any], number: int) -> list[Worker]:
    return [thread_worker(Memory(), "sm_90a", compared) for _ in range(number)]


@pytest.mark.parametrize("workers", [1, 3, 8])
def test_each_has_what_is_wanted_and_goes_on(workers: int) -> None:
    compared = [Counting([f"{i} a", f"{i} b"][: 1 + i % 2]) for i in range(5)]
    ran = Ran()
    ran.run(compared, 25, threads(compared, workers))
    assert set(ran.counts().values()) == {30} and len(ran.counts()) == 7 and set(ran.counts("pieces").values()) == {3}
    ran.run(compared, 40, threads(compared, workers))
    assert set(ran.counts().values()) == {40}
    ran.run(compared, 40, threads(compared, workers))
    assert set(ran.counts().values()) == {40} and ran.saved >= 3


def test_what_has_least_comes_first() -> None:
    compared = [Counting(["a"]), Counting(["b"])]
    ran = Ran()
    ran.report.of("operation", "a").outputs = 500
    done: list[str] = []

    def stop(name: str) -> Callable[..., Any]:
        def run(room: Any, number: int, before: int) -> Any:
            done.append(name)
            return Counting([name]).run(room, number, before)

        return run

    for x in compared:
        object.__setattr__(x, "run", stop(x.names[0]))
    ran.run(compared, 1000, threads(compared, 1))
    assert done[:50] == ["b"] * 50 and set(ran.counts().values()) == {1000}


def test_differences_and_refusals() -> None:
    compared = [Counting(["a", "b"], "differs"), Counting(["c", "d"], "refused")]
    ran = Ran()
    ran.run(compared, 30, threads(compared, 2))
    assert ran.counts() == {"a": 30, "b": 30, "d": 30} and ran.report.left_out == {"c": "too new"}
    assert ran.counts("differences") == {"a": 1, "b": 1, "d": 0}
    assert ran.report.first["a"]["explanation"] == "explains a" and ran.report.first["a"]["given"] == (1, 10)


def test_stopped() -> None:
    compared = [Counting(["a"], "slow"), Counting(["b"], "slow")]
    ran = Ran()
    ran.stop.set()
    ran.run(compared, 30, threads(compared, 2))
    assert not ran.report.counts
    ran = Ran()
    ran.run(compared, 10**9, threads(compared, 2), time.monotonic() + 0.1)
    assert all(20 <= x <= 50 for x in ran.counts().values()) and ran.saved


@pytest.mark.parametrize("start", [threads, None], ids=["thread", "process"])
def test_errors_of_a_worker(start: Any) -> None:
    asked = AskedForCounting(target="sm_90a", pattern="fails", outputs=1, seed=0)
    workers = start(asked.comparisons(), 1) if start else [process_worker(0, asked, Memory)]
    ran = Ran()
    with pytest.raises(RuntimeError, match="an error of the test"):
        ran.run(asked.comparisons(), 30, workers)
    assert ran.saved


def test_processes() -> None:
    asked = AskedForCounting(target="sm_90a", pattern="", outputs=6, seed=0)
    ran = Ran()
    ran.run(asked.comparisons(), 100, [process_worker(i, asked, Memory) for i in range(2)])
    assert set(ran.counts().values()) == {100} and len(ran.counts()) == 12
    (note,) = ran.report.notes
    assert " in process " in note and note.split()[-1] != str(os.getpid())


def test_processes_leave_signals_to_the_campaign() -> None:
    asked = AskedForCounting(target="sm_90a", pattern="slow", outputs=2, seed=0)
    ran = Ran()
    told: list[int] = []

    def tell(line: str) -> None:
        if not ran.report.notes:  # the process is still starting
            return
        told.append(int(ran.report.notes[0].split()[-1]))
        for each in (signal.SIGINT, signal.SIGTERM):
            os.kill(told[-1], each)

    ran.tell = tell
    ran.run(asked.comparisons(), 150, [process_worker(0, asked, Memory)])
    assert told and set(ran.counts().values()) == {150}


def test_a_process_that_is_killed() -> None:
    asked = AskedForCounting(target="sm_90a", pattern="is killed", outputs=1, seed=0)
    ran = Ran()
    with pytest.raises(UnsupportedError, match=f"a process of the comparison ended with status -{int(signal.SIGKILL)}"):
        ran.run(asked.comparisons(), 30, [process_worker(0, asked, Memory)])
    assert ran.saved


@pytest.mark.parametrize(
    ("does", "why"), [("dies", "a process that compares it ends with SIGABRT"), ("traps", "1 traps: a trap")]
)
def test_what_ends_its_process_is_left_out(does: str, why: str) -> None:
    asked = AskedForCounting(target="sm_90a", pattern=does, outputs=3, seed=0)
    ran = Ran()
    ran.run(asked.comparisons(), 30, [process_worker(0, asked, Memory)])
    assert ran.report.left_out == {f"1 {does}": why, "1 too": why}
    assert ran.counts() == {f"{i} {x}": 30 for i in (0, 2) for x in (does, "too")}
    ran.run([Counting([f"1 {does}", "1 too"])], 30, threads([Counting([f"1 {does}", "1 too"])], 1))
    assert not ran.report.left_out and set(ran.counts().values()) == {30}


def test_a_trap_in_a_thread_ends_the_campaign() -> None:
    compared = [Counting(["1 a"], "traps"), Counting(["2 a"])]
    ran = Ran()
    with pytest.raises(UnsupportedError, match="1 a: a trap"):
        ran.run(compared, 30, threads(compared, 1))
    assert ran.saved and ran.report.left_out == {"1 a": "1 a: a trap"}


def no_gpu(number: int) -> Any:
    raise UnsupportedError(f"there is no GPU {number}")


def test_a_process_without_a_gpu() -> None:
    asked = AskedForCounting(target="sm_90a", pattern="", outputs=1, seed=0)
    with pytest.raises(UnsupportedError, match="there is no GPU 7"):
        Ran().run(asked.comparisons(), 30, [process_worker(7, asked, no_gpu)])


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks into /proc")
def test_processes_end_with_a_campaign_that_is_killed(tmp_path: Path) -> None:
    told = tmp_path / "told"
    campaign = subprocess.Popen([sys.executable, ROOT / "tests/support/compared_groups.py", told], cwd=ROOT)
    try:
        _until(lambda: told.exists() and told.read_text() != "")
        own = int(told.read_text())
        assert Path(f"/proc/{own}").exists() and own != campaign.pid
    finally:
        campaign.kill()
        campaign.wait()
    _until(lambda: not Path(f"/proc/{own}").exists() or "zombie" in Path(f"/proc/{own}/status").read_text())


def _until(true: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)
