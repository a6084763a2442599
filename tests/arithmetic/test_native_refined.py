"""What lies around the unit in f64 in the native engine: hard operands, any refinement, words of 64 bits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from arrays import Array, same
from environments import FLUSH, UPWARD, Environment, x86
from function_cases import BUILDS, run
from oracles import needs

from warpmma.arithmetic import SEQUENCES, approximate, approximate_reference
from warpmma.arithmetic.dispatch import functions, native
from warpmma.arithmetic.dispatch.functions import _sequence_parameters
from warpmma.arithmetic.dispatch.sequence_arrays import _f64
from warpmma.arithmetic.recipes.sequences import FusedStep

pytestmark = needs("native engine")
_native: Any = functions._native  # type: ignore[attr-defined]

REFINED = SEQUENCES["rsqrt.approx.f64"]
FORMS = ["rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64", "rsqrt.approx.f64"]
SIGN, INFINITY, QUIET = 1 << 63, 0x7FF << 52, 1 << 51


def signed(codes: Array) -> Array:
    return np.concatenate([codes, codes ^ np.uint64(SIGN)])


def near(codes: Array, most: int = 3) -> Array:
    """Codes and those around them."""
    return (codes[:, None] + np.arange(-most, most + 1).astype(np.uint64)).ravel()


def near_squares(rng: np.random.Generator) -> Array:
    """Squares of numbers of 26 bits, and reciprocals of squares: the result lies near a short number."""
    roots = rng.integers(1 << 25, 1 << 26, 2000).astype(np.float64)
    return near(np.concatenate([(roots**2).view("u8"), (1 / roots**2).view("u8"), (2 * roots**2).view("u8")]))


def near_powers_of_two() -> Array:
    """Every exponent field, the least and the last numbers of each; infinity and NaN too."""
    return near(np.arange(1 << 11, dtype=np.uint64) << np.uint64(52), 20)


def near_segments() -> Array:
    """Both octaves of the unit's tables, at the first and last numbers of every segment and every upper word there."""
    words = np.arange(64, dtype=np.uint64) << np.uint64(14) | np.uint64(0x3FE00000)
    return near(np.concatenate([near(words), near(words | np.uint64(1 << 20))]) << np.uint64(32), 1)


def subnormal(rng: np.random.Generator) -> Array:
    powers = np.uint64(1) << np.arange(53, dtype=np.uint64)
    return np.concatenate(
        [near(powers, 1), rng.integers(0, powers.repeat(20), dtype=np.uint64), np.arange(300, dtype=np.uint64)]
    )


def not_numbers(rng: np.random.Generator) -> Array:
    """NaN, quiet and not, with one bit of a payload, all of it, and some."""
    bits = np.uint64(1) << np.arange(52, dtype=np.uint64)
    payloads = np.concatenate([bits, bits | np.uint64(QUIET), near(bits, 1), rng.integers(1, 1 << 52, 300, np.uint64)])
    return payloads & np.uint64((1 << 52) - 1) | np.uint64(INFINITY)


def hard() -> Array:
    rng = np.random.default_rng(31)
    special = np.array([0, 1, (1 << 52) - 1, 1 << 52, INFINITY - 1, INFINITY, INFINITY + 1], np.uint64)
    return signed(
        np.concatenate(
            [near_squares(rng), near_powers_of_two(), near_segments(), subnormal(rng), not_numbers(rng), special]
        )
    )


@pytest.mark.parametrize("form", FORMS)
def test_hard_operands(form: str) -> None:
    codes = hard()
    expected = approximate(form, codes, engine="numpy")
    for build in BUILDS:
        same(run(SEQUENCES[form], [codes], build), expected)
    same(approximate(form, codes, engine="native", threads=2), expected)


def test_hard_operands_equal_the_reference() -> None:
    codes = np.random.default_rng(32).choice(hard(), 3000, replace=False)
    expected = np.array([approximate_reference(REFINED.form, int(code)) for code in codes], np.uint64)
    for build in BUILDS:
        same(run(REFINED, [codes], build), expected)


def test_lower_words_have_a_say_where_they_are_refined_alone() -> None:
    one, other = np.array([0x3FF8 << 48, 0x3FF8 << 48 | 0x80000000], np.uint64)
    for form in FORMS:
        got = approximate(form, np.array([one, other]), engine="native")
        assert (got[0] != got[1]) == (form == REFINED.form)
        assert form == REFINED.form or not (got & np.uint64((1 << 32) - 1)).any()


# Steps are parameters.


