"""Errors of whole products against rational numbers, computed one by one, for every recipe."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array, Rng
from product_cases import F16, NVF4, SP, drawn, some_scales, typed

import warpmma as wm
from lab.generators import RecipeCase, random_codes, recipe_cases
from warpmma import sparsity as sp
from warpmma.analysis import BINS, ErrorReport, ProductError
from warpmma.analysis.exact_products import ExactOperands
from warpmma.formats import FORMATS, FloatFormat, Format
from warpmma.isa import Instruction
from warpmma.products import FLOAT32, prepare
from warpmma.scaling import block_size, quantize

Value = Fraction | float
BF16 = "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"


def rounded(number: Fraction) -> float:
    """To float64, once."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def value(fmt: Format, code: int) -> Value:
    """What a code means; infinities and NaN as floats."""
    number: Any = fmt.unpack(code)
    if isinstance(number, int):
        return Fraction(number)
    if number.kind == "finite":
        size = Fraction(int(number.significand)) * Fraction(2) ** int(number.exponent)
        return -size if number.sign else size
    return math.nan if number.kind == "nan" else (-1) ** number.sign * math.inf


def times(x: Value, y: Value) -> Value:
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x * y
    signs = [math.copysign(1, z) * (z != 0) if z == z else math.nan for z in (x, y)]
    return signs[0] * signs[1] * math.inf


def plus(x: Value, y: Value) -> Value:
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x + y
    return x + y if not (isinstance(x, Fraction) or isinstance(y, Fraction)) else y if isinstance(x, Fraction) else x


def exact(i: Instruction, a: Array, b: Array, c: Array, scales: dict[str, Any]) -> list[list[Value]]:
    """The exact results of codes."""
    rows: list[list[Value]] = []
    for row in range(len(a)):
        rows.append([])
        for column in range(b.shape[1]):
            total = value(i.format("C"), int(c[row, column]))
            for k in range(len(b)):
                x, y = value(i.format("A"), int(a[row, k])), value(i.format("B"), int(b[k, column]))
                if scales:
                    fmt, block = FORMATS[str(i.stype)], k // block_size(i)
                    x = times(x, value(fmt, int(scales["scale_a"][row, block])))
                    y = times(y, value(fmt, int(scales["scale_b"][block, column])))
                total = plus(total, Fraction(int(x != y)) if i.bit_op == "xor" else times(x, y))
            rows[-1].append(total)
    return rows


def ulp(fmt: Format, number: Fraction) -> Fraction:
    if not isinstance(fmt, FloatFormat):
        return Fraction(1)
    exponent = fmt.emin
    while Fraction(2) ** (exponent + 1) <= abs(number):
        exponent += 1
    return Fraction(2) ** (exponent - fmt.fraction_bits)


def check(i: Instruction, report: ErrorReport, expected: list[list[Value]]) -> None:
    """Every figure of a report, computed again from rational numbers."""
    [product] = report.products
    fmt = i.format("D")
    codes = fmt.codes(product.result)
    ulps: dict[tuple[int, int], Fraction] = {}
    relative, errors, undefined, misplaced, overflowed, zeros = [], [], 0, 0, 0, 0
    [told] = report.expected.values()
    for row in range(len(expected)):
        for column in range(len(expected[0])):
            result, true = value(fmt, int(codes[row, column])), expected[row][column]
            if isinstance(true, float):
                undefined += 1
                misplaced += not (result == true or (result != result and true != true))
                assert told[row, column] == true or (true != true and np.isnan(told[row, column]))
                continue
            assert told[row, column] == rounded(true)
            if isinstance(result, float):
                overflowed += 1
                continue
            error = abs(result - true)
            ulps[row, column] = error / ulp(fmt, true)
            errors.append(error)
            relative += [error / abs(true)] if true else []
            zeros += bool(error and not true)
            assert product.ulps[row, column] == pytest.approx(rounded(ulps[row, column]), rel=1e-14)
    assert (product.undefined, product.misplaced, product.overflowed) == (undefined, misplaced, overflowed)
    assert (product.compared, product.zeros) == (len(ulps), zeros)
    assert product.exact == sum(x == 0 for x in ulps.values())
    assert product.rounded == sum(x <= Fraction(1, 2) for x in ulps.values())
    edges: list[Any] = [-1, *BINS, math.inf]
    counted = [sum(low < x <= high for x in ulps.values()) for low, high in pairwise(edges)]
    assert list(product.bins) == counted
    if ulps:
        assert product.largest is not None
        assert product.largest.ulps == max(ulps.values())
        assert product.largest.index == next(place for place, x in ulps.items() if x == product.largest.ulps)
        assert product.largest.exact == expected[product.largest.index[0]][product.largest.index[1]]
        assert product.mean_ulps == pytest.approx(rounded(sum(ulps.values(), Fraction(0)) / len(ulps)), rel=1e-13)
        check_bounds(product, errors, ulps)
        assert product.largest_absolute == pytest.approx(rounded(max(errors)), rel=1e-14)
        assert product.largest_relative == pytest.approx(rounded(max(relative, default=Fraction(0))), rel=1e-14)


