"""Products of float32 by each word, against exact fused multiply-adds in rational numbers; and what nobody said."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from arrays import Array, same
from messages import exactly

import warpmma as wm
from warpmma.arithmetic import reference_dot
from warpmma.errors import OperandError
from warpmma.operations import elementwise
from warpmma.products import FLOAT32, FMA, recipe_on

TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
RNG = np.random.default_rng(14)
each_way = pytest.mark.parametrize("way", FLOAT32)
each_engine = pytest.mark.parametrize("engine", ["native", "numpy"] if "native" in wm.engines() else ["numpy"])


def drawn(*shape: int, spread: int = 0) -> Array:
    values = RNG.standard_normal(shape) * 2.0 ** RNG.integers(-spread, spread + 1, shape)
    return values.astype(np.float32)


def nearest(x: Fraction) -> Fraction | float:
    """Round to f32, to nearest even: what IEEE 754 says, on integers alone."""
    if not x:
        return Fraction(0)
    exponent = max(math.floor(math.log2(abs(x))), -126)  # may be one off: corrected by the next line
    exponent += (abs(x) >= Fraction(2) ** (exponent + 1)) - (exponent > -126 and abs(x) < Fraction(2) ** exponent)
    quantum = Fraction(2) ** (exponent - 23)
    rounded = round(x / quantum) * quantum  # Python rounds fractions to even
    return rounded if abs(rounded) < Fraction(2) ** 128 else math.copysign(math.inf, x)


def fma_chain(a: Array, b: Array, c: float = 0.0) -> float:
    """Return the chain r = fma(a, b, r) of finite numbers."""
    total: Fraction | float = Fraction(c)
    for x, y in zip(a.tolist(), b.tolist(), strict=True):
        if isinstance(total, float):  # infinite
            return total
        total = nearest(Fraction(x) * Fraction(y) + total)
    return float(total)


def oracle(a: Array, b: Array, c: Array | None = None) -> Array:
    rows = [[fma_chain(x, y, 0.0 if c is None else float(c[i, j])) for j, y in enumerate(b.T)] for i, x in enumerate(a)]
    return np.array(rows, np.float32)


@each_engine
@pytest.mark.parametrize("spread", [0, 12, 60])
def test_ieee_is_an_ascending_chain_of_exact_multiply_adds(engine: Any, spread: int) -> None:
    a, b, c = drawn(5, 40, spread=spread), drawn(40, 6, spread=spread), drawn(5, 6, spread=spread)
    same(wm.matmul(a, b, c, target="sm_90", float32="ieee", engine=engine), oracle(a, b, c))
    same(wm.matmul(a, b, target="sm_70", float32="ieee", engine=engine), oracle(a, b))


@each_engine
def test_ieee_at_both_ends_of_the_range(engine: Any) -> None:
    tiny, huge = drawn(4, 9) * np.float32(2.0**-75), drawn(4, 9) * np.float32(2.0**64)
    for a in (tiny, huge):
        b = np.ascontiguousarray(a.T)
        found = wm.matmul(a, b, target="sm_90", float32="ieee", engine=engine)
        same(found, oracle(a, b))
    assert np.isinf(found).any()


@each_engine
def test_ieee_is_what_the_reference_computes(engine: Any) -> None:
    """On any codes: NaN, infinities, subnormals, zeros of both signs."""
    a, b, c = (
        np.where(RNG.random(shape) < 0.3, RNG.choice(SPECIAL, shape), RNG.integers(0, 1 << 32, shape, np.uint32))
        for shape in ((6, 7), (7, 9), (6, 9))
    )
    found = wm.matmul(*(x.view(np.float32) for x in (a, b, c)), target="sm_90", float32="ieee", engine=engine)
    recipe = recipe_on(FMA, "sm_90")
    expected = [
        [reference_dot(recipe, row.tolist(), column.tolist(), int(c[i, j])) for j, column in enumerate(b.T)]
        for i, row in enumerate(a)
    ]
    same(found.view(np.uint32), np.array(expected, np.uint32))


SPECIAL = np.array(
    [0, 1 << 31, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00001, 0x3F800000], np.uint32
)


def test_ieee_is_far_more_accurate_than_truncated_tf32() -> None:
    a, b = drawn(64, 1024), drawn(1024, 64)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    ways: list[Any] = [*FLOAT32]
    error = {way: np.abs(wm.matmul(a, b, target="sm_90", float32=way) - exact).max() for way in ways}
    assert error["ieee"] < 2e-4 and error["tf32-truncated"] > 0.05
    assert error["tf32"] < error["tf32-truncated"]


@each_way
def test_bits_do_not_depend_on_engine_threads_or_place(way: Any) -> None:
    a, b = drawn(530, 70), drawn(70, 520)
    d = wm.matmul(a, b, target="sm_90", float32=way, threads=1)
    options: list[dict[str, Any]] = [{"threads": 3}, *({"engine": engine} for engine in wm.engines())]
    for more in options:
        same(wm.matmul(a[:140], b, target="sm_90", float32=way, **more), d[:140])
    same(wm.matmul(np.asfortranarray(a), b[:, ::-1], target="sm_90", float32=way)[:, ::-1], d)
    same(wm.matmul(a[None, :3], np.stack([b, b]), target="sm_90", float32=way)[1], d[:3])


@pytest.mark.parametrize("instruction", [None, TF32, TF32.replace("m16n8k8", "m16n8k4")])
def test_tf32_is_rounded_and_then_multiplied(instruction: str | None) -> None:
    a, b = drawn(33, 40, spread=20), drawn(40, 9, spread=20)
    a[0, 0], a[1, 1], a[2, 2] = np.inf, np.nan, np.finfo(np.float32).max
    x, y = (elementwise("cvt.rn.tf32.f32", z.view(np.uint32)).view(np.float32) for z in (a, b))
    d = wm.matmul(a, b, instruction=instruction, target="sm_90", float32="tf32")
    same(d, wm.matmul(x, y, instruction=instruction or TF32, target="sm_90"))
    truncated = wm.matmul(a, b, instruction=instruction, target="sm_90", float32="tf32-truncated")
    same(truncated, wm.matmul(a, b, instruction=instruction or TF32, target="sm_90"))
    assert (d[3:] != truncated[3:]).any()


def test_partial_sums_of_ieee_are_added_in_f32() -> None:
    a, b, c = drawn(5, 100), drawn(100, 7), drawn(5, 7)
    parts = [oracle(a[:, i : i + 25], b[i : i + 25]) for i in range(0, 100, 25)]
    total = c
    for part in parts:
        total = total + part
    same(wm.matmul(a, b, c, target="sm_90", float32="ieee", split_k=4), total)
    promoted = c + ((parts[0] + parts[1]) + parts[2] + parts[3])
    same(wm.matmul(a, b, c, target="sm_90", float32="ieee", promote_every=25), promoted)
    half = wm.matmul(a, b, c, target="sm_90", float32="ieee", split_k=4, epilogue="f16")
    same(half, total.astype(np.float16))


@each_way
def test_empty_products_are_c(way: Any) -> None:
    c = drawn(3, 4)
    for float32 in (way,):
        empty = np.zeros((3, 0), np.float32), np.zeros((0, 4), np.float32)
        same(wm.matmul(*empty, c, target="sm_90", float32=float32), c)


CALLS: dict[str, Callable[[Array, Array], Any]] = {
    "matmul": lambda a, b: wm.matmul(a, b, target="sm_90"),
    "choose": lambda a, b: wm.choose(a, b, target="sm_90"),
    "error": lambda a, b: wm.error(a, b, targets=["sm_80", "sm_90"]),
    "explain": lambda a, b: wm.explain(a, b, targets=["sm_80", "sm_90"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_without_a_word_it_is_truncated_with_a_warning_at_the_callers_line(name: str) -> None:
    a, b = drawn(4, 20), drawn(20, 5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[name](a, b)
    assert {(each.category, each.filename) for each in caught} == {(DeprecationWarning, __file__)}
    assert len(caught) == (2 if name == "error" else 1)  # error: one for each target
    text = str(caught[0].message)
    assert all(f"float32={way!r}" in text for way in FLOAT32) and "the next release raises an error" in text
    with pytest.warns(DeprecationWarning):
        d = wm.matmul(a, b, target="sm_90")
    same(d, wm.matmul(a, b, target="sm_90", float32="tf32-truncated"))


def test_dask_arrays_without_a_word_warn_too() -> None:
    da = pytest.importorskip("dask.array")
    a, b = da.from_array(drawn(4, 20)), da.from_array(drawn(20, 5))
    with pytest.warns(DeprecationWarning, match="float32='ieee'"):
        wm.matmul(a, b, target="sm_90")


def test_an_instruction_is_a_choice_and_other_types_need_none() -> None:
    a, b = drawn(4, 20), drawn(20, 5)
    wm.matmul(a, b, instruction=TF32, target="sm_90")
    for dtype in (np.float16, np.float64, np.int8):
        x, y = a.astype(dtype), b.astype(dtype)
        same(wm.matmul(x, y, target="sm_90", float32="ieee"), wm.matmul(x, y, target="sm_90"))
    x, y = a.astype(np.float16), b.astype(np.float16)
    same(wm.matmul(x, y, instruction=F16, target="sm_90", float32="ieee"), wm.matmul(x, y, target="sm_90"))


INDICES = np.zeros((4, 10, 2), int)
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"float32": "IEEE"}, "float32 is 'IEEE'; expected 'ieee', 'tf32' or 'tf32-truncated'"),
    ({"float32": 3}, "float32 is 3; expected 'ieee', 'tf32' or 'tf32-truncated'"),
    ({"float32": "ieee", "instruction": TF32},
     f"{TF32}: float32='ieee' uses no tensor cores; expected 'tf32' or 'tf32-truncated', or no instruction"),
    ({"float32": "ieee", "c": np.zeros((4, 5), np.float16)}, "fma.rn.f32: C: ~"),
    ({"float32": "ieee", "indices": INDICES}, "fma.rn.f32 is dense: it takes no indices"),
    ({"float32": "ieee", "promote_every": 0}, "fma.rn.f32: promote_every is 0; expected a multiple of 1"),
    ({"float32": "ieee", "scale_a": np.ones((4, 1))}, "fma.rn.f32 has no block scales; ~"),
    ({"float32": "ieee", "target": "sm_99"}, "unknown target 'sm_99'; ~"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "message"), REFUSED, ids=[str(more)[:50] for more, _ in REFUSED])
def test_errors(more: dict[str, Any], message: str) -> None:
    a, b = drawn(4, 10 if "indices" in more else 20), drawn(20, 5)
    with pytest.raises(wm.WarpmmaError, match=exactly(message)):
        wm.matmul(a, b, **{"target": "sm_90", **more})


def test_float16_beside_float32_is_refused() -> None:
    with pytest.raises(wm.MnemonicError, match="no mma for f16 x tf32"):
        wm.matmul(drawn(4, 20).astype(np.float16), drawn(20, 5), target="sm_90", float32="ieee")


@each_way
def test_choose_says_how(way: Any) -> None:
    a, b = drawn(4, 20), drawn(20, 5)
    choice = wm.choose(a, b, target="sm_90", float32=way, split_k=2)
    assert choice.float32 == way and choice.by_default and f"float32 as {way!r}: {FLOAT32[way].meaning}" in str(choice)
    assert str(choice.instruction) == ("fma.rn.f32" if way == "ieee" else TF32)
    assert choice.steps == (20 if way == "ieee" else 3)
    if way == "ieee":
        assert choice.others == () and choice.evidence.kind == "published"
        assert "IEEE 754" in choice.evidence.source and "k ascending" in choice.evidence.assumption
    assert wm.choose(a, b, instruction=TF32, target="sm_90").float32 == "tf32-truncated"
    assert wm.choose(a.astype(np.float16), b.astype(np.float16), target="sm_90", float32=way).float32 is None


@each_way
def test_error_measures_each_way_within_its_bound(way: Any) -> None:
    a, b, c = drawn(20, 60, spread=8), drawn(60, 9, spread=8), drawn(20, 9)
    report = wm.error(a, b, c, target="sm_90", float32=way, promote_every=32)
    [product] = report.products
    assert product.used is not None and 0 < product.used <= 1
    same(product.result, wm.matmul(a, b, c, target="sm_90", float32=way, promote_every=32))
    assert product.choice.float32 == way
    assert ("does not count as an error" in " ".join(report.text().split())) == FLOAT32[way].tensor_cores
    worst = report.worst()
    assert worst.result == product.result[worst.row, worst.column].view(np.uint32)
    if way == "ieee":
        exact = sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[3], b[:, 2], strict=True))
        assert report.expected["sm_90"][3, 2] == float(exact + Fraction(float(c[3, 2])))
        assert report.advise().recommended.reach > 1  # faults of lanes aside, which have no meaning here


@each_way
def test_explain_follows_the_same_chain(way: Any) -> None:
    a, b, c = drawn(3, 30, spread=8), drawn(30, 4, spread=8), drawn(3, 4)
    options: list[dict[str, Any]] = [{}, {"split_k": 2, "epilogue": "bf16"}]
    for more in options:
        d = wm.matmul(a, b, c, target="sm_90", float32=way, **more)
        told = wm.explain(a, b, c, row=2, column=1, target="sm_90", against="sm_80", float32=way, **more)
        assert told.result == int(d.view(np.uint16 if more else np.uint32)[2, 1])
        assert told.error is not None and told.bound is not None and told.lost == -told.error
        assert abs(told.error) <= told.bound
        assert (told.ignored != 0) == (way == "tf32-truncated")
        text = told.text()
        assert ("IEEE fused multiply-adds in f32, k ascending" in text) == (way == "ieee")
        assert told.json() and told.svg()
    if way == "ieee":
        assert told.parting is None and len(told.steps) == 30 + 2 + 1


def test_explain_rounds_the_operands_of_one_instruction_too() -> None:
    a, b = drawn(16, 8), drawn(8, 8)
    told = wm.explain(TF32, a, b, target="sm_90", float32="tf32")
    assert told.result == int(wm.matmul(a, b, target="sm_90", float32="tf32").view(np.uint32)[0, 0])
    with pytest.raises(OperandError, match="uses no tensor cores"):
        wm.explain(TF32, a, b, target="sm_90", float32="ieee")