def random_steps(rng: np.random.Generator) -> tuple[FusedStep, ...]:
    """Steps that no form has: any order of terms, names that are given twice, numbers that make infinities and NaN."""
    names, steps = ["x", "y"], []
    for _ in range(int(rng.integers(1, 6))):
        b, c = (float(rng.choice([0.375, 1.0, -2.5, 0.0, -0.0, 1e300, np.inf])) for _ in "bc")
        of_b, of_c = str(rng.choice(["", "-"])) + str(rng.choice(names)), str(rng.choice(names))
        step = FusedStep(
            to=str(rng.choice(["t", "e", "u"])), a=str(rng.choice(names)),
            b=of_b if rng.random() < 0.7 else b, c=(None, of_c, of_c, c)[rng.integers(4)],
        )  # fmt: skip
        names.append(step.to)
        steps.append(step)
    return tuple(steps)


@pytest.mark.parametrize("special", [(), REFINED.special], ids=["nothing special", "special"])
@pytest.mark.parametrize("seed", range(25))
def test_any_steps(seed: int, special: Any) -> None:
    """NaN of any operand and of infinities: which of them a step gives is the hardware's choice, on all builds."""
    rng = np.random.default_rng([33, seed])
    row = replace(REFINED, refinement=random_steps(rng), special=special)
    codes = rng.permutation(np.concatenate([rng.integers(0, 1 << 64, 700, np.uint64), rng.choice(hard(), 700)]))
    expected = _f64(row, [codes])
    for build in BUILDS:
        same(run(row, [codes], build), expected)


def test_steps_that_meet_no_number_do_not_depend_on_neighbours() -> None:
    """One NaN in an array; steps are computed again for some lanes, and give the same in the others."""
    row = replace(REFINED, special=())
    codes = np.abs(np.random.default_rng(34).normal(0, 3, 64)).view(np.uint64)
    alone = _f64(row, [codes])
    for place in range(40):
        some = codes.copy()
        some[place] = SIGN | INFINITY | 7
        for build in BUILDS:
            got = run(row, [some], build)
            assert hex(got[place]) == hex(_f64(row, [some[place : place + 1]])[0])
            same(np.delete(got, place), np.delete(alone, place))


@x86
@pytest.mark.parametrize("control", [FLUSH, UPWARD, FLUSH | 0x2000, 0x6000])
def test_the_processor_as_others_have_left_it(control: int) -> None:
    """Subnormal operands are scaled, products below 2^-1022 are there, and each is rounded to nearest."""
    rng, environment = np.random.default_rng(35), Environment()
    steps = (FusedStep(to="t", a="y", b=2.0**-600), FusedStep(to="u", a="t", b=2.0**-470, c="x"))
    codes = np.concatenate([subnormal(rng), near_squares(rng)])
    for row in (REFINED, replace(REFINED, refinement=steps, special=())):
        expected = _f64(row, [codes])
        for build in BUILDS:
            with environment.with_control(control):
                before = environment.control()
                got = run(row, [codes], build)
                after = environment.control()
            same(got, expected)
            assert before == after and before & control == control


# Arrays.


def execute(codes: Any, out: Any, dividend: Any = None) -> None:
    plan = _native.FunctionPlan(_sequence_parameters(REFINED))
    _native.execute_function(plan, native.levels()[0].number, codes, dividend, out)


@pytest.mark.parametrize("name", ["codes", "out"])
def test_words_of_another_width_are_refused(name: str) -> None:
    x = {"codes": np.ones(40, np.uint64), "out": np.zeros(40, np.uint64)}
    execute(**x)
    for wrong in (np.ones(40, np.uint32), np.ones(80, np.uint64)[::2], np.ones((2, 20), np.uint64)):
        with pytest.raises(ValueError, match=f"^{name} is not of words of 64 bits in a row$"):
            execute(**x | {name: wrong})
    with pytest.raises(ValueError, match=r"is \[39\], not \[40\]|is \[40\], not \[39\]"):
        execute(**x | {name: x[name][:39]})


def test_a_dividend_and_shared_memory_are_refused() -> None:
    memory = np.ones(100, np.uint64)
    with pytest.raises(ValueError, match=r"^dividend is for another kind of function$"):
        execute(memory[:40], memory[40:80], memory[:40])
    execute(memory[:40], memory[40:80])
    for first in (0, 1, 39):
        with pytest.raises(ValueError, match=r"^out is written and shares memory with codes$"):
            execute(memory[:40], memory[first : first + 40])


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("count", [0, 1, 15, 17, 255, 257, 1000])
def test_nothing_is_written_beside_the_result(build: str, count: int) -> None:
    memory, codes = np.full(1200, 0x55AA55AA, np.uint64), np.full(count, 0x4010 << 48, np.uint64)
    functions.run_sequence(REFINED, [codes], memory[100 : 100 + count], build)
    assert (memory[:100] == 0x55AA55AA).all() and (memory[100 + count :] == 0x55AA55AA).all()
    assert (memory[100 : 100 + count] == 0x3FE0 << 48).all()
