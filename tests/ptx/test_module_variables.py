"""Variables of a module on a device: initial values, addresses of others, and what lives on."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import warpmma as wm
from warpmma import ptx
from warpmma.arithmetic import Engine
from warpmma.errors import OperandError
from warpmma.machine import HazardError

TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 counter = 5;
.global .align 8 .u64 pointers[3] = {counter, generic(table)+4, f};
.const .align 4 .u32 table[3] = {10, 20, 30};
.func (.param .b32 r) f(.param .b32 a)
{
.reg .b32 %r<3>; ld.param.b32 %r1, [a]; mul.lo.s32 %r1, %r1, 3; st.param.b32 [r], %r1; ret;
}
.visible .entry count(.param .u64 out)
{
.reg .b32 %r<6>; .reg .b64 %rd<9>;
ld.param.u64 %rd1, [out];
ld.global.u64 %rd2, [pointers];
ld.global.u32 %r1, [%rd2];
add.u32 %r1, %r1, 1;
st.global.u32 [counter], %r1;
ld.global.u64 %rd3, [pointers+8];
ld.u32 %r2, [%rd3];
ld.const.u32 %r3, [table+8];
ld.global.u64 %rd4, [pointers+16];
{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r3;
proto: .callprototype (.param .b32 _) _ (.param .b32 _);
call (y), %rd4, (x), proto; ld.param.b32 %r4, [y]; }
st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
ret;
}
.visible .entry spoil() { .reg .b32 %r<2>; .reg .b64 %rd<2>; mov.u32 %r1, 1; mov.u64 %rd1, table;
cvta.const.u64 %rd1, %rd1; st.u32 [%rd1], %r1; ret; }
"""


def test_initial_values_and_what_lives_on() -> None:
    device, module = wm.Device("sm_80"), ptx.load(TEXT)
    out = np.zeros(4, np.uint32)
    for turn in range(2):
        module["count"].launch(device, 1, 1, [out])
        assert out.tolist() == [6 + turn, 20, 30, 90]
    assert module.variable("counter", device).numpy().view(np.uint32).tolist() == [7]
    module["count"].launch(wm.Device("sm_80"), 1, 1, [out])  # another device has variables of its own
    assert out[0] == 6


def test_variables_are_there_before_a_launch() -> None:
    device, module = wm.Device("sm_80"), ptx.load(TEXT)
    module.variable("counter", device).set(np.array([40], np.uint32).view(np.uint8))
    out = np.zeros(4, np.uint32)
    module["count"].launch(device, 1, 1, [out])
    assert out[0] == 41
    with pytest.raises(OperandError, match=r"no variable 'count'; did you mean 'counter'.* it has counter, pointers"):
        module.variable("count", device)


def test_constants_are_not_written() -> None:
    with pytest.raises(HazardError, match="table"):
        ptx.load(TEXT)["spoil"].launch(wm.Device("sm_80"), 1, 1)


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        (".global .align 1 .b8 v[4] = {1, 0xFF};", "01ff0000"),
        (".global .align 4 .f32 v[2] = {1.0, 0f40000000};", "0000803f00000040"),
        (".global .align 8 .f64 v = 0d3FF8000000000000;", "000000000000f83f"),
        (".global .u16 v[3] = {1, -1};", "0100ffff0000"),
        (".global .align 4 .v2 .b32 v = {1, 2};", "0100000002000000"),
        (".global .align 16 .b8 v[8];", "00" * 8),
    ],
)
def test_initial_bytes(variable: str, expected: str) -> None:
    module = ptx.load(f".version 8.0 .target sm_80 .address_size 64 {variable} .entry k() {{ ret; }}")
    assert module.variable("v", wm.Device("sm_80")).numpy().tobytes().hex() == expected


def test_an_address_of_nothing() -> None:
    text = ".version 8.0 .target sm_80 .address_size 64\n.shared .b32 s;\n.global .u64 v = s;\n.entry k() { ret; }"
    with pytest.raises(wm.PtxError, match=r":3:\d+: .* is the address of s, which has none"):
        ptx.load(text)["k"].launch(wm.Device("sm_80"), 1, 1)


KEPT = """.version 8.0
.target sm_80
.address_size 64
.const .align 4 .b8 table[30000];
.visible .entry read(.param .u64 out)
{
.reg .b32 %r<2>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [out];
ld.const.u32 %r1, [table+29996];
st.global.u32 [%rd1], %r1;
ret;
}
"""


def test_an_unreferenced_device_is_freed_while_its_module_lives() -> None:
    module = ptx.load(KEPT)
    device = wm.Device("sm_80")
    module["read"].launch(device, 1, 1, [device.zeros(1, np.uint32)])
    gone = weakref.ref(device)
    del device
    gc.collect()
    assert gone() is None and len(module) == 1


def test_constant_memory_is_counted_by_module() -> None:
    device = wm.Device("sm_80")
    out = device.zeros(1, np.uint32)
    for value in range(4):
        module = ptx.load(KEPT)
        module.variable("table", device).set(np.full(30000, value, np.uint8))
        module["read"].launch(device, 1, 1, [out])
        assert out.numpy().tolist() == [value * 0x01010101]
    more = ".const .align 8 .b8 second[35537];\n.visible .entry read"
    with pytest.raises(OperandError, match="second: 65537 bytes of constant memory; there are 65536"):
        ptx.load(KEPT.replace("table[30000]", "table[29999]").replace(".visible .entry read", more)).variable(
            "second", device
        )


THROUGH = """.version 8.0
.target sm_80
.address_size 64
.const .align 4 .u32 table[40] = {3, 1, 4};
.visible .entry through(.param .u64 from, .param .u64 out)
{
.reg .b32 %r<3>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [from];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.u64 %rd1, %rd1, %rd3;
add.u64 %rd2, %rd2, %rd3;
ld.global.u32 %r2, [%rd1];
st.global.u32 [%rd2], %r2;
ret;
}
"""


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_constant_variables_are_read_through_pointers(engine: Engine) -> None:
    """As cudaGetSymbolAddress gives them; `ld.global` is what nvcc takes for a pointer among the arguments."""
    module, device = ptx.load(THROUGH), wm.Device("sm_90")
    out, table = device.zeros(40, np.uint32), module.variable("table", device)
    module["through"].launch(device, 1, 40, [table, out], engine=engine)
    assert out.numpy().tolist() == [3, 1, 4, *[0] * 37]
    with pytest.raises(HazardError, match=r"st.global.u32.*bounds.*a store to out = table, which is read-only"):
        module["through"].launch(device, 1, 40, [out, table], engine=engine)
    with pytest.raises(HazardError, match=r"ld.global.u32.*bounds: block 0, warp 1, lane 8 at .*"):
        module["through"].launch(device, 1, 41, [table, out], engine=engine)