def check_bounds(product: ProductError, errors: list[Fraction], ulps: dict[tuple[int, int], Fraction]) -> None:
    """No error is above its bound, and the report says how near they come."""
    bounds = [product.bounds[place] for place in ulps]
    used = [error / Fraction(bound) for error, bound in zip(errors, bounds, strict=True) if 0 < bound < math.inf]
    assert max(used, default=Fraction(0)) <= 1
    assert all(not error for error, bound in zip(errors, bounds, strict=True) if bound == 0)
    if math.inf not in bounds:
        assert product.used == pytest.approx(float(max(used, default=0)), rel=1e-12)
    assert product.largest is not None
    bound = product.bounds[product.largest.index]
    assert product.largest.bound == (Fraction(bound) if bound < math.inf else None)


def operands(i: Instruction, rng: Rng, adverse: bool) -> tuple[list[Array], Array, dict[str, Any]]:
    """Matrices of an instruction, the codes of a dense A, and scales."""
    m, n, k = 4, 3, max(4, i.k - 3 if not i.sparse else i.k)
    if i.c_type == i.d_type and i.k <= 32:
        k = k + i.k
    if adverse:
        shapes: Any = (("A", (m, k)), ("B", (k, n)), ("C", (m, n)))
        a, b, c = (random_codes(i.format(x), shape, rng) for x, shape in shapes)
        c[rng.random(c.shape) < 0.5] = 0
        for x, name in ((a, "A"), (b, "B"), (c, "C")):
            fmt: Any = i.format(name)  # type: ignore[arg-type]
            if isinstance(fmt, FloatFormat):  # a NaN here and there is enough
                x[(~np.isfinite(fmt.decode(x))) & (rng.random(x.shape) < 0.95)] = 0
    else:
        a, b, c = drawn(i, m, n, k, rng, rare=0)
    if i.sparse:
        a = i.format("A").codes(sp.prune(a, i))
    scales = some_scales(i, m, n, k, rng) if i.block_scale else {}
    return typed(i, a, b, c), a, scales


@pytest.mark.parametrize("case", recipe_cases(), ids=str)
@pytest.mark.alike(3)
def test_figures_of_every_recipe_are_those_of_rational_numbers(case: RecipeCase) -> None:
    i, rng = case.instruction, np.random.default_rng(7)
    for adverse in (False, True):
        (a, b, c), dense, scales = operands(i, rng, adverse)
        report = wm.error(a, b, c, instruction=i, target=case.target, **scales)
        check(i, report, exact(i, dense, i.format("B").codes(b), i.format("C").codes(c), scales))


def test_stored_elements_with_indices_are_a_sparse_operand() -> None:
    rng, i = np.random.default_rng(3), wm.parse(SP)
    dense = sp.prune(rng.standard_normal((8, 64)).astype(np.float16), i)
    b = rng.standard_normal((64, 8)).astype(np.float16)
    stored, indices = sp.compress(dense, i)
    mine = wm.error(stored, b, instruction=i, target="sm_90", indices=indices)
    same = wm.error(dense, b, instruction=i, target="sm_90")
    np.testing.assert_array_equal(mine.products[0].ulps, same.products[0].ulps)
    assert mine.products[0].largest == same.products[0].largest


