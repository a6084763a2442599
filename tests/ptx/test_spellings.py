"""How compilers and people spell instructions: qualifiers in other orders, left out, or with levels and scopes."""

from __future__ import annotations

import numpy as np
import pytest

from warpmma import Device
from warpmma.errors import PtxError
from warpmma.ptx import load

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
REGISTERS = """.reg .pred %p<4>; .reg .b16 %h<6>; .reg .b32 %r<20>; .reg .f32 %f<12>; .reg .b64 %rd<8>;
.shared .align 16 .b8 tile[1024];
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16; add.u64 %rd1, %rd1, %rd2;
ld.global.v2.f32 {%f1, %f2}, [%rd1]; mov.u32 %r2, tile; mad.lo.u32 %r3, %r1, 16, %r2;
st.shared.v4.f32 [%r3], {%f1, %f2, %f1, %f2}; bar.sync 0; mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u32 %r12, 0;
mov.u32 %r13, 0; mov.u64 %rd4, 0; createpolicy.fractional.L2::evict_last.b64 %rd4, 1.0;
"""
END = "st.global.v4.b32 [%rd1], {%r10, %r11, %r12, %r13}; ret; }"


def ran(statements: str, version: str = "8.0") -> np.ndarray:
    head = HEAD.replace("8.0", version)
    text = f"{head}.entry k(.param .u64 out) {{\n{REGISTERS}{statements}\n{END}"
    out = np.random.default_rng(3).uniform(-2, 2, (32, 4)).astype(np.float32)
    load(text, "k.ptx")["k"].launch(Device("sm_90"), 1, 32, [out])
    return out.view(np.uint32)


B10 = "mov.b32 %r10, "
MMA = "{%r10, %r11, %r12, %r13}, {%r1, %r1, %r1, %r1}, {%r2, %r2}, {%r1, %r1, %r1, %r1};"
LDMATRIX = "{%r10, %r11, %r12, %r13}, [%r3];"
SPELLINGS = [
    (f"add.f32.rn %f3, %f1, %f2; {B10}%f3;", f"add.rn.f32 %f3, %f1, %f2; {B10}%f3;"),
    (f"fma.f32.rz %f3, %f1, %f2, %f1; {B10}%f3;", f"fma.rz.f32 %f3, %f1, %f2, %f1; {B10}%f3;"),
    ("setp.f32.lt %p1, %f1, %f2; selp.b32 %r10, 1, 2, %p1;", "setp.lt.f32 %p1, %f1, %f2; selp.b32 %r10, 1, 2, %p1;"),
    ("cvt.f16.f32.rn %h1, %f1; cvt.u32.u16 %r10, %h1;", "cvt.rn.f16.f32 %h1, %f1; cvt.u32.u16 %r10, %h1;"),
    (f"ldmatrix.sync.aligned.x4.m8n8.shared.b16 {LDMATRIX}", f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {LDMATRIX}"),
    (
        f"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32.satfinite {MMA}",
        f"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {MMA}",
    ),
    (
        "ld.global.L2::128B.v4.b32 {%r10, %r11, %r12, %r13}, [%rd1];",
        "ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd1];",
    ),
    (f"ld.f32 %f3, [%rd1+4]; {B10}%f3;", f"ld.global.f32 %f3, [%rd1+4]; {B10}%f3;"),
    (
        "st.shared::cta.b32 [%r3], %r1; ld.shared.b32 %r10, [%r3];",
        "st.shared.b32 [%r3], %r1; ld.shared.b32 %r10, [%r3];",
    ),
    (f"bar.warp.sync -1; {B10}7;", f"bar.warp.sync 0xFFFFFFFF; {B10}7;"),
    (
        "cp.async.cg.shared.global.L2::cache_hint [%r3], [%rd1], 16, %rd4; "
        "cp.async.wait_all; ld.shared.b32 %r10, [%r3+4];",
        "cp.async.cg.shared.global [%r3], [%rd1], 16; cp.async.wait_all; ld.shared.b32 %r10, [%r3+4];",
    ),
    ("ld.global.acquire.gpu.b32 %r10, [%rd1+4];", "ld.acquire.gpu.global.b32 %r10, [%rd1+4];"),
    (
        "red.relaxed.gpu.global.add.s32 [%rd1], 1; ld.relaxed.gpu.global.b32 %r10, [%rd1];",
        "red.global.relaxed.gpu.add.s32 [%rd1], 1; ld.global.relaxed.gpu.b32 %r10, [%rd1];",
    ),
    ("mov.b32 {%h1, %h2}, %r1; mov.b32 %r10, {%h2, %h1};", "shf.l.wrap.b32 %r10, %r1, %r1, 16;"),
]


@pytest.mark.parametrize(("spelled", "plain"), SPELLINGS, ids=[spelled.split(" ")[0] for spelled, _ in SPELLINGS])
def test_other_spellings_mean_the_same(spelled: str, plain: str) -> None:
    found = ran(spelled)
    np.testing.assert_array_equal(found, ran(plain))
    assert found.any()


@pytest.mark.parametrize(
    "statement",
    ["cp.async.cg.global.shared [%rd1], [%r3], 16;", "cvt.rn.f32.f16 %h1, %f1;", "setp.f32.f32.lt %p1, %f1, %f2;"],
)
def test_the_order_of_types_and_of_spaces_matters(statement: str) -> None:
    with pytest.raises(PtxError, match=r"^k\.ptx:\d+:1: "):
        ran(statement)


@pytest.mark.parametrize("version", ["6.0", "7.8", "8.8", "9.0", "9.4"])
def test_versions_that_compilers_write(version: str) -> None:
    assert (ran("mov.u32 %r10, 7;", version)[:, 0] == 7).all()


def test_inline_assembly_declares_its_registers_again() -> None:
    block = """{ .reg .pred p; .reg .b32 %r<3>; // a comment
    mov.u32 %r2, {n};  setp.eq.u32 p, %r2, {n};
\t@p add.u32 %r10, %r10, %r2; }
"""
    assert (ran("".join(block.replace("{n}", str(n)) for n in range(240)))[:, 0] == sum(range(240))).all()


def test_structs_by_value_are_read_in_vectors_and_bytes() -> None:
    text = f"""{HEAD}.entry k(.param .align 8 .b8 s[24], .param .u64 out) {{ .reg .b32 %r<8>; .reg .b64 %rd<4>;
ld.param.v2.u32 {{%r1, %r2}}, [s+8]; ld.param.u8 %r3, [s+17]; ld.param.u64 %rd1, [out];
mov.b64 %rd2, s; cvta.param.u64 %rd3, %rd2; ld.u32 %r4, [%rd3+4];
st.global.v4.u32 [%rd1], {{%r1, %r2, %r3, %r4}}; ret; }}"""
    out, struct = np.zeros(4, np.uint32), np.arange(24, dtype=np.uint8)
    load(text)["k"].launch(Device("sm_90"), 1, 1, [struct.tobytes(), out])
    assert out.tolist() == [*struct[8:16].view(np.uint32).tolist(), 17, *struct[4:8].view(np.uint32).tolist()]
