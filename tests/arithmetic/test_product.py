"""`arithmetic.product`: what it refuses, and sums as long as they may be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest

from warpmma.arithmetic import product
from warpmma.arithmetic.dispatch import native
from warpmma.arithmetic.recipes.lowerings import recipe
from warpmma.arithmetic.recipes.units import FloatChains, FusedDotAdd, GroupedDotAdd, IntegerSum, Recipe
from warpmma.errors import OperandError, UnsupportedError
from warpmma.formats import FORMATS
from warpmma.isa import parse

pytestmark = pytest.mark.skipif(not native.levels(), reason="warpmma was installed without its native engine")
HALF = recipe(parse("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"), "sm_90")


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"b": np.zeros((1, 15, 8), np.uint16)},
         r"B is \[1, 15, 8\], not \[1, 16, 8\], beside A \[1, 16, 16\] and C \[1, 16, 8\] by k = 16"),
        ({"b": np.zeros((1, 16, 7), np.uint16)}, r"B is \[1, 16, 7\], not \[1, 16, 8\], beside"),
        ({"b": np.zeros((2, 16, 8), np.uint16)}, r"B is \[2, 16, 8\], not \[1, 16, 8\], beside"),
        ({"c": np.zeros((1, 15, 8), np.uint32)}, r"A is \[1, 16, 16\], not \[1, 15, 16\], beside"),
        ({"b": np.zeros((16, 8), np.uint16)}, "B is an array of unsigned integers in 3 dimensions; got uint16, 2 dim"),
        ({"b": np.zeros((1, 16, 8), np.float16)}, "B is an array of unsigned integers in 3 dimensions; got float16, 3"),
        ({"b": [[[0] * 8] * 16]}, "B is an array of unsigned integers in 3 dimensions; got list"),
        ({"k": "5"}, "k is a number that is not negative; got '5'"),
        ({"scales": -1}, "scales is a number that is not negative; got -1"),
        ({"b": np.zeros((1, 16, 8), np.uint32)}, "B holds codes of f16, uint16; got uint32"),
        ({"ends": 5}, "ends are pairs, after which instruction and whether a slice does; got 5"),
        ({"ends": [(None, True)]}, r"ends are pairs, .*; got \[\(None, True\)\]"),
        ({"k": 5}, r"A is \[1, 16, 16\]; its last dimension is a multiple of k = 5"),
        ({"k": 0}, r"A is \[1, 16, 16\]; its last dimension is a multiple of k = 0"),
        ({"scale_a": np.zeros((1, 16, 1), np.uint8)}, r"scale_a is \[1, 16, 1\], not nothing, beside"),
        ({"chosen": np.zeros((1, 16, 16), np.uint8)}, r"B is \[1, 16, 8\], not \[1, 32, 8\], beside"),
        ({"chosen": np.full((1, 16, 16), 32, np.uint8), "b": np.zeros((1, 32, 8), np.uint16)},
         "chosen is below 32, the rows of one instruction; got 32"),
    ],
)  # fmt: skip
def test_product_names_what_does_not_fit(engine: Literal["numpy", "native"], change: dict[str, Any], text: str) -> None:
    x: dict[str, Any] = {
        "a": np.zeros((1, 16, 16), np.uint16), "b": np.zeros((1, 16, 8), np.uint16),
        "c": np.zeros((1, 16, 8), np.uint32), "k": 16,
    }  # fmt: skip
    r = HALF
    assert not product(r, **x, engine=engine).any()
    with pytest.raises(OperandError, match=text):
        product(r, **x | change, engine=engine)


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"sums": None}, "chains that end have sums to be added to; got none"),
        ({"ends": [(0, True)]}, r"ends ascend from 1 to 2, the instructions; got \[0\]"),
        ({"ends": [(2, False), (1, True)]}, r"ends ascend from 1 to 2, the instructions; got \[2, 1\]"),
        ({"ends": [(3, True)]}, r"ends ascend from 1 to 2, the instructions; got \[3\]"),
        ({"sums": np.zeros((1, 1, 1), np.uint32)}, r"sums are uint32 \[2, 1, 1, 1\], .*; got uint32 \[1, 1, 1\]"),
        ({"sums": np.zeros((2, 1, 1, 1))}, r"sums are uint32 \[2, 1, 1, 1\], .*; got float64 \[2, 1, 1, 1\]"),
        ({"sums": [0, 0]}, r"sums are uint32 \[2, 1, 1, 1\], contiguous and writable; got list"),
        ({"recipe": replace(HALF, c="f16", d="f16"), "c": np.zeros((1, 1, 1), np.uint16)},
         "sums are of chains with C and D of f32; got f16 and f16"),
    ],
)  # fmt: skip
def test_product_names_sums_that_do_not_fit(
    engine: Literal["numpy", "native"], change: dict[str, Any], text: str
) -> None:
    x: dict[str, Any] = {
        "recipe": HALF, "a": np.zeros((1, 1, 32), np.uint16), "b": np.zeros((1, 32, 1), np.uint16),
        "c": np.zeros((1, 1, 1), np.uint32), "ends": [(1, False), (2, True)],
        "sums": np.zeros((2, 1, 1, 1), np.uint32), "k": 16,
    }  # fmt: skip
    assert not product(**x, engine=engine).any()
    with pytest.raises(OperandError, match=text):
        product(**x | change, engine=engine)


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_product_of_nothing_is_c(engine: Literal["numpy", "native"]) -> None:
    c = np.array([[[0x7F800001]]], np.uint32)
    r = HALF
    d = product(r, np.zeros((1, 1, 0), np.uint16), np.zeros((1, 0, 1), np.uint16), c, k=16, engine=engine)
    assert d is not c and d[0, 0, 0] == 0x7F800001


def test_a_chain_takes_its_own_results() -> None:
    r = replace(HALF, c="f16")
    a, b, c = (np.zeros(shape, np.uint16) for shape in ((1, 1, 32), (1, 32, 1), (1, 1, 1)))
    with pytest.raises(OperandError, match="a chain of 2 instructions with C of f16 and D of f32"):
        product(r, a, b, c, k=16, engine="numpy")
    with pytest.raises(ValueError, match="D is no C of the next instruction"):
        native.product(r, a, b, c, k=16)


# Recipes beyond what the native engine's arithmetic is argued for.


FUSED = FusedDotAdd(fraction_bits=25, products=16, floor=-133, result_bits=23, rounding="rz")
GROUPED = GroupedDotAdd(group=16, fraction_bits=35, floor=-139, result_bits=23, rounding="rz")
CHAIN = FloatChains(length=4, seed="zero")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (Recipe(d="f32", a="f32", b="f16", c="f32", unit=FUSED), "f32 does not hold products of these formats"),
        (Recipe(d="bf16", a="f16", b="f16", c="f32", unit=FUSED), "C and D of f16 or f32"),
        (Recipe(d="f32", a="s8", b="s8", c="f32", unit=FUSED), "of floating-point numbers"),
        (Recipe(d="f32", a="ue8m0", b="f16", c="f32", unit=FUSED), "of floating-point numbers"),
        (Recipe(d="f32", a="bf16", b="bf16", c="f32", unit=CHAIN), "f32 does not hold products of these formats"),
        (Recipe(d="f32", a="f16", b="tf32", c="f32", unit=CHAIN), "f32 does not hold products of these formats"),
        (Recipe(d="f32", a="e4m3", b="e4m3", c="f32", unit=GROUPED, scale="ue8m0"), "f32 does not hold the sum of a"),
        (Recipe(d="f32", a="e2m1", b="e2m1", c="f32", unit=GROUPED), "groups have block scales"),
        (Recipe(d="f32", a="f16", b="f16", c="f32", unit=IntegerSum(saturate=True)), "at most 8 bits"),
        (Recipe(d="s32", a="s32", b="s8", c="s32", unit=IntegerSum(saturate=True)), "at most 8 bits"),
        (Recipe(d="s8", a="s8", b="s8", c="s32", unit=IntegerSum(saturate=True)), "have 32 bits"),
    ],
    ids=str,
)  # fmt: skip
def test_recipes_beyond_the_argument_are_refused(given: Recipe, text: str) -> None:
    scales = 1 if given.scale else 0
    x: dict[str, Any] = {"a": np.zeros((1, 1, 64), np.uint8), "b": np.zeros((1, 64, 1), np.uint8)}
    x["c"] = np.zeros((1, 1, 1), np.uint32)
    if scales:
        x |= {"scale_a": np.zeros((1, 1, 1), np.uint8), "scale_b": np.zeros((1, 1, 1), np.uint8)}
    with pytest.raises(UnsupportedError, match=rf"does not do .*: .*{text}.*; use engine='numpy'"):
        native.product(given, **x, k=64, scales=scales)


# Sums of integers, up to and beyond what f32 holds.

EXTREMES = [
    ("u8", "u8", 255, 255), ("s8", "u8", 0x80, 255), ("s8", "s8", 0x80, 0x80), ("s8", "s8", 0x80, 0x7F),
    ("s4", "u4", 8, 15), ("u4", "u4", 15, 15),
]  # fmt: skip


@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize(("a", "b", "of_a", "of_b"), EXTREMES)
@pytest.mark.parametrize("k", [1, 256, 257, 512, 4096, 1 << 15])
def test_integer_sums_of_any_length(a: str, b: str, of_a: int, of_b: int, k: int, saturate: bool) -> None:
    """All but one factor as large as they come and of one sign, so that the sum is odd where f32 no longer is."""
    given = Recipe(d="s32", a=a, b=b, c="s32", unit=IntegerSum(saturate=saturate))
    rows, columns = np.full((1, 5, k), of_a, np.uint8), np.full((1, k, 3), of_b, np.uint8)
    rows[:, 1, 0] = columns[:, -1, 1] = 1
    c = np.array([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint32)[None, :, None].repeat(3, axis=2)
    of_rows, of_columns = (FORMATS[n].decode(x)[0].astype(object) for n, x in ((a, rows), (b, columns)))
    exact = of_rows @ of_columns + FORMATS["s32"].decode(c)[0].astype(object)
    if saturate:
        exact = np.clip(exact, -(1 << 31), (1 << 31) - 1)
    expected = (exact & 0xFFFFFFFF).astype(np.uint32)[None]
    for level in dict.fromkeys(level.name for level in native.levels()):
        np.testing.assert_array_equal(native.product(given, rows, columns, c, k=k, level=level), expected)
    np.testing.assert_array_equal(product(given, rows, columns, c, k=k, engine="numpy"), expected)


def test_integer_sums_that_nobody_argued_for() -> None:
    """NumPy's sum has no bound; the native one ends where 32 bits would."""
    k = 1 << 18
    given = Recipe(d="s32", a="u8", b="u8", c="s32", unit=IntegerSum(saturate=True))
    a, b, c = np.full((1, 1, k), 255, np.uint8), np.full((1, k, 1), 255, np.uint8), np.zeros((1, 1, 1), np.uint32)
    assert product(given, a, b, c, k=k, engine="numpy")[0, 0, 0] == 0x7FFFFFFF
    with pytest.raises(UnsupportedError, match="from 1 to 32768"):
        product(given, a, b, c, k=k, engine="native")
