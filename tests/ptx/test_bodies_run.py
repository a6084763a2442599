"""Bodies that run: branches, tables, loops of any shape, calls, wide registers, carries, selectors."""

from __future__ import annotations

import numpy as np
import pytest

import warpmma as wm
from warpmma import ptx

HEAD = ".version 8.3\n.target sm_80\n.address_size 64\n"
REGISTERS = """.reg .pred %p<5>; .reg .b16 %rs<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .b128 %q<3>;
mov.u32 %r1, %tid.x;"""
END = (
    """ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r2; ret;"""
)
LANES = np.arange(64, dtype=np.uint32)


def run(body: str, before: str = "", target: str = "sm_90", block: int = 64) -> np.ndarray:
    """Run a body on 64 threads, in which %r1 is the thread's number; return %r2 of each."""
    out = np.zeros(64, np.uint32)
    text = f"{HEAD}{before}\n.entry k(.param .u64 out)\n{{ {REGISTERS}\n{body}\n{END}\n}}"
    ptx.load(text.replace("sm_80", target), "k.ptx")["k"].launch(wm.Device(target), 1, block, [out], limit=100_000)
    return out


def test_a_table_of_branches() -> None:
    body = """rem.u32 %r3, %r1, 3; targets: .branchtargets A, B, C;
    brx.idx %r3, targets;
    A: mov.u32 %r2, 10; bra.uni JOIN;
    B: mov.u32 %r2, 20; bra.uni JOIN;
    C: mov.u32 %r2, 30;
    JOIN: add.u32 %r2, %r2, %r1;"""
    np.testing.assert_array_equal(run(body), LANES + np.array([10, 20, 30])[LANES % 3])


def test_diverged_lanes_reconverge_where_their_paths_join() -> None:
    body = """and.b32 %r3, %r1, 1; setp.eq.u32 %p1, %r3, 0; @%p1 bra EVEN;
    add.u32 %r4, %r1, 100; bra JOIN;
    EVEN: add.u32 %r4, %r1, 200;
    JOIN: activemask.b32 %r2;"""
    assert set(run(body).tolist()) == {0xFFFFFFFF}


