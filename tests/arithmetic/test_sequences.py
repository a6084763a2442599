"""Approximate functions of PTX: the table, both forms of each, and what an H200 gave."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from arrays import VIEWS, Array, same
from hypothesis import given, settings
from hypothesis import strategies as st
from sequence_cases import BY_HAND, by_arrays, f32

from warpmma.arithmetic import SEQUENCES, SPECIAL_FUNCTIONS, approximate, approximate_reference, engines, machine_text
from warpmma.arithmetic.dispatch.engine import Engine
from warpmma.arithmetic.recipes.sequences import ApproximateForm, CodeRange
from warpmma.errors import OperandError, TargetError
from warpmma.isa import TARGETS

DATA = Path(__file__).parents[1] / "data"
ENGINES = cast(list[Engine], list(engines()))
each_form = pytest.mark.parametrize("form", SEQUENCES)
FORMS = (*SEQUENCES, *(f"{form}x2" for form, row in SEQUENCES.items() if row.fmt.bits == 16))


# The table


def ranges(row: ApproximateForm) -> list[CodeRange]:
    return [*(s.where for s in row.scalings), *(s.where for s in row.special)]


def ends(where: CodeRange) -> Iterator[int]:
    """Yield the codes at the ends of a range, and those before and after them, with and without the bits off mask."""
    bits = max(where.mask.bit_length(), 32)
    for end in (where.first, where.last):
        for near in range(max(end - 2, 0), min(end + 3, where.mask + 1)):
            yield from {near, near | (1 << (32 if bits <= 32 else 64)) - 1 & ~where.mask}


@each_form
def test_the_table(form: str) -> None:
    row = SEQUENCES[form]
    assert row.function in SPECIAL_FUNCTIONS and SPECIAL_FUNCTIONS[row.function].machine in row.machine
    assert row.form == form and row.ftz <= (".ftz" in form)
    for scaling in row.scalings:
        mantissa, _ = np.frexp(scaling.before)
        assert mantissa == 0.5, "the product of what is scaled is exact"
        assert (scaling.after == "nothing") == row.dividend
    for one, other in combinations(ranges(row), 2):
        for code in (*ends(one), *ends(other)):
            assert not (code in one and code in other)
    nan = cast(int, row.fmt.inf_code) + 1
    assert not any(code in scaling.where for scaling in row.scalings for code in (nan, nan | row.fmt.sign_bit))


def lowered() -> Iterator[tuple[str, str, str]]:
    """What ptxas 13.0 emits: target, form, machine instructions with their numbers, moves left out."""
    for targets, codes in json.loads((DATA / "lowered_functions.json").read_text()).items():
        yield from ((target, form, code) for target in targets.split() for form, code in codes.items())


def test_machine_text_is_the_machine_code() -> None:
    for target, form, code in lowered():
        instructions = [x.split()[0] for x in code.split("; ")]
        computing = [x for x in instructions if not re.match("[FDI]SETP|FSEL|LOP3", x)]
        emitted = ", ".join(computing)
        if form == "rsqrt.approx.f64":  # and its slow path
            assert emitted == machine_text(form, target) + ", DMUL, " + machine_text(form, target) + ", DMUL, DADD"
        else:
            assert emitted == machine_text(form, target)
    emitting = {(target, form) for target, form, _ in lowered()}
    assert len(emitting) == len(list(lowered()))
    there = [(target.name, form) for target in TARGETS.values() for form in FORMS if target.number >= 75]
    for name, form in there:
        if (name, form) not in emitting:
            with pytest.raises(TargetError, match=re.escape(f"{form} is not legal on {name}; legal on sm_90,")):
                machine_text(form, name)


def test_numbers_are_those_of_the_machine_code() -> None:
    """Every number of a sequence is in the machine code, and every one there is in the sequence."""
    for _, form, code in lowered():
        row = SEQUENCES[form.removesuffix("x2")]
        kinds = {"rcp.approx.f32": {1.0}, "rsqrt.approx.f64": {0.375}}.get(form, set())  # a factor; held in a register
        ours = kinds | {x for step in row.refinement for x in (step.b, step.c) if isinstance(x, float)}
        for scaling in row.scalings:
            ours |= {scaling.before} | ({scaling.number} if scaling.after in ("multiply", "add") else set())
        if row.factor is not None:
            ours.add(float(np.uint32(row.factor).view(np.float32)))
        # Bounds of ranges are numbers: below the one and above the other.
        if row.fmt.name == "f32":
            firsts = {float(np.uint32(s.where.first - 1).view(np.float32)) for s in row.scalings if s.where.first}
            lasts = {float(np.uint32(s.where.last + 1).view(np.float32)) for s in row.scalings if not s.where.first}
            ours |= firsts | lasts
        found = re.findall(r"(?:FSETP|FSEL|FMUL|FADD|DFMA|DMUL)\S* (-?[0-9.e+-]+)", code)
        theirs = {float(np.float32(x)) if row.fmt.name == "f32" else float(x) for x in found}
        if form == "rcp.approx.f32":
            theirs.add(2.0**24)  # held in a register
        assert theirs | kinds == ours, form


# Results


@pytest.mark.parametrize(("form", "codes", "expected"), BY_HAND)
def test_by_hand(form: str, codes: list[int], expected: int) -> None:
    assert hex(approximate_reference(form, *codes)) == hex(expected)
    for engine in ENGINES:
        assert hex(by_arrays(form, codes, engine)) == hex(expected)


@each_form
@settings(max_examples=25, deadline=None)  # of 16 bits, the first call makes a table
@given(data=st.data())
def test_as_the_reference(form: str, data: st.DataObject) -> None:
    """Any codes, many of them at the ends of ranges."""
    row = SEQUENCES[form]
    near = sorted({code for where in ranges(row) for code in ends(where) if code <= row.fmt.mask})
    fields = st.integers(0, row.fmt.mask >> row.fmt.fraction_bits).map(lambda x: x << row.fmt.fraction_bits)
    code = st.one_of(st.integers(0, row.fmt.mask), fields, *([st.sampled_from(near)] if near else []))
    lanes = data.draw(st.lists(st.tuples(*[code] * row.operands), min_size=1, max_size=8))
    codes = [np.array(x, row.fmt.code_dtype) for x in zip(*lanes, strict=True)]
    expected = np.array([approximate_reference(form, *x) for x in lanes], row.fmt.code_dtype)
    for engine in ENGINES:
        same(approximate(form, *codes, engine=engine), expected)


@pytest.mark.parametrize("form", ["ex2.approx.f32", "div.full.f32", "tanh.approx.f16", "rsqrt.approx.f64"])
@pytest.mark.parametrize("view", sorted(set(VIEWS) - {"other byte order"}))
def test_however_they_lie_in_memory(form: str, view: str) -> None:
    rng, row = np.random.default_rng(1), SEQUENCES[form]
    codes = [rng.integers(0, row.fmt.mask, (6, 7), row.fmt.code_dtype, endpoint=True) for _ in range(row.operands)]
    before = [x.copy() for x in codes]
    seen = [VIEWS[view](x) for x in codes]
    same(approximate(form, *seen), approximate(form, *(np.ascontiguousarray(x) for x in seen)))
    for x, y in zip(codes, before, strict=True):
        same(x, y)


def test_operands_broadcast_and_may_be_none() -> None:
    x, y = np.full((3, 1), f32(6), np.uint32), np.array([f32(2), f32(3)], np.uint32)
    same(approximate("div.full.f32", x, y), np.tile(np.array([f32(3), f32(2)], np.uint32), (3, 1)))
    for form, row in SEQUENCES.items():
        none = [np.zeros((0, 4), row.fmt.code_dtype)] * row.operands
        same(approximate(form, *none), none[0])


# Errors


def u32(*shape: int) -> Array:
    return np.zeros(shape, np.uint32)


HUGE_COLUMN = np.broadcast_to(np.uint32(0), (1 << 24, 1))


@pytest.mark.parametrize(
    ("form", "given", "message"),
    [
        ("ex2.approx.f64", [u32(1)], "approximate form is 'ex2.approx.f64'; expected 'rcp.approx.f32',"),
        ("ex2.approx.f16x2", [u32(1)], "; did you mean 'ex2.approx.f16'?"),
        ("ex2.approx.f32", [], "ex2.approx.f32 takes one operand; got 0"),
        ("ex2.approx.f32", [u32(1)] * 2, "ex2.approx.f32 takes one operand; got 2"),
        ("div.full.f32", [u32(1)], "div.full.f32 takes a dividend and a divisor; got 1"),
        ("ex2.approx.f32", [np.zeros(1)], "ex2.approx.f32: operands are arrays of uint32; got float64"),
        ("ex2.approx.f32", [[1]], "ex2.approx.f32: operands are arrays of uint32; got list"),
        ("tanh.approx.f16", [u32(1)], "tanh.approx.f16: operands are arrays of uint16; got uint32"),
        ("rcp.approx.ftz.f64", [u32(1)], "rcp.approx.ftz.f64: operands are arrays of uint64; got uint32"),
        ("div.full.f32", [u32(2), u32(2, 3)], "div.full.f32: operands of [2] and [2, 3] do not broadcast"),
        ("div.full.f32", [HUGE_COLUMN, HUGE_COLUMN.T], "div.full.f32: operands of [16777216, 1] and [1, 16777216]: no"),
    ],
)
def test_errors(form: str, given: list[Array], message: str) -> None:
    with pytest.raises(OperandError, match=re.escape(message)):
        approximate(form, *given)


def test_errors_of_the_reference_and_of_targets() -> None:
    with pytest.raises(OperandError, match=r"^div\.full\.f32 takes a dividend and a divisor; got 1$"):
        approximate_reference("div.full.f32", 1)
    with pytest.raises(OperandError, match=r"approximate form is \[\]; expected"):
        machine_text([], "sm_90")  # type: ignore[arg-type]
    with pytest.raises(TargetError, match="sm_91"):
        machine_text("ex2.approx.f32", "sm_91")
    with pytest.raises(OperandError, match="engine is 'gpu'"):
        approximate("ex2.approx.f32", u32(1), engine="gpu")  # type: ignore[arg-type]
