"""Products with a constant factor are fused beyond their stretch, as in machine code of ptxas 13.0 for these bodies."""

from __future__ import annotations

import pytest

from warpmma.ptx import read
from warpmma.ptx.contraction.fusing import contracted

HEAD = """.version 8.0
.target sm_80
.address_size 64
.const .align 8 .f32 table[4] = {0f40490FDB, 0f3F9D70A4};
.visible .entry k(.param .u64 a, .param .f32 q, .param .u32 w) {
.reg .f32 %f<30>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<4>;
ld.param.u64 %rd1, [a]; ld.param.f32 %f20, [q];
ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1]; ld.global.v4.f32 {%f5, %f6, %f7, %f8}, [%rd1+16];
"""
PART, STORE = "membar.gl;", "st.global.f32 [%rd1], %f12;"
SUM = f"{PART} add.f32 %f12, %f11, %f3; {STORE}"


def mnemonics(body: str) -> list[str]:
    function = contracted(read(f"{HEAD}{body}\nret;\n}}\n").functions["k"], "sm_90").function
    return [getattr(one, "mnemonic", "") for one in function.body]


@pytest.mark.parametrize(
    "body",
    [
        f"mul.f32 %f11, %f1, %f20; {SUM}",
        f"mul.f32 %f11, %f20, %f1; {SUM}",
        f"mul.f32 %f11, %f1, 0f40490FDB; {SUM}",
        f"mov.f32 %f21, 0f40490FDB; mul.f32 %f11, %f1, %f21; {SUM}",
        f"ld.const.f32 %f22, [table+4]; mul.f32 %f11, %f1, %f22; {SUM}",
        f"ld.param.u32 %r1, [w]; mov.b32 %f22, %r1; mul.f32 %f11, %f1, %f22; {SUM}",
        f"neg.f32 %f22, %f20; mul.f32 %f11, %f1, %f22; {SUM}",
        f"abs.f32 %f22, %f20; mul.f32 %f11, %f1, %f22; {SUM}",
        f"mul.f32 %f11, %f1, %f20; div.rn.f32 %f10, %f5, %f6; sub.f32 %f12, %f11, %f10; {STORE}",
        f"mul.f32 %f11, %f1, %f20; {PART} neg.f32 %f13, %f11; add.f32 %f12, %f13, %f3; {STORE}",
        f"mul.f32 %f11, %f1, %f20; neg.f32 %f13, %f11; {PART} add.f32 %f12, %f13, %f3; {STORE}",
        f"mul.f32 %f11, %f1, %f20; {PART} mov.f32 %f1, %f4; add.f32 %f12, %f11, %f1; {STORE}",
        f"mul.f32 %f11, %f1, %f20; setp.lt.f32 %p1, %f5, %f6;\n@%p1 bra L; membar.sys; L: {SUM.removeprefix(PART)}",
        f"mul.f32 %f11, %f1, %f20; setp.lt.f32 %p1, %f5, %f6;\n@%p1 bra L; mul.f32 %f13, %f11, %f4; L: {SUM}",
    ],
)
def test_fused_across_what_parts(body: str) -> None:
    assert mnemonics(body).count("fma.rn.f32") == 1


@pytest.mark.parametrize(
    "body",
    [
        f"mul.f32 %f11, %f1, %f2; {SUM}",
        f"ld.global.f32 %f22, [%rd1+128]; mul.f32 %f11, %f1, %f22; {SUM}",
        f"ld.const.f32 %f22, [%rd2]; mul.f32 %f11, %f1, %f22; {SUM}",
        f"ld.param.u32 %r1, [w]; cvt.rn.f32.u32 %f22, %r1; mul.f32 %f11, %f1, %f22; {SUM}",
        f"add.rn.f32 %f22, %f20, 0f3F800000; mul.f32 %f11, %f1, %f22; {SUM}",
        f"mul.f32 %f11, %f1, %f20; st.global.f32 [%rd1+4], %f11; {SUM}",
        f"mul.f32 %f11, %f1, %f20; {SUM} st.global.f32 [%rd1+4], %f11;",
        f"mul.f32 %f11, %f1, %f20; {SUM} {PART} st.global.f32 [%rd1+4], %f11;",
        f"mov.f32 %f11, %f4; setp.lt.f32 %p1, %f5, %f6; @%p1 mul.f32 %f11, %f1, %f20; {SUM}",
        f"mul.f64 %rd4, %rd3, 0d400921FB54442D18; mov.b64 {{%r1, %r2}}, %rd4; {PART} st.global.b32 [%rd1], %r1;",
        f"mul.f32 %f11, %f1, %f20; {PART} add.ftz.f32 %f12, %f11, %f3; {STORE}",
    ],
)
def test_not_fused(body: str) -> None:
    assert not any(name.startswith("fma") for name in mnemonics(body))


def test_sums_on_both_sides() -> None:
    body = f"mul.f32 %f11, %f1, %f20; add.f32 %f13, %f11, %f4; st.global.f32 [%rd1+8], %f13; {SUM}"
    found = mnemonics(body)
    assert found.count("fma.rn.f32") == 2 and "mul.f32" not in found


def test_the_first_of_two_products_is_fused() -> None:
    body = f"mul.f32 %f11, %f1, %f20; mul.f32 %f13, %f2, 0f40490FDB; {PART} add.f32 %f12, %f11, %f13; {STORE}"
    found = mnemonics(body)
    assert found.count("fma.rn.f32") == 1 and found[-4:-2] == ["mul.f32", "fma.rn.f32"]
