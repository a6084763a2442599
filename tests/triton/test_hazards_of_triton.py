"""What is wrong with a kernel of Triton is said with its line, and what Triton writes that is not simulated, too."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, name-defined"

from __future__ import annotations

import inspect
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm

tl: Any = pytest.importorskip("triton.language")
triton: Any = pytest.importorskip("triton")
VERSION = tuple(int(x) for x in triton.__version__.split(".")[:2])


@triton.jit
def unmasked(x, out, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + places)  # beyond
    tl.store(out + places, value)


@triton.jit
def racing(out, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    tl.store(out + places, places + tl.program_id(0))  # everybody


@triton.jit
def unwritten(x, out):
    tl.store(out, tl.load(x))  # nothing


@triton.jit
def increased(x, BARRIER: tl.constexpr, BLOCK: tl.constexpr):
    value = tl.load(x + tl.arange(0, BLOCK))
    if BARRIER:
        tl.debug_barrier()
    tl.store(x + tl.arange(0, BLOCK), value + 1)


@triton.jit
def dot(a, b, out, M: tl.constexpr):
    places = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    tl.store(out + places, tl.dot(tl.load(a + places), tl.load(b + places)))


@triton.jit
def converted(x, out, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    tl.store(out + places, tl.load(x + places).to(out.dtype.element_ty))


@triton.jit
def squares(x, out, BLOCK: tl.constexpr):
    value = tl.load(x + tl.arange(0, BLOCK))
    tl.store(out, tl.sum(value * value, 0))


def line(kernel: Any, comment: str) -> str:
    lines, first = inspect.getsourcelines(kernel.fn)
    number = first + next(i for i, text in enumerate(lines) if comment in text)
    return f"test_hazards_of_triton.py:{number}: "


def test_a_load_without_a_mask() -> None:
    x, out = np.zeros(100, np.float32), np.zeros(128, np.float32)
    with wm.triton.device("sm_90") as gpu, pytest.raises(wm.machine.HazardError, match="bounds") as caught:
        unmasked[(1,)](x, out, BLOCK=128)
    assert line(unmasked, "# beyond") in str(caught.value) and "the nearest, x (400 bytes" in str(caught.value)
    assert gpu.launches == []
    frames = [Path(each.filename) for each in traceback.extract_tb(caught.tb)]
    assert frames[0] == Path(__file__) and not [x for x in frames if Path(wm.__file__).parent in x.parents]


def test_a_race_between_blocks() -> None:
    out = np.zeros(32, np.int32)
    with wm.triton.device("sm_90"), pytest.raises(wm.machine.HazardError, match="race") as caught:
        racing[(4,)](out, BLOCK=32)
    assert line(racing, "# everybody") in str(caught.value)
    with wm.triton.device("sm_90", hazards="off") as gpu:
        racing[(4,)](out, BLOCK=32)
    assert gpu.launches[0].report.hazards == []
    with wm.triton.device("sm_90", hazards="warn") as gpu, pytest.warns(wm.machine.HazardWarning, match="race"):
        racing[(4,)](out, BLOCK=32)
    assert [x.kind for x in gpu.launches[0].report.hazards] == ["race"]


def test_what_triton_repeats_in_other_warps() -> None:
    """Lanes of other warps load what the first warp may have changed, and store nothing."""
    x = np.arange(32, dtype=np.int32)
    with wm.triton.device("sm_90") as gpu:
        increased[(1,)](x, BARRIER=False, BLOCK=32)
        assert {key[0] for key in gpu.launches[0].report.harmless} == {"race"}
        increased[(1,)](x, BARRIER=True, BLOCK=32)
        assert not gpu.launches[1].report.harmless
    assert (x == np.arange(32) + 2).all()
    with wm.triton.device("sm_90", hazards="strict"), pytest.raises(wm.machine.HazardError, match="race") as caught:
        increased[(1,)](x, BARRIER=False, BLOCK=32)
    assert "tl.debug_barrier() between the two lines" in caught.value.__notes__[0]


@pytest.mark.skipif(VERSION < (3, 8), reason="Triton adds elsewhere")
def test_a_product_that_is_fused_into_a_sum() -> None:
    x, out = np.random.default_rng(0).standard_normal(128).astype(np.float32), np.zeros(1, np.float32)
    with wm.triton.device("sm_90") as gpu:
        squares[(1,)](x, out, BLOCK=128)
        assert gpu.launches[-1].report.counts["lane order"] > 0 and np.isclose(out[0], (x * x).sum())
        squares[(1,)](x, out, BLOCK=128, enable_fp_fusion=False)
        assert "lane order" not in gpu.launches[-1].report.counts and np.isclose(out[0], (x * x).sum())
    with wm.triton.device("sm_90", hazards={"lane order": "error"}):
        with pytest.raises(wm.machine.HazardError, match="in this very access") as caught:
            squares[(1,)](x, out, BLOCK=128)
        assert "enable_fp_fusion=False" in caught.value.__notes__[0] and len(caught.value.__notes__) == 1


def test_an_array_that_nobody_wrote() -> None:
    with wm.triton.device("sm_90") as gpu:
        x, out = gpu.device.empty(1), gpu.device.empty(1)
        with pytest.raises(wm.machine.HazardError, match="it was never written") as caught:
            unwritten[(1,)](x, out)
    assert line(unwritten, "# nothing") in str(caught.value)


@pytest.mark.parametrize("ptx_target", [None, "sm_90", "sm_80", ("sm_80", "sm_89")])
def test_products_for_either_target(ptx_target: Any) -> None:
    a = np.ones((64, 64), np.float16)
    out = np.zeros((64, 64), np.float32)
    with wm.triton.device("sm_90", ptx_target=ptx_target) as gpu:
        compiled = dot[(1,)](a, a, out, M=64)
    own = ptx_target in (None, "sm_90")
    assert gpu.device.target == ("sm_90a" if own else "sm_90") and (out == 64).all()
    assert ("wgmma.mma_async" in compiled.asm["ptx"]) == own


def test_tcgen05_is_explained() -> None:
    a, out = np.ones((128, 128), np.float16), np.zeros((128, 128), np.float32)
    with (
        wm.triton.device("sm_100", ptx_target="sm_100"),
        pytest.raises(wm.PtxError, match=r"(?s)tcgen05.*writes it for ptx_target='sm_100'; with ptx_target='sm_80'"),
    ):
        dot[(1,)](a, a, out, M=128)


@pytest.mark.parametrize(("ptx_target", "kind"), [("sm_80", "float8_e5m2"), ("sm_89", "float8_e4m3fn")])
def test_bytes_that_triton_fills_up_are_no_mistake(ptx_target: str, kind: str) -> None:
    import ml_dtypes

    x, out = np.linspace(-4, 4, 128).astype(np.float32), np.zeros(128, getattr(ml_dtypes, kind))
    with wm.triton.device("sm_90", ptx_target=ptx_target) as gpu:
        converted[(1,)](x, out, BLOCK=128)  # one number for each thread, of two or four that an instruction converts
    assert (out.view(np.uint8) == x.astype(out.dtype).view(np.uint8)).all()
    assert gpu.launches[0].report.hazards == []


def test_registers_that_something_writes_stay_as_they_are() -> None:
    from warpmma.triton.compiling import _undefined_as_zero

    head = ".version 8.0\n.visible .entry k(\n)\n{\n\t.reg .pred \t%p<2>;\n\t.reg .b32 \t%r<9>;\n"
    written = """
