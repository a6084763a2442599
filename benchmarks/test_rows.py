"""Kernels' instructions: each kind on 32,768 lanes and one thread, and a whole kernel from PTX against its Python twin.

The goal is 100 million thread-instructions a second without a look for hazards, and a third of that with it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import gemm_f16
import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from twins import Case, simulate

import warpmma as wm
from lab.generators import operation_inputs
from lab.programs.texts import read_text
from warpmma.arithmetic import runs_elements
from warpmma.formats import FORMATS
from warpmma.kernel import launch
from warpmma.operations import Operation, operation

from .measure import Call, against, measure, repeat

LANES, TIMES = 32768, 8
_IMMEDIATE = 0xE8
ROWS = (
    "add.s32", "mad.lo.s32", "lop3.b32", "shl.b32", "prmt.b32", "bfe.u32", "div.s32", "popc.b32", "setp.lt.s32",
    "selp.b32", "add.f32", "mul.f32", "fma.rn.f32", "fma.rn.ftz.f32", "min.f32", "setp.lt.f32", "div.rn.f32",
    "fma.rn.f64", "fma.rn.f16x2", "fma.rn.bf16x2", "cvt.rn.f16x2.f32", "cvt.f32.f16", "cvt.rn.f32.s32",
    "cvt.rzi.s32.f32", "ex2.approx.ftz.f32",
)  # fmt: skip
ACCESSES = ("ld.global.b32", "ld.global.v4.b32", "st.global.b32", "ld.shared.b32", "st.shared.b32")


def inputs(row: Operation) -> tuple[Any, ...]:
    """Normal numbers, such as kernels compute with; of integers what is drawn for tests."""
    rng = np.random.default_rng(0)
    given = iter(operation_inputs(str(row), LANES, 0))
    return tuple(_IMMEDIATE if type_ == "imm" else drawn(rng, next(given), type_) for type_ in row.types)


def drawn(rng: np.random.Generator, x: Any, type_: str) -> Any:
    name, _, packed = type_.partition("x")
    if name not in ("f16", "bf16", "f32", "f64"):
        return x
    values = rng.standard_normal((*x.shape, int(packed or 1)))
    return values.astype(FORMATS[name].dtype).view(x.dtype)[..., 0]


@pytest.mark.parametrize("mnemonic", ROWS)
def test_rows(benchmark: BenchmarkFixture, mnemonic: str) -> None:
    """By the engine that a launch takes; where that is the native one, against NumPy."""
    row = operation(mnemonic)
    given = inputs(row)
    native = row.native if runs_elements() else None
    numpy = against("NumPy", repeat(lambda: row.compute(*given), 2), 2 * LANES) if native else None
    call = repeat(lambda: (native or row.compute)(*given), TIMES)
    measure(
        benchmark, call, section="kernels", label=mnemonic, work=TIMES * LANES, unit="thread-instructions/s",
        reference=numpy, seconds=0.2,
    )  # fmt: skip


def accesses(mnemonic: str, hazards: Any, times: int) -> Call:
    """A launch of 256 blocks of 128 threads that loads or stores so often."""
    size = 16 if ".v4" in mnemonic else 4
    data = np.zeros(LANES * size // 4, np.uint32)

    def kernel(t: Any, x: Any) -> None:
        at = x + t("mul.wide.u32", t.ctaid[0] * 128 + t.tid[0], size)
        own, value = t.tid[0] * 4, t("mov.b32", t.laneid)
        t("st.shared.b32", own, value)
        for _ in range(times):
            if mnemonic.startswith("ld"):
                t(mnemonic, own if "shared" in mnemonic else at)
            else:
                t(mnemonic, own if "shared" in mnemonic else at, value)

    return lambda: launch(kernel, LANES // 128, 128, (data,), target="sm_90", shared=512, hazards=hazards)


@pytest.mark.parametrize("mnemonic", ACCESSES)
def test_accesses(benchmark: BenchmarkFixture, mnemonic: str) -> None:
    """Without a look for hazards, against the same with it."""
    times = 40
    looked = against("hazards looked for", accesses(mnemonic, "error", times), times * LANES)
    measure(
        benchmark, accesses(mnemonic, "off", times), section="kernels", label=mnemonic, work=times * LANES,
        unit="thread-instructions/s", reference=looked, seconds=0.5,
    )  # fmt: skip


_HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
.reg .b32 a<8>; .reg .b64 d<4>; .reg .f32 f<4>; .reg .pred q;
.shared .align 16 .b8 s[4096];
.local .align 16 .b8 l[16];
ld.param.u64 d0, [p]; cvta.to.global.u64 d0, d0;
mov.u32 a0, %ctaid.x; mov.u32 a1, %tid.x; mad.lo.s32 a2, a0, 256, a1;
mul.wide.s32 d1, a2, 16; add.s64 d1, d0, d1; mov.u64 d2, l;
shl.b32 a3, a1, 4; mov.u32 a4, s; add.s32 a3, a4, a3;
cvt.rn.f32.s32 f0, a1; mov.f32 f1, f0; mov.u32 a4, a1; mov.u32 a5, a1; mov.u32 a6, a1;
st.shared.v4.b32 [a3], {a1, a4, a5, a6}; st.local.v4.b32 [d2], {a1, a4, a5, a6};
mov.u32 a7, 0;
LOOP:
"""
_TAIL = """
add.s32 a7, a7, 1; setp.lt.s32 q, a7, 10; @q bra LOOP;
ret;
}
"""
STEPS = (
    "add.s32 a4, a4, a1;", "lop3.b32 a4, a4, a1, a2, 0xE8;", "setp.lt.s32 q, a1, 17;", "fma.rn.f32 f1, f1, f0, f0;",
    "ld.global.b32 a4, [d1];", "ld.global.v4.b32 {a2, a4, a5, a6}, [d1];", "st.global.b32 [d1], a4;",
    "st.global.v4.b32 [d1], {a1, a4, a5, a6};", "ld.shared.b32 a4, [a3];", "ld.shared.v4.b32 {a2, a4, a5, a6}, [a3];",
    "st.shared.b32 [a3], a4;", "st.shared.v4.b32 [a3], {a1, a4, a5, a6};", "ld.local.v4.b32 {a2, a4, a5, a6}, [d2];",
    "st.local.v4.b32 [d2], {a1, a4, a5, a6};",
)  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_steps(benchmark: BenchmarkFixture, step: str) -> None:
    """Whole launches from PTX: a loop of 10 rounds of one instruction, 20 times."""
    entry = wm.ptx.load(_HEAD + step * 20 + _TAIL)["k"]
    device = wm.Device("sm_80")
    data = device.array(np.zeros(LANES * 4, np.uint32))

    def call(hazards: Any) -> Call:
        return lambda: entry.launch(device, LANES // 256, 256, [data], hazards=hazards)

    times = 10 * (20 + 3)
    looked = against("hazards looked for", call("error"), times * LANES)
    measure(
        benchmark, call("off"), section="kernels", label=f"PTX: {step.partition(' ')[0]}", work=times * LANES,
        unit="thread-instructions/s", reference=looked, seconds=0.5,
    )  # fmt: skip


@cache
def _twin(size: int) -> tuple[Call, Call]:
    """A product in f16 as nvcc makes PTX of it, and the same kernel in Python."""
    call = gemm_f16.call(Case(size, size, size, "f32"))
    module = wm.ptx.load(read_text("twin_gemm_f16.ptx"))

    def of_ptx() -> None:
        device = wm.Device("sm_90")
        arrays = [device.array(x) for x in (*call.arrays[:-1], call.output)]
        arguments = [*arrays, *(int(x) for x in call.sizes.values())]
        module[call.twin].launch(device, call.grid, call.block, arguments)

    return of_ptx, lambda: simulate(call)


def test_a_product_from_ptx(benchmark: BenchmarkFixture) -> None:
    size = 512
    of_ptx, of_python = _twin(size)
    measure(
        benchmark, of_ptx, section="kernels", label=f"gemm_f16 {size} x {size} x {size}, PTX of nvcc", work=1,
        unit="launches/s", reference=against("in Python", of_python, 1), seconds=1,
    )  # fmt: skip
