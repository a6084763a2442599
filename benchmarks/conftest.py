"""What `pytest benchmarks` does besides running tests: options, engines, the table, the plot and the raw numbers."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm

from . import limit, report
from .measure import processors

RESULTS = Path(__file__).with_name("results")
# Doctests are looked for in every module, and this one needs Triton: its benchmarks are skipped without. The folder
# tests/triton, which is on the path, has no origin.
_TRITON = find_spec("triton")
collect_ignore = ["triton_kernels.py"] if _TRITON is None or _TRITON.origin is None else []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="benchmarks: also what takes minutes, such as matmul of 4096")
    parser.addoption("--check", action="store_true", help="benchmarks: fail if a figure that is promised is missed")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if not config.pluginmanager.has_plugin("benchmark"):
        raise pytest.UsageError("the benchmarks need pytest-benchmark: pip install -e '.[benchmark]'")
    config.option.benchmark_quiet = True  # our table takes the place of its own
    # Of a test that was interrupted before it came to measure.
    config.addinivalue_line("filterwarnings", "ignore:Benchmark fixture was not used")
    # Other programs on the machine cost us less of processor time than of the clock's.
    config.option.benchmark_timer = "time.process_time"


@pytest.fixture(scope="session")
def limit_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reason = limit.missing()
    if reason:
        pytest.skip(f"limit.c: {reason}")
    return limit.build(tmp_path_factory.mktemp("limit"))


@pytest.fixture
def limit_if_any(request: pytest.FixtureRequest) -> Path | None:
    """The same, or nothing to compare with."""
    return None if limit.missing() else request.getfixturevalue("limit_program")


@pytest.fixture(params=["native", "numpy"])
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param not in wm.engines():
        pytest.skip("the native engine is not built")
    yield request.param


def _records(config: pytest.Config) -> list[report.Record]:
    session: Any = getattr(config, "_benchmarksession", None)
    measured = [b for b in getattr(session, "benchmarks", []) if b.stats.data and "section" in b.extra_info]
    return [report.Record.of(b.extra_info, b.stats.data) for b in measured]


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail if asked to, unless the session has failed anyway."""
    if (
        session.config.getoption("check")
        and exitstatus == pytest.ExitCode.OK
        and report.missed(_records(session.config))
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Also after a failure or Ctrl-C, of what was measured until then."""
    records = _records(config)
    if config.getoption("check"):
        for each in report.missed(records):
            terminalreporter.write_line(f"--check: {each}", red=True)
    if not records:
        return
    about = {
        "processor": _processor(), "processors": processors(), "python": platform.python_version(),
        "numpy": np.__version__, "warpmma": wm.__version__, "engines": wm.engines(),
    }  # fmt: skip
    report.show(records, about)
    for path in report.write(records, about, RESULTS):
        terminalreporter.write_line(f"written: {path}")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
