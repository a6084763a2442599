"""Square matrix products on one thread, against `limit.c`; and what the kind of input changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import warpmma as wm

from . import limit
from .families import E4M3, WGMMA_E4M3
from .inputs import KINDS, matrices
from .measure import Against, against, measure

SIZES = (256, 512, 1024, 2048, 4096)


def test_limit_has_the_bits(limit_program: Path) -> None:
    """What is compared with computes the same thing."""
    a, b = matrices("normal", "f16", 100, 64, 512)
    b[:, 0], a[3], b[7] = 0, 0, np.float16(2.0**-24)
    ours = wm.matmul(a, b, target="sm_90")
    assert np.array_equal(limit.product(limit_program, a, b).view(np.uint32), ours.view(np.uint32))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_square(
    benchmark: BenchmarkFixture, limit_if_any: Path | None, request: pytest.FixtureRequest, name: str, size: int
) -> None:
    if size == 4096 and not request.config.getoption("--long"):
        pytest.skip("takes long: --long")
    if "native" not in wm.engines() and size > 512:
        pytest.skip("takes minutes with NumPy")
    a, b = matrices("normal", name, size, size, size)
    program = limit_if_any
    reference = Against("limit.c", lambda: limit.speed(program, size)) if program else None
    measure(
        benchmark, lambda: wm.matmul(a, b, target="sm_90"), section="matmul, one thread", label=f"{name} {size}",
        work=size**3, unit="products/s", reference=reference, seconds=min(8, 1 + 7 * (size / 2048) ** 2),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_numpy(benchmark: BenchmarkFixture, name: str) -> None:
    size = 256
    a, b = matrices("normal", name, size, size, size)
    native = against("native", lambda: wm.matmul(a, b, target="sm_90"), size**3)
    measure(
        benchmark, lambda: wm.matmul(a, b, target="sm_90", engine="numpy"), section="matmul, one thread",
        label=f"{name} {size}, NumPy", work=size**3, unit="products/s",
        reference=native if "native" in wm.engines() else None, seconds=1,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("label", "name", "instruction", "target"),
    [
        ("f16", "f16", None, "sm_90"),
        ("bf16", "bf16", None, "sm_90"),
        ("e4m3 wgmma", "e4m3", WGMMA_E4M3, "sm_90a"),
        ("e4m3 mma, Ada", "e4m3", E4M3, "sm_89"),
        ("e4m3 mma, sm_90", "e4m3", E4M3, "sm_90"),
    ],
)
def test_kinds(
    benchmark: BenchmarkFixture, label: str, name: str, instruction: str | None, target: str, kind: str
) -> None:  # fmt: skip
    size = 1024 if "native" in wm.engines() else 128

    def call(kind: str) -> object:
        return wm.matmul(*given[kind], instruction=instruction, target=target)

    given = {each: matrices(each, name, size, size, size) for each in {"normal", kind}}
    measure(
        benchmark, lambda: call(kind), section="kinds of input", label=f"matmul {label}: {kind}", work=size**3,
        unit="products/s", reference=against("normal", lambda: call("normal"), size**3), seconds=1.2,
    )  # fmt: skip
