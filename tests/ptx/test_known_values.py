"""Values of constants: what is visited, and that leaving statements and visits out changes nothing."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from warpmma import Device
from warpmma.errors import PtxError
from warpmma.ptx import load, read
from warpmma.ptx.folding import known_values, value_graph
from warpmma.ptx.folding.evaluated import approximate_form, evaluates
from warpmma.ptx.folding.known_values import find_values
from warpmma.ptx.folding.transfers import Value
from warpmma.ptx.folding.value_graph import ValueGraph
from warpmma.ptx.text import Function, Statement

REGISTERS = ".reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .pred %p<4>; .reg .f32 %f<4>;"


def body(text: str) -> Function:
    head = ".version 8.0 .target sm_80 .address_size 64"
    return read(f"{head} .entry k(.param .u64 x) {{ {REGISTERS} {text} ret; }}").functions["k"]


def statements(function: Function) -> dict[int, Statement]:
    return {i: one for i, one in enumerate(function.body) if isinstance(one, Statement)}


def functions(function: Function) -> set[int]:
    return {i for i, one in statements(function).items() if approximate_form(one.words)}


def random_body(seed: int) -> Function:
    """Return a body of few registers, with constants, guards, packing, joins and loops with any number of ways in."""
    r = random.Random(seed)

    def register() -> str:
        return f"%r{r.randrange(7)}"

    def source() -> str:
        return register() if r.random() < 0.75 else str(r.choice((0, 1, 3, 7, -1, 1056)))

    def statement() -> str:
        guard = f"@{r.choice(('', '!'))}%p{r.randrange(3)} " if r.random() < 0.2 else ""
        to, p, wide = register(), f"%p{r.randrange(3)}", f"%rd{r.randrange(3)}"
        return guard + r.choice((
            f"mov.u32 {to}, {source()};", f"mov.u32 {to}, {r.choice(('%tid.x', 'WARP_SZ', '5'))};",
            f"add.u32 {to}, {register()}, {source()};", f"mul.lo.u32 {to}, {register()}, {source()};",
            f"and.b32 {to}, {register()}, {source()};", f"or.b32 {to}, {source()}, {register()};",
            f"xor.b32 {to}, {register()}, {register()};", f"setp.lt.u32 {p}, {register()}, {source()};",
            f"selp.b32 {to}, {source()}, {source()}, {p};", f"ld.global.u32 {to}, [%rd9];",
            f"mov.b64 {wide}, {{{register()}, {register()}}};", f"mov.b64 {{{to}, {register()}}}, {wide};",
        ))  # fmt: skip

    blocks, text = r.randint(2, 14), ""
    for b in range(blocks):
        text += f"L{b}: " + '.pragma "nounroll"; ' * (r.random() < 0.1)
        text += " ".join(statement() for _ in range(r.randint(0, 6)))
        text += f" rcp.approx.f32 %f0, {register()};" * (r.random() < 0.4)
        if r.random() < 0.1:
            text += f" C{b}: add.u32 %r0, %r0, 1; rcp.approx.f32 %f0, %r0; setp.lt.u32 %p0, %r0, 9; @%p0 bra C{b};"
        way = r.random()
        guard = f"@{r.choice(('', '!'))}%p{r.randrange(3)} " * (way < 0.45)
        text += f" {guard}bra L{r.randrange(blocks)};" * (way < 0.6)
    return body(text)


class Everything(known_values._Propagation):
    """Every block is visited in every pass, until one changes nothing."""

    def _pass(self) -> None:
        self._waiting.clear()
        for b in self._flow.order:
            self._visit(b)


def shown(found: dict[int, tuple[Value, ...]]) -> dict[int, tuple[int | bool, ...]]:
    return {i: tuple(x if isinstance(x, int) else x.counted for x in values) for i, values in found.items()}


def test_what_is_left_out_changes_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = Counter[str]()
    for seed in range(160):
        function = random_body(seed)
        own, wanted = statements(function), functions(function)
        found = shown(find_values(function, own, wanted))
        with monkeypatch.context() as patch:
            patch.setattr(known_values, "_Propagation", Everything)
            patch.setattr(value_graph, "_may_be_known", lambda x, used: {r for i in x for r in used[i].written})
            every = {i for i, one in own.items() if one.opcode != "mov" and evaluates(one.words) is not False}
            slow = shown(find_values(function, own, wanted | every))
        assert found == {i: values for i, values in slow.items() if i in wanted}
        kinds.update("counted" if x is True else type(x).__name__ for values in found.values() for x in values)
    assert kinds.keys() == {"counted", "int", "bool"}


def test_statements_of_which_nothing_is_known_are_left_out() -> None:
    function = body("""ld.param.u64 %rd1, [x]; mov.u32 %r0, %tid.x; mul.lo.u32 %r1, %r0, 4; add.u32 %r2, %r1, 8;
        mov.u32 %r3, 1056; add.u32 %r4, %r3, 1; add.u32 %r5, %r3, %r2; ld.global.f32 %f1, [%rd1];
        rcp.approx.f32 %f0, %r4; rcp.approx.f32 %f2, %r5;""")
    graph = ValueGraph(function, statements(function), functions(function))
    kept = [function.body[i] for steps in graph.steps.values() for i, _ in steps]
    assert [one.operands[0].name for one in kept if isinstance(one, Statement)] == ["%r3", "%r4"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "part",
    [
        "@%p{n} bra A{i}; mov.u32 %r1, 5; A{i}: add.u32 %r2, %r1, 1;",
        "mov.u32 %r1, 0; A{i}: add.u32 %r1, %r1, 1; setp.lt.u32 %p{n}, %r1, 9; @%p{n} bra A{i};",
        "A{i}: ld.global.u32 %r1, [%rd1]; setp.lt.u32 %p{n}, %r1, 9; @%p{n} bra A{i};",
    ],
    ids=["joins", "counted loops", "loops"],
)
def test_visits_grow_as_the_body_does(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = 0
    visit = known_values._Propagation._visit

    def counting(self: Any, b: int) -> None:
        nonlocal counted
        counted += 1
        visit(self, b)

    monkeypatch.setattr(known_values._Propagation, "_visit", counting)

    def visits(number: int) -> int:
        nonlocal counted
        counted = 0
        parts = " ".join(part.format(i=i, n=i % 3) for i in range(number))
        function = body(f"mov.u32 %r1, 7; {parts} rcp.approx.f32 %f0, %r1;")
        find_values(function, statements(function), functions(function))
        return counted

    few, many = visits(20), visits(200)
    assert few <= 20 * 2 * 4 and many <= 11 * few


def test_a_vector_register_is_not_taken_for_its_first_element() -> None:
    head = ".version 8.0 .target sm_80 .address_size 64 .entry k()"
    text = head + " {{ .reg .v2 .b32 %v; .reg .b32 %r<3>; mov.b32 %v.x, 1; add.u32 %r1, %v.x, {}; ret; }}"
    load(text.format(1))["k"].launch(Device("sm_80"), 1, 32)
    with pytest.raises(PtxError, match=r"%v stands where one register is expected"):
        load(text.format("%v"))["k"].launch(Device("sm_80"), 1, 32)