def test_a_loop_that_lanes_leave_one_by_one() -> None:
    body = """mov.u32 %r2, 0; mov.u32 %r3, %r1;
    LOOP: setp.eq.u32 %p1, %r3, 0; @%p1 bra OUT; add.u32 %r2, %r2, %r3; sub.u32 %r3, %r3, 1; bra LOOP;
    OUT: activemask.b32 %r4; setp.ne.b32 %p2, %r4, -1; @%p2 mov.u32 %r2, 0;"""
    np.testing.assert_array_equal(run(body), LANES * (LANES + 1) // 2)


def test_continue_waits_at_the_end_of_a_turn() -> None:
    # odd lanes go on at once, others do more: all meet before the next turn
    body = """mov.u32 %r2, 0; mov.u32 %r3, 0;
    HEAD: add.u32 %r3, %r3, 1; activemask.b32 %r4; setp.eq.b32 %p1, %r4, -1; selp.u32 %r5, 1, 0, %p1;
    add.u32 %r2, %r2, %r5; setp.ge.u32 %p2, %r3, 8; @%p2 bra OUT;
    and.b32 %r6, %r1, 1; setp.eq.u32 %p3, %r6, 1; @%p3 bra HEAD;
    add.u32 %r7, %r7, 1; bra HEAD;
    OUT: add.u32 %r2, %r2, 0;"""
    assert set(run("mov.u32 %r7, 0;" + body).tolist()) == {8}


def test_a_loop_that_is_entered_in_two_places() -> None:
    body = """mov.u32 %r2, 0; mov.u32 %r3, 0; setp.lt.u32 %p1, %r1, 40; @%p1 bra SECOND;
    FIRST: add.u32 %r2, %r2, 1;
    SECOND: add.u32 %r2, %r2, 10; add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 5; @%p2 bra FIRST;"""
    np.testing.assert_array_equal(run(body), np.where(LANES < 40, 54, 55))


def test_guards_of_exit_and_ret() -> None:
    body = "mov.u32 %r2, 7; setp.gt.u32 %p1, %r1, 9; @%p1 ret; setp.gt.u32 %p2, %r1, 4; @%p2 exit;"
    np.testing.assert_array_equal(run(body), np.where(LANES <= 4, 7, 0))


def test_functions_whose_parameters_are_registers() -> None:
    before = """.func (.reg .b32 %sum) both(.reg .b32 %x, .reg .b32 %y)
    { .reg .pred %p; add.u32 %sum, %x, %y; setp.gt.u32 %p, %sum, 50; @%p ret; mul.lo.u32 %sum, %sum, 2; ret; }"""
    found = run("call (%r2), both, (%r1, 3); ", before)
    np.testing.assert_array_equal(found, np.where(LANES + 3 > 50, LANES + 3, 2 * (LANES + 3)))


def test_recursion_keeps_registers() -> None:
    before = """.func (.param .b32 r) fib(.param .b32 n) {
    .reg .b32 %a<6>; .reg .pred %p; ld.param.b32 %a1, [n]; mov.u32 %a2, %a1; setp.lt.u32 %p, %a1, 2; @%p bra OUT;
    { .param .b32 x; .param .b32 y; sub.u32 %a3, %a1, 1; st.param.b32 [x], %a3;
    call (y), fib, (x); ld.param.b32 %a4, [y]; }
    { .param .b32 x; .param .b32 y; sub.u32 %a3, %a1, 2; st.param.b32 [x], %a3;
    call (y), fib, (x); ld.param.b32 %a5, [y]; }
    add.u32 %a2, %a4, %a5;
    OUT: st.param.b32 [r], %a2; ret; }"""
    body = """{ .param .b32 x; .param .b32 y; and.b32 %r3, %r1, 7; st.param.b32 [x], %r3;
    call (y), fib, (x); ld.param.b32 %r2, [y]; }"""
    np.testing.assert_array_equal(run(body, before), np.array([0, 1, 1, 2, 3, 5, 8, 13])[LANES % 8])


def test_a_struct_goes_to_a_function_and_comes_back() -> None:
    before = """.func (.param .align 8 .b8 r[16]) turn(.param .align 8 .b8 a[16]) {
    .reg .b64 %x<3>; ld.param.v2.b64 {%x1, %x2}, [a]; st.param.v2.b64 [r], {%x2, %x1}; ret; }"""
    body = """{ .param .align 8 .b8 x[16]; .param .align 8 .b8 y[16]; cvt.u64.u32 %rd3, %r1;
    st.param.b64 [x], 5; st.param.b64 [x+8], %rd3; call (y), turn, (x); ld.param.b64 %rd4, [y]; }
    cvt.u32.u64 %r2, %rd4;"""
    np.testing.assert_array_equal(run(body, before), LANES)


def test_a_parameter_whose_address_is_taken() -> None:
    text = f"""{HEAD}.entry k(.param .align 8 .b8 s[16], .param .u64 out) {{ {REGISTERS}
    mov.b64 %rd3, s; cvta.param.u64 %rd4, %rd3; and.b32 %r3, %r1, 3; mul.wide.u32 %rd5, %r3, 4;
    add.s64 %rd6, %rd4, %rd5; ld.u32 %r2, [%rd6]; add.s64 %rd6, %rd3, %rd5; ld.param.u32 %r4, [%rd6];
    sub.u32 %r5, %r2, %r4; setp.ne.u32 %p1, %r5, 0; @%p1 trap; {END} }}"""
    out = np.zeros(64, np.uint32)
    struct = np.array([3, 5, 7, 11], np.uint32).tobytes()
    ptx.load(text)["k"].launch(wm.Device("sm_80"), 1, 64, [struct, out])
    np.testing.assert_array_equal(out, np.array([3, 5, 7, 11])[LANES % 4])


def test_a_carry_goes_from_one_addition_to_the_next() -> None:
    body = """shl.b32 %r3, %r1, 26; add.cc.u32 %r4, %r3, 0xF8000000; addc.cc.u32 %r5, %r1, 0xFFFFFFFF;
    addc.u32 %r2, 0, 0;"""
    low = (LANES.astype(np.uint64) << 26 & 0xFFFFFFFF) + 0xF8000000
    middle = LANES + np.uint64(0xFFFFFFFF) + (low >> 32)
    np.testing.assert_array_equal(run(body), middle >> 32)


def test_registers_of_128_bits() -> None:
    body = """cvt.u64.u32 %rd3, %r1; mov.u64 %rd4, 9; mov.b128 %q1, {%rd3, %rd4}; mov.b128 %q2, %q1;
    mov.b128 {%rd5, %rd6}, %q2; add.u64 %rd5, %rd5, %rd6; cvt.u32.u64 %r2, %rd5;"""
    np.testing.assert_array_equal(run(body), LANES + 9)


def test_registers_that_are_wider_than_what_is_loaded_and_converted() -> None:
    before = ".global .align 4 .b8 bytes[4] = {0x80, 0x7F, 0xFE, 1};"
    body = """and.b32 %r3, %r1, 1; mov.u64 %rd3, bytes; cvt.u64.u32 %rd4, %r3; add.s64 %rd3, %rd3, %rd4;
    ld.global.s8 %r4, [%rd3]; ld.global.u8 %r5, [%rd3]; cvt.s32.s8 %r6, %r5; sub.u32 %r7, %r4, %r6;
    mov.u32 %r8, 0x12345678; cvt.u32.u16 %r9, %r8; add.u32 %r2, %r7, %r9; st.global.u8 [%rd3], %r8;"""
    assert set(run(body, before, block=1).tolist()) == {0x5678, 0}


def test_selectors_of_video_instructions() -> None:
    body = """mov.u32 %r3, 0x04030201; vadd.u32.u32.u32 %r2, %r3.b2, %r1.h0; vmad.s32.s32.s32 %r4, %r1, 2, -%r2;"""
    np.testing.assert_array_equal(run(body), LANES + 3)


def test_a_barrier_in_a_loop_is_met_by_all_warps() -> None:
    before = ".shared .align 4 .b8 turn[256];"
    body = """mov.u32 %r3, 0; shl.b32 %r4, %r1, 2; mov.u32 %r5, turn; add.u32 %r6, %r5, %r4; mov.u32 %r2, %r1;
    LOOP: st.shared.u32 [%r6], %r2; bar.sync 0; xor.b32 %r7, %r4, 4; add.u32 %r8, %r5, %r7;
    ld.shared.u32 %r9, [%r8]; bar.sync 0; add.u32 %r2, %r9, 1; add.u32 %r3, %r3, 1;
    setp.lt.u32 %p1, %r3, 3; @%p1 bra LOOP;"""
    np.testing.assert_array_equal(run(body, before), (LANES ^ 1) + 3)


def test_dynamic_shared_memory_follows_the_static() -> None:
    text = f"""{HEAD}.shared .align 4 .b8 one[8]; .extern .shared .align 16 .b8 more[];
    .entry k(.param .u64 out) {{ {REGISTERS} mov.u32 %r3, more; shl.b32 %r4, %r1, 2; add.u32 %r4, %r3, %r4;
    st.shared.u32 [%r4], %r1; mov.u32 %r5, one; st.shared.u32 [one+4], %r3; mov.u32 %r6, %dynamic_smem_size;
    ld.shared.u32 %r2, [%r4]; add.u32 %r2, %r2, %r6; {END} }}"""
    kernel, out = ptx.load(text)["k"], np.zeros(64, np.uint32)
    with pytest.raises(wm.WarpmmaError, match="bounds"):
        kernel.launch(wm.Device("sm_80"), 1, 1, [out], shared=0)
    kernel.launch(wm.Device("sm_80"), 1, 1, [out], shared=128)
    assert out[0] == 128


def test_products_that_are_taken_apart_are_no_products_any_more() -> None:
    body = """cvt.rn.f64.u32 %rd3, %r1; mul.f64 %rd4, %rd3, 0d4000000000000000; setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE;
    mov.b64 {%r3, %r4}, %rd4; add.f64 %rd5, %rd4, %rd3;
    DONE: cvt.rzi.u32.f64 %r2, %rd4;"""
    np.testing.assert_array_equal(run(body), 2 * LANES)
