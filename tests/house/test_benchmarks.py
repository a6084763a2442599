"""The benchmarks, as far as they need no clock: what is promised, and that a promise that is missed fails a run."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    return importlib.import_module("benchmarks.report")


def records(report: Any, ratio: float, speed: float) -> list[Any]:
    """A product so many times as fast as `limit.c`, and so many instructions a second."""
    return [
        report.Record("matmul, one thread", "f16 2048", "products/s", (2.0,), 2 * ratio * 1e9, "limit.c", 1e9),
        report.Record("registers to registers", "bf16 m16n8k16", "instructions/s", (1.0, 2.0), speed),
        report.Record("latency", "mma, f16 m16n8k16, native", "us a call", (1.0,), 20),
    ]


@pytest.mark.parametrize(
    ("ratio", "speed", "missed"),
    [
        (0.5, 1.5e6, []),
        (0.49, 1.5e6, ["matmul f16 2048: 0.5 of limit.c: 0.49"]),
        (0.6, 1.4e6, ["registers bf16 m16n8k16: 1.5 M/s: 1.40 M/s"]),
    ],
)
def test_what_is_missed(report: Any, ratio: float, speed: float, missed: list[str]) -> None:
    assert report.missed(records(report, ratio, speed)) == missed


@pytest.mark.parametrize(
    ("engine", "speed", "ratio", "missed"),
    [
        ("native", 1e8, 8.0, []),
        ("native", 0.9e8, 8.0, ["ex2.approx.f32, native: 100 M/s: 90.0 M/s"]),
        ("native", 2e8, 7.9, ["ex2.approx.f32, native: 8 times NumPy: 7.90"]),
        ("numpy", 1e7, None, []),
        ("numpy", 0.9e7, None, ["ex2.approx.f32, numpy: 10.0 M/s: 9.00 M/s"]),
    ],
)
def test_what_is_missed_of_functions(
    report: Any, engine: str, speed: float, ratio: float | None, missed: list[str]
) -> None:
    record = report.Record("special functions", f"ex2.approx.f32, {engine}", "results/s", (1.0,), speed)
    if ratio:
        record = replace(record, reference="NumPy", reference_speed=speed / ratio)
    assert report.missed([record]) == missed


def test_nothing_measured_keeps_no_promise(report: Any) -> None:
    assert report.missed([]) == report.missed(records(report, 1, 1e9)[2:]) == ["nothing that is promised was measured"]


@pytest.mark.parametrize(
    ("check", "ratio", "before", "after"), [(True, 0.4, 0, 1), (True, 0.6, 0, 0), (False, 0.4, 0, 0), (True, 0.4, 2, 2)]
)
def test_a_missed_promise_fails_a_run_that_asks(
    report: Any, monkeypatch: pytest.MonkeyPatch, check: bool, ratio: float, before: int, after: int
) -> None:
    conftest = importlib.import_module("benchmarks.conftest")
    monkeypatch.setattr(conftest, "_records", lambda config: records(report, ratio, 2e6))
    session: Any = SimpleNamespace(config=SimpleNamespace(getoption={"check": check}.get), exitstatus=before)
    conftest.pytest_sessionfinish(session, before)
    assert session.exitstatus == after
