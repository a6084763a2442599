"""Kernels with 8-bit floats: their target, their bits, and what the report says about an H100."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, name-defined"

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpmma as wm
from warpmma.triton import compiling

tl: Any = pytest.importorskip("triton.language")
triton: Any = pytest.importorskip("triton")

E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
K = 128
ONE = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
WGMMA = "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3"


@triton.jit
def product(a, b, c, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    rows, columns, steps = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + rows[:, None] * K + steps[None, :])
    right = tl.load(b + steps[:, None] * N + columns[None, :])
    tl.store(c + rows[:, None] * N + columns[None, :], tl.dot(left, right))


@triton.jit
def rounded(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(y + at, tl.load(x + at).to(tl.float8e4nv).to(tl.float32))


def operands(dtype: Any, rows: int = 64) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((rows, K)).astype(dtype), rng.standard_normal((K, 64)).astype(dtype)
    return a, b, np.zeros((rows, 64), np.float32)


MMA: Any = {"ptx_target": ("sm_80", "sm_89")}  # what Triton writes for GPUs without wgmma


def launched(target: str, dtype: Any, rows: int = 64, **options: Any) -> tuple[Any, Any]:
    a, b, c = operands(dtype, rows)
    with wm.triton.device(target, **options) as gpu:
        product[(1,)](a, b, c, K, M=rows, N=64)
    return gpu.launches[0], c


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_e4m3_is_compiled_for_the_first_target_that_has_it(target: str) -> None:
    """And its bits are of the device's target, not of the PTX's."""
    launch, c = launched(target, E4M3, **MMA)
    assert launch.ptx_target == "sm_89" and launch.entry.module.source.target == "sm_89"
    a, b, _ = operands(E4M3)
    assert (c == wm.matmul(a, b, instruction=ONE, target=target)).all()
    assert (c != wm.matmul(a, b, instruction=ONE, target="sm_89")).any()


def test_e4m3_inside_of_a_kernel() -> None:
    x = np.linspace(-3, 3, 64, dtype=np.float32)
    y = np.zeros_like(x)
    for options, written in ((MMA, "sm_89"), ({}, "sm_90")):
        with wm.triton.device("sm_90", **options) as gpu:
            rounded[(1,)](x, y, 64)
        assert (y == x.astype(E4M3).astype(np.float32)).all()
        assert gpu.launches[0].ptx_target == written and gpu.launches[0].report.notes == ()


def test_others_are_compiled_as_ever() -> None:
    for dtype in (E5M2, np.float16):
        assert launched("sm_90", dtype, **MMA)[0].ptx_target == launched("sm_100", dtype)[0].ptx_target == "sm_80"
    assert launched("sm_120", E4M3)[0].ptx_target == "sm_89"


@pytest.mark.parametrize(
    ("target", "options", "cure"),
    [
        ("sm_90", {"ptx_target": "sm_80"}, "sm_80 has no fp8e4nv: leave ptx_target out, or give ptx_target='sm_89'"),
        ("sm_86", {}, "sm_86 has no fp8e4nv, GPUs have it from sm_89 on: device('sm_89'), or a later one"),
    ],
)
def test_where_no_target_has_e4m3_the_error_says_what_to_do(target: str, options: Any, cure: str) -> None:
    with pytest.raises(Exception, match="fp8e4nv not supported") as caught:
        launched(target, E4M3, **options)
    assert caught.value.__notes__ == [cure]


@pytest.mark.parametrize("dtype", [E4M3, E5M2])
def test_sm_90_has_the_bits_of_wgmma(dtype: Any) -> None:
    launch, c = launched("sm_90", dtype)
    assert launch.ptx_target == "sm_90" and launch.device.target == "sm_90a" and launch.report.notes == ()
    a, b, _ = operands(dtype)
    wgmma = WGMMA.replace("e4m3.e4m3", "e4m3.e4m3" if dtype is E4M3 else "e5m2.e5m2")
    assert (c == wm.matmul(a, b, instruction=wgmma, target="sm_90a")).all()


def test_the_report_says_that_wgmma_has_other_bits() -> None:
    launch, c = launched("sm_90", E4M3, **MMA)
    (note,) = launch.report.notes
    assert note == (
        "tl.dot of e4m3, 64 x 64, compiled for sm_89: for sm_90 Triton writes wgmma, whose sums differ: they keep 13 "
        "fraction bits, mma 25 (measured on an H200)"
    )
    assert note in launch.report.text() and json.loads(launch.report.json())["notes"] == [note]
    a, b, _ = operands(E4M3)
    assert (c != wm.matmul(a, b, instruction=WGMMA, target="sm_90a")).mean() > 0.5
    assert "tl.dot of e5m2" in launched("sm_90", E5M2, **MMA)[0].report.notes[0]


def test_small_tiles_of_e4m3_are_converted_for_an_h100() -> None:
    """Of e5m2 they are here, too, so that nothing differs."""
    assert launched("sm_90", E4M3, 16)[0].report.notes == ()
    (note,) = launched("sm_90", E4M3, 16, **MMA)[0].report.notes
    assert note.endswith("for sm_90 Triton converts the operands to f16 and writes an mma whose sums differ")
    assert launched("sm_90", E5M2, 16, **MMA)[0].report.notes == ()


def test_types_whose_sums_are_the_same_have_no_note() -> None:
    """f16 and wgmma: measured. That the same holds of tcgen05 is published of a B200 alone."""
    assert launched("sm_90", np.float16, **MMA)[0].report.notes == ()
    for target, count in (("sm_90", 0), ("sm_100", 0), ("sm_103", 1), ("sm_120", 0), ("sm_80", 0)):
        assert len(launched(target, np.float16)[0].report.notes) == count
    a, b, _ = operands(np.float16)
    wgmma = WGMMA.replace("k32", "k16").replace("e4m3", "f16")
    assert (wm.matmul(a, b, target="sm_90a") == wm.matmul(a, b, instruction=wgmma, target="sm_90a")).all()


def test_f32_is_tf32_where_the_kernel_asks_for_it() -> None:
    tiles = "tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>"
    assert compiling.dots_of(f"tt.dot %x, %y, %z, inputPrecision = tf32 : {tiles}") == [["tf32", "tf32", [64, 64]]]
    (ieee,) = compiling.dots_of(f"tt.dot %x, %y, %z : {tiles}")
    assert ieee == ["f32", "f32", [64, 64]] and compiling.dot_notes([ieee], 4, "sm_80", "sm_103") == ()


@pytest.mark.parametrize(
    ("dot", "warps", "notes"),
    [
        (["e4m3", "e5m2", [64, 8]], 4, 1),
        (["e4m3", "e5m2", [2, 64, 8]], 4, 0),
        (["e4m3", "e4m3", [64, 8]], 2, 0),
        (["e4m3", "e4m3", [32, 8]], 4, 0),
        (["s8", "s8", [64, 64]], 4, 0),
    ],
)
def test_which_products_become_wgmma(dot: Any, warps: int, notes: int) -> None:
    assert len(compiling.dot_notes([dot], warps, "sm_80", "sm_90")) == notes
    assert compiling.dot_notes([dot], warps, "sm_90", "sm_90a") == ()
