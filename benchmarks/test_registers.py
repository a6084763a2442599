"""Registers to registers on one thread, and what a single call takes."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import warpmma as wm

from .families import BF16, E4M3, F16, FAMILIES, Family
from .inputs import KINDS, registers
from .measure import Call, against, measure, repeat

WARPS = 4096
NATIVE = "native" in wm.engines()
SINGLE = tuple(f for f in FAMILIES if f.label in ("f16 m16n8k16, sm_90", "f64 m16n8k16", "s8 m16n8k32"))


def execute(family: Family, warps: int, engine: str, kind: str = "normal") -> Call:
    operands, extra = registers(family.mnemonic, warps, kind)
    return lambda: wm.execute(family.mnemonic, *operands, target=family.target, engine=engine, **extra)  # type: ignore[arg-type]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.label)
def test_families(benchmark: BenchmarkFixture, family: Family) -> None:
    """The fastest engine in batches; where there is a native engine, against NumPy."""
    numpy = execute(family, WARPS, "numpy")
    reference = against("NumPy", numpy, WARPS) if NATIVE else None
    # Some thousand warps take the native engine a thousandth of NumPy's time: give it as many rounds' worth at once.
    times = 8 if NATIVE else 1
    call = repeat(execute(family, WARPS, "auto"), times)
    measure(
        benchmark, call, section="registers to registers", label=family.label, work=WARPS * times,
        unit="instructions/s", reference=reference, seconds=1,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "family",
    [Family("f16 m16n8k16", F16, "sm_90"), Family("bf16 m16n8k16", BF16, "sm_90"), Family("e4m3, Ada", E4M3, "sm_89")],
    ids=lambda f: f.label,
)
def test_kinds(benchmark: BenchmarkFixture, family: Family, kind: str) -> None:
    reference = against("normal", execute(family, WARPS, "auto"), WARPS)
    measure(
        benchmark, execute(family, WARPS, "auto", kind), section="kinds of input",
        label=f"registers {family.label}: {kind}", work=WARPS, unit="instructions/s", reference=reference, seconds=0.5,
    )  # fmt: skip


@pytest.mark.parametrize("family", SINGLE, ids=lambda f: f.label)
def test_one_execute(benchmark: BenchmarkFixture, family: Family, engine: str) -> None:
    times = 20
    measure(
        benchmark, repeat(execute(family, 1, engine), times), section="latency",
        label=f"execute, one warp, {family.label}, {engine}", work=times, unit="us a call",
        reference=against("NumPy", repeat(execute(family, 1, "numpy"), 5), 5) if engine == "native" else None,
        seconds=0.3,
    )  # fmt: skip


@pytest.mark.parametrize("family", SINGLE, ids=lambda f: f.label)
def test_one_mma(benchmark: BenchmarkFixture, family: Family, engine: str) -> None:
    i = wm.parse(family.mnemonic)
    a, b = (np.ones(i.layout(x).shape, i.format(x).code_dtype) for x in ("A", "B"))

    def call(engine: str) -> Call:
        return lambda: wm.mma(i, a, b, target=family.target, engine=engine)  # type: ignore[arg-type]

    times = 20
    measure(
        benchmark, repeat(call(engine), times), section="latency", label=f"mma, {family.label}, {engine}", work=times,
        unit="us a call", reference=against("NumPy", repeat(call("numpy"), 5), 5) if engine == "native" else None,
        seconds=0.3,
    )  # fmt: skip
