"""From a text of PTX to a program, which the first launch waits for, beside reading that text.

The text has what compilers write: many blocks, addresses from parameters and the place of a thread, constants, loops,
and some products and functions whose constants are looked for.
"""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import warpmma as wm

from .measure import against, measure

_PART = """
L{i}: mad.lo.u32 %r{a}, %r1, {i}, %r2; mul.wide.u32 %rd3, %r{a}, 4; add.u64 %rd4, %rd1, %rd3;
ld.global.f32 %f{a}, [%rd4]; setp.lt.u32 %p1, %r{a}, %r3; @%p1 bra M{i};
mul.f32 %f1, %f{a}, 0f3DCCCCCD; add.f32 %f2, %f1, %f2; mov.u32 %r5, {i}; and.b32 %r6, %r5, 15;
shl.b32 %r7, %r6, 2; cvt.rn.f32.u32 %f3, %r7; mul.f32 %f4, %f3, %f2; rcp.approx.ftz.f32 %f5, %f{a};
st.global.f32 [%rd4], %f4;
M{i}: add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, %r3; @%p2 bra L{i};
"""
_STATEMENTS = _PART.count(";")


def text(parts: int) -> str:
    """Return a kernel of so many loops."""
    body = "".join(_PART.format(i=i, a=i + 10) for i in range(parts))
    return f"""
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 n)
{{
.reg .pred %p<3>; .reg .b32 %r<{parts + 10}>; .reg .f32 %f<{parts + 10}>; .reg .b64 %rd<5>;
ld.param.u64 %rd1, [x]; ld.param.u32 %r3, [n]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r4, 0;
mov.f32 %f2, 0f00000000;
{body}
ret;
}}
"""


@pytest.mark.parametrize("parts", [50, 200, 800])
def test_lowering(benchmark: BenchmarkFixture, parts: int) -> None:
    given, work = text(parts), parts * _STATEMENTS

    def reading() -> object:
        return wm.ptx.load(given).source.functions["k"]

    def lowering() -> object:
        module = wm.ptx.load(given)
        return module.linked("k", wm.Device("sm_90a"), "ptxas").launched

    measure(
        benchmark, lowering, section="launches", label=f"lowering {work:,} statements of PTX", work=work,
        unit="statements/s", reference=against("reading the text", reading, work),
    )  # fmt: skip
