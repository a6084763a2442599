"""Products of the native engine equal NumPy's and the reference's bit for bit, by every build that there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import Array, field_of_records, same
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from native_cases import EVERY, FUSED, KINDS, LEVELS, SPARSE, check, check_slowly, draw, each_kind
from oracles import needs

from lab.generators import STYLES, RecipeCase, styles
from warpmma.arithmetic.dispatch import native
from warpmma.arithmetic.recipes.units import FmaChain, FusedDotAdd, GroupedDotAdd, IntegerSum, Recipe
from warpmma.errors import UnsupportedError
from warpmma.formats import FORMATS, FloatFormat

pytestmark = needs("native engine")


# One instruction.


@pytest.mark.parametrize("case", EVERY, ids=str)
@pytest.mark.alike(2)
def test_every_recipe_in_every_style(case: RecipeCase) -> None:
    rng = np.random.default_rng(1)
    for style in styles(case.recipe):
        x = draw(case, [style], 13, 21, rng)
        check_slowly(case, x, check(case, x, note=style), rng, 2)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    case=st.sampled_from(EVERY), style=st.sampled_from(sorted(STYLES)), seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 35), n=st.integers(1, 35), sparse=st.booleans(), level=st.sampled_from(LEVELS or (None,)),
)  # fmt: skip
def test_any_size(case: RecipeCase, style: str, seed: int, m: int, n: int, sparse: bool, level: native.Level) -> None:
    assume(style in styles(case.recipe))
    sparse &= isinstance(case.recipe.unit, FusedDotAdd | GroupedDotAdd | IntegerSum)
    rng = np.random.default_rng(seed)
    x = draw(case, [style], m, n, rng, sparse=sparse)
    check_slowly(case, x, check(case, x, [level], style), rng, 6)


# Chains.


def crossing(case: RecipeCase) -> int:
    """Instructions enough to cross the engine's blocks of 128 products twice and to end within one."""
    return 2 * max(1, 128 // case.k) + 1 + (case.k < 128)


CHAINED = [x for x in KINDS if x.recipe.c == x.recipe.d]


@pytest.mark.parametrize("case", CHAINED, ids=str)
@pytest.mark.alike(3)
def test_a_chain_is_one_instruction_after_the_other(case: RecipeCase) -> None:
    """Every style somewhere in the middle, where the fast path has to give up, and special values in a few rows."""
    rng, count, known = np.random.default_rng(2), crossing(case), styles(case.recipe)
    heavy = isinstance(case.recipe.unit, FmaChain)  # to NumPy
    tame = "middle" if "middle" in known else "bits"
    rare = ("tiny", "huge", "zeros", "special") if heavy else known
    for number, style in enumerate(x for x in rare if x in known):
        each = [tame] * count
        each[[count // 2, count // 2 + 1, 0, count - 1, 1][number % 5]] = style
        for sparse in (False, True) if case in SPARSE else (False,):
            check(case, draw(case, each, *((5, 9) if heavy else (13, 21)), rng, sparse=sparse), note=(style, sparse))


@pytest.mark.parametrize("case", [x for x in CHAINED if isinstance(FORMATS[x.recipe.a], FloatFormat)], ids=str)
@pytest.mark.alike(2)
def test_special_values_here_and_there_in_a_chain(case: RecipeCase) -> None:
    rng = np.random.default_rng(3)
    for sparse in (False, True) if case in SPARSE else (False,):
        x = draw(case, ["near"] * crossing(case), 13, 21, rng, sparse=sparse)
        for name in ("a", "b"):
            fmt, codes = FORMATS[getattr(case.recipe, name)], x[name]
            assert isinstance(fmt, FloatFormat)
            special = [c for c in (fmt.inf_code, fmt.nan_code, fmt.max_code, 1 << fmt.padding) if c is not None]
            for code in (*special, *(c | fmt.sign_bit for c in special)):
                place = tuple(rng.integers(0, codes.shape))
                codes[place] = code
        d = FORMATS[case.recipe.d]
        assert isinstance(d, FloatFormat)
        values = d.decode(check(case, x, note=sparse))
        assert np.isfinite(values).mean() > 0.2  # or there would be nothing to compare


@pytest.mark.parametrize("case", [x for x in KINDS if isinstance(x.recipe.unit, IntegerSum)], ids=str)
def test_integers_are_clamped_after_every_instruction(case: RecipeCase) -> None:
    """Instructions that go up, and then one that comes down again; C about as far from a limit as one of them goes."""
    rng, count = np.random.default_rng(16), crossing(case)

    def extreme(name: str, low: Array) -> Array:
        fmt = FORMATS[str(getattr(case.recipe, name))]
        sign = 1 << (fmt.bits - 1)
        high = sign - 1 if getattr(fmt, "signed", False) else fmt.mask
        return np.where(low, sign, high).astype(fmt.code_dtype)

    for sparse in (False, True):
        x = draw(case, ["turn"] * count, 13, 21, rng, sparse=sparse)
        rows = extreme("a", rng.random((1, 13, count)) < 0.4)
        columns = extreme("b", rng.random((1, count, 21)) < 0.1)
        x["a"] = np.repeat(rows, x["a"].shape[2] // count, axis=2)
        x["b"] = np.repeat(columns, x["b"].shape[1] // count, axis=1)
        check(case, x, note=sparse)


def _lines(fmt: FloatFormat, k: int) -> Array:
    """Rows of k codes: constants of every sort, and a few patterns of signs."""
    one = int(fmt.encode(1.0))
    ulp = 1 << fmt.padding
    two = int(fmt.encode(2.0))
    codes = [0, fmt.sign_bit, ulp, one, two - ulp, (two - ulp) | fmt.sign_bit, fmt.max_code, one - ulp]
    codes += [code for code in (fmt.inf_code, fmt.nan_code) if code is not None]
    if fmt.bits > 8:  # so that two of them make about the least number of f32, and half of its least square
        codes += [int(fmt.encode(2.0**e)) for e in (-66, -67, -75) if fmt.emin < -60]
    rows = [np.full(k, code) for code in codes]
    rows.append(np.where(np.arange(k) % 3 == 0, (two - ulp) | fmt.sign_bit, two - ulp))
    rows.append(np.where(np.arange(k) == k - 1, two - ulp, 0))
    return np.array(rows, fmt.code_dtype)


def _accumulators(fmt: FloatFormat) -> Array:
    """Zeros, subnormals, numbers near powers of two and their sums of L products, the largest, infinities, NaN."""
    values = [2.0**e for e in (-24, -14, -13, -1, 0, 1, 2, 4, 5, 6, 10, 15)] + [3.0, 1e-40, 65504.0, 2048.5, 7.99]
    codes = [0, 1, 2, *fmt.encode(np.array(values), "rz", overflow="saturate").tolist(), fmt.max_code]
    codes += [code - 1 for code in codes[5:12]] + [fmt.inf_code, fmt.nan_code, 1 << fmt.fraction_bits]
    return np.array([sign | int(code) for code in codes for sign in (0, fmt.sign_bit)], fmt.code_dtype)


@pytest.mark.parametrize("case", FUSED, ids=str)
def test_constant_rows_and_every_sort_of_accumulator(case: RecipeCase) -> None:
    """Each in a tile of its own, so that the fast path does all it can: sums up to 2^31 quanta, ties, overflow.

    Two instructions; what the first makes is the second's accumulator.
    """
    a_format, b_format, c_format = (FORMATS[x] for x in (case.recipe.a, case.recipe.b, case.recipe.c))
    assert isinstance(a_format, FloatFormat) and isinstance(b_format, FloatFormat) and isinstance(c_format, FloatFormat)
    count = 2 if case.recipe.c == case.recipe.d else 1
    a, b, c = _lines(a_format, count * case.k), _lines(b_format, count * case.k), _accumulators(c_format)
    which = np.indices((len(a), len(b), len(c))).reshape(3, -1)
    rng = np.random.default_rng(4)
    if case not in KINDS:
        which = rng.permuted(which, axis=1)[:, :300]
    x = {"a": a[which[0]][:, None], "b": b[which[1]][..., None], "c": c[which[2]][:, None, None]}
    if case.blocks:
        low, high = (118, 137) if case.recipe.scale == "ue8m0" else (0x30, 0x40)
        shape = (which.shape[1], count * case.blocks)
        x["scale_a"] = rng.integers(low, high, shape, np.uint8)[:, None]
        x["scale_b"] = rng.integers(low, high, shape, np.uint8)[..., None]
    check(case, x)


# Block scales.


SCALED = [x for x in EVERY if x.blocks]


@pytest.mark.parametrize(
    ("case", "sparse"), [*((x, False) for x in SCALED), *((x, True) for x in SCALED if x in KINDS)], ids=str
)
def test_scales_of_every_value(case: RecipeCase, sparse: bool) -> None:
    """All codes in the rows of A against the ends and the middle in the columns of B, and in every block."""
    rng, mask = np.random.default_rng(5), np.uint8(FORMATS[str(case.recipe.scale)].mask)
    for style in ("near", "full", "special"):
        x = draw(case, [style] * 3, 256, 13, rng, sparse=sparse)
        x["scale_a"] = (np.arange(256)[:, None] + 7 * np.arange(3 * case.blocks)).astype(np.uint8)[None] & mask
        ends = np.array([0, 1, 2, 64, 119, 120, 127, 128, 190, 252, 253, 254, 255], np.uint8) & mask
        x["scale_b"] = np.array([np.roll(ends, i) for i in range(3 * case.blocks)])[None]
        check(case, x, note=style)
        # One code for a whole row, which leaves more than NaN, and tiles without any.
        x["scale_a"] = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3 * case.blocks, axis=1)[None] & mask
        x["scale_b"] = np.repeat(ends[:, None], 3 * case.blocks, axis=1).T[None]
        check(case, x, note=style)


# Operands of `product`, wherever they lie.


@each_kind
def test_matrices_may_lie_anywhere(case: RecipeCase) -> None:
    rng = np.random.default_rng(6)
    x = draw(case, ["bits"], 10, 11, rng, sparse=case in SPARSE)
    expected = check(case, x)

    views: list[Callable[[Array], Array]] = [
        np.asfortranarray,
        lambda v: np.repeat(np.repeat(v, 2, axis=1), 3, axis=2)[:, ::2, ::3],
        lambda v: v[:, ::-1, ::-1].copy()[:, ::-1, ::-1],
        lambda v: np.broadcast_to(v, (4, *v.shape[1:])),
        lambda v: np.concatenate([v, v, v, v])[::-1],
        field_of_records,
    ]
    for view in views:
        got = native.product(case.recipe, k=case.k, scales=case.blocks, **{n: view(v) for n, v in x.items()})  # type: ignore[arg-type]
        same(got, np.repeat(expected, len(got), axis=0))


@each_kind
def test_nothing_gives_nothing(case: RecipeCase) -> None:
    x = draw(case, ["bits"], 5, 6, np.random.default_rng(7))
    for axis, names in enumerate((x, ("a", "c", "scale_a"), ("b", "c", "scale_b"))):
        cut = [slice(None)] * 3
        cut[axis] = slice(0)
        some = {name: v[tuple(cut)] if name in names else v for name, v in x.items()}
        assert native.product(case.recipe, k=case.k, scales=case.blocks, **some).size == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "k"),
    [({"d": "f32", "rounding": "rn"}, 16), ({"d": "f16", "rounding": "rz"}, 16), ({}, 24), ({}, 17), ({}, 1)],
)
def test_recipes_that_the_engine_does_not_do(change: dict[str, Any], k: int) -> None:
    """Of no instruction there is; refused rather than computed wrong."""
    unit = FusedDotAdd(fraction_bits=25, products=16, floor=-133, result_bits=23, rounding=change.get("rounding", "rz"))
    how = Recipe(d=change.get("d", "f32"), a="f16", b="f16", c="f32", unit=unit)
    a, c = np.zeros((1, 1, k), np.uint16), np.zeros((1, 1, 1), np.uint32)
    with pytest.raises(UnsupportedError, match=r"does not do .*; use engine='numpy'"):
        native.product(how, a, a.swapaxes(1, 2), c, k=k)


def test_a_build_that_is_not_there() -> None:
    case = EVERY[0]
    with pytest.raises(UnsupportedError, match="no native engine x86-64-v9; there are "):
        native.product(case.recipe, k=case.k, level="x86-64-v9", **draw(case, ["bits"], 1, 1, np.random.default_rng()))  # type: ignore[arg-type]
