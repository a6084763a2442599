"""Rows that the native engine computes: NumPy's bits on all levels, at any shape; what plans and arrays refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import Array, same
from oracles import needs

from lab.generators import operation_inputs
from warpmma.arithmetic import ElementForm, run_elements
from warpmma.arithmetic.dispatch import native, native_elements
from warpmma.kernel import launch
from warpmma.operations import DTYPES, Operation, rows

pytestmark = needs("native engine")
_native: Any = native_elements._native  # type: ignore[attr-defined]

LEVELS = tuple(dict.fromkeys(level.name for level in native.levels()))
ROWS = {str(x): x for x in rows() if isinstance(x, Operation) and x.native is not None}
LANES = 32 * 24  # three blocks
ADD = ElementForm(op="add", source="f32", result="f32")


def both(row: Operation, level: str, *x: Array) -> tuple[Array, Array]:
    """What NumPy and a build of the native engine give."""
    assert row.native is not None
    (expected,), (found,) = row.compute(*x), row.native(*x, level=level)
    return np.asarray(expected, DTYPES[row.outputs[0]]), found


@pytest.mark.parametrize("opcode", sorted({name.partition(".")[0] for name in ROWS}))
def test_rows_give_the_bits_of_numpy(opcode: str) -> None:
    """All rows on hard inputs, which lie on and beside what is rounded, flushed, clamped or chosen."""
    for name, row in ROWS.items():
        if name.partition(".")[0] == opcode:
            x = operation_inputs(name, LANES, 7)
            for level in LEVELS:
                expected, found = both(row, level, *x)
                np.testing.assert_array_equal(found, expected, err_msg=f"{name}, {level}", strict=True)


def test_what_is_flushed_in_doubt() -> None:
    """Products and quotients that lie just below the least normal number of f32, and round to it when subnormal."""
    rng = np.random.default_rng(3)
    a = 1 + rng.integers(0, 1 << 23, LANES * 64) * 2.0**-23
    exponents = rng.integers(-60, 0, a.size)
    x = np.ldexp(a, exponents).astype(np.float32).view(np.uint32)
    y = np.ldexp(1 / a, -126 - exponents).astype(np.float32).view(np.uint32)
    y = (y.astype(np.int64) + rng.integers(-2, 3, a.size)).astype(np.uint32)
    z = rng.integers(0, 8, a.size, np.uint32) << np.uint32(29)  # zeros, and numbers far apart
    quotients = np.ldexp(a, exponents + 126).astype(np.float32).view(np.uint32)
    quotients = (quotients.astype(np.int64) + rng.integers(-2, 3, a.size)).astype(np.uint32)
    kept = 0
    for rounding in ("rn", "rz", "rm", "rp"):
        for level in LEVELS:
            for name, given in (("mul", (x, y)), ("fma", (x, y, z)), ("div", (x ^ 0x8000_0000, quotients))):
                expected, found = both(ROWS[f"{name}.{rounding}.ftz.f32"], level, *(g.reshape(-1, 32) for g in given))
                same(found, expected)
                kept += int((found & 0x7FFF_FFFF == 0x0080_0000).sum())
    assert kept


@pytest.mark.parametrize("shape", [(1, 1, 32), (3, 2, 32), (32,), (2, 0, 32), (5, 1, 1, 32), (2, 3, 1, 2, 32)])
def test_shapes_and_numbers(shape: tuple[int, ...]) -> None:
    """One register stands for all lanes, as a number among the operands does; others need not be contiguous."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 1 << 32, (2, *shape), np.uint32)
    number = np.broadcast_to(np.uint32(0x3FC0_0000), shape)
    for name in ("fma.rn.f32", "fma.rn.f16x2", "setp.ltu.f32", "cvt.rn.f16x2.f32", "max.f32"):
        row = ROWS[name]
        given = [x[0], number, x[1][..., ::-1]][: len(row.inputs)]
        for order in (given, given[::-1], [number] * len(given)):
            expected, found = both(row, LEVELS[0], *order)
            same(found, expected)


@pytest.mark.parametrize("mnemonic", ["cvt.f32.f16", "cvt.rn.ftz.f16.f32", "cvt.rn.bf16.f16", "cvt.rzi.s32.f16"])
def test_every_operand(mnemonic: str) -> None:
    codes = np.arange(65536, dtype=np.uint16).reshape(-1, 32)
    x = codes.astype(np.uint32) << np.uint32(16) if mnemonic.endswith("f32") else codes
    for level in LEVELS:
        expected, found = both(ROWS[mnemonic], level, x)
        same(found, expected)


