"""What type checkers make of the public functions: mypy, which checks the tests too, fails where one is wrong."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from arrays import Array

import warpmma as wm
from warpmma.isa import MatrixInstruction
from warpmma.kernel import Launch
from warpmma.products import Choice, FloatFma
from warpmma.scaling import Quantized, quantize
from warpmma.testing import Gpu

I8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
MX = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"


def test_products_in_memory() -> None:
    a, b = np.ones((3, 32), np.float16), np.ones((32, 5), np.float16)
    d = wm.matmul(a, b, target="sm_90")
    assert_type(d, Array)
    assert_type(wm.matmul([[1, 2]], [[3], [4]], [[5]], instruction=I8, target="sm_80", engine="numpy"), Array)
    assert_type(wm.matmul(a, b, None, target="sm_90", split_k=[16, 16], epilogue="bf16", progress=print), Array)
    assert_type(Gpu("sm_90").matmul(a, b, promote_every=16), Array)
    assert d.shape == (3, 5)


def test_quantized_products() -> None:
    a, b = quantize(np.ones((3, 32), np.float32), MX), quantize(np.ones((32, 5), np.float32), MX, "B")
    assert_type(a, Quantized)
    assert_type(wm.matmul(a, b, instruction=MX, target="sm_120a"), Array)
    assert_type(wm.matmul(a.elements, b, instruction=MX, target="sm_120a", scale_a=a.scales), Array)


def test_choices() -> None:
    choice = wm.choose(np.ones((3, 32), np.float16), np.ones((32, 5), np.float16), target="sm_90")
    assert_type(choice, Choice)
    assert_type(choice.instruction, MatrixInstruction | FloatFma)
    assert_type(choice.slices, tuple[tuple[int, int], ...])
    assert_type(wm.find(a="f16", target="sm_90a"), tuple[MatrixInstruction, ...])


def test_launches() -> None:
    assert_type(Gpu("sm_90").launch(lambda t: None, 1, 32, [], hazards={"race": "warn"}), Launch)


class Lazy:
    """As little of a Dask array as a type checker needs."""

    def __dask_graph__(self) -> Any:
        raise NotImplementedError


def lazy_products(x: Lazy, y: Array, z: Quantized) -> None:
    """Not run: what Dask's arrays give is Dask's."""
    for d in (
        wm.matmul(x, x, target="sm_90"), wm.matmul(x, y, target="sm_90"), wm.matmul(y, x, target="sm_90"),
        wm.matmul(y, y, x, target="sm_90"), wm.matmul(z, x, target="sm_90", scale_b=x),
    ):  # fmt: skip
        d.compute()


def wrong(x: Array) -> None:
    """Not run: what mypy must refuse, or the comments here would be errors."""
    wm.matmul(x, x)  # type: ignore[call-overload]
    wm.matmul(x, x, target="sm_90", split=2)  # type: ignore[call-overload]
    wm.matmul(x, x, target="sm_90", engine="gpu")  # type: ignore[call-overload]
    wm.matmul(x, x, target="sm_90", promote_every="128")  # type: ignore[call-overload]
    wm.matmul(x, x, target="sm_90").compute()  # type: ignore[attr-defined]
    wm.find("f16")  # type: ignore[call-arg]
    wm.choose(x, x, target="sm_90", out=x)  # type: ignore[call-arg]