\t.loc\t1 2 3                         // k.py:2:3
\tmov.u32 \t%r1, %tid.x;
$L1: @%p1 ld.global.v2.b32 { %r2, %r3 }, [ %rd1 + 0 ];
\t// begin inline asm
\t{ .reg .b32 a; shfl.sync.idx.b32 %r4|%p1, %r1, 0, 31, -1; }
\tst.global.b32 [ %rd1 + 0 ], { %r4 };
"""
    assert _undefined_as_zero(head + written) == head + written
    assert _undefined_as_zero(head + written + "\tadd.s32 \t%r5, %r6, %r1;\n") == (
        head[:-1] + " mov.b32 %r6, 0;\n" + written + "\tadd.s32 \t%r5, %r6, %r1;\n"
    )


def test_an_array_that_is_read_only() -> None:
    x, out = np.zeros(128, np.float32), np.zeros(128, np.float32)
    out.flags.writeable = False
    with wm.triton.device("sm_90"), pytest.raises(wm.machine.HazardError, match="read-only"):
        unmasked[(1,)](x, out, BLOCK=128)


def test_the_limit_of_instructions() -> None:
    x = np.zeros(128, np.float32)
    with wm.triton.device("sm_90", limit=4), pytest.raises(wm.LimitError):
        unmasked[(1,)](x, x, BLOCK=128)


def test_blocks_are_told_by_their_program_id() -> None:
    with wm.triton.device("sm_90"), pytest.raises(wm.machine.HazardError, match="race") as caught:
        racing[(2, 1, 2)](np.zeros(32, np.int32), BLOCK=32)
    assert "block 0 = program_id (0, 0, 0), warp 0" in str(caught.value)
    assert "of block 3 = program_id (1, 0, 1)" in str(caught.value)
