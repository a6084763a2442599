"""Sums whose fusion by ptxas is unpredictable: the statements where that changes a bit, and the lanes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from warpmma import Device
from warpmma.machine import Launch
from warpmma.ptx import load, read
from warpmma.ptx.contraction.fusing import contracted

CLASS = {"f32": "b32", "f64": "b64", "f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32"}
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
START = """ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [given]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
"""
LOOP = """mov.u32 %r4, 0; mov.{k} %x1, %a;
LOOP:
  add{s}.{t} %x2, %x1, %b;
mul.{t} %x1, %x2, %a;
add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 3; @%p1 bra LOOP;
"""


def kernel(type_: str, body: str, before: str = "") -> str:
    """Make a kernel that loads two values for each thread, and stores %x2 for each."""
    kind, size = CLASS[type_], int(CLASS[type_][1:]) // 8
    return f"""{HEAD}{before}.visible .entry k(.param .u64 out, .param .u64 given)
{{ .reg .{kind} %x<9>, %a, %b; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<4>;
{START}mul.wide.u32 %rd3, %r1, {2 * size}; add.u64 %rd2, %rd2, %rd3; ld.global.{kind} %a, [%rd2];
ld.global.{kind} %b, [%rd2+{size}]; mul.wide.u32 %rd3, %r1, {size}; add.u64 %rd1, %rd1, %rd3;
{body.replace("{k}", kind).replace("{t}", type_).replace("{s}", "")}
st.global.{kind} [%rd1], %x2; ret; }}"""


def given(type_: str, threads: int = 96) -> np.ndarray[Any, Any]:
    rng, size = np.random.default_rng(7), int(CLASS[type_][1:]) // 8
    shape = (threads, 2) if not type_.endswith("x2") else (threads, 2, 2)
    x = rng.uniform(0.5, 1.5, shape)
    if type_.startswith("bf16"):
        return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(f"u{size}").reshape(threads, 2)
    return x.astype({"f32": "f4", "f64": "f8"}.get(type_, "f2")).view(f"u{size}").reshape(threads, 2)


def launched(text: str, type_: str, values: Any = None, **more: Any) -> tuple[Launch, np.ndarray[Any, Any]]:
    values = given(type_) if values is None else values
    out = np.zeros(len(values), values.dtype)
    report = load(text, "k.ptx")["k"].launch(Device("sm_90"), 3, len(values) // 3, [out, values], **more)
    return report, out


def fused_otherwise(type_: str, turns: int = 3) -> tuple[int, int, int, int]:
    """How many sums of `LOOP` have other bits when fused, the first such lane's number, and both of its results."""
    same = contracted(read(kernel(type_, LOOP)).functions["k"])
    assert [one.mnemonic for one in same.open] == [f"add.{type_}"]
    found: list[tuple[int, np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
    for turn in range(1, turns):  # what stands in the registers before the turn, and the sum of it in both ways
        body = LOOP.replace(", 3;", f", {turn};") + "mov.{k} %x3, %x2; "
        plain = launched(kernel(type_, body + "add.rn.{t} %x2, %x1, %b;"), type_, contract="off")[1]
        fused = launched(kernel(type_, body + "fma.rn.{t} %x2, %x3, %a, %b;"), type_, contract="off")[1]
        found.append((turn, plain, fused))
    differing = sum(int((a != b).sum()) for _, a, b in found)
    _, plain, fused = next(x for x in found if (x[1] != x[2]).any())
    first = int(np.flatnonzero(plain != fused)[0])
    return differing, first, int(plain[first]), int(fused[first])


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("type_", CLASS)
def test_each_place_that_would_change_a_result_is_reported(type_: str, engine: str) -> None:
    differing, first, plain, fused = fused_otherwise(type_)
    report, _ = launched(kernel(type_, LOOP), type_, engine=engine)
    (one,) = report.unpredicted
    line = kernel(type_, LOOP).split("\n").index(f"  add.{type_} %x2, %x1, %b;") + 1
    assert (one.site.place, one.line, one.column, one.type) == (f"k.ptx:{line}", line, 3, type_)
    assert (one.lanes, one.executions) == (differing, 2 * 96)
    assert (32 * one.block + 32 * one.warp + one.lane, one.bits, one.other) == (first, plain, fused)
    assert f"k.ptx:{line}:3: add.{type_}: other bits in {differing} of 192" in report.text()
    assert json.loads(report.json())["unpredicted"][0]["other"] == fused


def test_where_no_bit_differs_nothing_is_reported() -> None:
    ones = np.full((96, 2), 1.0, np.float32).view(np.uint32)
    report, _ = launched(kernel("f32", LOOP), "f32", ones)
    assert report.unpredicted == ()
    assert [site.mnemonic for site in report.undecided] == ["add.f32"]
    assert "and here that changes nothing" in report.text() and "changes bits" not in report.text()


def test_contraction_that_is_off_decides_all() -> None:
    report, _ = launched(kernel("f32", LOOP), "f32", contract="off")
    assert not report.unpredicted and not report.undecided and "Not predicted" not in report.text()


@pytest.mark.parametrize("hazards", ["error", "off"])
def test_what_stands_beside_changes_nothing(hazards: str) -> None:
    ran = [launched(kernel("f32", LOOP), "f32", contract=contract, hazards=hazards) for contract in ("ptxas", "off")]
    (report, out), (plain, same) = ran
    np.testing.assert_array_equal(out, same)
    assert report.unpredicted and report.costs.instructions == plain.costs.instructions


def test_lanes_that_are_masked_off_do_not_count() -> None:
    guarded = LOOP.replace("  add", "setp.lt.u32 %p2, %r3, 5; mov.{k} %x2, %x1;\n@%p2 add")
    everybody, some = (launched(kernel("f32", body), "f32")[0] for body in (LOOP, guarded))
    assert [one.executions for one in everybody.unpredicted] == [192]
    assert [(one.executions, one.lane < 5) for one in some.unpredicted] == [(30, True)]


WAYS = [
    ("sub.f32 %x2, %x1, %b;", "neg.f32 %x4, %b; fma.rn.f32 %x2, %x3, %a, %x4;"),
    ("sub.f32 %x2, %b, %x1;", "neg.f32 %x4, %x3; fma.rn.f32 %x2, %x4, %a, %b;"),
    ("sub.f32 %x2, %x1, 0f3F800001;", "fma.rn.f32 %x2, %x3, %a, 0fBF800001;"),
    ("neg.f32 %x5, %x1; add.f32 %x2, %x5, %b;", "neg.f32 %x4, %x3; fma.rn.f32 %x2, %x4, %a, %b;"),
    ("mov.b32 %x5, %x1; sub.sat.f32 %x2, %x5, 0f3E000000;", "fma.rn.sat.f32 %x2, %x3, %a, 0fBE000000;"),
    ("add.f32 %x1, %x1, %b; mov.f32 %x2, %x1;", "fma.rn.f32 %x2, %x3, %a, %b;"),
]


@pytest.mark.parametrize(("sum_", "fused"), WAYS)
def test_signs_and_what_hands_a_product_on(sum_: str, fused: str) -> None:
    loop = LOOP.replace("add{s}.{t} %x2, %x1, %b;", sum_)
    once = loop.replace(", 3;", ", 1;") + "mov.f32 %x3, %x2; "
    ways = [launched(kernel("f32", once + x), "f32", contract="off")[1] for x in (sum_, fused)]
    report, _ = launched(kernel("f32", loop.replace(", 3;", ", 2;")), "f32")
    (one,) = report.unpredicted
    first = int(np.flatnonzero(ways[0] != ways[1])[0])
    assert (one.lanes, one.executions) == (int((ways[0] != ways[1]).sum()), 96)
    assert (32 * one.block + one.lane, one.bits, one.other) == (first, *(int(way[first]) for way in ways))


def test_the_factors_are_those_of_the_multiplication() -> None:
    """What is written over them since does not count."""
    loop = LOOP.replace("add.u32 %r4", "mov.f32 %x7, %a; mov.f32 %a, %b; mov.f32 %b, %x7; add.u32 %r4")
    report, _ = launched(kernel("f32", loop.replace(", 3;", ", 2;")), "f32")
    ways = []
    for last in ("add.f32 %x2, %x1, %b;", "fma.rn.f32 %x2, %x3, %b, %b;"):
        once = loop.replace(", 3;", ", 1;") + "mov.f32 %x3, %x2; " + last
        ways.append(launched(kernel("f32", once), "f32", contract="off")[1])
    assert [one.lanes for one in report.unpredicted] == [int((ways[0] != ways[1]).sum())]


def test_functions_that_are_called_have_such_places_too() -> None:
    body = LOOP.replace("{s}", "").replace("{t}", "f32").replace("{k}", "f32")
    function = f""".func (.param .f32 r) f (.param .f32 p, .param .f32 q)
{{ .reg .f32 %x<9>, %a, %b; .reg .b32 %r<9>; .reg .pred %p<4>;
ld.param.f32 %a, [p]; ld.param.f32 %b, [q];
{body}
st.param.f32 [r], %x2; ret; }}
"""
    call = """{ .param .f32 p; .param .f32 q; .param .f32 r; st.param.f32 [p], %a; st.param.f32 [q], %b;
call (r), f, (p, q); ld.param.f32 %x2, [r]; }"""
    called, out = launched(kernel("f32", call * 2, function), "f32")
    alone, same = launched(kernel("f32", LOOP), "f32")
    (one,), (other,) = called.unpredicted, alone.unpredicted
    np.testing.assert_array_equal(out, same)
    assert (one.lanes, one.executions) == (2 * other.lanes, 2 * other.executions)
    assert (one.bits, one.other) == (other.bits, other.other)


def test_divisions_are_products_of_their_last_factors() -> None:
    loop = LOOP.replace("mul.{t} %x1, %x2, %a;", "div.full.f32 %x1, %x2, %a;")
    report, out = launched(kernel("f32", loop), "f32")
    _, same = launched(kernel("f32", loop), "f32", contract="off")
    np.testing.assert_array_equal(out, same)
    (one,) = report.unpredicted
    assert 0 < one.lanes < one.executions == 192
    differing = abs(np.array([one.bits, one.other], np.uint32).view(np.float32))
    assert abs(one.bits - one.other) < 1 << 10, differing


def test_where_another_product_is_fused_it_may_be_the_one_of_the_turn_before() -> None:
    loop = LOOP.replace("add{s}.{t} %x2, %x1, %b;", "mul.f32 %x6, %b, %a; add.f32 %x2, %x1, %x6;").replace(
        ", 3;", ", 2;"
    )
    report, _ = launched(kernel("f32", loop), "f32")
    ways = []
    for last in ("fma.rn.f32 %x2, %b, %a, %x1;", "mul.f32 %x6, %b, %a; fma.rn.f32 %x2, %x3, %a, %x6;"):
        once = LOOP.replace("add{s}.{t} %x2, %x1, %b;", "fma.rn.f32 %x2, %b, %a, %x1;").replace(", 3;", ", 1;")
        ways.append(launched(kernel("f32", once + "mov.f32 %x3, %x2; " + last), "f32", contract="off")[1])
    (one,) = report.unpredicted
    first = int(np.flatnonzero(ways[0] != ways[1])[0])
    assert (one.lanes, one.executions) == (int((ways[0] != ways[1]).sum()), 96)
    assert (one.bits, one.other) == tuple(int(way[first]) for way in ways)


def test_what_stands_beside_is_no_need_of_the_entry() -> None:
    plain = kernel("f32", LOOP.replace("add{s}.", "add.rn.").replace("mul.", "mul.rn."))
    needs, without = (load(text).check("sm_90").entries[0] for text in (kernel("f32", LOOP), plain))
    assert needs.registers == without.registers
    assert sum(needs.instructions.values()) == sum(without.instructions.values())
