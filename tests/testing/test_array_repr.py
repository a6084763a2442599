"""Arrays written in one line: what is written makes the same bits again, and failing examples are written so."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array
from hypothesis import HealthCheck, Phase, given, settings

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.formats import FORMATS, Format
from warpmma.scaling import pack_scales
from warpmma.testing import array_with
from warpmma.testing.array_repr import Written
from warpmma.testing.strategies import fragments, matrices, operands

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SP = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
MX = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
NAMES = {"array_with": array_with, "load": wm.load, "pack_scales": pack_scales, "Gpu": dict}


def test_values_and_codes() -> None:
    x = array_with(
        "f16", (2, 3), {(0, 1): -0.0, (1, 2): 0x7C01, (0, 0): np.float32(1.5), (0, 2): 0.1, (1, 0): np.int8(1)}
    )
    assert x.dtype == np.float16
    assert x.view(np.uint16).tolist() == [[0x3E00, 0x8000, 0x2E66], [1, 0, 0x7C01]]
    assert array_with("s8", 3, {1: -3}, fill=7).tolist() == [7, -3, 7]
    assert array_with("ue8m0", 2, {}, fill=1.0).dtype == ml_dtypes.float8_e8m0fnu
    assert array_with("uint32", (), {(): 0xFFFF_FFFF}) == 0xFFFF_FFFF
    assert array_with("uint64", (0,), {}).dtype == np.uint64


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda fmt: fmt.name)
def test_what_is_written_makes_the_same_bits(fmt: Format) -> None:
    """Every code of narrow formats, and of wide ones some that are special and some that are random."""
    rng = np.random.default_rng(0)
    codes = np.arange(fmt.mask + 1) if fmt.bits <= 8 else rng.integers(0, fmt.mask, 512, np.uint64, endpoint=True)
    if fmt.bits > 8:
        ends = [0, 1, fmt.mask, fmt.mask >> 1, (fmt.mask >> 1) + 1, 1 << (fmt.bits - 2)]
        codes = np.concatenate([codes, np.array(ends, np.uint64)])
    for some in np.array_split(codes.astype(fmt.code_dtype), len(codes) // 8 or 1):
        text = f"array_with({Written(fmt.name, some)})"
        made = eval(text, NAMES)
        assert made.dtype == fmt.dtype
        assert (made.view(np.uint8) == fmt.array(some).view(np.uint8)).all(), text


def test_the_commonest_element_fills() -> None:
    assert str(Written("f16", np.array([[0x3C00] * 3, [0, 0x3C00, 0x7E01]], np.uint16))) == (
        "'f16', (2, 3), {(1, 0): 0.0, (1, 2): 0x7e01}, fill=1.0"
    )
    assert str(Written("uint32", np.array([0, 9, 0], np.uint32))) == "'uint32', (3,), {(1,): 0x9}"
    assert str(Written("s32", np.array([], np.uint32))) == "'s32', (0,), {}"


def test_long_ones_are_cut_and_say_so() -> None:
    text = str(Written("u8", np.arange(1, 101).astype(np.uint8)))
    assert text.startswith("'u8', (100,), {(1,): 2, (2,): 3,") and text.endswith(", ...: '83 more'}, fill=1")
    with pytest.raises(OperandError, match="83 more: this example was too long to be printed whole"):
        eval(f"array_with({text})", NAMES)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: array_with("f17", 2, {}), "no format 'f17'; expected one of f64"),
        (lambda: array_with(3, 2, {}), "no format 3"),  # type: ignore[arg-type]
        (lambda: array_with("f16", 2, {2: 1.0}), "index 2 is out of bounds"),
        (lambda: array_with("f16", 2, {0: 65505.0}), "65505.0 is not a value of f16"),
        (lambda: array_with("ue4m3", 2, {0: -1.0}), "-1.0 is not a value of ue4m3"),
        (lambda: array_with("f16", 2, {0: 1 << 16}), "0x10000 is not a code of f16; expected 0 to 0xffff"),
        (lambda: array_with("f16", 2, {0: float("nan")}), "nan is not a value of f16"),
        (lambda: array_with("s8", 2, {0: 200}), "200 is not a value of s8"),
        (lambda: array_with("s8", 2, {0: 0.5}), "0.5 is not a value of s8"),
        (lambda: array_with("f16", 2, {0: "1"}), "cannot encode"),
        (lambda: array_with("f16", 2, {0: [1.0, 2.0]}), "array_with: "),
        (lambda: array_with("uint32", 2, {0: 1.5}), "array_with: "),
        (lambda: array_with("uint32", 2, {0: -1}), "out of bounds for uint32"),
        (lambda: array_with("f16", "2", {}), "shape is '2'; expected an integer or a tuple"),  # type: ignore[arg-type]
        (lambda: array_with("f16", -2, {}), "negative dimensions"),
        (lambda: array_with("f16", (1 << 30, 1 << 20), {}), "more than any memory holds"),
        (lambda: array_with("f16", 2, [1.0]), "elements is list; expected a dict"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_array_is_refused(call: Callable[[], Array], says: str) -> None:
    with pytest.raises(OperandError, match=re.escape(says)):
        call()


# Failing examples


def written(strategy: Any, holds: Callable[[Any], Any]) -> tuple[str, Any]:
    """What hypothesis writes of the example of which something does not hold, and that example."""
    last: list[Any] = []

    @settings(
        max_examples=500, database=None, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink], print_blob=False,
    )  # fmt: skip
    @given(x=strategy)
    def check(x: Any) -> None:
        last[:] = [x]
        assert holds(x)

    with pytest.raises(AssertionError) as caught:
        check()
    text = "\n".join(caught.value.__notes__)
    return text[text.index("x=") + 2 : text.rindex(",")], last[0]


def same(x: Any, y: Any) -> bool:
    if isinstance(x, dict):
        return x.keys() == y.keys() and all(same(x[key], y[key]) for key in x)
    if isinstance(x, np.ndarray):
        return bool(x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes())
    return bool(x == y)


@pytest.mark.parametrize(
    ("strategy", "holds", "lines"),
    [
        pytest.param(matrices("f16", (16, 16)), lambda x: not np.isnan(x).any(), 1, id="matrices"),
        pytest.param(fragments(F16, "A"), lambda x: not x.any(), 5, id="fragments"),
        pytest.param(operands(F16), lambda x: False, 6, id="operands"),
        pytest.param(operands(SP), lambda x: False, 8, id="sparse"),
        pytest.param(operands(SP, form="registers"), lambda x: False, 16, id="sparse registers"),
        pytest.param(operands(MX, form="registers"), lambda x: False, 30, id="scaled registers"),
    ],
)
def test_failing_examples_are_short_and_can_be_copied(strategy: Any, holds: Callable[[Any], Any], lines: int) -> None:
    text, example = written(strategy, holds)
    assert len(text.splitlines()) <= lines, text
    assert same(eval(text, NAMES), example), text


def test_small_arrays_are_written_as_they_are() -> None:
    text, _ = written(matrices("f16", 2), lambda x: not x.any())
    assert text in ("array([0., 1.], dtype=float16)", "array([1., 0.], dtype=float16)")
