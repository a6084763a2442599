"""The extension validates plans of functions and arrays: any mistake is an error before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from arrays import Array, same
from function_cases import BUILDS
from oracles import needs

from warpmma.arithmetic import (
    SEQUENCES,
    SPECIAL_FUNCTIONS,
    Interpolator,
    interpolators,
    special_function_reference,
    squarer,
)
from warpmma.arithmetic.dispatch import functions, native
from warpmma.arithmetic.dispatch.functions import _parameters, _sequence_parameters

pytestmark = needs("native engine")
_native: Any = functions._native  # type: ignore[attr-defined]


def parameters(name: str) -> Any:
    """Return parameters that nobody has checked, of a function or of a form."""
    if name in SEQUENCES:
        return _sequence_parameters(SEQUENCES[name])
    return _parameters(SPECIAL_FUNCTIONS[name])


def fields(**values: Any) -> Callable[[Any], None]:
    def change(given: Any) -> None:
        for name, value in values.items():
            setattr(given, name, value)

    return change


def row(number: int, *values: int) -> Callable[[Any], None]:
    """Change one row of the table."""

    def change(given: Any) -> None:
        given.rows = [*given.rows[: 3 * number], *values, *given.rows[3 * number + 3 :]]

    return change


def last(of: str, **values: Any) -> Callable[[Any], None]:
    """Change the last of the scalings, the steps or the special operands."""

    def change(given: Any) -> None:
        all_of_them = getattr(given, of)
        for name, value in values.items():
            setattr(all_of_them[-1], name, value)
        setattr(given, of, all_of_them)

    return change


scaling, step, special = (partial(last, of) for of in ("scalings", "steps", "special"))


def more(of: str, count: int) -> Callable[[Any], None]:
    """So many scalings, numbers, steps or special operands, of which the last are alike."""

    def change(given: Any) -> None:
        some = getattr(given, of)
        setattr(given, of, [*some, *[some[-1]] * (count - len(some))])

    return change


def repeated(given: Any) -> None:
    given.scalings = [*given.scalings] * 5


def specials(given: Any) -> None:
    given.special = parameters("rsqrt.approx.f64").special


def steps(given: Any) -> None:
    given.steps = parameters("rsqrt.approx.f64").steps


A_ROW_TOO_FAR = [0, 1, 2, 3, 5, 7, 11, 15, 19, 27, 44]
INFINITE, NAN = float("inf"), float("nan")
POSITIVE = "a row's sums are positive"
WRONG: list[tuple[str, Callable[[Any], None], str]] = [
    ("rcp", fields(law=8), "no such law"), ("rcp", fields(law=-1), "no such law"),
    ("rcp", fields(bits=14), "15 to 23 bits"), ("rcp", fields(bits=24), "15 to 23 bits"),
    ("rcp", fields(bits=-1), "15 to 23 bits"), ("rcp", fields(bits=1 << 30), "15 to 23 bits"),
    ("rcp", fields(rows=[]), "each segment of a table has a row"), ("rcp", fields(rows=[1, 2]), "three numbers"),
    ("rcp", fields(rows=[1] * (3 << 16)), "three numbers"), ("rcp", fields(rows=[1] * 381), "each segment"),
    ("rcp", fields(bits=15), "each segment"), ("rcp", fields(first=[1]), "each segment"),
    ("rcp", fields(first=[-1]), "each segment"), ("rcp", fields(first=[]), "each table of the function"),
    ("rcp", fields(first=[0, 0], drop=[0, 0]), "each table of the function"),
    ("rsqrt", fields(first=[0, 65]), "each segment"), ("rsqrt", fields(drop=[0]), "each table of the function"),
    ("tanh", fields(first=A_ROW_TOO_FAR), "each segment"), ("tanh", fields(drop=[6] * 10), "each table of"),
    ("ex2", fields(drop=[-1]), "drop leaves"), ("ex2", fields(drop=[7]), "drop leaves"),
    ("ex2", fields(drop=[1 << 30]), "drop leaves"), ("ex2", row(3, 1 << 43, 0, 0), r"below 2\^43"),
    ("ex2", row(63, 1, 1 << 26, 0), r"below 2\^43"), ("ex2", row(0, 1, 0, 1 << 28), r"below 2\^43"),
    ("ex2", row(0, (1 << 42) + 1, 1 << 24, 1 << 26), r"below 2\^43"), ("ex2", row(0, 1 << 62, 0, 0), r"below 2\^43"),
    ("ex2", row(0, -(1 << 63), 0, 0), r"below 2\^43"), ("ex2", row(0, 1, -(1 << 63), 0), r"below 2\^43"),
    ("ex2", row(0, 1, 0, -(1 << 63)), r"below 2\^43"), ("ex2", row(0, 1, 0, (1 << 63) - 1), r"below 2\^43"),
    ("ex2", row(0, 0, 1, 1), POSITIVE), ("ex2", row(0, -1, 9, 9), POSITIVE), ("ex2", row(0, 1 << 17, -1, 0), POSITIVE),
    ("ex2", row(0, 1, 0, -1), POSITIVE), ("sin", row(0, -1, 9, 9), POSITIVE), ("sin", row(0, 0, 0, -1), POSITIVE),
    ("ex2", fields(upper=True), "only rcp and rsqrt"), ("rcp.f64", fields(factor=0.5), "upper words are not"),
    ("rcp.approx.f32", fields(upper=True), "upper words are not"), ("sin", fields(factor=2.0), "a factor is"),
    ("sin", fields(factor=-0.5), "a factor is"), ("sin", fields(factor=2.0**-65), "a factor is"),
    ("sin", fields(factor=NAN), "a factor is"), ("sin", fields(factor=INFINITE), "a factor is"),
    ("ex2", fields(dividend=True), "makes a division"), ("rcp.f64", fields(dividend=True), "makes a division"),
    ("rcp", fields(dividend=True, factor=0.5), "makes a division"), ("rcp", fields(ftz=True), "a division flush"),
    ("rcp.approx.f32", repeated, "at most 4"), ("rcp.approx.f32", fields(dividend=True), "nothing happens after"),
    ("rcp.approx.f32", scaling(after=4), "nothing of that kind"), ("ex2.approx.f32", scaling(after=-1), "of that kind"),
    ("rcp.approx.f32", scaling(after=2), "of one kind"), ("rcp.approx.f32", scaling(first=1, last=0), "a range ends"),
    ("rcp.approx.f32", scaling(before=3.0), "power of two"), ("rcp.approx.f32", scaling(before=0.0), "power of two"),
    ("rcp.approx.f32", scaling(before=-2.0), "power of two"), ("rcp.approx.f32", scaling(before=NAN), "power of two"),
    ("rcp.approx.f32", scaling(before=2.0**64), "power of two"), ("rcp.approx.f32", scaling(number=3.0), "multiplied"),
    ("rcp.approx.f32", scaling(number=INFINITE), "multiplied by"), ("lg2.approx.f32", scaling(number=NAN), "is added"),
    ("lg2.approx.f32", scaling(number=INFINITE), "is added"),
    ("rcp.approx.f32", scaling(mask=1 << 32), "range is of codes"), ("rcp.approx.f32", fields(wide=True), "of f64 the"),
    ("rcp.approx.f32", scaling(last=1 << 32), "range is of codes"), ("rcp.f64", fields(numbers=[0.5]), "only f64 is"),
    ("rcp.approx.f32", steps, "only f64 is refined"), ("rcp.f64", specials, "only f64 is refined"),
    ("rsqrt.approx.f64", fields(wide=False), "words are not"), ("rsqrt.approx.f64", more("scalings", 5), "at most"),
    ("rsqrt.approx.f64", fields(upper=False), "of f64 the unit has"), ("rsqrt.approx.f64", fields(factor=0.5), "upper"),
    ("rsqrt.approx.f64", fields(dividend=True), "makes a division"), ("rsqrt.approx.f64", scaling(after=0), "f64 are"),
    ("rsqrt.approx.f64", scaling(after=2), "results of f64 are"), ("rsqrt.approx.f64", scaling(after=3), "of f64 are"),
    ("rsqrt.approx.f64", scaling(before=3.0), "power of two"), ("rsqrt.approx.f64", special(first=1 << 63), "a range"),
    ("rsqrt.approx.f64", more("special", 9), "at most 8"), ("rsqrt.approx.f64", more("numbers", 18), "at most 22"),
    ("rsqrt.approx.f64", more("steps", 18), "at most 22"), ("rsqrt.approx.f64", fields(numbers=[0.5]), "known before"),
    *(("rsqrt.approx.f64", step(**{name: place}), "known before it") for name in "abc" for place in (-1, 11, 1 << 30)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "text"), WRONG)
def test_a_wrong_plan_is_refused(name: str, change: Callable[[Any], None], text: str) -> None:
    given = parameters(name)
    _native.FunctionPlan(given)
    change(given)
    with pytest.raises(ValueError, match=text):
        _native.FunctionPlan(given)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ex2", row(0, (1 << 43) - 1, 0, 0)), ("ex2", row(0, 1, (1 << 26) - 1, 0)),
        ("ex2", row(0, 1, 0, (1 << 28) - 1)),
        ("ex2", row(0, 1 + (1 << 17), -1, 0)), ("ex2", row(0, 1 << 15 | 1, 0, -1)), ("sin", row(0, 0, 1, -4)),
        ("rsqrt.approx.f64", more("special", 8)), ("rsqrt.approx.f64", more("numbers", 17)),
        ("rsqrt.approx.f64", more("steps", 17)), ("rsqrt.approx.f64", step(a=0, b=10, c=1)),
        ("rsqrt.approx.f64", fields(numbers=[NAN, INFINITE, *[0.0] * 3])),
        ("rcp.approx.f32", scaling(mask=(1 << 32) - 1, last=(1 << 32) - 1)), ("rsqrt.approx.f64", fields(steps=[])),
        ("ex2", fields(drop=[6])), ("sin", fields(factor=1.0)), ("rcp.approx.f32", scaling(before=2.0**63)),
    ],
)  # fmt: skip
def test_what_just_fits_is_taken(name: str, change: Callable[[Any], None]) -> None:
    given = parameters(name)
    change(given)
    _native.FunctionPlan(given)


def test_empty_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="15 to 23 bits"):
        _native.FunctionPlan(_native.FunctionParameters())


def test_parameters_that_nobody_checked_do_not_run() -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        run(parameters("rcp"), np.zeros(3, np.uint32), None, np.zeros(3, np.uint32))


@pytest.mark.parametrize("name", ["tanh", "rcp.approx.f32"])
def test_a_checked_plan_no_longer_changes(name: str) -> None:
    given, codes = parameters(name), np.arange(1 << 12, dtype=np.uint32) << np.uint32(20)
    plan, out = _native.FunctionPlan(given), np.empty((2, len(codes)), np.uint32)
    run(plan, codes, None, out[0])
    given.rows, given.first, given.bits, given.scalings, given.law = [], [1 << 30], 99, [], 99
    run(plan, codes, None, out[1])
    same(out[0], out[1])
    assert not [name for name in dir(plan) if not name.startswith("_")]


def random_table(table: Interpolator, bits: int, rng: np.random.Generator) -> Interpolator:
    """As many segments, of numbers that no function has: of any size that a plan takes, and any sign."""
    segments = 1 << (23 - bits)
    rows = []
    for _ in range(segments):
        most = 1 << int(rng.integers(24, 43))
        c1 = int(rng.integers(-most >> bits, most >> bits)) // 8
        c2 = int(rng.integers(-most >> 15, most >> 15)) // 8
        rows.append((most // 2 + int(rng.integers(1, most // 4)), c1, c2))
    return replace(
        table, bits=bits, point=41, shifts=(0, 0), constant=0, rows=tuple(rows), squarer=squarer(bits),
    )  # fmt: skip


@pytest.mark.parametrize("bits", [15, 16, 17, 20, 23])
@pytest.mark.parametrize("name", ["rcp", "rsqrt", "sqrt", "ex2", "lg2", "sin", "cos", "rcp.f64", "rsqrt.f64"])
def test_any_table_that_is_taken_is_computed_exactly(name: str, bits: int) -> None:
    """With rows that nobody published, whose sums have up to 43 bits."""
    rng, function, given = np.random.default_rng(bits), SPECIAL_FUNCTIONS[name], parameters(name)
    tables = {of: random_table(interpolators()[of], bits, rng) for of in function.tables}
    scaled = [np.array(table.rows) * [1, 1, 2] for table in tables.values()]  # rule 2 has 2 C2
    given.bits, given.rows = bits, np.concatenate(scaled).ravel().tolist()
    given.first, given.drop = [i << (23 - bits) for i in range(len(tables))], [0] * len(tables)
    codes = np.concatenate([rng.integers(0, 1 << 32, 300, np.uint32), rng.normal(0, 9, 300).astype("f4").view("u4")])
    expected = [special_function_reference(name, int(code), tables) for code in codes]
    plan, out = _native.FunctionPlan(given), np.empty_like(codes)
    for build in BUILDS:
        run(plan, codes, None, out, native.find_level(build).number)
        same(out, np.array(expected, np.uint32))


# Levels and arrays.


def run(plan: Any, codes: Any, dividend: Any, out: Any, level: int | None = None) -> None:
    _native.execute_function(plan, native.levels()[0].number if level is None else level, codes, dividend, out)


@pytest.mark.parametrize("level", [99, -1, 4])
def test_a_level_that_is_not_there(level: int) -> None:
    with pytest.raises(ValueError, match="no such level"):
        run(_native.FunctionPlan(parameters("rcp")), np.zeros(3, "u4"), None, np.zeros(3, "u4"), level)


def _read_only(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


def _a_byte_further(x: Array) -> Array:
    return np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype)


WRONG_ARRAYS: list[tuple[str, Callable[[Array], Any], str]] = [
    *((name, change, text) for name in ("codes", "dividend", "out") for change, text in (
        (lambda x: None, "NAME is missing"), (lambda x: x.tolist(), "NAME is no array"),
        (lambda x: np.uint32(1), "NAME (is no array|does not have 1)"),
        (lambda x: x[0:1].reshape(()), "NAME does not have 1 to 4"),
        (lambda x: x.reshape(1, 1, 1, 1, -1), "NAME does not have 1 to 4"),
        (lambda x: x[None].copy(), "NAME is not of words"), (lambda x: x[::-1], "NAME is not of words"),
        (lambda x: x.repeat(2)[::2], "NAME is not of words"), (lambda x: x.astype("u8"), "NAME is not of words"),
        (lambda x: x.astype("u2"), "NAME is not of words"), (lambda x: x.view("f4"), "unsigned integers"),
        (lambda x: x.view("i4"), "unsigned integers"), (lambda x: x.view(">u4"), "unsigned integers"),
        (lambda x: np.append(x, x[0]), r"is \[.*\], not \["), (lambda x: x[:-1].copy(), r"is \[.*\], not \["),
        (lambda x: x[:0].copy(), r"is \[.*\], not \["),
    )),
    ("codes", _a_byte_further, "codes is not of unsigned integers, aligned"),
    ("dividend", _a_byte_further, "dividend is not of unsigned integers, aligned"),
    ("out", _read_only, "out is no array that can be written"),
    ("codes", lambda x: np.broadcast_to(x[:1], x.shape), "codes is not of words in a row"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "text"), WRONG_ARRAYS)
def test_a_wrong_array_is_refused(name: str, change: Callable[[Array], Any], text: str) -> None:
    plan = _native.FunctionPlan(parameters("div.full.f32"))
    x: dict[str, Any] = {each: np.full(40, 7, np.uint32) for each in ("codes", "dividend", "out")}
    run(plan, **x)
    x[name] = change(x[name])
    before = np.array(x["out"])
    with pytest.raises(ValueError, match=text.replace("NAME", name)):
        run(plan, **x)
    if x["out"] is not None:
        np.testing.assert_array_equal(x["out"], before)


def test_a_dividend_of_what_divides_nothing_is_refused() -> None:
    x = np.zeros((3, 8), np.uint32)
    with pytest.raises(ValueError, match=r"^dividend is for another kind of function$"):
        run(_native.FunctionPlan(parameters("rcp")), *x)


@pytest.mark.parametrize(
    ("at", "other"), [(0, "codes"), (39, "codes"), (40, "dividend"), (79, "dividend"), (60, "dividend")]
)
def test_a_result_that_shares_memory_is_refused(at: int, other: str) -> None:
    plan, memory = _native.FunctionPlan(parameters("div.full.f32")), np.ones(160, np.uint32)
    codes, dividend = memory[:40], memory[40:80]
    run(plan, codes, dividend, memory[80:120])
    run(plan, codes, codes, memory[40:80])  # operands may be the same
    before = memory.copy()
    with pytest.raises(ValueError, match=f"^out is written and shares memory with {other}$"):
        run(plan, codes, dividend, memory[at : at + 40])
    same(memory, before)


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("count", [0, 1, 15, 17, 255, 257, 1000])
def test_nothing_is_written_beside_the_result(build: str, count: int) -> None:
    plan, memory = _native.FunctionPlan(parameters("div.approx.f32")), np.full(1200, 0x55AA55AA, np.uint32)
    codes = np.full(count, 0x3F800000, np.uint32)
    run(plan, codes, codes, memory[100 : 100 + count], native.find_level(build).number)
    assert (memory[:100] == 0x55AA55AA).all() and (memory[100 + count :] == 0x55AA55AA).all()
    assert (memory[100 : 100 + count] == 0x3F800000).all()
