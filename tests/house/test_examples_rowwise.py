"""Softmax, RMSNorm and GELU of rows give the bits of their twins in CUDA C++ on an H200."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from left_out import without

from warpmma.machine.report.hazards import HazardError

twins: Any = import_module("twins")
rowwise: Any = import_module("rowwise")
Case = rowwise.Case

# How far results may be from float64, of max(1, magnitude): f32 by the functions' errors, the others by rounding.
NEAR = {"f32": 1e-5, "f16": 2.0**-10, "bf16": 2.0**-7, "f16x2": 2.0**-9, "bf16x2": 2.0**-6}


@cache
def recorded() -> tuple[dict[str, str], dict[str, Any]]:
    found: tuple[dict[str, str], dict[str, Any]] = twins.read("rowwise")
    return found


def simulated(case: Any) -> Any:
    """The output of a case, of which nothing is left as it was; there are neither hazards nor bank conflicts."""
    call = rowwise.call(case)
    call.output.view(np.uint8).fill(0xFF)
    result = twins.simulate(call)
    assert not result.hazards
    assert not any(site.conflicts for site in result.costs.sites.values())
    return call.output


@pytest.mark.parametrize("case", rowwise.CASES, ids=lambda case: case.name)
def test_kernel_gives_what_the_twin_gave(case: Any) -> None:
    output = simulated(case)
    assert np.array_equal(twins.kept(output), recorded()[1][case.name])
    exact = rowwise.exact(case)
    assert (np.abs(output.astype(np.float64) - exact) < NEAR[case.kind] * np.maximum(1, np.abs(exact))).all()


def test_recording_says_what_it_is_of() -> None:
    about, found = recorded()
    assert about["gpu"] == "NVIDIA H200"
    assert about["driver"]
    assert list(found) == [case.name for case in rowwise.CASES]
    assert (twins.RECORDED / "rowwise.npz").stat().st_size < 300_000


@pytest.mark.parametrize("kind", [*rowwise.KINDS, *rowwise.PAIRS])
def test_rows_are_alone(kind: str) -> None:
    """Rows of a softmax are, in every bit, those of one with fewer rows."""
    whole, part = (simulated(Case("softmax", rows, 96, kind)) for rows in (6, 5))
    assert np.array_equal(twins.codes(whole)[:5], twins.codes(part))


def test_gelu_does_not_know_rows() -> None:
    """Elements alone, and pairs, are the same in rows of other lengths, one thread taking one of them or four."""
    for kind in (*rowwise.KINDS, *rowwise.PAIRS):
        four, one = (simulated(Case("gelu", *shape, kind)) for shape in ((1, 80), (1, 78)))
        assert np.array_equal(twins.codes(four)[0, :78], twins.codes(one)[0])


def test_weights_and_x_count() -> None:
    """Twice the weights give twice the result; rows of x times 2^12, where epsilon is nothing, the same one."""
    call = rowwise.call(Case("rmsnorm", 3, 200, "f32"))
    twins.simulate(call)
    x, weights, y = call.arrays
    again = replace(call, arrays=(x * np.float32(4096), weights * np.float32(2), np.empty_like(y)))
    twins.simulate(again)
    np.testing.assert_allclose(again.output, 2 * y, rtol=1e-5)


def test_a_missing_barrier_is_found() -> None:
    call = rowwise.call(Case("rmsnorm", 2, 256, "f16"))
    with pytest.raises(HazardError) as caught:
        twins.simulate(replace(call, kernel=without("bar.sync", call.kernel)))
    assert caught.value.hazard.kind == "race"


def test_what_kernels_do_not_take() -> None:
    with pytest.raises(ValueError, match=r"^rows of bf16x2 have 77 columns; expected an even number$"):
        rowwise.call(Case("gelu", 1, 77, "bf16x2"))
    with pytest.raises(ValueError, match=r"^rows of softmax have 1025 columns; expected at most 1024$"):
        rowwise.call(Case("softmax", 1, 1025, "f32"))
    with pytest.raises(ValueError, match=r"^rows of softmax have 2050 columns; expected at most 2048$"):
        rowwise.call(Case("softmax", 1, 2050, "f16x2"))


def test_main(capsys: pytest.CaptureFixture[str]) -> None:
    rowwise.main()
    shown = capsys.readouterr().out
    assert "rmsnorm 2x4096 bf16 1: within " in shown
    assert "no bank conflicts" in shown
