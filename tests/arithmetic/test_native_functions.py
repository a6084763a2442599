"""The special-function unit and what lies around it in the native engine: the bits of NumPy, on all builds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from arrays import VIEWS, Array, same
from environments import FLUSH, UPWARD, Environment, x86
from function_cases import BUILDS, FUNCTIONS, ROWS, border_codes, label, operands, run
from oracles import needs

from warpmma.arithmetic import (
    SPECIAL_FUNCTIONS,
    ApproximateForm,
    SpecialFunction,
    approximate,
    approximate_reference,
    special_function,
    special_function_reference,
)
from warpmma.arithmetic.arrays.function_arrays import function_rows
from warpmma.arithmetic.exact.special_functions import TANH_FIELDS
from warpmma.errors import OperandError

pytestmark = needs("native engine")

Function = SpecialFunction | ApproximateForm
each_function = pytest.mark.parametrize("function", FUNCTIONS, ids=label)
each_row = pytest.mark.parametrize("row", ROWS, ids=label)
each = pytest.mark.parametrize("of", [*FUNCTIONS, *ROWS], ids=label)


def by_numpy(of: Function, codes: list[Array]) -> Array:
    if isinstance(of, SpecialFunction):
        return special_function(of.name, codes[0], engine="numpy")
    return approximate(of.form, *codes, engine="numpy")


def compare(of: Function, codes: list[Array]) -> None:
    expected = by_numpy(of, codes)
    for build in BUILDS:
        same(run(of, codes, build), expected)


def mixed(rng: np.random.Generator, count: int) -> Array:
    """Some operands of all kinds."""
    usual = np.concatenate([rng.normal(0, 3, count), rng.normal(0, 100, count), rng.uniform(-1, 1, count)])
    border = rng.choice(border_codes(23), count)
    return np.concatenate([rng.integers(0, 1 << 32, count, np.uint32), border, usual.astype(np.float32).view("u4")])


@each
def test_borders_of_all_exponents_and_random_codes(of: Function) -> None:
    rng = np.random.default_rng(21)
    upper = (of.fmt if isinstance(of, SpecialFunction) else of.fmt.name) == "f64"
    codes = np.concatenate([border_codes(20 if upper else 23), mixed(rng, 1 << 16)])
    compare(of, operands(of, codes, rng))


@each_function
def test_a_million_random_codes(function: SpecialFunction) -> None:
    compare(function, [np.random.default_rng(22).integers(0, 1 << 32, 1 << 20, np.uint32)])


def octaves() -> list[tuple[str, int, int]]:
    """Of every table: a function, an exponent field in which all of its positions lie, and bits that are dropped."""
    fields = {"rcp": [127], "rsqrt": [127, 128], "sqrt": [127, 128], "ex2": [127], "lg2": [130], "sin": [125]}
    drop = function_rows("tanh").drop
    tanh = [("tanh", field, int(drop[i])) for i, field in enumerate(TANH_FIELDS)]
    return [(name, field, 0) for name, some in fields.items() for field in some] + tanh


@pytest.mark.parametrize(("name", "field", "drop"), octaves())
def test_every_position_of_a_table(name: str, field: int, drop: int) -> None:
    fractions = np.arange(0, 1 << 23, 1 << drop, dtype=np.uint32)
    compare(SPECIAL_FUNCTIONS[name], [fractions | np.uint32(field << 23)])


@each_function
def test_functions_equal_the_reference(function: SpecialFunction) -> None:
    codes = mixed(np.random.default_rng(23), 300)
    expected = np.array([special_function_reference(function.name, int(code)) for code in codes], np.uint32)
    for build in BUILDS:
        same(run(function, [codes], build), expected)


@each_row
def test_sequences_equal_the_reference(row: ApproximateForm) -> None:
    rng = np.random.default_rng(24)
    codes = operands(row, mixed(rng, 200), rng)
    expected = [approximate_reference(row.form, *map(int, each)) for each in zip(*codes, strict=True)]
    for build in BUILDS:
        same(run(row, codes, build), np.array(expected, row.fmt.code_dtype))


@each
def test_every_number_of_codes(of: Function) -> None:
    """Whole chunks and what is left of them; nothing beside the result is written."""
    rng = np.random.default_rng(25)
    codes = operands(of, mixed(rng, 200), rng)
    expected = by_numpy(of, codes)
    for build in BUILDS:
        for count in [*range(36), 255, 256, 257, 511, 512, 513, 600]:
            same(run(of, [x[:count].copy() for x in codes], build), expected[:count])


# The processor, as others have left it.


@x86
@pytest.mark.parametrize("control", [FLUSH, UPWARD, FLUSH | 0x2000, 0x6000])
@each
def test_flushed_subnormals_and_rounding_modes_change_nothing(of: Function, control: int) -> None:
    rng, environment = np.random.default_rng(26), Environment()
    tiny = np.concatenate([np.arange(200, dtype=np.uint32), 0x00800000 - np.arange(200, dtype=np.uint32)])
    codes = operands(of, np.concatenate([mixed(rng, 500), tiny, tiny | np.uint32(1 << 31)]), rng)
    expected = by_numpy(of, codes)
    for build in BUILDS:
        with environment.with_control(control):
            before = environment.control()
            got = run(of, codes, build)
            after = environment.control()
        same(got, expected)
        assert before == after and before & control == control


@x86
def test_threads_keep_the_environment_too() -> None:
    codes, environment = np.arange(0, 1 << 32, 4999, dtype=np.uint32), Environment()
    call = partial(approximate, "ex2.approx.f32", codes, engine="native")
    expected = call()
    with environment.with_control(FLUSH | UPWARD):
        before = environment.control()
        got = call(threads=3)
        after = environment.control()
    same(got, expected)
    assert before == after


# Arrays, as callers have them.

CALLS: dict[str, Callable[..., Array]] = {
    "function": partial(special_function, "lg2"),
    "upper words": partial(special_function, "rsqrt.f64"),
    "sequence": partial(approximate, "rcp.approx.f32"),
    "division": lambda x, **more: approximate("div.full.f32", x, x[::-1], **more),
    "broadcast": lambda x, **more: approximate("div.full.ftz.f32", x[:1], x, **more),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("view", [name for name in VIEWS if name != "other byte order"])
def test_elements_may_lie_anywhere(name: str, view: str) -> None:
    call, codes = CALLS[name], np.random.default_rng(27).integers(0, 1 << 32, (37, 29), np.uint32)
    seen = VIEWS[view](codes)
    same(seen, codes)
    same(call(seen, engine="native"), call(codes, engine="numpy"))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (1,), (2, 1, 3)])
def test_shapes_stay(name: str, shape: tuple[int, ...]) -> None:
    call, codes = CALLS[name], np.full(shape, 0x40490FDB, np.uint32)
    same(call(codes, engine="native"), call(codes, engine="numpy"))
    assert call(codes, engine="native").shape == shape


def test_an_array_of_no_dimension() -> None:
    code = np.array(0x40400000, np.uint32)
    for engine in ("numpy", "native"):
        same(special_function("rcp", code, engine=engine), np.array(0x3EAAAAAB, np.uint32))
        same(approximate("ex2.approx.f32", code, engine=engine), np.array(0x41000000, np.uint32))


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("name", CALLS)
def test_threads_change_nothing(name: str, engine: str) -> None:
    """Several parts, of which the last is short."""
    call, codes = CALLS[name], np.random.default_rng(28).integers(0, 1 << 32, (1 << 18) + 5, np.uint32)
    same(call(codes, engine=engine, threads=2), call(codes, engine="native"))


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_no_threads_are_an_error(threads: object) -> None:
    for call in CALLS.values():
        with pytest.raises(OperandError, match=r"threads is .*; expected a positive integer or None"):
            call(np.zeros(3, np.uint32), threads=threads)
