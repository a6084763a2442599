"""What ptxas computes of constants, as its machine code showed it: docs/specification/folding.md.

`tests/data/ptxas_folding.json.gz` is what `python -m lab.compare.folding --record` found in machine code of ptxas 13.0.
"""

from __future__ import annotations

import gzip
import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import skip_without

from lab.compare.folding import EDGES, FORMS, NOT_SEEN, WAYS, functions, kernel, predicted, way
from warpmma import Device
from warpmma.arithmetic import SEQUENCES, approximate, folded_divisor, folded_reference
from warpmma.errors import OperandError
from warpmma.machine import Launch
from warpmma.operations import folded_function
from warpmma.ptx import load, read
from warpmma.ptx.contraction import contracted
from warpmma.ptx.folding import folded
from warpmma.ptx.folding.evaluated import evaluates, operation_of
from warpmma.ptx.text import Statement, words_of

DATA = Path(__file__).parents[1] / "data" / "ptxas_folding.json.gz"


@cache
def recorded() -> Any:
    return json.loads(gzip.decompress(DATA.read_bytes()))


@pytest.mark.parametrize("form", FORMS)
def test_functions_of_constants_are_those_of_ptxas(form: str) -> None:
    rows = recorded()["constants"][form]
    assert len(rows) >= len(EDGES) + 40
    assert [folded_reference(form, *row[:-1]) for row in rows] == [row[-1] for row in rows]


@pytest.mark.parametrize("form", [form for form, row in SEQUENCES.items() if row.fmt.name != "f32"])
def test_other_formats_are_left_to_the_gpu(form: str) -> None:
    assert folded_reference(form, 0x3C01) is None


def test_instructions_on_constants_are_evaluated_as_ptxas_does() -> None:
    found = {**dict.fromkeys(recorded()["evaluated"], True), **dict.fromkeys(recorded()["others"], False)}
    assert len(found) > 6_000
    wrong = [name for name, yes in found.items() if evaluates(words_of(name)) not in (yes, None)]
    assert not wrong
    doubtful = {name.split(".")[0] for name in found if evaluates(words_of(name)) is None}
    assert doubtful == {"cvt", "set", "szext"}


def test_what_is_evaluated_has_one_result() -> None:
    assert all(operation_of(name) for name in recorded()["evaluated"])


@pytest.mark.parametrize("name", WAYS)
def test_a_register_is_constant_where_ptxas_knows_it(name: str) -> None:
    seen, said = recorded()["ways"][name], predicted(way(name))
    if name in NOT_SEEN:
        assert (seen, said) == ("number", "GPU")
    elif name in ("counted to 4", "counted to 100", "the last count"):
        assert (seen, said) == ("number", "open")
    else:
        assert said == seen


IGNORED = ("ld.", "st.", "ret")


def mnemonics(body: str) -> list[str]:
    found = contracted(folded(read(kernel(body)).functions["k"]).function, "sm_90").function.body
    return [one.mnemonic for one in found if isinstance(one, Statement) and not one.mnemonic.startswith(IGNORED)]


STORED = " st.global.b32 [%rd1], %r9;"
VARIES = "ld.global.b32 %r3, [%rd1+8]; ld.global.b32 %r4, [%rd1+12]; "


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("div.full.f32 %r8, %r3, 0f40400000; add.f32 %r9, %r8, %r4;", ["fma.rn.f32"]),
        ("div.full.ftz.f32 %r8, %r3, 0f40400000; add.ftz.f32 %r9, %r8, %r4;", ["fma.rn.ftz.f32"]),
        ("div.full.f32 %r8, %r3, 0f7F000000; add.f32 %r9, %r8, %r4;", ["mul.f32", "fma.rn.f32"]),
        ("div.approx.f32 %r9, %r3, 0f7F000000;", ["mul.f32"]),
        ("div.full.f32 %r9, %r3, 0f7FC00000;", ["div.full.f32"]),
        ("div.full.f32 %r9, 0f3F800000, %r3;", ["div.full.f32"]),
        ("mov.b32 %r5, 0f40400001; mul.f32 %r8, %r5, %r5; add.f32 %r9, %r8, %r4;", ["mov.b32", "mov.b32", "add.f32"]),
        ("mov.b32 %r5, 3; cvt.rn.f32.s32 %r6, %r5; mul.f32 %r8, %r6, %r3; bar.sync 0; add.f32 %r9, %r8, %r4;",
         ["mov.b32", "cvt.rn.f32.s32", "bar.sync", "fma.rn.f32"]),
    ],
)  # fmt: skip
def test_quotients_and_products_of_constants_are_products_and_numbers(body: str, expected: list[str]) -> None:
    assert mnemonics(VARIES + body + STORED) == expected


