"""Instructions of kernels, 32,768 lanes at once: integers, fma, loads and stores, with hazards and without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from warpmma.kernel import launch

from .measure import against, measure

LANES, TIMES = 1 << 15, 64
BODIES: dict[str, Callable[[Any, Any, Any, Any, Any], object]] = {
    "add.u32": lambda t, n, x, y, s: t("add.u32", n, n),
    "fma.rn.f32": lambda t, n, x, y, s: t("fma.rn.f32", n, n, n),
    "ld.global.b32": lambda t, n, x, y, s: t("ld.global.b32", x),
    "ld.b32": lambda t, n, x, y, s: t("ld.b32", x),
    "st.global.b32": lambda t, n, x, y, s: t("st.global.b32", y, n),
    "ld.shared.b32": lambda t, n, x, y, s: t("ld.shared.b32", s),
    "st.shared.b32": lambda t, n, x, y, s: t("st.shared.b32", s, n),
    "ld.local.b32": lambda t, n, x, y, s: t("ld.local.b32", 8),
}


def kernel(name: str, times: int, t: Any, x: Any, y: Any) -> None:
    n = t.ctaid[0] * t.ntid[0] + t.tid[0]
    shared = t.tid[0] * 4
    t("st.shared.b32", shared, n)
    t("st.local.b32", 8, n)
    for _ in range(times):
        BODIES[name](t, n, x + n * 4, y + n * 4, shared)


def run(name: str, hazards: Any, times: int) -> None:
    x, y = np.arange(LANES, dtype=np.uint32), np.zeros(LANES, np.uint32)
    launch(lambda t, x, y: kernel(name, times, t, x, y), LANES // 256, 256, [x, y], target="sm_90", shared=1024,
           hazards=hazards)  # fmt: skip


@pytest.mark.parametrize("hazards", ["off", "error"])
@pytest.mark.parametrize("name", BODIES)
def test_instruction(benchmark: BenchmarkFixture, name: str, hazards: str) -> None:
    """Beside a launch with an integer addition in its place."""
    measure(
        benchmark, lambda: run(name, hazards, TIMES), section="kernels", label=f"{name}, hazards {hazards}",
        work=LANES * TIMES, unit="thread-instructions/s",
        reference=against("add.u32", lambda: run("add.u32", hazards, TIMES), LANES * TIMES), seconds=2,
    )  # fmt: skip
