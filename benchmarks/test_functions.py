"""Approximate functions element by element, on one thread."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from warpmma.arithmetic import SEQUENCES, ApproximateForm, approximate
from warpmma.operations import elementwise

from .measure import Call, against, measure, repeat

SIZE = 1 << 18
FORMS = [row for row in SEQUENCES.values() if row.fmt.bits >= 32]
SUBNORMAL = ("ex2.approx.f32", "rcp.approx.f32", "rsqrt.approx.f64")
"""Many operands have subnormal results, or are special."""


def numbers(row: ApproximateForm, of: str = "usual") -> list[npt.NDArray[np.floating[Any]]]:
    rng, dtype = np.random.default_rng(0), np.dtype(f"f{row.fmt.bits // 8}")
    given = rng.normal(0, 4, (row.operands, SIZE)).astype(dtype)
    if of == "random bits":
        given = rng.integers(0, row.fmt.mask, given.shape, row.fmt.code_dtype, endpoint=True).view(dtype)
    return list(given)


def call(row: ApproximateForm, engine: str, of: str = "usual") -> Call:
    codes = [x.view(row.fmt.code_dtype) for x in numbers(row, of)]
    return partial(approximate, row.form, *codes, engine=engine)  # type: ignore[arg-type]


@pytest.mark.parametrize("row", FORMS, ids=lambda row: row.form)
def test_form(benchmark: BenchmarkFixture, row: ApproximateForm, engine: str) -> None:
    times = 8 if engine == "native" else 1
    reference = against("NumPy", call(row, "numpy"), SIZE) if engine == "native" else None
    measure(
        benchmark, repeat(call(row, engine), times), section="special functions", label=f"{row.form}, {engine}",
        work=SIZE * times, unit="results/s", reference=reference, seconds=0.3,
    )  # fmt: skip


@pytest.mark.parametrize("form", SUBNORMAL)
def test_random_bits(benchmark: BenchmarkFixture, form: str) -> None:
    """Of all exponents: scaled operands, subnormal results."""
    row = SEQUENCES[form]
    usual = against("usual numbers", call(row, "auto"), SIZE)
    measure(
        benchmark, call(row, "auto", "random bits"), section="special functions", label=f"{form}, random bits",
        work=SIZE, unit="results/s", reference=usual, seconds=0.3,
    )  # fmt: skip


def test_elementwise(benchmark: BenchmarkFixture) -> None:
    """As callers have it: float32 in and out."""
    row = SEQUENCES["ex2.approx.ftz.f32"]
    given = numbers(row)
    codes = against("codes", call(row, "auto"), SIZE)
    measure(
        benchmark, lambda: elementwise(row.form, *given), section="special functions",
        label=f"elementwise {row.form}", work=SIZE, unit="results/s", reference=codes, seconds=0.3,
    )  # fmt: skip
