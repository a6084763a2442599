"""PTX of older compilers that ptxas 13.0 accepts for sm_90: votes without `.sync`, sm_1x, prototypes, vectors."""

from __future__ import annotations

import numpy as np
import pytest

import warpmma as wm
from warpmma import ptx
from warpmma.errors import PtxError

LANES = np.arange(32, dtype=np.uint32)
REGISTERS = """.reg .pred %p<5>; .reg .b16 %h<5>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .reg .f64 %g<3>;
mov.u32 %r1, %tid.x;"""
END = "ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r2; exit;"


def run(body: str, head: str = ".version 3.2\n.target sm_20\n.address_size 64", before: str = "") -> np.ndarray:
    """Run a body on 32 threads, in which %r1 is the thread's number; return %r2 of each."""
    out = np.zeros(32, np.uint32)
    text = f"{head}\n{before}\n.entry k(.param .u64 out)\n{{ {REGISTERS}\n{body}\n{END}\n}}"
    ptx.load(text, "k.ptx")["k"].launch(wm.Device("sm_90"), 1, 32, [out], limit=100_000)
    return out


def test_votes_without_sync_are_of_the_lanes_that_run_together() -> None:
    body = """mov.u32 %r2, 0; setp.lt.u32 %p1, %r1, 20; and.b32 %r3, %r1, 3; setp.eq.u32 %p2, %r3, 1;
    vote.all.pred %p3, %p1; @%p3 mov.u32 %r2, 1000; @!%p1 bra DONE; vote.ballot.b32 %r2, %p2; vote.all.pred %p3, %p1;
    @%p3 add.u32 %r2, %r2, 4; vote.any.pred %p4, !%p1; @%p4 mov.u32 %r2, 7; DONE:"""
    expected = sum(1 << lane for lane in range(20) if lane % 4 == 1) + 4
    np.testing.assert_array_equal(run(body), np.where(LANES < 20, expected, 0))


@pytest.mark.parametrize("version", ["4.2", "6.3"])
def test_shuffles_without_sync(version: str) -> None:
    body = """shfl.bfly.b32 %r3|%p1, %r1, 1, 31; setp.gt.u32 %p2, %r1, 100; @%p2 shfl.idx.b32 %r3, %r1, 0, 31;
    mov.u32 %r4, 0; @%p1 mov.u32 %r4, 100; add.u32 %r2, %r3, %r4;"""
    np.testing.assert_array_equal(run(body, f".version {version}\n.target sm_30\n.address_size 64"), (LANES ^ 1) + 100)


def test_votes_without_sync_ended_with_ptx_6_4() -> None:
    body, head = "setp.lt.u32 %p1, %r1, 5; vote.ballot.b32 %r2, %p1;", ".version 6.4\n.target {}\n.address_size 64"
    says = r"vote without \.sync ended with PTX 6\.4 on sm_70 .*; expected vote\.sync\.ballot\.b32, with a membermask"
    with pytest.raises(PtxError, match=says):
        run(body, head.format("sm_70"))
    assert set(run(body, head.format("sm_60")).tolist()) == {31}


SUBNORMAL = "mov.b32 %f1, 0x00400000; mov.b32 %f2, 0x3F800001; mov.b32 %f3, 0xBF800002;"


@pytest.mark.parametrize(
    ("body", "old", "new"),
    [
        ("add.f32 %f4, %f1, %f1;", 0, 0x00800000),
        ("abs.f32 %f4, %f1;", 0, 0x00400000),
        ("mul.rn.f32 %f4, %f1, 0f40000000;", 0, 0x00800000),
        ("add.sat.f32 %f4, %f1, %f1;", 0, 0x00800000),
        ("cvt.sat.f32.f32 %f4, %f1;", 0, 0x00400000),
        ("setp.gt.f32 %p1, %f1, 0f00000000; selp.f32 %f4, 0f3F800000, 0f00000000, %p1;", 0, 0x3F800000),
    ],
)
def test_f32_of_texts_for_sm_1x_flushes_subnormals(body: str, old: int, new: int) -> None:
    body = f"{SUBNORMAL}{body} mov.b32 %r2, %f4;"
    assert set(run(body, ".version 1.4\n.target sm_13").tolist()) == {old}
    assert set(run(body).tolist()) == {new}


def test_mad_of_texts_for_sm_1x_is_fused() -> None:
    body = f"{SUBNORMAL}mad.f32 %f4, %f2, %f2, %f3; mov.b32 %r2, %f4;"
    assert set(run(body, ".version 1.4\n.target sm_10, map_f64_to_f32").tolist()) == {0x28800000}  # 2**-46
    with pytest.raises(wm.WarpmmaError, match=r"'mad\.f32'"):
        run(body)


def test_f64_that_is_mapped_to_f32_is_an_error() -> None:
    body = "mov.f64 %g1, 0d3FF0000000000000; add.f64 %g1, %g1, %g1; cvt.rzi.u32.f64 %r2, %g1;"
    assert set(run(body, ".version 1.4\n.target sm_13").tolist()) == {2}
    with pytest.raises(PtxError, match=r"k\.ptx:\d+:\d+: mov\.f64: f64 of a text with map_f64_to_f32"):
        run(body, ".version 1.4\n.target sm_10, map_f64_to_f32")


