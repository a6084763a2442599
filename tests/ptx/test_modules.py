"""Modules, their entries, and what a launch takes and refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma import ptx
from warpmma.errors import LimitError, OperandError, PtxError, TargetError
from warpmma.kernel import Output
from warpmma.machine import HazardError, Limit

pytestmark = pytest.mark.quick

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
ADD = (
    HEAD
    + """.visible .entry add(.param .u64 a, .param .u64 b, .param .u32 n)
{
.reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<6>;
ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [n];
mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
mad.lo.s32 %r2, %r2, %r3, %r4;
setp.ge.u32 %p1, %r2, %r1;
@%p1 bra DONE;
mul.wide.u32 %rd3, %r2, 4;
add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;
.loc 1 7 5
ld.global.u32 %r5, [%rd1];
add.u32 %r5, %r5, 1;
.loc 1 8 5
st.global.u32 [%rd2], %r5;
DONE: ret;
}
.entry idle() .maxntid 64, 1, 1 { ret; }
.entry exact() .reqntid 8, 4, 1 { ret; }
.file 1 "add.cu"
"""
)


def test_a_module_is_a_mapping_of_entries(tmp_path: Path) -> None:
    file = tmp_path / "add.ptx"
    file.write_text(ADD)
    for given in (ADD, ADD.encode(), file, str(file)):
        module = ptx.load(given)
        assert list(module) == ["add", "idle", "exact"] and len(module) == 3 and "add" in module
    assert repr(module) == f"<PtxModule {file}: sm_80, 3 entries>"
    assert repr(module["add"]) == "<PtxEntry add(.u64 a, .u64 b, .u32 n)>"
    assert wm.ptx.load is ptx.load


def test_an_unknown_entry() -> None:
    with pytest.raises(
        OperandError, match=r"<ptx> has no entry 'ad'; did you mean 'add'.* it has add, idle, exact"
    ) as error:
        ptx.load(ADD)["ad"]
    assert isinstance(error.value, KeyError)


@pytest.mark.parametrize("given", ["no/such/file.ptx", "a\0b"])
def test_a_file_that_cannot_be_read(given: str) -> None:
    with pytest.raises(PtxError, match="^" + given.partition("\0")[0]):
        ptx.load(given)


def test_what_is_no_module() -> None:
    with pytest.raises(OperandError, match="a module is 7; expected a path, or the text of one"):
        ptx.load(7)  # type: ignore[arg-type]


def test_arrays_are_read_and_written_in_place() -> None:
    a, b = np.arange(100, dtype=np.uint32), np.zeros(100, np.uint32)
    report = ptx.load(ADD)["add"].launch(wm.Device("sm_80"), 4, 32, [a, b, 100])
    np.testing.assert_array_equal(b, a + 1)
    assert "st.global.u32" in report.text() and report.printed == ""


def test_arrays_of_the_device_live_on() -> None:
    device = wm.Device("sm_90")
    module = ptx.load(ADD)
    x, y = device.array(np.arange(64, dtype=np.int32)), device.empty(64, np.int32)
    module["add"].launch(device, 2, 32, [x, y, 64])
    module["add"].launch(device, 2, 32, [y, x, 64])
    np.testing.assert_array_equal(x.numpy(), np.arange(64) + 2)


def test_outputs_hold_nothing_before() -> None:
    device, module = wm.Device("sm_80"), ptx.load(ADD)
    a, b = np.zeros(8, np.uint32), np.zeros(8, np.uint32)
    module["add"].launch(device, 1, 32, [a, Output(b), 8])
    assert (b == 1).all()
    with pytest.raises(HazardError, match="unwritten"):
        module["add"].launch(device, 1, 32, [Output(a), b, 8])
    with pytest.raises(HazardError, match="b is an Output, and no thread wrote any of it"):
        module["add"].launch(device, 1, 32, [a, Output(b), 0])


def test_a_hazard_has_the_line_of_the_source_and_that_of_the_text() -> None:
    with pytest.raises(HazardError, match=r"^add\.cu:7: ld\.global\.u32 at k\.ptx:15:1: bounds: .*lane 8") as error:
        ptx.load(ADD, "k.ptx")["add"].launch(wm.Device("sm_80"), 1, 32, [np.zeros(8, np.uint32), np.zeros(32), 32])
    assert error.value.hazard.site.file == "add.cu"


@pytest.mark.parametrize(
    ("entry", "more", "error", "says"),
    [
        ("add", {"args": [1, 2]}, OperandError, "add takes 3 arguments"),
        ("add", {"args": 7}, OperandError, "args is int; expected a list or tuple"),
        ("idle", {"block": 65}, OperandError, r"idle declares \.maxntid 64, 1, 1: at most 64 threads"),
        ("exact", {"block": 32}, OperandError, r"exact declares \.reqntid 8, 4, 1: exactly 32 threads"),
        ("idle", {"block": 2048}, OperandError, "block is 2048"),
        ("idle", {"grid": 0}, OperandError, "grid is 0"),
        ("idle", {"shared": 1 << 20}, OperandError, "shared is 1048576; on sm_80 expected a number of bytes, 166912"),
        ("idle", {"shared": -1}, OperandError, "shared is -1"),
        ("idle", {"resident": 0}, OperandError, "resident is 0; expected a positive integer or None"),
        ("idle", {"threads": 1.5}, OperandError, "threads is 1.5"),
        ("idle", {"seed": -1}, OperandError, "seed is -1"),
        ("idle", {"limit": 0}, OperandError, "a limit of 0 instructions"),
        ("idle", {"contract": "on"}, OperandError, "contract is 'on'; expected 'ptxas' or 'off'"),
        ("idle", {"progress": 1}, OperandError, "progress is 1"),
        ("idle", {"device": "sm_80"}, OperandError, "device is 'sm_80'; expected a warpmma.Device"),
        ("idle", {"device": wm.Device("sm_75")}, TargetError, "is PTX for sm_80, which sm_75 does not take"),
    ],
)
def test_refusals(entry: str, more: dict[str, Any], error: type[Exception], says: str) -> None:
    given: dict[str, Any] = {"device": wm.Device("sm_80"), "grid": 1, "block": 32, "args": [], **more}
    with pytest.raises(error, match=says):
        ptx.load(ADD)[entry].launch(**given)


@pytest.mark.parametrize(
    ("wants", "has", "fits"),
    [
        ("sm_80", "sm_80", True), ("sm_80", "sm_90a", True), ("sm_90", "sm_89", False), ("sm_90a", "sm_90a", True),
        ("sm_90a", "sm_90", False), ("sm_90a", "sm_100a", False), ("sm_100f", "sm_103a", True),
        ("sm_52", "sm_70", True), ("sm_100f", "sm_120a", False),
        ("sm_100a", "sm_100f", False), ("sm_100f", "sm_103", False),
    ],
)  # fmt: skip
def test_targets(wants: str, has: str, fits: bool) -> None:
    module = ptx.load(f".version 8.8 .target {wants} .address_size 64 .entry k() {{ ret; }}")
    if fits:
        module["k"].launch(wm.Device(has), 1, 1)
        return
    with pytest.raises(TargetError, match=f"is PTX for {wants}, which {has} does not take"):
        module["k"].launch(wm.Device(has), 1, 1)


def test_what_is_not_simulated_is_said_before_anything_runs() -> None:
    text = HEAD + ".entry k() {\n.reg .b32 %r<3>;\nbra DONE;\nfrob.b32 %r1, %r2;\ngrind.b32 %r1;\nDONE: ret; }"
    ptx.load(text)["k"].launch(wm.Device("sm_80"), 1, 32)  # nobody comes there
    with pytest.raises(PtxError, match=r"^<ptx>:7:1: 'frob.b32'") as error:
        ptx.load(text.replace("bra DONE;", ""))["k"].launch(wm.Device("sm_80"), 1, 32)
    assert error.value.__notes__ == ["and 1 more lines that are not simulated: `warpmma ptx check` lists them"]


def test_a_loop_without_an_end_comes_to_its_limit() -> None:
    module = ptx.load(HEAD + ".entry k() { L: bra L; }")
    for limit in (1000, Limit(seconds=0.01)):
        with pytest.raises(LimitError, match=r"32 lanes of block 0, warp 0, are at <ptx>:\d") as caught:
            module["k"].launch(wm.Device("sm_80"), 1, 32, limit=limit)
        assert sum(caught.value.report.costs.instructions.values()) > 0  # what was found until then


def test_progress_tells_of_blocks() -> None:
    seen: list[tuple[int, int]] = []
    ptx.load(ADD)["idle"].launch(wm.Device("sm_80"), 10, 32, resident=4, progress=lambda *x: seen.append(x))
    assert seen == [(4, 10), (8, 10), (10, 10)]


def test_byte_ids_of_scales_may_be_in_registers() -> None:
    mma = (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 "
        "{{%f1, %f2, %f3, %f4}}, {{%r1, %r2, %r3, %r4}}, {{%r5, %r6}}, {{%f5, %f5, %f5, %f5}}, %r7, {0}, %r8, {1};"
    )
    results = []
    for first, second in (("{0, 0}", "{0, 1}"), ("{0, %rs1}", "{0, %rs2}")):
        text = f""".version 8.8 .target sm_120a .address_size 64 .entry k(.param .u64 p) {{
            .reg .b16 %rs<3>; .reg .b32 %r<9>; .reg .f32 %f<6>; .reg .b64 %rd<3>;
            mov.u16 %rs1, 0; mov.u16 %rs2, 1; mov.u32 %r1, %tid.x; mul.lo.u32 %r1, %r1, 0x9E3779B1;
            mov.u32 %r2, %r1; mov.u32 %r3, %r1; mov.u32 %r4, %r1; mov.u32 %r5, %r1; mov.u32 %r6, %r1;
            mov.u32 %r7, 0x38383838; and.b32 %r8, %r1, 0x3F3F3F3F; mov.f32 %f5, 0f00000000;
            {mma.format(first, second)}
            ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
            st.global.f32 [%rd1], %f1; ret; }}"""
        out = np.zeros(32, np.float32)
        ptx.load(text)["k"].launch(wm.Device("sm_120a"), 1, 32, [out])
        results.append(out.view(np.uint32))
    np.testing.assert_array_equal(results[0], results[1])
    assert results[0].any()
