"""No error exceeds its bound, and where the bound is zero there is none."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import warpmma as wm
from warpmma.analysis import bounds, explain
from warpmma.arithmetic import FusedDotAdd, recipe
from warpmma.formats import floating
from warpmma.products import prepare

HALF = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
WGMMA_FP8 = "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3"


def one(a: list[float], b: list[float], c: float = 0.0, target: str = "sm_90") -> wm.analysis.Explanation:
    """Explain a product of a row and a column of f16."""
    given = np.array([a], np.float16), np.array(b, np.float16)[:, None], np.array([[c]], np.float32)
    return explain(HALF, *given, target=target)


def test_small_integers_are_exact_and_known_to_be() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-32, 33, shape).astype(np.float16) for shape in ((8, 256), (256, 8)))
    for target in ("sm_70", "sm_80", "sm_90"):
        instruction = HALF.replace("m16n8k16", "m8n8k4") if target == "sm_70" else HALF
        whole = bounds(prepare(a, b, instruction=instruction, target=target))
        assert not whole.any()
        assert explain(instruction, a, b, None, 3, 4, target=target).bound == 0


def test_a_bound_by_hand() -> None:
    told = one([1, 2**-14], [1, 2**-12])  # 1 + 2^-26, cut at 2^-25: all of it is lost, and no more can be
    assert (told.error, told.bound) == (
        -Fraction(1, 2**26),
        Fraction(1, 2**26) + Fraction(1, 2**23) - Fraction(1, 2**26),
    )
    told = one([1], [1], 2.0**-25)  # on the grid of the step: nothing is cut; the sum has 25 bits, of which 23 are kept
    assert (told.error, told.bound) == (-Fraction(1, 2**25), Fraction(1, 2**23) - Fraction(1, 2**25))
    told = one([1], [1], 2.0**-25, target="sm_80")  # F is 24
    assert told.bound == Fraction(1, 2**25) + Fraction(1, 2**23) - Fraction(1, 2**25)


def test_no_bound_where_a_result_may_be_infinite() -> None:
    assert one([65504.0] * 2, [65504.0, -65504.0], 3e38).bound is not None
    told = one([65504.0] * 2, [65504.0, -65504.0], 3.4028235e38)
    assert told.value is not None and told.bound is None
    whole = prepare(np.full((1, 2), 65504, np.float16), np.full((2, 1), 65504, np.float16),
                    np.full((1, 1), 3.4028235e38, np.float32), target="sm_90")  # fmt: skip
    assert np.isinf(bounds(whole)).all()


def test_no_bound_of_what_is_not_finite() -> None:
    a = np.ones((2, 16), np.float16)
    a[1, 3] = np.nan
    found = bounds(prepare(a, np.ones((16, 3), np.float16), target="sm_90"))
    assert not found[0].any() and np.isinf(found[1]).all()


def test_integers() -> None:
    plain, clamped = (f"mma.sync.aligned.m16n8k32.row.col.{x}s32.s8.s8.s32" for x in ("", "satfinite."))
    a, b = np.full((1, 32), 127, np.int8), np.full((32, 1), 127, np.int8)
    most = np.array([[2**31 - 1 - 32 * 127 * 127]], np.int32)
    for instruction in (plain, clamped):
        assert explain(instruction, a, b, most, target="sm_80").bound == 0
        assert bounds(prepare(a, b, most, instruction=instruction, target="sm_80")) == 0
    assert explain(plain, a, b, most + 1, target="sm_80").bound is None
    assert np.isinf(bounds(prepare(a, b, most + 1, instruction=plain, target="sm_80")))
    told = explain(clamped, a, b, most + 5, target="sm_80")
    assert told.bound == 5 and told.error == -5


def test_parts_of_a_batch() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((3, 70, 40)).astype(np.float16), rng.standard_normal((40, 9)).astype(np.float16)
    whole = prepare(a, b, target="sm_80")
    for matrix in range(3):
        alone = bounds(prepare(a[matrix], b, target="sm_80"))
        np.testing.assert_array_equal(bounds(whole, matrix), alone)
        np.testing.assert_array_equal(bounds(whole, matrix, slice(5, 7)), alone[5:7])
    assert bounds(whole, 0, slice(4, 4)).shape == (0, 9)


def test_bounds_are_not_far_from_those_of_elements() -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((4, 256), (256, 4)))
    whole = bounds(prepare(a, b, target="sm_80"))
    alone = explain(None, a, b, None, 1, 2, target="sm_80").bound
    assert alone is not None and whole[1, 2] < 2 * alone


def test_promotion_narrows_the_bound_of_short_sums() -> None:
    """What promotion is for: sums of fp8 keep 13 bits within wgmma, and 23 outside."""
    rng = np.random.default_rng(3)
    import ml_dtypes

    a, b = (rng.standard_normal(shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((4, 1024), (1024, 4)))
    plain, promoted = (
        bounds(prepare(a, b, instruction=WGMMA_FP8, target="sm_90a", promote_every=every)) for every in (None, 128)
    )
    assert (promoted < plain / 8).all()


PAGE = (Path(__file__).parents[2] / "docs/specification/bounds.md").read_text()
ROWS = {
    "Volta, Turing (m8n8k4) f16": (HALF.replace("m16n8k16", "m8n8k4"), ("sm_70", "sm_75")),
    "Turing, Ampere, Ada f16, bf16": (HALF.replace("k16", "k8"), ("sm_75", "sm_80", "sm_89")),
    "Ampere, Ada tf32": ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", ("sm_80", "sm_89")),
    "Hopper, Blackwell, RTX Blackwell f16, bf16": (HALF, ("sm_90", "sm_100", "sm_120")),
    "Hopper, Blackwell, RTX Blackwell tf32": (
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", ("sm_90", "sm_100", "sm_120"),
    ),
    "Ada fp8": ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", ("sm_89",)),
    "Hopper, wgmma fp8": (WGMMA_FP8, ("sm_90a",)),
    "RTX Blackwell fp8, fp6, fp4": ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32", ("sm_120a",)),
}  # fmt: skip


def constant(text: str) -> Fraction:
    """Read a number such as 1.5 x 2^-23."""
    factor, exponent = text.split(" x 2^")
    return Fraction(factor) * Fraction(2) ** int(exponent)


def table() -> dict[str, list[str]]:
    """Read the table of constants."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if "x 2^-" in line]
    return {f"{row[0]} {row[1]}": row[3:] for row in rows if len(row) == 8}


