"""`threads=` of a launch: it splits each `mma`, and changes neither bits nor costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arrays import Array, same
from kernels import MMA, TARGET
from ptx_products import GEMM

import warpmma as wm
from warpmma import execution

BLOCKS = 300  # of one warp: more than the NumPy engine computes in one piece

RNG = np.random.default_rng(17)
A = RNG.standard_normal((BLOCKS, 32, 8)).astype(np.float16)


def multiply(t: Any, a: Any, d: Any) -> None:
    """Each warp multiplies four registers of its own."""
    lane = t.ctaid[0] * 32 + t.tid[0]
    words = t("ld.global.v4.b32", a + lane * 16)
    t("st.global.v4.f32", d + lane * 16, *t(MMA, words, words[1:3], [0.0] * 4))


def in_python(engine: Any, threads: int | None) -> tuple[Array, Any]:
    d = np.zeros((BLOCKS, 32, 4), np.float32)
    return d, wm.kernel.launch(multiply, BLOCKS, 32, [A, d], target=TARGET, engine=engine, threads=threads)


def in_ptx(engine: Any, threads: int | None) -> tuple[Array, Any]:
    device, d = wm.Device(TARGET), np.zeros((32, 4), np.float32)
    entry = wm.ptx.load(GEMM, "gemm.ptx")["gemm"]
    report = entry.launch(device, BLOCKS, 32, [A, d, 3], engine=engine, threads=threads, hazards="off")
    return d, report


@pytest.mark.parametrize("launch", [in_python, in_ptx])
@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_bits_and_costs_do_not_depend_on_threads(launch: Any, engine: str) -> None:
    if engine not in wm.engines():
        pytest.skip("the native engine is not there")
    right, report = launch(engine, None)
    assert right.any()
    for threads in (1, 3):
        d, other = launch(engine, threads)
        same(d, right)
        assert other.text() == report.text()


def test_threads_reach_each_mma(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing else: blocks that run together run on the thread of the caller."""
    seen: list[int | None] = []
    own = execution.Execution.run

    def run(self: execution.Execution, threads: int | None) -> Array:
        seen.append(threads)
        return own(self, threads)

    monkeypatch.setattr(execution.Execution, "run", run)
    in_python("auto", 3)
    in_ptx("auto", 2)
    assert seen == [3, 2, 2, 2]