def test_integers_have_no_error_unless_they_wrap() -> None:
    a, b = np.full((2, 64), 127, np.int8), np.full((64, 2), 127, np.int8)
    assert wm.error(a, b, target="sm_80").products[0].exact == 4
    c = np.array([[2**31 - 64 * 127**2, 2**31 - 64 * 127**2 - 1]] * 2, np.int32)
    [wraps] = wm.error(a, b, c, target="sm_80").products
    assert wraps.largest is not None
    assert (wraps.exact, int(wraps.largest.ulps)) == (2, 2**32)
    clamp = "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32"
    [clamps] = wm.error(a, b, c, instruction=clamp, target="sm_80").products
    assert clamps.largest is not None
    assert (clamps.exact, int(clamps.largest.error)) == (2, -1)


def test_tensor_scales_multiply_the_exact_result() -> None:
    rng = np.random.default_rng(5)
    a = quantize(rng.standard_normal((16, 64)).astype(np.float32), NVF4, "A")
    b = quantize(rng.standard_normal((64, 8)).astype(np.float32), NVF4, "B")
    [product] = wm.error(a, b, instruction=NVF4, target="sm_120a").products
    assert product.largest is not None
    row, column = product.largest.index
    i = wm.parse(NVF4)
    scales = {"scale_a": a.scales[[row]].view(np.uint8), "scale_b": b.scales[:, [column]].view(np.uint8)}
    x, y = i.format("A").codes(a.elements[[row]]), i.format("B").codes(b.elements[:, [column]])
    [[plain]] = exact(i, x, y, np.zeros((1, 1), np.uint32), scales)
    assert isinstance(plain, Fraction)
    of_a, of_b = (Fraction(float(np.float32(x.tensor_scale or 0))) for x in (a, b))
    assert product.largest.exact == plain * of_a * of_b


def test_batches_tiles_and_ways() -> None:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((2, 1, 5, 40)).astype(np.float16)
    b = rng.standard_normal((3, 40, 6)).astype(np.float16)
    ways: Any = {"plain": {}, "split": {"split_k": 2}, "bf16": {"epilogue": "bf16"}}
    calls: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        digits = ExactOperands.of(prepare(a, b, target="sm_90")).digits
        patch.setattr("warpmma.analysis.exact_products._DIGITS", 18 * digits)
        cut = wm.error(a, b, target="sm_90", ways=ways, progress=lambda done, total: calls.append((done, total)))
    whole = wm.error(a, b, target="sm_90", ways=ways)
    assert calls == [(i + 1, 15) for i in range(15)]  # 3 products; 6 matrices in tiles of 3 rows
    for x, y in zip(cut.products, whole.products, strict=True):
        assert x.result.shape == (2, 3, 5, 6)
        np.testing.assert_array_equal(x.ulps, y.ulps)
        assert (x.largest, x.bins, x.backward) == (y.largest, y.bins, y.backward)
    for name, way in ways.items():
        alone = wm.error(a[1, 0], b[2], target="sm_90", **way).products[0]
        np.testing.assert_array_equal(alone.ulps, whole[name].ulps[1, 2])
    assert whole["bf16"].format == "bf16"
    assert whole["bf16"].rounded > 100


def test_operands_of_other_values_have_exact_results_of_their_own() -> None:
    a, b = np.full((1, 8), 1 + 2.0**-12, np.float32), np.ones((8, 1), np.float32)
    ways = {"tf32": {"float32": "tf32-truncated"}, "bf16": {"instruction": BF16}}
    with pytest.raises(wm.OperandError, match="bf16"):
        wm.error(a, b, target="sm_80", ways=ways)
    report = wm.error(a, b, target="sm_80", ways={name: {"float32": name} for name in FLOAT32})
    assert {name: x[0, 0] for name, x in report.expected.items()} == {
        "ieee": 8 + 2.0**-9, "tf32": 8, "tf32-truncated": 8,  # tf32 reads 10 bits of fraction: rule 1
    }  # fmt: skip
    codes = a.astype(ml_dtypes.bfloat16).view(np.uint16), b.astype(ml_dtypes.bfloat16).view(np.uint16)
    both = wm.error(*codes, target="sm_80", ways={"bf16": {"instruction": BF16}, "f16": {"instruction": F16}})
    assert both.expected["bf16"][0, 0] == 8
    assert both.expected["f16"][0, 0] != 8