def test_textures_that_are_not_read() -> None:
    head = ".version {}\n.target sm_13"
    assert set(run("mov.u32 %r2, 7;", head.format("1.4"), ".tex .u64 image;").tolist()) == {7}
    with pytest.raises(PtxError, match=r"\.tex ended with PTX 1\.4"):
        run("mov.u32 %r2, 7;", head.format("1.5"), ".tex .u64 image;")


def test_prototypes_without_a_semicolon() -> None:
    before = """.visible .func (.param .s32 r) twice (.param .s32 a)
    .visible .func (.param .s32 r) thrice (.param .s32 a)
    .file 1 "k.cu"
    .visible .func (.param .s32 r) twice (.param .s32 a)
    { .reg .u32 %r1; ld.param.u32 %r1, [a]; add.u32 %r1, %r1, %r1; st.param.u32 [r], %r1; ret; }"""
    body = """{ .param .s32 a; .param .s32 r; st.param.u32 [a], %r1; call (r), twice, (a); ld.param.u32 %r2, [r]; }"""
    np.testing.assert_array_equal(run(body, before=before), 2 * LANES)


def test_vectors_and_predicates_are_passed_in_registers() -> None:
    before = """.func (.reg .v2 .u32 sums, .reg .pred odd) both (.reg .v4 .u32 x, .reg .pred flip)
    { .reg .u32 t; .reg .pred is; add.u32 sums.x, x.x, x.y; add.u32 sums.y, x.z, x.w; and.b32 t, x.x, 1;
    setp.ne.u32 is, t, 0; xor.pred odd, is, flip; ret; }"""
    body = """.reg .v4 .u32 in; .reg .v2 .u32 out2; mov.v4.u32 in, {%r1, 10, 20, 30}; setp.gt.u32 %p2, %r1, 15;
    call (out2, %p1), both, (in, %p2); mul.lo.u32 %r3, out2.y, 1000; add.u32 %r2, out2.x, %r3;
    @%p1 add.u32 %r2, %r2, 1000000;"""
    odd = (LANES % 2 == 1) ^ (LANES > 15)
    np.testing.assert_array_equal(run(body, before=before), LANES + 10 + 50_000 + np.where(odd, 1_000_000, 0))


def test_elements_move_all_at_once() -> None:
    body = """.reg .v2 .u16 pair; mov.u32 %r3, 2; mov.u32 %r4, 5; mov.v2.u32 {%r3, %r4}, {%r4, %r3};
    mov.u32 %r5, 0x00070003; mov.b32 pair, %r5; mov.v2.u16 pair, {pair.y, pair.x}; mov.b32 %r6, pair;
    mul.lo.u32 %r3, %r3, 10; add.u32 %r2, %r3, %r4; add.u32 %r2, %r2, %r6;"""
    assert set(run(body).tolist()) == {52 + 0x00030007}


def test_an_address_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(PtxError, match=r"mov\.u32: the address of table, in \.global, has 64 bits; expected b32"):
        run("mov.u32 %r2, table;", before=".global .u32 table[4];")


@pytest.mark.parametrize("target", ["sm_20", "sm_35", "sm_62, debug"])
def test_older_targets_are_checked_on_the_oldest_device(target: str) -> None:
    needs = ptx.load(f".version 4.0 .target {target} .address_size 64 .entry k() {{ exit; }}").check()
    assert (needs.target, needs.compiled, needs.problems) == ("sm_70", target.split(",")[0], 0)


def test_an_alias_is_called_as_what_it_means() -> None:
    before = """.func (.param .b32 r) next(.param .b32 a)
    { .reg .b32 %r<2>; ld.param.b32 %r0, [a]; add.u32 %r0, %r0, 1; st.param.b32 [r], %r0; ret; }
    .visible .func (.param .b32 r) other(.param .b32 a);
    .alias other, next;"""
    body = """{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call (r), other, (a); ld.param.b32 %r2, [r]; }"""
    np.testing.assert_array_equal(run(body, ".version 8.0\n.target sm_80\n.address_size 64", before), LANES + 1)


def test_local_variables_of_a_module_are_each_threads_own() -> None:
    before = """.local .align 8 .b32 L1[4]; .local .u32 unused; .local .b64 L2;
    .func bump () { .reg .b32 %r; ld.local.u32 %r, [L1+4]; add.u32 %r, %r, 100; st.local.u32 [L1+4], %r; ret; }"""
    body = """.local .b32 own; .reg .b64 %rd<9>; .reg .b32 %a;
    st.local.u32 [own], 7; st.local.u32 [L1+4], %r1; st.local.u64 [L2], 5; call bump; call bump;
    mov.u64 %rd5, L1; cvta.local.u64 %rd5, %rd5; ld.u32 %r2, [%rd5+4]; ld.local.u32 %r3, [own]; add.u32 %r2, %r2, %r3;
    ld.local.u32 %a, [L2]; add.u32 %r2, %r2, %a;"""
    head = ".version 2.3\n.target sm_20\n.address_size 64"
    np.testing.assert_array_equal(run(f"{{{body}}}", head, before), LANES + 212)


def test_local_variables_of_a_module_ended_with_ptx_2_3() -> None:
    with pytest.raises(PtxError, match=r"k\.ptx:\d+:13: variables of a module in \.local ended with PTX 2\.3"):
        run("mov.u32 %r2, 1;", before=".local .b32 L1[4];")
