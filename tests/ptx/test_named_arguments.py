"""Arguments have names: in mappings, and in what reports say of arrays, of shared memory and of blocks."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.kernel import Output
from warpmma.machine import HazardError, Limit
from warpmma.ptx import load

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
SCALE = """.visible .entry NAME(.param .u64 PREFIXx, .param .f32 PREFIXfactor, .param .u32 PREFIXn) {
    .reg .pred %p; .reg .f32 %f; .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [PREFIXx]; ld.param.f32 %f, [PREFIXfactor]; ld.param.u32 %r1, [PREFIXn];
    mov.u32 %r2, %tid.x; setp.ge.u32 %p, %r2, %r1; @%p ret;
    mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2;
    .reg .f32 %g; ld.global.f32 %g, [%rd3]; mul.f32 %g, %g, %f; st.global.f32 [%rd3], %g; ret;
}
"""


def named() -> Any:
    return load(HEAD + SCALE.replace("NAME", "scale").replace("PREFIX", ""))["scale"]


def numbered(name: str = "_Z5scalePffi") -> Any:
    text = SCALE.replace("NAME", name)
    for number, x in enumerate(("x", "factor", "n")):
        text = text.replace(f"PREFIX{x}", f"{name}_param_{number}")
    return load(HEAD + text)["scale"]


def test_a_mapping_has_arguments_by_name_in_any_order() -> None:
    x = np.ones(8, np.float32)
    named().launch(wm.Device("sm_80"), 1, 8, {"n": 4, "x": x, "factor": 2})
    numbered().launch(wm.Device("sm_80"), 1, 8, args={"param_2": 4, "param_0": x, "param_1": 2.0})
    assert x.tolist() == [4] * 4 + [1] * 4


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"x": None, "facto": 1.0, "n": 1}, "scale(.u64 x, .f32 factor, .u32 n) has no parameter 'facto'; did you mean "
                                            "'factor'? it has x, factor, n"),
        ({"x": None, "n": 1, 3: 1.0}, "scale(.u64 x, .f32 factor, .u32 n) has no parameter 3; it has x, factor, n"),
        ({"x": None}, "scale(.u64 x, .f32 factor, .u32 n) needs an argument for factor, n"),
        ({}, "scale(.u64 x, .f32 factor, .u32 n) needs an argument for x, factor, n"),
    ],
)  # fmt: skip
def test_names_that_are_wrong(args: Any, says: str) -> None:
    with pytest.raises(OperandError) as error:
        named().launch(wm.Device("sm_80"), 1, 1, args)
    assert str(error.value) == f"<ptx>:4:17: {says}"


def test_names_that_nvcc_numbered_are_told() -> None:
    with pytest.raises(
        OperandError, match=r"scale\(float\*, float, int\) has no .*'x'; it has param_0, param_1, param_2"
    ):
        numbered().launch(wm.Device("sm_80"), 1, 1, {"x": None})
    with pytest.raises(OperandError, match=r"scale takes 3 arguments, scale\(float\*, float, int\); got 1"):
        numbered().launch(wm.Device("sm_80"), 1, 1, [None])
    assert repr(numbered()) == "<PtxEntry scale(float*, float, int)>"


def test_the_nearest_array_has_the_name_of_its_parameter() -> None:
    device = wm.Device("sm_80")
    for entry, array, says in [
        (named(), np.ones(8, np.float32), "the nearest, x (32 bytes from"),
        (numbered(), np.ones(8, np.float32), "the nearest, args[0] (32 bytes from"),
        (named(), device.array(np.ones(8, np.float32)), "the nearest, x = device array 0 (32 bytes from"),
    ]:
        with pytest.raises(HazardError) as error:
            entry.launch(device, 1, 32, [array, 2, 9])
        assert says in str(error.value)


def test_hazards_name_the_element() -> None:
    device, entry = wm.Device("sm_80"), named()
    with pytest.raises(HazardError, match=r"at address 0x\w+, x\[0\] \(and 7 more lanes\): warp 0 of block 0 writes"):
        entry.launch(device, 2, 8, [np.ones(8, np.float32), 2, 8])
    with pytest.raises(HazardError, match=r"at address 0x\w+, x\[0, 0\] \(and 7 more"):
        entry.launch(device, 2, 8, [np.ones((4, 2), np.float32), 2, 8])
    with pytest.raises(
        HazardError, match=r"unwritten: .*, x\[0\] \(and 7 more lanes\): it was never written: x is an Output"
    ):
        entry.launch(device, 1, 8, [Output(np.ones(8, np.float32)), 2, 8])
    whole = np.ones(16, np.float32)
    mapped = device.map(whole)
    with pytest.raises(HazardError, match=r", x\[0\] \(and"):  # of the view that it was given
        entry.launch(device, 2, 8, [whole[4:], 2, 8])
    with pytest.raises(HazardError, match=r", mapped array 0 \+ 16 bytes \(and"):
        entry.launch(device, 2, 8, [mapped.address + 16, 2, 8])


def test_blocks_have_their_place_in_the_grid() -> None:
    with pytest.raises(HazardError) as error:
        named().launch(wm.Device("sm_80"), (2, 1, 2), 8, [np.ones(8, np.float32), 2, 8], hazards="strict")
    says = str(error.value)
    assert "block 0 = blockIdx (0, 0, 0), warp 0" in says and "warp 0 of block 3 = blockIdx (1, 0, 1) read" in says
    hazard = error.value.hazard
    assert (hazard.block, hazard.block_index, hazard.index_name) == (0, (0, 0, 0), "blockIdx")
    with pytest.raises(HazardError, match=r"race: block 0, warp 0, .* of block 1 read"):
        named().launch(wm.Device("sm_80"), 2, 8, [np.ones(8, np.float32), 2, 8], hazards="strict")


SHARED = """.visible .entry _Z4tilePf(.param .u64 p) {
    .shared .align 4 .b8 _ZZ4tilePfE2sA[128]; .shared .align 4 .b8 _ZZ4tilePfE2sB[128];
    .reg .b32 %r<4>; .reg .pred %p;
    mov.u32 %r1, %tid.x; shl.b32 %r1, %r1, 2; mov.u32 %r2, SYMBOL; add.u32 %r2, %r2, %r1;
    st.shared.b32 [%r2], %r1; mov.u32 %r3, SYMBOL; ld.shared.b32 %r1, [%r3+OFFSET];
    setp.eq.b32 %p, %r1, 0; @%p trap; ret;
}
"""
EXTERN = ".extern .shared .align 16 .b8 buffer[];\n"


@pytest.mark.parametrize(
    ("symbol", "offset", "says"),
    [
        ("_ZZ4tilePfE2sA", 0, ", sA[0] of 4 bytes (and "),
        ("_ZZ4tilePfE2sB", 124, ", sB[31] of 4 bytes (and "),
        ("_ZZ4tilePfE2sA", 128, "the nearest, sA (128 bytes from 0x0), ends 4 bytes too early"),
        ("_ZZ4tilePfE2sB", 400, "the nearest, sB (128 bytes from 0x100), ends 276 bytes too early"),
        ("buffer", 8, ", buffer[2] of 4 bytes (and "),
    ],
)
def test_addresses_in_shared_memory_are_reported_by_variable(symbol: str, offset: int, says: str) -> None:
    text = HEAD + EXTERN * (symbol == "buffer") + SHARED.replace("SYMBOL", symbol).replace("OFFSET", str(offset))
    with pytest.raises(HazardError) as error:
        load(text)["tile"].launch(wm.Device("sm_80"), 1, 32, [None], shared=128 * (symbol == "buffer"))
    assert says in str(error.value)


def plain(body: str, parameters: str = ".param .u64 x") -> Any:
    text = f"""{HEAD}.visible .entry k({parameters}) {{
    .reg .b64 %x<2>; .reg .f32 %f; .reg .f64 %d; .reg .b32 %r<5>; .reg .b64 %rd<2>;
    ld.param.u64 %x0, [x]; {body} ret; }}"""
    return load(text)["k"]


@pytest.mark.parametrize(
    ("body", "dtype", "accessed"),
    [
        ("ld.global.f32 %f, [%x0];", "float64", "f32"),
        ("ld.global.v4.f32 {%f, %f, %f, %f}, [%x0];", "float64", "f32"),
        ("st.global.f64 [%x0], 0d0000000000000000;", "float32", "f64"),
        ("ld.global.nc.f32 %f, [%x0];", "int64", "f32"),
        ("red.global.add.f32 [%x0], 0f3F800000;", "float16", "f32"),
        ("red.global.add.noftz.f16x2 [%x0], %r0;", "float32", "f16"),
        ("ld.f32 %f, [%x0];", "float64", "f32"),
        ("ld.global.f32 %f, [%x0];", "float32", ""),
        ("ld.global.f32 %f, [%x0];", "uint32", ""),
        ("ld.global.b32 %r0, [%x0];", "float64", ""),
        ("ld.global.u32 %r0, [%x0];", "float64", ""),
        ("ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%x0];", "float16", ""),
        ("ld.global.b64 %rd0, [%x0];", "float32", ""),
        ("ld.global.u64 %rd0, [%x0];", "int32", ""),
        ("mov.b64 %rd0, 0;", "float64", ""),
    ],
)
@pytest.mark.parametrize("hazards", ["warn", "off"])
def test_arrays_that_are_accessed_as_another_type_are_reported(
    body: str, dtype: str, accessed: str, hazards: Any
) -> None:  # fmt: skip
    report = plain("mov.b32 %r0, 0;\n" + body).launch(
        wm.Device("sm_80"), 1, 1, [np.zeros(32, dtype)], hazards=hazards
    )  # fmt: skip
    told = [(one.array, one.holds, one.accessed, [site.line for site in one.sites]) for one in report.retyped]
    assert told == ([("x", dtype, accessed, [7])] if accessed else [])
    assert ("Arrays accessed as another type than they hold" in report.text()) == bool(accessed)
    found = json.loads(report.json())["retyped"]
    assert [x["accessed"] for x in found] == [accessed] * bool(accessed)
    if accessed:
        assert f"x holds {dtype} and was accessed as .{accessed}: <ptx>:7:" in report.text()


def test_each_array_and_type_is_reported_once() -> None:
    twice = "ld.global.f32 %f, [%x0];\nld.global.nc.f32 %f, [%x0];\nst.global.f32 [%x0], %f;"
    report = plain(twice).launch(wm.Device("sm_80"), 1, 1, [np.zeros(32)])
    assert [str(x) for x in report.retyped] == [
        "x holds float64 and was accessed as .f32: <ptx>:6:28: ld.global.f32 and 2 more lines"
    ]


def test_memory_that_arrays_of_two_types_share_is_not_reported() -> None:
    whole = np.zeros(32)
    entry = plain("ld.global.f32 %f, [%x0];", ".param .u64 x, .param .u64 y")
    assert entry.launch(wm.Device("sm_80"), 1, 1, [whole, whole.view(np.float32)]).retyped == ()
    assert len(entry.launch(wm.Device("sm_80"), 1, 1, [whole, np.zeros(4)]).retyped) == 1


def test_reports_of_where_lanes_are_name_the_place_in_the_grid() -> None:
    """Block 5 of 2 x 3 spins."""
    text = f"""{HEAD}.visible .entry spin() {{
    .reg .pred %p; .reg .b32 %r<4>;
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; add.u32 %r3, %r1, %r2; setp.eq.u32 %p, %r3, 3;
    AGAIN: @%p bra AGAIN; ret; }}"""
    with pytest.raises(wm.LimitError, match=r"32 lanes of block 5 = blockIdx \(1, 2, 0\), warp 0, are at"):
        load(text)["spin"].launch(wm.Device("sm_80"), (2, 3), 32, [], limit=Limit(instructions=10_000))


def test_a_launch_that_a_limit_ends_tells_what_was_accessed() -> None:
    text = f"""{HEAD}.visible .entry spin(.param .u64 x) {{
    .reg .f32 %f; .reg .b64 %rd; ld.param.u64 %rd, [x]; ld.global.f32 %f, [%rd];
    AGAIN: bra AGAIN; }}"""
    with pytest.raises(wm.LimitError) as error:
        load(text)["spin"].launch(wm.Device("sm_80"), 1, 1, [np.ones(2)], limit=Limit(instructions=10_000))
    assert [one.accessed for one in error.value.report.retyped] == ["f32"]