def test_a_division_is_two_products_where_its_form_scales() -> None:
    assert folded_divisor("div.full.f32", 0x7F000000) == (0.25, 0x01000000)
    assert folded_divisor("div.approx.f32", 0x7F000000) == (1.0, 0)
    assert folded_divisor("div.full.f32", 0x00000100) == (2.0**24, 0x7A000000)
    assert folded_divisor("div.full.f32", 0x7FC00000) is None
    with pytest.raises(OperandError, match="takes one operand; got 2"):
        folded_divisor("rcp.approx.f32", 0x3F800000)


def launched(body: str, words: int = 32, **more: Any) -> tuple[Launch, np.ndarray[Any, Any]]:
    out = np.zeros(words, np.uint32)
    text = kernel(f"mov.u32 %r20, %tid.x; mul.wide.u32 %rd2, %r20, 4; add.u64 %rd1, %rd1, %rd2; {body}")
    return load(text, "k.ptx")["k"].launch(Device("sm_90"), 1, 32, [out, 5], **more), out


def test_a_launch_has_the_number_and_not_the_units_result() -> None:
    for contract in ("ptxas", "off"):
        _, out = launched("mov.b32 %r8, 0f44840000; rcp.approx.ftz.f32 %r9, %r8; " + STORED, contract=contract)
        assert {*out.tolist()} == {0x3A783E10}
    _, out = launched("ld.global.b32 %r8, [%rd1]; add.u32 %r8, %r8, 0x44840000; rcp.approx.ftz.f32 %r9, %r8; " + STORED)
    assert {*out.tolist()} == {0x3A783E0F}


COUNTED = """mov.u32 %r5, 1050; mov.b32 %r6, 0; L1: {pragma} cvt.rn.f32.u32 %r7, %r5; {function}
add.u32 %r5, %r5, 1; xor.b32 %r6, %r6, %r7; setp.lt.u32 %p1, %r5, 1060; @%p1 bra L1; st.global.b32 [%rd1], %r6;"""


def test_functions_of_a_counter_are_compared_with_what_an_unrolled_loop_has() -> None:
    codes = np.arange(1050, 1060).astype(np.float32).view(np.uint32)
    here = approximate("rcp.approx.ftz.f32", codes)
    other = np.array([folded_reference("rcp.approx.ftz.f32", x) for x in codes.tolist()], np.uint32)
    report, out = launched(COUNTED.format(pragma="", function="rcp.approx.ftz.f32 %r7, %r7;"))
    assert {*out.tolist()} == {int(np.bitwise_xor.reduce(here))}
    assert [site.mnemonic for site in report.undecided] == ["rcp.approx.ftz.f32"]
    (one,) = report.unpredicted
    first = int(np.flatnonzero(here != other)[0])
    assert (one.bits, one.other) == (here[first], other[first])
    assert (one.lanes, one.executions) == (32 * int((here != other).sum()), 320)
    kept, _ = launched(COUNTED.format(pragma='.pragma "nounroll";', function="rcp.approx.ftz.f32 %r7, %r7;"))
    assert not kept.undecided and not kept.unpredicted


def test_a_quotient_by_a_counter_is_compared_even_where_it_is_fused() -> None:
    divided = "div.full.f32 %r7, 0f40400000, %r7; add.f32 %r7, %r7, 0f3F800000;"
    report, _ = launched(COUNTED.format(pragma="", function=divided))
    (one,) = report.unpredicted
    assert one.site.mnemonic == "div.full.f32" and one.executions == 320


def test_a_guarded_function_of_a_constant_writes_where_its_guard_holds() -> None:
    guarded = "mov.b32 %r9, 7; setp.lt.u32 %p1, %r20, 5; @%p1 rcp.approx.f32 %r9, 0f44840000; "
    _, out = launched(guarded + STORED)
    assert out.tolist() == [0x3A783E10] * 5 + [7] * 27


def test_only_functions_of_f32_have_a_row_of_what_ptxas_makes_of_them() -> None:
    with pytest.raises(OperandError, match=r"'tanh\.approx\.f16' is not an approximate function of f32"):
        folded_function("tanh.approx.f16")


@pytest.mark.parametrize(("again", "what"), [("0f40400000", "number"), ("0f40A00000", "GPU")])
def test_loops_with_two_entries_are_followed(again: str, what: str) -> None:
    body = (
        "mov.b32 %r8, 0f40400000; setp.eq.s32 %p1, %r1, 7; @%p1 bra L2; L1: add.s32 %r1, %r1, 1; "
        f"mov.b32 %r8, {again}; L2: rcp.approx.ftz.f32 %r9, %r8; setp.lt.s32 %p2, %r1, 9; @%p2 bra L1;"
    )
    assert predicted(kernel(body + STORED)) == what


def test_ptxas_still_does_what_was_recorded() -> None:
    skip_without("ptxas")
    skip_without("nvdisasm")
    operands = [(x,) for x in EDGES]
    expected = [folded_reference("ex2.approx.f32", x) for x in EDGES]
    assert list(functions("ex2.approx.f32", operands, shutil.which("nvdisasm") or "")) == expected
