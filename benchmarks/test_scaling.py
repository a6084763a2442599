"""How speed goes with the number of warps, of threads, and the length of k."""

from __future__ import annotations

import time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import warpmma as wm

from .families import F16
from .inputs import matrices, registers
from .measure import against, measure, thread_counts

NATIVE = "native" in wm.engines()


@pytest.mark.parametrize("warps", [10**e for e in range(7)])
def test_warps(benchmark: BenchmarkFixture, warps: int) -> None:
    if not NATIVE and warps > 10**5:
        pytest.skip("takes long with NumPy")
    given, usual = registers(F16, warps)[0], registers(F16, 4096)[0]
    times = max(1, 1000 // warps)
    label = f"{warps:,} {'warps' if warps > 1 else 'warp'}, f16 m16n8k16"

    def call() -> None:
        for _ in range(times):
            wm.execute(F16, *given, target="sm_90")

    reference = against("4,096 warps", lambda: wm.execute(F16, *usual, target="sm_90"), 4096)
    measure(
        benchmark, call, section="scaling", label=label, work=warps * times, unit="instructions/s",
        reference=reference, seconds=1,
    )  # fmt: skip


@pytest.mark.parametrize("threads", thread_counts())
@pytest.mark.benchmark(timer=time.perf_counter)
def test_threads_of_execute(benchmark: BenchmarkFixture, threads: int) -> None:
    warps = 2**18 if NATIVE else 2**14
    given = registers(F16, warps)[0]
    one = against("1 thread", lambda: wm.execute(F16, *given, target="sm_90"), warps, time.perf_counter)
    measure(
        benchmark, lambda: wm.execute(F16, *given, target="sm_90", threads=threads), section="scaling",
        label=f"{threads} {'threads' if threads > 1 else 'thread'}, execute of {warps:,} warps", work=warps,
        unit="instructions/s", reference=one, seconds=3,
    )  # fmt: skip


@pytest.mark.parametrize("threads", thread_counts())
@pytest.mark.benchmark(timer=time.perf_counter)
def test_threads_of_matmul(benchmark: BenchmarkFixture, threads: int) -> None:
    size = 2048 if NATIVE else 256
    a, b = matrices("normal", "f16", size, size, size)
    one = against("1 thread", lambda: wm.matmul(a, b, target="sm_90"), size**3, time.perf_counter)
    measure(
        benchmark, lambda: wm.matmul(a, b, target="sm_90", threads=threads), section="scaling",
        label=f"{threads} {'threads' if threads > 1 else 'thread'}, matmul of {size}", work=size**3,
        unit="products/s", reference=one, seconds=6,
    )  # fmt: skip


@pytest.mark.parametrize("k", [256, 1024, 4096, 16384, 65536])
def test_k(benchmark: BenchmarkFixture, k: int) -> None:
    if not NATIVE and k > 1024:
        pytest.skip("takes long with NumPy")
    (a, b), (a_usual, b_usual) = (matrices("normal", "f16", 256, 256, x) for x in (k, 1024))
    usual = against("k = 1024", lambda: wm.matmul(a_usual, b_usual, target="sm_90"), 256 * 256 * 1024)
    measure(
        benchmark, lambda: wm.matmul(a, b, target="sm_90"), section="scaling", label=f"k = {k}, matmul of 256 x 256",
        work=256 * 256 * k, unit="products/s", reference=usual, seconds=1.5,
    )  # fmt: skip
