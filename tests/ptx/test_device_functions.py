"""Functions without a body that kernels call: printf, assert, malloc, free; and traps."""

from __future__ import annotations

import numpy as np
import pytest

import warpmma as wm
from warpmma import ptx
from warpmma.errors import KernelError
from warpmma.machine import HazardError, Launch

HEAD = """.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.global .align 1 .b8 text[16] = {116, 37, 100, 32, 37, 115, 32, 37, 46, 49, 102, 10, 0};
.global .align 1 .b8 word[4] = {111, 107, 0};
"""
REGISTERS = ".reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<6>;"


def run(body: str, block: int = 1, grid: int = 1, arrays: int = 0, before: str = "") -> tuple[Launch, list[np.ndarray]]:
    """Run an entry whose parameters are arrays of 64 words."""
    parameters = ", ".join(f".param .u64 p{i}" for i in range(arrays))
    module = ptx.load(f"{HEAD}{before}\n.entry k({parameters}) {{ {REGISTERS}\n{body}\nret; }}", "k.ptx")
    given = [np.zeros(64, np.uint32) for _ in range(arrays)]
    return module["k"].launch(wm.Device("sm_80"), grid, block, given), given


PRINT = """{ .local .align 8 .b8 stack[24]; .param .b64 a; .param .b64 b; .param .b32 c;
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.s32 %r1, %r2, 100, %r1;
st.local.u32 [stack], %r1; mov.u64 %rd1, word; cvta.global.u64 %rd1, %rd1; st.local.u64 [stack+8], %rd1;
mov.f64 %rd2, 0d3FF8000000000000; st.local.b64 [stack+16], %rd2;
mov.u64 %rd3, text; cvta.global.u64 %rd3, %rd3; st.param.b64 [a], %rd3;
mov.u64 %rd4, stack; cvta.local.u64 %rd4, %rd4; st.param.b64 [b], %rd4;
call (c), vprintf, (a, b); ld.param.b32 %r3, [c]; }"""


def test_printf_prints_by_block_and_thread(capsys: pytest.CaptureFixture[str]) -> None:
    report, _ = run(PRINT, block=2, grid=2)
    expected = "".join(f"t{n} ok 1.5\n" for n in (0, 1, 100, 101))
    assert capsys.readouterr().out == report.printed == expected


def test_printf_returns_how_many_arguments_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    _, (out,) = run(PRINT + "ld.param.u64 %rd1, [p0]; st.global.u32 [%rd1], %r3;", arrays=1)
    assert out[0] == 3


def test_what_was_printed_before_an_error_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KernelError):
        run(PRINT + "trap;")
    assert capsys.readouterr().out == "t0 ok 1.5\n"


def test_an_assertion_says_what_failed_and_where() -> None:
    body = """{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
    mov.u64 %rd1, word; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, 1; mov.u32 %r1, 7;
    st.param.b64 [a], %rd1; st.param.b64 [b], %rd1; st.param.b32 [c], %r1;
    st.param.b64 [d], %rd1; st.param.b64 [e], %rd2;
    mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 35; @%p1 call __assertfail, (a, b, c, d, e); }"""
    with pytest.raises(KernelError, match=r"^ok:7: ok: block 0, thread 35: assertion `ok` failed, k\.ptx:16:57$"):
        run(body, block=64)
    run(body, block=32)


@pytest.mark.parametrize("name", ["trap", "brkpt"])
def test_a_trap_ends_the_launch(name: str) -> None:
    with pytest.raises(KernelError, match=rf"^k\.ptx:13:1: {name}: block 0, warp 0, lane 0 ended the kernel$"):
        run(f"\n{name};")


MALLOC = """{ .param .b64 n; .param .b64 p; mov.u64 %rd1, BYTES; st.param.b64 [n], %rd1;
call (p), malloc, (n); ld.param.b64 %rd2, [p]; }"""
FREE = "{ .param .b64 p; st.param.b64 [p], %rd2; call free, (p); }"


def test_malloc_gives_each_thread_memory() -> None:
    body = (
        MALLOC.replace("BYTES", "8")
        + """mov.u32 %r1, %tid.x; st.u32 [%rd2+4], %r1; bar.sync 0;
    ld.u32 %r2, [%rd2+4]; ld.param.u64 %rd3, [p0]; mul.wide.u32 %rd4, %r1, 4; add.s64 %rd3, %rd3, %rd4;
    st.global.u32 [%rd3], %r2;"""
    )
    _, (out,) = run(body + FREE, block=40, arrays=1)
    np.testing.assert_array_equal(out[:40], np.arange(40))


def test_a_heap_that_is_full_gives_null() -> None:
    body = MALLOC.replace("BYTES", "9000000") + "ld.param.u64 %rd3, [p0]; st.global.u64 [%rd3], %rd2;" + FREE
    _, (out,) = run("mov.u64 %rd2, 7;" + body, arrays=1)
    assert out[:2].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (FREE + FREE, "free of what malloc did not give, or of what was freed"),
        ("add.s64 %rd2, %rd2, 8;" + FREE, "free of what malloc did not give"),
        (FREE + "ld.u32 %r1, [%rd2];", "outside of all"),
        (
            "ld.u32 %r1, [%rd2]; st.u32 [%rd2], %r1;",
            "it was not written since malloc gave it, and its value is left in",
        ),
        ("st.u32 [%rd2+8], %r1;", "outside of all"),
    ],
)
def test_wrong_uses_of_memory(body: str, says: str) -> None:
    with pytest.raises(HazardError, match=says):
        run("mov.u32 %r1, 0;" + MALLOC.replace("BYTES", "8") + body)


def test_an_index_one_too_far_is_found_in_shared_and_in_global_memory() -> None:
    before = ".shared .align 4 .b8 tile[8]; .shared .align 4 .b8 next[8]; .global .align 4 .b8 one[8]; "
    for space, name in (("shared", "tile"), ("shared", "next"), ("global", "one")):
        run(f"mov.u64 %rd1, {name}; mov.u32 %r1, 0; st.{space}.u32 [%rd1+4], %r1;", before=before)
        with pytest.raises(HazardError, match="bounds"):
            run(f"mov.u64 %rd1, {name}; mov.u32 %r1, 0; st.{space}.u32 [%rd1+8], %r1;", before=before)


def test_a_function_that_is_not_provided() -> None:
    with pytest.raises(
        wm.PtxError, match=r"k\.ptx:13:1: call: nobody has no body in this module, and warpmma provides"
    ):
        run("\ncall nobody;", before=".extern .func nobody();")
