"""Statements become steps: operands, registers, branches, parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.arithmetic import runs_elements
from warpmma.errors import PtxError
from warpmma.machine import (
    Argument,
    Branch,
    Constant,
    Frame,
    Guard,
    InstructionStep,
    Inverted,
    Program,
    ReadOnly,
    Return,
    SharedAddress,
    Slot,
    Sum,
)
from warpmma.operations import WINDOWS, Operation
from warpmma.ptx import read
from warpmma.ptx.lower.linking import Linked, link
from warpmma.ptx.storage.symbols import ModuleMemory

pytestmark = pytest.mark.quick

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def linked(body: str, parameters: str = "", before: str = "") -> Linked:
    """Lower an entry with some registers."""
    registers = ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>;"
    text = f"{HEAD}{before}\n.visible .entry k({parameters})\n{{\n{registers}\n{body}\n}}\n"
    module = read(text, "k.ptx")
    return link(module, "k", ModuleMemory(module, None), "sm_80")


def steps(body: str, **more: str) -> list[Any]:
    """Steps of a body, which has no problems."""
    found = linked(body, **more)
    assert not found.problems, found.problems
    return list(found.program.steps)


def step(body: str, **more: str) -> InstructionStep:
    """Return the first step of a body."""
    found = steps(body, **more)[0]
    assert isinstance(found, InstructionStep)
    return found


def names(program: Program, x: InstructionStep) -> list[str]:
    """Names of the registers that a step writes."""
    return [program.names[slot.number] if slot else "_" for slot in x.results]


def test_registers_and_numbers() -> None:
    found = linked("add.s32 %r1, %r2, -1;")
    first = found.program.steps[0]
    assert isinstance(first, InstructionStep) and str(first.row) == "add.s32"
    assert first.operands[1] == Constant(0xFFFFFFFF, "b32")
    assert names(found.program, first) == ["%r1"]


@pytest.mark.parametrize(
    ("text", "operand"),
    [("add.u32 %r1, %r2+17, %r3;", 0), ("st.global.u64 [%rd1], %rd2+-1;", 1), ("mov.b16 %rs1, %rs2+1;", 0)],
)
def test_register_plus_number_is_their_sum(text: str, operand: int) -> None:
    assert isinstance(step(text).operands[operand], Sum)


@pytest.mark.parametrize("text", ["mov.f32 %f1, %f2+1;", "and.pred %p1, %p2+1, %p3;", "cvt.u32.u16 %r1, %r2+1;"])
def test_register_plus_number_is_no_float_or_predicate(text: str) -> None:
    (problem,) = linked(text).problems
    assert "2+1" in str(problem)


def test_operand_in_parentheses_may_be_the_last() -> None:
    assert step("mov.u32 %r1, (5 > 3 ? 1 : 2);").operands == (Constant(1, "b32"),)


def test_video_instructions_pick_and_negate() -> None:
    first = step("vadd.s32.u32.s32.sat %r1.b2, %r2.h1, %r3, %r4;")
    assert first.row.syntax == "d0.b2, a0.h1, a1, a2" and len(first.operands) == 3
    first = step("vmad.s32.u32.u32 %r1, -%r2.b0, %r3, %r4;")
    assert first.row.syntax == "d0, -a0.b0, a1, a2"
    assert str(step("vote.sync.any.pred %p1, !%p2, -1;").row) == "vote.sync.any.pred"
    (problem,) = linked("vadd.s32.u32.s32.add %r1.b2, %r2, %r3, %r4;").problems
    assert "has no selectors" in str(problem)


def test_comparison_with_two_destinations() -> None:
    found = linked("setp.lt.and.u32 %p1|%p2, %r1, %r2, !%p3;")
    first = found.program.steps[0]
    assert isinstance(first, InstructionStep) and not found.problems
    assert names(found.program, first) == ["%p1", "%p2"]
    (problem,) = linked("setp.lt.and.f16 %p1|%p2, %rs1, %rs2, !%p3;").problems
    assert "second destination" in str(problem)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("mov.f32 %f1, 0f3F800000;", 0x3F800000),
        ("mov.f32 %f1, 0d3FF8000000000000;", 0x3FC00000),
        ("mov.f32 %f1, 1.5;", 0x3FC00000),
        ("mov.b32 %r1, 0f3F800000;", 0x3F800000),
        ("mov.u32 %r1, 0xFFFFFFFF;", 0xFFFFFFFF),
        ("mov.u16 %rs1, -2;", 0xFFFE),
        ("mov.f64 %rd1, 0f3F800000;", 0x3FF0000000000000),
        ("mov.pred %p1, -1;", 1),
    ],
)
def test_a_number_becomes_bits_of_the_operands_type(text: str, bits: int) -> None:
    (operand,) = step(text).operands
    assert isinstance(operand, Constant) and operand.bits == bits


def test_special_registers_are_read() -> None:
    assert step("mov.u32 %r1, %tid.x;").operands == (ReadOnly("tid.x", "b32"),)
    assert step("mov.u64 %rd1, %clock64;").operands == (ReadOnly("clock64", "b64"),)


def test_predicates_are_guards_and_operands() -> None:
    found = step("@!%p1 add.s32 %r1, %r2, %r3;")
    assert isinstance(found.guard, Guard) and found.guard.negated
    assert isinstance(step("selp.b32 %r1, %r2, %r3, %p1;").operands[2], Slot)
    assert isinstance(step("and.pred %p1, %p2, !%p3;").operands[1], Inverted)


def test_variables_have_generic_addresses_where_no_space_is_named() -> None:
    shared = ".shared .align 4 .b32 x; ld{}.u32 %r1, [x];"
    (address,) = step(shared.format("")).operands
    assert address == SharedAddress(0, "b64", WINDOWS["shared"].base)
    for space in (".shared", ".shared::cta"):
        assert step(shared.format(space)).operands == (SharedAddress(0, "b64"),)
    (inner,) = step(".local .align 4 .b32 x[2]; ld.u32 %r1, [x+4];").operands
    assert inner == Sum(Frame(4), WINDOWS["local"].base)


@pytest.mark.parametrize("text", ["testp.normal.f32 %p2, %f1;", "vadd4.u32.u32.u32.add %r1, %r2, %r3, %r4;"])
def test_guards_that_ptxas_leaves_out(text: str) -> None:
    assert step(f"@%p1 {text}").guard is None
    assert step("@%p1 vadd4.u32.u32.u32 %r1, %r2, %r3, %r4;").guard is not None


def test_addresses() -> None:
    assert isinstance(step("ld.global.u32 %r1, [%rd1];").operands[0], Slot)
    place = step("ld.global.u32 %r1, [%rd1+-4];").operands[0]
    assert isinstance(place, Sum) and place.offset == -4
    assert step("ld.local.u32 %r1, [4096];").operands == (Constant(4096, "b64"),)
    variables = ".shared .align 4 .b8 one[6]; .shared .align 8 .b64 two;"
    assert step("ld.shared.u64 %rd1, [two];", before=variables + "").operands[0]


def test_shared_variables_lie_apart_and_keep_their_banks() -> None:
    before = ".shared .align 4 .b8 one[6]; .shared .align 8 .b64 two; .extern .shared .align 16 .b8 more[];"
    found = linked("mov.u32 %r1, one; mov.u32 %r2, two; mov.u32 %r3, more;", before=before)
    assert found.shared.variables == (("one", range(6)), ("two", range(136, 144)))
    assert (found.shared.static, found.shared.dynamic) == (16, 16 + 2 * 128)
    moved = [x.operands[0] for x in found.program.steps if isinstance(x, InstructionStep)]
    assert moved == [SharedAddress(at, "b32") for at in (0, 136, 272)]


def test_shared_variables_that_nothing_reaches_have_no_place() -> None:
    assert linked("ret;", before=".shared .b32 one;").shared.variables == ()


def test_parameters_are_bytes_of_the_launch() -> None:
    found = linked("ld.param.u32 %r1, [b]; ld.param.s8 %rs1, [c+1];", ".param .u64 a, .param .u32 b, .param .b8 c[3]")
    first, second = found.program.steps[:2]
    assert isinstance(first, InstructionStep) and first.operands == (Argument(8, 4, False, "b32"),)
    assert isinstance(second, InstructionStep) and second.operands == (Argument(13, 1, True, "b16"),)


def test_vectors_of_registers() -> None:
    assert len(step("mov.b64 %rd1, {%r1, %r2};").operands) == 2
    assert len(step("mov.b32 {%rs1, %rs2}, %r1;").results) == 2
    assert len(step("ld.global.v4.u32 {%r1, %r2, _, %r4}, [%rd1];").results) == 4
    assert step("ld.global.v4.u32 {%r1, %r2, _, %r4}, [%rd1];").results[2] is None
    body = ".reg .v2 .f32 %v; ld.global.v2.f32 %v, [%rd1]; add.f32 %f1, %v.x, %v.y;"
    assert len({x.number for x in steps(body)[1].operands}) == 2


def test_wider_registers_are_filled_and_cut_where_ptx_allows_it() -> None:
    load = step("ld.global.s8 %r1, [%rd1];").row
    assert load.into == "b32"  # type: ignore[attr-defined]
    convert = step("cvt.u32.u16 %r1, %r2;").row
    assert convert.inputs == ("b32",)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("add.s32 %r1, %rd2, 1;", "%rd2 is a register of b64; expected b32"),
        ("add.s32 %r1, %r2;", "got 2 operands; expected d0, a0, a1"),
        ("add.s32 %r1, %r2, %q;", "%q is not declared"),
        ("add.s32 5, %r2, %r3;", "5 is not a register"),
        ("frob.s32 %r1, %r2;", "frob"),
        ("bra NOWHERE;", "no label NOWHERE"),
        ("@%r1 ret;", "%r1 is not a predicate"),
        ("lop3.b32 %r1, %r2, %r3, %r4, %r5;", "immediate"),
        ("call missing;", "missing"),
    ],
)
def test_what_is_not_simulated_has_line_and_column(body: str, says: str) -> None:
    with pytest.raises(PtxError, match=r"^k\.ptx:8:") as error:
        problems = linked(body).problems
        raise problems[0]
    assert says in str(error.value) and error.value.line == 8


def test_all_problems_are_found() -> None:
    found = linked("frob.s32 %r1, %r2;\nadd.s32 %r1, %r2, %r3;\ngrind %r1;")
    assert [x.line for x in found.problems] == [8, 10]


def test_branches_lead_to_places() -> None:
    body = "setp.eq.s32 %p1, %r1, 0;\n@%p1 bra B;\nA: add.s32 %r1, %r1, 1;\nB: ret;"
    branch = steps(body)[1]
    assert isinstance(branch, Branch) and branch.to == 3 and branch.guard == Guard(Slot(0), False)


def test_a_branch_to_what_follows_is_turned_round() -> None:
    # THEN stands at the end of the text, but lanes have to meet behind it
    found = steps("setp.eq.s32 %p1, %r1, 0;\n@%p1 bra THEN;\nJOIN: st.global.u32 [%rd1], %r1;\nret;\n"
                  "THEN: add.s32 %r1, %r1, 1;\nbra JOIN;")  # fmt: skip
    assert [type(x) for x in found] == [InstructionStep, Branch, InstructionStep, InstructionStep, Return]
    assert found[1].to == 3 and found[1].guard.negated


def test_the_end_of_a_text_is_a_return() -> None:
    assert isinstance(steps("add.s32 %r1, %r2, %r3;")[-1], Return)


def test_inner_scopes_declare_registers_again() -> None:
    found = linked("{ .reg .pred %p1; setp.eq.s32 %p1, %r1, 0; }\n{ .reg .pred %p1; setp.eq.s32 %p1, %r1, 1; }")
    assert found.program.names.count("%p1") == 2


def test_lines_of_the_source_are_kept() -> None:
    text = HEAD + '.file 1 "k.cu"\n.entry k() {\n.reg .b32 %r<3>;\n.loc 1 17 3\nadd.s32 %r1, %r2, 1;\nret;\n}\n'
    module = read(text, "/a/k.ptx")
    site = link(module, "k", ModuleMemory(module, None), "sm_80").program.steps[0].site
    assert (site.file, site.line, site.mnemonic, site.text) == ("k.cu", 17, "add.s32", "k.ptx:8:1")
    assert str(site) == "k.cu:17: add.s32 at k.ptx:8:1"


@pytest.mark.parametrize(
    ("header", "place"),
    [
        ("/cuda/include/atomics.hpp", ("/a/k.cu", 17, "k.ptx:10:1 in atomics.hpp:5")),
        ("/a/b/own.h", ("/a/b/own.h", 5, "k.ptx:10:1")),
    ],
)
def test_what_was_inlined_from_elsewhere_stands_where_it_was_called(header: str, place: tuple[str, int, str]) -> None:
    text = f'{HEAD}.file 1 "/a/k.cu"\n.file 2 "{header}"\n.entry k() {{\n.reg .b32 %r<3>;\n.loc 1 17 3\n'
    text += ".loc 2 5 3, function_name $name, inlined_at 1 17 3\nadd.s32 %r1, %r2, 1;\nret;\n}\n"
    module = read(text, "k.ptx")
    site = link(module, "k", ModuleMemory(module, None), "sm_80").program.steps[0].site
    assert (site.file, site.line, site.text) == place


def test_calls_pass_frames() -> None:
    before = (
        ".func (.param .b32 out) f(.param .b32 a) { .reg .b32 %r<3>; ld.param.b32 %r1, [a];"
        " add.s32 %r2, %r1, 1; st.param.b32 [out], %r2; ret; }"
    )
    body = "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %r1; call (y), f, (x); ld.param.b32 %r2, [y]; }"
    found = linked(body, before=before)
    assert not found.problems
    store, call, load = found.program.steps[:3]
    assert isinstance(store, InstructionStep) and store.operands[0] == Frame(0)
    assert call.to == "f" and call.arguments == ((0, 4),) and call.results == ((4, 4),)  # type: ignore[union-attr]
    assert isinstance(load, InstructionStep) and load.operands == (Frame(4),)
    callee = found.program.callees["f"]
    assert callee.first == 4 and callee.results == ((0, 4),) and callee.parameters == ((4, 4),)
    assert not callee.recursive


def test_wider_registers_of_conversions_in_both_engines() -> None:
    """A row that the native engine has takes registers that are wider, too."""
    row = step("cvt.rni.s32.f32 %rd1, %f2;").row
    assert isinstance(row, Operation) and (row.inputs, row.outputs) == (("b32",), ("b64",))
    x = np.linspace(-9, 9, 32, dtype=np.float32)
    (expected,) = row.compute(x.view(np.uint32))
    assert expected.view(np.int64).tolist() == np.rint(x).astype(np.int64).tolist()
    assert row.native is not None
    if runs_elements():
        assert np.array_equal(row.native(x.view(np.uint32))[0], expected)


NEWER = {
    "mbarrier.try_wait.shared.b64 %p1, [%r1], %rd1;": ("sm_90", (7, 8), (7, 7)),
    "redux.sync.add.s32 %r1, %r2, -1;": ("sm_80", (7, 0), (6, 5)),
    "fence.proxy.async;": ("sm_90", (8, 0), (7, 8)),
    "add.rn.bf16x2 %r1, %r2, %r3;": ("sm_90", (7, 8), (7, 7)),
    "mbarrier.arrive.relaxed.cta.shared.b64 _, [%r1];": ("sm_90", (8, 6), (8, 5)),
}


@pytest.mark.parametrize("statement", NEWER)
def test_an_instruction_of_a_later_version_is_an_error(statement: str) -> None:
    """As in ptxas. `.target` does not matter here: a device of a later target runs the text."""
    target, has, less = NEWER[statement]

    def problems(version: tuple[int, int]) -> list[str]:
        text = f""".version {version[0]}.{version[1]}\n.target sm_75\n.address_size 64
        .visible .entry k() {{ .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %rd<3>; {statement} ret; }}"""
        return [str(x) for entry in wm.ptx.load(text).check(target).entries for x in entry.problems]

    assert problems(has) == []
    (problem,) = problems(less)
    assert "requires PTX {}.{}; this text is PTX {}.{}: write .version {}.{}".format(*has, *less, *has) in problem


EARLIER = [
    ("fence.acquire.gpu;", "7.0"),
    ("cp.async.ca.shared::cta.global [%r1], [%rd1], 4;", "7.0"),
    ("cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;", "7.8"),
]


@pytest.mark.parametrize(("statement", "version"), EARLIER)
def test_what_ptxas_takes_in_older_texts(statement: str, version: str) -> None:
    text = f""".version {version}\n.target sm_80\n.address_size 64
    .visible .entry k() {{ .reg .b16 %h<3>; .reg .b32 %r<5>; .reg .b64 %rd<3>; .reg .f32 %f<3>; {statement} ret; }}"""
    assert wm.ptx.load(text).check("sm_90").entries[0].problems == ()


def test_texts_for_older_gpus_are_not_compared() -> None:
    text = """.version 4.3\n.target sm_30\n.address_size 64
    .visible .entry k() { .reg .b32 %r<3>; redux.sync.add.s32 %r1, %r2, -1; ret; }"""
    assert wm.ptx.load(text).check("sm_80").entries[0].problems == ()