@pytest.mark.parametrize(("more", "says"), [
    ({}, "no target; expected one such as target='sm_90'"),
    ({"target": "sm_90", "targets": ["sm_80"]}, "one of target and targets"),
    ({"targets": []}, r"targets is \[\]; expected names of targets such as"),
    ({"targets": "sm_80"}, "expected names of targets"),
    ({"targets": ["sm_80", "sm_80"]}, "expected names of targets"),
    ({"target": "sm_90", "ways": {}}, r"ways is \{\}; expected a mapping from names"),
    ({"target": "sm_90", "ways": {"x": 3}}, "expected a mapping from names"),
    ({"target": "sm_90", "ways": {"x": {"instrucion": 3}}}, "x: error does not take 'instrucion'"),
    ({"target": "sm_90", "out": np.zeros((4, 4), np.float32)}, "error does not take 'out'"),
    ({"target": "sm_90", "bound": 3}, "bound is 3; expected True or False"),
    ({"target": "sm_90", "progress": 3}, "progress is 3; expected a function"),
    ({"target": "sm_999"}, "sm_999"),
    ({"targets": ["sm_80", "sm_70"]}, "sm_70"),
])  # fmt: skip
def test_wrong_arguments(more: dict[str, Any], says: str) -> None:
    ones = np.ones((4, 4), ml_dtypes.bfloat16)
    with pytest.raises(wm.WarpmmaError, match=says):
        wm.error(ones, ones, **more)


def test_outputs_that_were_made_elsewhere_are_measured_too() -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((2, 16, 256), (256, 8)))
    same = wm.matmul(a, b, target="sm_90")
    half = wm.matmul(a, b, instruction=F16.replace("f32", "f16"), target="sm_90").astype(np.float32)
    report = wm.error(a, b, targets=["sm_90", "sm_80"], outputs={"mine": same, "codes": half.view(np.uint32)})
    computed, _, mine, codes = report.products
    np.testing.assert_array_equal(mine.ulps, computed.ulps)
    assert (mine.given, mine.largest, mine.used) == (True, computed.largest, computed.used)
    assert (codes.used or 0) > 1
    text = report.text()
    assert "  codes: given; bounds are of sm_90" in text.splitlines()
    assert "times their bounds; sm_90 has none so large" in text
    judged = [x.name for x in report.advise().judged if x.right]
    assert judged == ["right: sm_90", "right: sm_80"]
    with pytest.raises(wm.OperandError, match="mine was given; faults are of what was computed: sm_90"):
        report.advise(name="mine")


@pytest.mark.parametrize(("outputs", "says"), [
    (3, "outputs is 3; expected a mapping from names to arrays"),
    ({3: np.zeros((4, 4), np.float32)}, "expected a mapping from names"),
    ({"sm_90": np.zeros((4, 4), np.float32)}, "'sm_90' is the name of a product already"),
    ({"x": np.zeros((4, 3), np.float32)}, r"outputs\['x'\] is float32 \(4, 3\); expected float32 \(4, 4\)$"),
    ({"x": np.zeros((4, 4), np.float16)}, "expected float32 .* or epilogue= its type"),
    ({"x": np.zeros((4, 4))}, r"is float64 \(4, 4\); expected float32 \(4, 4\)$"),
])  # fmt: skip
def test_wrong_outputs(outputs: Any, says: str) -> None:
    ones = np.ones((4, 4), np.float16)
    with pytest.raises(wm.OperandError, match=says):
        wm.error(ones, ones, target="sm_90", outputs=outputs)


def test_dask_is_refused() -> None:
    dask = pytest.importorskip("dask.array")
    with pytest.raises(wm.OperandError, match="error takes arrays in memory; call compute"):
        wm.error(dask.ones((4, 4), dtype=np.float16), np.ones((4, 4), np.float16), target="sm_90")


def test_bounds_can_be_left_out() -> None:
    ones = np.ones((4, 4), np.float16)
    [product] = wm.error(ones, ones, target="sm_90", bound=False).products
    assert (product.used, product.bound_ulps) == (None, None)
    assert product.largest is not None
    assert product.largest.bound is None
    assert wm.error(ones, ones, target="sm_90").products[0].used == 0


def test_a_product_is_found_by_its_name() -> None:
    ones = np.ones((4, 4), np.float16)
    report = wm.error(ones, ones, targets=["sm_80", "sm_90"])
    assert report["sm_90"] is report.products[1]
    with pytest.raises(wm.UnknownNameError, match="no product 'sm_91' was measured; did you mean 'sm_90'"):
        report["sm_91"]
