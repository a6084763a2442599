"""`div`, `rcp` and `sqrt` in the roundings of IEEE 754: what an H200 gave, fractions, and rows."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from arrays import Array, same
from messages import exactly
from operation_references import (
    ROUNDINGS,
    bits,
    divided,
    exact,
    float_format,
    flushed,
    operands,
    rooted,
    run,
    unbounded,
)

from lab.generators import operation_inputs, signature
from lab.gpu.lane_archives import recorded_lanes
from warpmma._rounding import Rounding
from warpmma.arithmetic import quotient_reference, square_root_reference
from warpmma.errors import MnemonicError
from warpmma.formats import FloatFormat
from warpmma.operations import evidence, operation
from warpmma.operations.arithmetic import divisions

RECORDED = Path(__file__).parents[1] / "data" / "h200_quotients.npz"
MNEMONICS = [mnemonic for form in divisions.FORMS for mnemonic in form.mnemonics]
each_row = pytest.mark.parametrize("mnemonic", MNEMONICS)


def parts(mnemonic: str) -> tuple[str, FloatFormat, Rounding, bool]:
    opcode, rounding, *_, name = mnemonic.split(".")
    return opcode, float_format(name), cast(Rounding, rounding), ".ftz" in mnemonic


def reference(mnemonic: str, *codes: int) -> int:
    opcode, fmt, rounding, ftz = parts(mnemonic)
    if opcode == "sqrt":
        return square_root_reference(fmt, codes[0], rounding, ftz=ftz)
    x, y = codes if opcode == "div" else (fmt.bias << fmt.fraction_bits, codes[0])
    return quotient_reference(fmt, x, y, rounding, ftz=ftz)


# An H200's results


@cache
def recorded() -> dict[str, tuple[tuple[Array, ...], Array]]:
    """Operands and results of each row, as lists of lanes."""
    lanes = recorded_lanes(RECORDED)
    return {mnemonic: (tuple(x.reshape(-1) for x in given), got[0].reshape(-1)) for mnemonic, _, given, got in lanes}


def test_every_row_was_recorded() -> None:
    assert list(recorded()) == MNEMONICS and len(MNEMONICS) == 36
    with np.load(RECORDED) as archive:
        assert str(archive["device"]) == "NVIDIA H200, driver 580.159.04"
    assert RECORDED.stat().st_size < 150_000


@each_row
def test_recorded_operands_are_all_pairs_of_special_ones_and_others(mnemonic: str) -> None:
    given, _ = recorded()[mnemonic]
    _, fmt, *_ = parts(mnemonic)
    infinity, quiet = cast(int, fmt.inf_code), 1 << (fmt.fraction_bits - 1)
    special = {0, 1, 2 * quiet - 1, 2 * quiet, fmt.bias << fmt.fraction_bits, infinity - 1, infinity}
    special |= {infinity + 1, infinity + quiet, infinity + quiet + 0x1234, infinity + 0x1234}
    special |= {code | fmt.sign_bit for code in special}
    assert set(zip(*(x.tolist() for x in given), strict=True)) >= set(product(special, repeat=len(given)))
    assert len(given[0]) >= (6400 if len(given) == 2 else 96) + 512


@each_row
def test_recorded_results_of_an_h200(mnemonic: str) -> None:
    given, got = recorded()[mnemonic]
    same(run(mnemonic, *given), got)


@each_row
def test_recorded_results_are_those_of_the_reference(mnemonic: str) -> None:
    given, got = recorded()[mnemonic]
    expected = [reference(mnemonic, *codes) for codes in zip(*(x.tolist() for x in given), strict=True)]
    same(np.array(expected, got.dtype), got)


QUIET, SIGNALLING = 0x7FC01234, 0xFF801234
Q64, S64, MADE = 0xFFF8_0000_0000_1234, 0x7FF0_0000_0000_5678, 0xFFF8 << 48
MAX, INF, NEGATIVE = 0x7F7FFFFF, 0x7F800000, 1 << 31


@pytest.mark.parametrize(
    ("mnemonic", "words", "expected"),
    [
        ("div.rn.f32", (QUIET, 0), 0x7FFFFFFF),
        ("div.rn.f32", (0, SIGNALLING), 0x7FFFFFFF),
        ("div.rn.f32", (0, NEGATIVE), 0x7FFFFFFF),
        ("div.rn.f32", (INF, INF), 0x7FFFFFFF),
        ("div.rz.f32", (bits(1), NEGATIVE), INF | NEGATIVE),
        ("div.rm.f32", (NEGATIVE, INF), NEGATIVE),
        ("div.rp.f32", (INF | NEGATIVE, 1 | NEGATIVE), INF),
        ("div.rn.ftz.f32", (1, 1), 0x7FFFFFFF),
        ("div.rn.ftz.f32", (bits(1), 1 | NEGATIVE), INF | NEGATIVE),
        ("div.rp.f32", (0x00FFFFFF, bits(2)), 0x00800000),
        ("div.rp.ftz.f32", (0x00FFFFFF, bits(2)), 0),
        ("div.rm.ftz.f32", (0x00FFFFFF, bits(-2)), NEGATIVE),
        ("div.rn.f32", (MAX, bits(0.5)), INF),
        ("div.rz.f32", (MAX, bits(0.5)), MAX),
        ("div.rp.f32", (MAX, bits(-0.5)), MAX | NEGATIVE),
        ("div.rm.f32", (MAX, bits(-0.5)), INF | NEGATIVE),
        ("div.rn.f64", (Q64, S64), Q64),
        ("div.rn.f64", (S64, Q64), S64 | 1 << 51),
        ("div.rn.f64", (1, S64), S64 | 1 << 51),
        ("div.rn.f64", (0, 0), MADE),
        ("rcp.rn.f32", (QUIET,), 0x7FFFFFFF),
        ("rcp.rn.f32", (NEGATIVE,), INF | NEGATIVE),
        ("rcp.rn.f32", (0x7F000001,), 0x00400000),
        ("rcp.rn.ftz.f32", (0x7F000001,), 0),
        ("rcp.rz.f32", (1,), MAX),
        ("rcp.rz.ftz.f32", (1,), INF),
        ("rcp.rn.f64", (S64,), S64 | 1 << 51),
        ("sqrt.rn.f32", (bits(-1),), 0x7FFFFFFF),
        ("sqrt.rn.f32", (NEGATIVE,), NEGATIVE),
        ("sqrt.rn.f32", (1 | NEGATIVE,), 0x7FFFFFFF),
        ("sqrt.rn.ftz.f32", (1 | NEGATIVE,), NEGATIVE),
        ("sqrt.rn.f32", (INF,), INF),
        ("sqrt.rn.f32", (1,), bits(2.0**-74.5)),
        ("sqrt.rm.f64", (1 << 63,), 1 << 63),
        ("sqrt.rm.f64", (1 << 63 | 1,), MADE),
        ("sqrt.rm.f64", (Q64,), Q64),
    ],
)  # fmt: skip
def test_what_was_measured_of_nan_zeros_and_borders(mnemonic: str, words: tuple[int, ...], expected: int) -> None:
    assert hex(run(mnemonic, *words)[0]) == hex(expected)


# Fractions


@each_row
def test_hard_operands_give_what_fractions_do(mnemonic: str) -> None:
    opcode, fmt, rounding, ftz = parts(mnemonic)
    given = operands(mnemonic, 256)
    expected = []
    for codes in zip(*(x.tolist() for x in given), strict=True):
        a, *b = (flushed(fmt, code) if ftz else code for code in codes)
        if opcode == "sqrt":
            code = rooted(fmt, a, rounding) if a < fmt.sign_bit else a if a == fmt.sign_bit else -1
        else:
            x, y = (a, b[0]) if opcode == "div" else (fmt.bias << fmt.fraction_bits, a)
            code = divided(fmt, x, y, rounding) if y & ~fmt.sign_bit else -1
            value = exact(fmt, x) / exact(fmt, y) if code >= 0 else Fraction(0)
            if ftz and value and unbounded(fmt, value, rounding) < Fraction(2) ** fmt.emin:
                code &= fmt.sign_bit
        expected.append(code)
    number = np.array(expected, object) >= 0
    same(run(mnemonic, *given)[number], np.array([c for c in expected if c >= 0], fmt.code_dtype))
    assert number.sum() > 128


def test_hard_operands_are_those_of_the_opcode() -> None:
    assert signature(operation("div.rn.f32")) == signature(operation("div.rp.ftz.f32"))
    assert signature(operation("div.rn.f32")) != signature(operation("add.f32"))
    assert signature(operation("rcp.rn.f32")) != signature(operation("sqrt.rn.f32"))
    for x, y in zip(operation_inputs("div.rn.f64", 64, 0), operation_inputs("div.rz.f64", 64, 0), strict=True):
        same(x, y)


# Rows


def test_what_is_known_elsewhere() -> None:
    known: Any = {m: evidence(m, target="sm_80") for m in ("div.rn.f32", "sqrt.rn.f64")}
    assert [known[m].kind for m in known] == ["derived", "derived"]
    assert known["sqrt.rn.f64"].assumption == "NaN as on an H200"
    here = evidence("rcp.rz.f64", target="sm_90")
    assert (here.kind, here.device[:4]) == ("measured", "H200")
    assert here.compared.startswith("45,106,560 results of all 36 forms") and here.compared.endswith(", 0 differences")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("div.s8", ". Nearest: div.s16"),
        ("div.f32", ". Nearest: div.rn.f32"),
        ("div.rn.ftz.f64", ". Nearest: div.rn.f64"),
        ("rcp.rn.f16", ". Nearest: rcp.rn.f64"),
        ("sqrt.rna.f32", ". Nearest: sqrt.rn.f32"),
        ("div.rn.sat.f32", ". Nearest: div.rn.f32"),
    ],
)
def test_what_there_is_not(name: str, says: str) -> None:
    with pytest.raises(MnemonicError, match=exactly(f"{name!r} is not a simulated operation{says}")):
        operation(name)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_a_reciprocal_is_one_by_the_operand(rounding: str) -> None:
    for name in ("f32", "f64"):
        fmt = float_format(name)
        (x,) = (a.reshape(-1) for a in operation_inputs(f"rcp.rn.{name}", 4096, 2))
        one = np.full_like(x, fmt.bias << fmt.fraction_bits)
        same(run(f"rcp.{rounding}.{name}", x), run(f"div.{rounding}.{name}", one, x))