def test_engines_of_a_launch() -> None:
    """NumPy where it is asked for, and the same bits."""
    found: dict[str, Array] = {}

    def kernel(t: Any) -> None:
        x = t("cvt.rn.f32.u32", t.laneid)
        found[engine] = t("fma.rn.f32", x, 0.1, t("div.rn.f32", 1.0, x)).bits.copy()

    for engine in ("numpy", "native", "auto"):
        launch(kernel, 1, 32, (), target="sm_90", engine=engine)
    same(found["numpy"], found["native"])
    same(found["numpy"], found["auto"])


# What is refused


def changed(**values: Any) -> Callable[[], None]:
    def run() -> None:
        given = _native.ElementParameters()
        for name, value in values.items():
            setattr(given, name, value)
        _native.ElementPlan(given)

    return run


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (changed(op=15), "there is no such operation"),
        (changed(op=13), "words of 32 bits are permuted"),
        (changed(op=14, source=8, result=8), "fields are of words of 32 bits"),
        (changed(op=11, source=6, result=6), "these are of integers"),
        (changed(op=12, source=4, result=5), "these are of integers"),
        (changed(op=9, source=7), "numbers of at most 32 bits"),
        (changed(source=-1), "there is no such element"),
        (changed(result=9), "there is no such element"),
        (changed(rounding=4), "there is no such rounding"),
        (changed(comparison=8), "there is no such comparison"),
        (changed(result=0), "operands and result are floats of one format"),
        (changed(source=4, result=4), "operands and result are floats of one format"),
        (changed(source=3, result=3, flush=True), "f64 is neither flushed nor clamped"),
        (changed(op=9, source=3, finite=True), "f64 is not clamped"),
        (changed(op=9, source=6), "numbers of at most 32 bits, or f64, are converted"),
        (changed(op=9, source=4, result=5, integral=True), "one side of a conversion is a float"),
        (changed(op=9, result=4), "integers are rounded to, and nothing else"),
        (changed(op=10, source=4, result=6), "floats are compared, and the result is a predicate"),
        (changed(op=10), "floats are compared, and the result is a predicate"),
    ],
)
def test_plans_that_are_refused(make: Callable[[], None], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


WORDS = np.zeros(64, np.uint32)


@pytest.mark.parametrize(
    ("arrays", "parts", "message"),
    [
        ((WORDS, WORDS, WORDS, np.zeros(64, np.uint32)), (1, 0), "c is for another operation"),
        ((WORDS, None, None, np.zeros(64, np.uint32)), (1, 0), "b is missing"),
        ((WORDS, WORDS, None, None), (1, 0), "out is missing"),
        ((WORDS, WORDS[:32], None, np.zeros(64, np.uint32)), (1, 0), "b has 32 registers"),
        ((WORDS, WORDS[::2], None, np.zeros(32, np.uint32)), (1, 0), "a has 64 registers"),
        ((WORDS[:32], WORDS[::2], None, np.zeros(32, np.uint32)), (1, 0), "b is not of such registers"),
        ((WORDS, WORDS.view(np.uint16), None, np.zeros(64, np.uint32)), (1, 0), "b is not of such registers"),
        ((WORDS, WORDS, None, np.zeros(128, np.uint32)[::2]), (1, 0), "out is not of registers in a row"),
        ((WORDS, WORDS, None, np.zeros(64, np.uint16)), (1, 0), "out is not of registers in a row"),
        ((WORDS, WORDS, None, WORDS), (1, 0), "out is written and shares memory with a"),
        ((WORDS, WORDS, None, np.zeros(64, np.float32)), (1, 0), "out is not of unsigned integers"),
        ((WORDS, WORDS, None, np.zeros(64, np.uint64)), (3, 0), "a result has one part or two"),
        ((WORDS, WORDS, None, np.zeros(64, np.uint64)), (2, 2), "a result has one part or two"),
    ],
)
def test_arrays_that_are_refused(arrays: tuple[Any, ...], parts: tuple[int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _native.execute_elements(native_elements._plan(ADD), native.find_level().number, *arrays, *parts)


def test_a_level_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="level"):
        _native.execute_elements(native_elements._plan(ADD), 99, WORDS, WORDS, None, np.zeros(64, np.uint32), 1, 0)


def test_a_form_by_itself() -> None:
    one = np.full(32, 0x3F80_0000, np.uint32)
    (total,) = run_elements(ADD, np.uint32, one, one)
    assert (total.view(np.float32) == 2).all()
