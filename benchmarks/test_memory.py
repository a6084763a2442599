"""Memory that a process needs at its peak, beyond inputs and outputs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import warpmma as wm

from .families import F16, SPARSE

# Nothing before the call may need more for a while than it leaves behind: the peak is all that the system reports.
# On Linux a child's ru_maxrss begins with its parent's, so there it is read elsewhere.
COMMON = """
import re, resource, sys, numpy as np, warpmma as wm

def peak():
    if sys.platform == "linux":
        return int(re.search(r"VmHWM:\\s+([0-9]+) kB", open("/proc/self/status").read())[1]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)

def beyond(call, *small):
    call(*small)  # imports and tables
    before = peak()
    d = call()
    print(peak() - before - d.nbytes / 2**20, d.nbytes / 2**20)
"""
EXECUTE = (
    COMMON
    + """
i = wm.parse("{mnemonic}")
a, b, c = (np.full(({warps}, i.layout(x).registers, 32), 0x3C003C00, np.uint32) for x in "ABC")
e = np.full(({warps}, 32), 0x44444444, np.uint32)
def call(warps={warps}):
    extra = dict(metadata=e[:warps]) if i.sparse else dict()
    return wm.execute(i, a[:warps], b[:warps], c[:warps], target="sm_90", engine="{engine}", **extra)
beyond(call, 1)
"""
)
MATMUL = (
    COMMON
    + """
a, b = np.full(({size}, {k}), 1, np.float16), np.full(({k}, {size}), 1, np.float16)
def call(size={size}):
    return wm.matmul(a[:size], b[:, :size], target="sm_90", engine="{engine}")
beyond(call, 16)
"""
)


def memory(benchmark: BenchmarkFixture, program: str, label: str) -> None:
    pytest.importorskip("resource", reason="only on Unix")
    benchmark.group = "memory"
    benchmark.extra_info.update(section="memory", label=label, unit="MiB")
    done: list[str] = []

    def run() -> None:
        found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
        done.extend(found.split())

    fixture: Any = benchmark
    fixture.pedantic(run)
    benchmark.extra_info.update(value=max(0.0, float(done[0])), beside=float(done[1]))


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_million_warps(benchmark: BenchmarkFixture, engine: str, sparse: bool) -> None:
    warps = 10**6 if engine == "native" else 10**5
    mnemonic = f"{SPARSE}.m16n8k32.row.col.f32.f16.f16.f32" if sparse else F16
    program = EXECUTE.format(mnemonic=mnemonic, warps=warps, engine=engine)
    memory(benchmark, program, f"execute, {warps:,} warps, {'sparse ' * sparse}f16, {engine}")


def test_wide_product(benchmark: BenchmarkFixture) -> None:
    if "native" not in wm.engines():
        pytest.skip("takes minutes with NumPy")
    memory(benchmark, MATMUL.format(size=4096, k=512, engine="native"), "matmul, 4096 x 4096, k = 512, native")


def test_long_product(benchmark: BenchmarkFixture) -> None:
    if "native" not in wm.engines():
        pytest.skip("takes minutes with NumPy")
    memory(benchmark, MATMUL.format(size=256, k=65536, engine="native"), "matmul, 256 x 256, k = 65536, native")
