"""One measurement, and what it is compared with in the same breath."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

Call = Callable[[], object]
Section = Literal[
    "matmul, one thread",
    "options of matmul",
    "against mmasim",
    "kinds of input",
    "registers to registers",
    "special functions",
    "kernels",
    "latency",
    "launches",
    "pipelines",
    "scaling",
    "memory",
]

INTERPRETER = "TRITON_INTERPRET=1"
"""What kernels of Triton are compared with: Triton's own interpreter, as it is asked for."""


class Against(NamedTuple):
    """A reference: its name, and a function that measures it once, in units of work a second."""

    name: str
    speed: Callable[[], float]


def against(name: str, call: Call, work: float, timer: Callable[[], float] = time.process_time) -> Against:
    """Something to call, which does so much work, as a reference; by processor time unless told otherwise."""

    def speed() -> float:
        start = timer()
        call()
        return work / (timer() - start)

    return Against(name, speed)


def repeat(call: Call, times: int) -> Call:
    def repeated() -> None:
        for _ in range(times):
            call()

    return repeated


def measure(
    benchmark: BenchmarkFixture, call: Call, *, section: Section, label: str, work: float, unit: str,
    reference: Against | None = None, seconds: float = 1.5, most: int = 15,
) -> None:  # fmt: skip
    """Measure a call which does so much work.

    The reference is measured before each round, so that both see the same machine; of both the best round counts.
    There are 3 to `most` rounds, for about so many seconds.
    """
    speeds: list[float] = []

    def before() -> None:
        if reference:
            speeds.append(reference.speed())

    # What belongs to this measurement stands there even if it is cut short.
    benchmark.group = section
    info: dict[str, Any] = benchmark.extra_info
    info.update(section=section, label=label, work=work, unit=unit, reference=reference.name if reference else None)
    call()  # tables are made on the first call
    before()
    start = time.perf_counter()
    call()
    before()
    once = time.perf_counter() - start
    rounds = min(most, max(3, int(seconds / max(once, 1e-6))))
    fixture: Any = benchmark
    fixture.pedantic(call, setup=before, rounds=rounds, iterations=1)
    if reference:
        info["reference_speed"] = max(speeds)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_counts() -> list[int]:
    """1, 2, 4, ... and all."""
    most = processors()
    return sorted({1, most, *(2**e for e in range(most.bit_length()) if 2**e <= most)})
