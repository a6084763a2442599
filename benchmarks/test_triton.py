"""Kernels of Triton on a simulated GPU, against Triton's own interpreter and without a look for hazards.

The kernels are compiled for sm_90a. The goal: a product of 1024 x 1024 x 1024 in tiles of 64 x 64 x 32 is ten times as
fast as in the interpreter, which takes the same tiles, with a look for hazards; docs/triton.md has figures.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import warpmma as wm

from .measure import INTERPRETER, Against, Call, against, measure

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no triton: pip install '.[triton]'")

NAMES = (
    "product 512", "product 1024", "product 1024, bf16", "product 1024, tiles of 128", "softmax", "attention",
)  # fmt: skip


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    if request.param.startswith("product 1024") and not request.config.getoption("long"):
        pytest.skip("takes minutes: --long")
    return str(request.param)


def interpreted(name: str) -> Against:
    """The same kernel in Triton's interpreter, in a process of its own, which Triton asks for."""
    alone = {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.triton_kernels", name]

    def speed() -> float:
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, env=os.environ | alone, cwd=Path(__file__).parents[1]
        )
        return 1 / float(done.stdout)

    return Against(INTERPRETER, speed)


def simulated(name: str) -> Callable[[Any], Call]:
    from .triton_kernels import RUNS, arrays

    run = RUNS[name]
    given = arrays(run)

    def of(hazards: Any) -> Call:
        def call() -> None:
            with wm.triton.device("sm_90", hazards=hazards, threads=1):
                run.kernel[run.grid](*given, *run.numbers, **run.constants)

        return call

    return of


def test_against_the_interpreter(benchmark: BenchmarkFixture, name: str) -> None:
    """Hazards are looked for, as a user has it; compiled before."""
    measure(
        benchmark, simulated(name)("error"), section="kernels", label=f"Triton: {name}", work=1, unit="launches/s",
        reference=interpreted(name), seconds=1,
    )  # fmt: skip


def test_without_hazards(benchmark: BenchmarkFixture, name: str) -> None:
    kernel = simulated(name)
    measure(
        benchmark, kernel("off"), section="kernels", label=f"Triton: {name}, hazards off", work=1, unit="launches/s",
        reference=against("hazards looked for", kernel("error"), 1), seconds=1,
    )  # fmt: skip