def test_the_page_has_the_constants_of_the_recipes() -> None:
    assert set(table()) == set(ROWS)
    for name, (length, fraction, bits, each, of_product) in table().items():
        instruction, targets = ROWS[name]
        for target in targets:
            unit = recipe(instruction, target).unit
            assert isinstance(unit, FusedDotAdd) and unit.rounding == "rz"
            assert (unit.products, unit.fraction_bits, unit.result_bits) == (int(length), int(fraction), int(bits))
            lost = (unit.products + 1) * Fraction(2) ** -unit.fraction_bits + Fraction(2) ** -unit.result_bits
            assert (constant(each), constant(of_product)) == (lost, lost / unit.products)


@pytest.mark.parametrize("name", ROWS)
def test_the_closed_form_is_no_less(name: str) -> None:
    instruction, targets = ROWS[name]
    record, unit = wm.isa.parse_any(instruction), recipe(instruction, targets[0]).unit
    assert isinstance(unit, FusedDotAdd)
    rng = np.random.default_rng(5)
    a, b = (
        fmt.array(fmt.encode(rng.choice([-1.5, 1, 1.25, 3, -2.5], shape)))
        for fmt, shape in ((floating(record.a_type), (2, 96)), (floating(record.b_type), (96, 2)))
    )
    told = explain(instruction, a, b, np.array([[5, 0], [0.1, 3]], np.float32), 1, 0, target=targets[0])
    total = sum(abs(Fraction(float(x)) * Fraction(float(y))) for x, y in zip(a[1], b[:, 0], strict=True))
    total += Fraction(float(np.float32(0.1)))
    steps = -(-96 // unit.products)
    assert told.bound is not None
    assert told.bound <= steps * constant(table()[name][3]) * (total + Fraction(2) ** -126)


def test_every_lemma_that_code_cites_is_on_the_page() -> None:
    folder = Path(wm.__file__).parent / "analysis"
    cited = {
        int(n) for name in ("element_bounds", "product_bounds")
        for n in re.findall(r"Lemma (\d)", (folder / f"{name}.py").read_text())
    }  # fmt: skip
    assert cited == {int(n) for n in re.findall(r"\*\*Lemma (\d)", PAGE)}
