"""Approximate functions of PTX: the table, both forms of each, and what an H200 gave."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import record_sequences as recorder
from arrays import VIEWS, Array, same
from hypothesis import given, settings
from hypothesis import strategies as st

from warpmma.arithmetic import (
    SEQUENCES,
    SPECIAL_FUNCTIONS,
    approximate,
    approximate_reference,
    engines,
    machine_text,
    sequence_arrays,
)
from warpmma.arithmetic.engine import Engine
from warpmma.arithmetic.sequences import ApproximateForm, CodeRange
from warpmma.errors import OperandError, TargetError
from warpmma.isa import TARGETS

DATA = Path(__file__).parents[1] / "data"
RECORDED = np.load(DATA / "h200_sequences.npz")
NAMES = {key.split("|")[0] for key in RECORDED.files} - {"device"}
ENGINES = cast(list[Engine], list(engines()))
each_form = pytest.mark.parametrize("form", SEQUENCES)
operands = cache(recorder.operands)


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


def test_every_form_is_recorded() -> None:
    packed = {f"{form}x2" for form, row in SEQUENCES.items() if row.fmt.bits == 16}
    assert set(recorder.FORMS) == set(NAMES) == set(SEQUENCES) | packed
    assert str(RECORDED["device"]) == "NVIDIA H200, driver 580.159.04"


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
    there = [(target.name, form) for target in TARGETS.values() for form in recorder.FORMS if target.number >= 75]
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


def f32(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def f64(value: float) -> int:
    return int(np.float64(value).view(np.uint64))


INFINITY, NAN, SIGN = 0x7F800000, 0x7FFFFFFF, 1 << 31


BY_HAND: list[tuple[str, list[int], int]] = [
    # Rule 3: subnormal operands and results, where `.ftz` has neither.
    ("ex2.approx.f32", [f32(-149)], 1),
    ("ex2.approx.ftz.f32", [f32(-149)], 0),
    ("ex2.approx.f32", [f32(-128)], f32(2.0**-128)),
    ("ex2.approx.f32", [f32(-127)], f32(2.0**-127) - 1),  # the square of 2^-63.5, which is cut
    ("ex2.approx.f32", [SIGN | INFINITY], 0),
    ("ex2.approx.f32", [0xFFC00001], NAN),
    ("rcp.approx.f32", [f32(2.0**127)], f32(2.0**-127)),
    ("rcp.approx.ftz.f32", [f32(2.0**127)], 0),
    ("rcp.approx.f32", [f32(2.0**-127)], f32(2.0**127)),
    ("rcp.approx.ftz.f32", [f32(2.0**-127)], INFINITY),
    ("rcp.approx.f32", [f32(-(2.0**-149))], SIGN | INFINITY),
    ("rsqrt.approx.f32", [f32(2.0**-148)], f32(2.0**74)),
    ("rsqrt.approx.ftz.f32", [f32(2.0**-148)], INFINITY),
    ("sqrt.approx.f32", [f32(2.0**-148)], f32(2.0**-74)),
    ("sqrt.approx.f32", [SIGN], SIGN),
    ("sqrt.approx.f32", [SIGN | 1], NAN),
    ("sqrt.approx.ftz.f32", [SIGN | 1], SIGN),
    ("lg2.approx.f32", [1], f32(-149)),
    ("lg2.approx.f32", [0x007FFFFF], f32(-126)),
    ("lg2.approx.ftz.f32", [1], SIGN | INFINITY),
    ("lg2.approx.f32", [0], SIGN | INFINITY),
    # Rule 4: subnormal operands are multiplied, and the unit takes the turns as zero.
    ("sin.approx.f32", [0], 0),
    ("sin.approx.f32", [SIGN | 1], SIGN),
    ("cos.approx.f32", [1], f32(1)),
    ("cos.approx.ftz.f32", [INFINITY], NAN),
    # Rule 5. PTX ISA, `div`: of |b| in [2^126, 2^128] div.approx gives 0, and NaN if a is infinite.
    ("div.approx.f32", [f32(2.0**127), f32(2.0**127)], 0),
    ("div.approx.f32", [INFINITY, f32(2.0**127)], NAN),
    ("div.full.f32", [f32(2.0**127), f32(2.0**127)], f32(1)),
    ("div.full.ftz.f32", [f32(2.0**127), f32(2.0**127)], f32(1)),
    ("div.full.f32", [1, 1], f32(1)),
    ("div.full.ftz.f32", [1, 1], NAN),
    ("div.approx.f32", [f32(2.0**-126), f32(2)], f32(2.0**-127)),
    ("div.approx.ftz.f32", [f32(2.0**-126), f32(2)], 0),
    # Rule 2: the product is 1.12 2^-151 below the least normal number, which it rounds to on the coarser grid alone.
    ("div.full.f32", [0x00C1835E, 0x3FC1835E], 0x00800000),
    ("div.full.ftz.f32", [0x00C1835E, 0x3FC1835E], 0),
    ("div.approx.ftz.f32", [SIGN | 0x00C1835E, 0x3FC1835E], SIGN),
    # Here it is 0.35 2^-151 below, and rounds to it on either grid.
    ("div.full.ftz.f32", [0x00BC9172, 0x3FBC9172], 0x00800000),
    # Rule 7.
    ("rsqrt.approx.f64", [f64(4.0)], f64(0.5)),
    ("rsqrt.approx.f64", [1], f64(2.0**537)),
    ("rsqrt.approx.f64", [(1 << 52) - 1], f64(2.0**511) + 1),
    ("rsqrt.approx.f64", [1 << 63], 0xFFF << 52),
    ("rsqrt.approx.f64", [f64(-1.0)], 0xFFF8 << 48),
    ("rsqrt.approx.f64", [0xFFF << 52], 0xFFF8 << 48),
    ("rsqrt.approx.f64", [0x7FF << 52], 0),
    ("rsqrt.approx.f64", [0xFFF0_0000_0000_0001], 0xFFF8_0000_0000_0001),
    # Rule 6: the lower word has no say.
    ("rcp.approx.ftz.f64", [f64(2.0) | 0xFFFFFFFF], f64(0.5)),
]


@pytest.mark.parametrize(("form", "codes", "expected"), BY_HAND)
def test_by_hand(form: str, codes: list[int], expected: int) -> None:
    assert hex(approximate_reference(form, *codes)) == hex(expected)
    for engine in ENGINES:
        assert hex(by_arrays(form, codes, engine)) == hex(expected)


def by_arrays(form: str, codes: list[int], engine: Engine = "auto") -> int:
    return int(approximate(form, *(np.array(x, SEQUENCES[form].fmt.code_dtype) for x in codes), engine=engine))


@pytest.mark.parametrize("form", recorder.FORMS)
def test_as_on_an_h200(form: str) -> None:
    """All that was recorded: results one by one, and digests of many more."""
    for which, codes in operands(form).items():
        for key, found in recorder.kept(form, which, recorder.expected(form, codes)):
            same(found, RECORDED[key])


@each_form
def test_the_reference_is_as_on_an_h200(form: str) -> None:
    chosen, results = operands(form)["chosen"], RECORDED[f"{form}|results"]
    for place in range(0, len(results), 3):
        codes = [int(x[place * recorder.KEPT]) for x in chosen]
        assert hex(approximate_reference(form, *codes)) == hex(int(results[place])), list(map(hex, codes))


@each_form
@settings(max_examples=25)
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
@pytest.mark.parametrize("view", VIEWS)
def test_however_they_lie_in_memory(form: str, view: str) -> None:
    if view == "other byte order":
        return
    given = [x[: 6 * 7].reshape(6, 7).copy() for x in operands(form)["chosen"]]
    before = [x.copy() for x in given]
    seen = [VIEWS[view](x) for x in given]
    same(approximate(form, *seen), approximate(form, *(np.ascontiguousarray(x) for x in seen)))
    for x, y in zip(given, before, strict=True):
        same(x, y)


def test_operands_broadcast_and_may_be_none() -> None:
    x, y = np.full((3, 1), f32(6), np.uint32), np.array([f32(2), f32(3)], np.uint32)
    same(approximate("div.full.f32", x, y), np.tile(np.array([f32(3), f32(2)], np.uint32), (3, 1)))
    for form, row in SEQUENCES.items():
        none = [np.zeros((0, 4), row.fmt.code_dtype)] * row.operands
        same(approximate(form, *none), none[0])


# What a wrong table would do


def mutants(row: ApproximateForm) -> Iterator[tuple[str, ApproximateForm]]:
    def scaled(index: int, **changes: Any) -> ApproximateForm:
        scalings = list(row.scalings)
        scalings[index] = replace(scalings[index], **changes)
        return replace(row, scalings=tuple(scalings))

    for number, scaling in enumerate(row.scalings):
        others = row.scalings[:number] + row.scalings[number + 1 :]
        yield f"without scaling {number}", replace(row, scalings=others)
        yield f"scaling {number}: twice before", scaled(number, before=scaling.before * 2)
        if scaling.after in ("multiply", "add"):
            yield f"scaling {number}: half after", scaled(number, number=scaling.number / 2)
        for end in ("first", "last"):
            for step in (-1, 1):
                at = getattr(scaling.where, end) + step
                if at >= 0:
                    yield (
                        f"scaling {number}: {end} {step:+d}",
                        scaled(number, where=replace(scaling.where, **{end: at})),
                    )
    if row.factor is not None:
        yield from ((f"factor {step:+d}", replace(row, factor=row.factor + step)) for step in (-1, 1))
    if row.dividend:
        yield "ftz", replace(row, ftz=not row.ftz)
    for number, fused in enumerate(row.refinement):
        for name in ("b", "c"):
            if isinstance(value := getattr(fused, name), float):
                steps = list(row.refinement)
                steps[number] = replace(fused, **cast(Any, {name: value + 2.0**-20}))
                yield f"step {number}: {name}", replace(row, refinement=tuple(steps))
    for number in range(len(row.special)):
        yield f"without special {number}", replace(row, special=row.special[:number] + row.special[number + 1 :])


ZERO, LEAST = "scaling 0: first +1", "scaling 0: last +1"  # 0 is what it was; 2^-126 is normal, and what comes out too
TWICE = "twice before"  # divisor and dividend, and the divisor is still small enough
HUGE = {"first -1", "last -1", "last +1"}  # of 2^126 the reciprocal is normal; infinity and NaN stay what they are
EQUIVALENT = {
    "rcp.approx.f32": {ZERO, LEAST, *(f"scaling 1: {x}" for x in HUGE)},
    "rsqrt.approx.f32": {ZERO, LEAST},
    "sqrt.approx.f32": {ZERO, LEAST},
    "ex2.approx.f32": {f"scaling 0: {x}" for x in HUGE},  # 2^-126 is normal
    "lg2.approx.f32": {ZERO, LEAST},
    "div.approx.f32": {ZERO, LEAST, f"scaling 0: {TWICE}"},
    "div.full.f32": {
        *(f"scaling 0: {x}" for x in HUGE),
        *(x.replace("0", "1") for x in (ZERO, LEAST)),
        f"scaling 1: {TWICE}",
    },
    "div.full.ftz.f32": {f"scaling 0: {x}" for x in HUGE},
    "rsqrt.approx.f64": {"scaling 0: first -1", LEAST},  # 0 is special
}
"""What changes no result of any operand."""


@pytest.mark.parametrize(
    "form", [form for form, row in SEQUENCES.items() if row.scalings or row.dividend or row.factor or row.refinement]
)
def test_a_wrong_table_is_noticed(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what was recorded or is known by hand, unless both tables are the same function."""
    unnoticed = set()
    hand = [(codes, expected) for name, codes, expected in BY_HAND if name == form]
    for name, mutant in mutants(SEQUENCES[form]):
        monkeypatch.setattr(sequence_arrays, "find_sequence", lambda _, mutant=mutant: mutant)
        kept = recorder.kept(form, "chosen", recorder.expected(form, operands(form)["chosen"]))
        right = all(np.array_equal(x, RECORDED[key]) for key, x in kept)
        if right and all(by_arrays(form, codes) == expected for codes, expected in hand):
            unnoticed.add(name)
    assert unnoticed == EQUIVALENT.get(form, set())


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
    with pytest.raises(TargetError, match="sm_91"):
        machine_text("ex2.approx.f32", "sm_91")
    with pytest.raises(OperandError, match="engine is 'gpu'"):
        approximate("ex2.approx.f32", u32(1), engine="gpu")  # type: ignore[arg-type]
