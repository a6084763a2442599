"""Registers of products: what an H200 was seen to get wrong is reported by default, what PTX forbids by "strict"."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from lab.measure.product_registers import RECORDED, SHARED, arguments, forms, text
from warpmma.machine import HazardError, product_registers

CASES = {f"{case} {form}": body for case, some in forms() for form, body in some.items()}
AT_OTHER_PLACES = ("pair_n16_n16_at_4", "pair_n256_n256_at_8")


@cache
def wrong() -> dict[str, list[int]]:
    found = json.loads(RECORDED.read_text())["wrong"]
    return {f"{case} {form}": [x or 0 for x in times] for case, some in found.items() for form, times in some.items()}


def expected(name: str) -> str:
    """Return the rule that a form breaks; "pending" for a use of D, which is older than these and has none."""
    case, form = name.split()
    if form in ("right", "fence"):
        return ""
    if case in AT_OTHER_PLACES:
        return "A27"
    if form.startswith("pending"):
        if case.endswith("_read"):
            return "pending"
        return "A26" if "_a_" in case and "guarded" not in case else "A25"
    if case.startswith("pair"):
        return "A28" if len(set(re.findall(r"\.(m64n\d+k\d+)\.", CASES[name]))) > 1 else ""
    return "A28"


def launch(name: str, hazards: Any = "error") -> None:
    data, c = arguments()
    device = wm.Device("sm_90a")
    arrays = [device.array(x) for x in (data, c, np.zeros((128, 256), np.uint32), np.zeros(1, np.uint64))]
    kernel = wm.ptx.load(text(CASES[name]))["k"]
    kernel.launch(device, 1, 128, [*arrays, 1, 0], shared=SHARED, hazards=hazards)


def reported(name: str, hazards: Any = "error") -> str:
    """Return the rule of the hazard of a form, or its kind."""
    try:
        launch(name, hazards)
    except HazardError as error:
        return error.hazard.rule or error.hazard.kind
    return ""


def test_what_failed_breaks_a_rule_of_the_default() -> None:
    assert wrong().keys() == CASES.keys()
    assert {expected(x) for x, times in wrong().items() if any(times)} == {"A25", "A27"}
    for rule in ("A26", "A28", ""):
        assert not any(any(wrong()[x]) for x in CASES if expected(x) == rule)


@pytest.mark.alike(24)
@pytest.mark.parametrize("name", CASES)
def test_what_is_reported(name: str) -> None:
    rule = expected(name)
    assert reported(name, "strict") == rule
    assert reported(name) == (rule if rule in ("A25", "A27", "pending") else "")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("n8_d0_move pending_fence", "%f0 belongs to D of the product (wgmma at "),
        ("n8_a_guarded_all pending_fence", "%a0 belongs to A of the product (wgmma at "),
        ("pair_n16_n16_at_4 waited_no_fence", "%f4 is at another place of D in the product (wgmma at "),
    ],
)
def test_reports_name_the_register_and_the_product(name: str, says: str) -> None:
    with pytest.raises(HazardError) as error:
        launch(name)
    assert says in str(error.value) and error.value.hazard.other is not None


PRODUCT = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 y) {
.reg .f32 %d<4>, %e<4>; .reg .b64 %a, %y; .reg .pred %p; .reg .b32 %i; .reg .b16 %l, %h; .reg .b32 %x;
.shared .align 1024 .b8 tile[4096];
ld.param.u64 %y, [y]; mov.b64 %a, 0x800400000; mov.b32 %i, 0;
START
LOOP:
BODY
add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 3; @%p bra LOOP;
wgmma.wait_group.sync.aligned 0; st.global.f32 [%y], %d0; ret; }"""
MULTIPLY = """wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %a, %a, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;"""
ZEROS = "".join(f"mov.f32 %{x}{i}, 0f00000000;" for x in "de" for i in range(4))
THERE = "".join(f"mov.f32 %e{i}, %d{i};" for i in range(4))
BACK = "".join(f"mov.f32 %d{i}, %e{i};" for i in range(4))
HALVES = "mov.b32 {%l, %h}, %d0; cvt.u32.u16 %x, %l; cvt.u16.u32 %l, %x;"
FENCE = "wgmma.fence.sync.aligned;"


@pytest.mark.parametrize(
    ("start", "body", "found"),
    [
        (ZEROS, BACK + FENCE + MULTIPLY + THERE, (0, 0, 0)),  # copies between turns, as compilers make
        (ZEROS + FENCE, BACK + MULTIPLY + THERE, (0, 0, 0)),  # what they copy first was fenced
        (ZEROS, FENCE + MULTIPLY + HALVES + "mov.b32 %d0, {%l, %h};", (0, 0, 0)),  # as Triton makes with sums in f16
        (ZEROS, FENCE + MULTIPLY + HALVES + "mov.b32 %d1, {%l, %h};", (1, 0, 0)),
        (ZEROS, FENCE + MULTIPLY + "mov.f32 %d1, %d0;", (1, 0, 0)),  # another place of D
        (ZEROS, FENCE + MULTIPLY + "wgmma.wait_group.sync.aligned 1; mov.f32 %d0, 0f00000000;", (1, 0, 0)),
        (ZEROS, FENCE + MULTIPLY + "wgmma.wait_group.sync.aligned 0; mov.f32 %d0, 0f00000000;", (0, 0, 0)),
        (ZEROS, MULTIPLY, (0, 0, 1)),
        ("@%p " + FENCE, MULTIPLY, (0, 0, 1)),  # a guard may skip the fence
    ],
)
def test_which_steps_are_looked_at(start: str, body: str, found: tuple[int, int, int]) -> None:
    module = wm.ptx.load(PRODUCT.replace("START", start).replace("BODY", body))
    known = product_registers(module.linked("k", wm.Device("sm_90a"), "ptxas").program)
    assert tuple(map(bool, (known.writes, known.overlaps, known.unfenced))) == tuple(map(bool, found))


def test_a_program_without_products_is_not_looked_at() -> None:
    module = wm.ptx.load(PRODUCT.replace("START", "").replace("BODY", "mov.f32 %d0, %d1;"))
    assert not product_registers(module.linked("k", wm.Device("sm_90a"), "ptxas").program).products


def test_a_report_says_which_tile_is_read() -> None:
    """A and B are unwritten: the descriptor says 8 rows 128 bytes apart, without a swizzle."""
    body = PRODUCT.replace("START", ZEROS).replace("BODY", FENCE + MULTIPLY)
    with pytest.raises(HazardError) as error:
        device = wm.Device("sm_90a")
        wm.ptx.load(body)["k"].launch(device, 1, 128, [device.array(np.zeros(4, np.float32))], hazards="strict")
    assert "tile[0] at 0x0 is (n, k) = (0, 0) of the tile of B that the product (wgmma at " in str(error.value)
    assert "8 x 16 f16, K-major, no swizzle, descriptor at 0x0 with stride 128, leading 1024" in str(error.value)
