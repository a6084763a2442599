"""What the options of `matmul` cost beside the plain product, and what it costs to quantise its operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import warpmma as wm
from warpmma import scaling

from .families import FAMILIES, WGMMA_E4M3
from .inputs import matrices
from .measure import against, measure

NATIVE = "native" in wm.engines()
SIZE = 2048 if NATIVE else 128


@pytest.mark.parametrize(
    "options",
    [{"promote_every": 128}, {"split_k": 8}, {"split_k": 4, "promote_every": 32}],
    ids=lambda x: ", ".join(f"{name}={value}" for name, value in x.items()),
)
def test_partial_sums(benchmark: BenchmarkFixture, options: dict[str, int], request: pytest.FixtureRequest) -> None:
    a, b = matrices("normal", "e4m3", SIZE, SIZE, SIZE)

    def call(**more: Any) -> object:
        return wm.matmul(a, b, instruction=WGMMA_E4M3, target="sm_90a", **more)

    label = f"e4m3 wgmma {SIZE}: {request.node.callspec.id}"
    measure(
        benchmark, lambda: call(**options), section="options of matmul", label=label, work=SIZE**3, unit="products/s",
        reference=against("plain", call, SIZE**3), seconds=6,
    )  # fmt: skip


OPTIONS = ("C", "epilogue bf16", "columns of A", "rows of B", "batch of 64", "threads=2")


@pytest.mark.parametrize("option", OPTIONS)
def test_option(benchmark: BenchmarkFixture, option: str) -> None:
    size = SIZE // 2
    square = (64, size // 4, size // 4)
    a, b = matrices("normal", "f16", size, size, size)
    some: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "C": (a, b, {"c": np.ones((size, size), np.float32)}),
        "epilogue bf16": (a, b, {"epilogue": "bf16"}),
        "columns of A": (np.asfortranarray(a), b, {}),
        "rows of B": (a, np.asfortranarray(b), {}),
        "batch of 64": (np.resize(a, square), np.resize(b, square), {}),
        "threads=2": (a, b, {"threads": 2}),
    }
    x, y, more = some[option]
    measure(
        benchmark, lambda: wm.matmul(x, y, target="sm_90", **more), section="options of matmul",
        label=f"f16 {size}: {option}", work=size**3, unit="products/s",
        reference=against("plain", lambda: wm.matmul(a, b, target="sm_90"), size**3),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["mxf8f6f4", "mxf4", "nvfp4"])
def test_quantize(benchmark: BenchmarkFixture, name: str) -> None:
    """Both operands of a product of 1024 x 4096 x 4096."""
    i = next(x.mnemonic for x in FAMILIES if x.label.startswith(f"{name} "))
    m, k, n = (1024, 4096, 4096) if NATIVE else (64, 256, 256)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, np.float32) for shape in ((m, k), (k, n)))
    qa, qb = scaling.quantize(a, i, "A"), scaling.quantize(b, i, "B")
    measure(
        benchmark, lambda: (scaling.quantize(a, i, "A"), scaling.quantize(b, i, "B")), section="options of matmul",
        label=f"quantize {name} {m} x {k} x {n}", work=m * k + k * n, unit="elements/s",
        reference=against("product", lambda: wm.matmul(qa, qb, instruction=i, target="sm_120a"), m * k + k * n),
    )  # fmt: skip
