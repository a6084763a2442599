"""What `quantize` computes part by part, against its rules one block at a time; the rules are in its docstring.

`test_scaling` has rows worked by hand and the comparison with gfloat.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array, Rng, same

from warpmma.errors import OperandError
from warpmma.formats import FloatFormat, floating
from warpmma.isa import Instruction, instructions
from warpmma.layouts import Operand
from warpmma.scaling import Quantized, block_size, quantize, rules

pytestmark = pytest.mark.quick

SCALED = list(
    {(i.a_type, i.b_type, i.stype, i.scales_per_row, i.sparse): i for i in instructions() if i.block_scale}.values()
)
ELEMENTS = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
F32, UE8M0, UE4M3 = map(floating, ("f32", "ue8m0", "ue4m3"))


# The rules, in float64 on whole arrays `[..., blocks, size]`, each rounding to float32 by `encode` and `decode`.


def rounded(values: Array) -> Array:
    return F32.decode(F32.encode(values))


def mx(blocks: Array, fmt: FloatFormat) -> tuple[Array, Array, None]:
    peak = np.abs(blocks).max(axis=-1)
    finite = np.isfinite(peak)
    exponent = np.frexp(np.where(finite & (peak > 0), peak, 2.0**-200))[1] - 1
    shared = np.clip(exponent - fmt.emax, -127, 127)
    elements = fmt.encode(np.ldexp(np.where(finite[..., None], blocks, 0.0), -shared[..., None]))
    return elements, np.where(finite, shared + UE8M0.bias, 0xFF).astype(np.uint8), None


def nvfp4(blocks: Array, fmt: FloatFormat) -> tuple[Array, Array, Array]:
    peak = np.abs(blocks).max(axis=-1)
    whole = peak.max(axis=(-2, -1), keepdims=True)
    tensor = np.where(whole > 0, np.maximum(rounded(whole / 2688), 2.0**-149), 1.0)
    scales = UE4M3.encode(rounded(rounded(peak / 6) / tensor))
    divisor = rounded(UE4M3.decode(scales) * tensor)[..., None]
    elements = fmt.encode(rounded(blocks / np.where(divisor > 0, divisor, np.inf)))
    return elements, scales, F32.encode(tensor[..., 0, 0]).view(np.float32)


def check(matrix: Array, i: Instruction, operand: Operand) -> Quantized:
    """Compare a matrix `[..., rows, K]`, or transposed as B, with the rules."""
    size, fmt = block_size(i), floating(i.type(operand))
    blocks = F32.decode(matrix.view(np.uint32)).reshape(*matrix.shape[:-1], -1, size)
    elements, scales, tensor = (mx if i.stype == "ue8m0" else nvfp4)(blocks, fmt)
    elements = elements.reshape(matrix.shape)
    if operand == "B":
        matrix, elements, scales = (x.swapaxes(-1, -2) for x in (matrix, elements, scales))
    q = quantize(matrix, i, operand)
    same(fmt.codes(q.elements), elements)
    same(q.scales, scales)
    assert (q.tensor_scale is None) == (tensor is None)
    if tensor is not None:
        same(np.asarray(q.tensor_scale), tensor)
    return q


def hard(kind: str, shape: tuple[int, ...], rng: Rng) -> Array:
    """Codes of float32."""
    if kind == "any":
        return rng.integers(0, 1 << 32, shape, dtype=np.uint32)
    if kind == "subnormal":
        signs: Array = rng.integers(0, 2, shape, np.uint32) << np.uint32(31)
        small: Array = rng.integers(0, 1 << 25, shape, np.uint32)
        return np.bitwise_or(small, signs)
    if kind == "ties":  # few bits, and their neighbours
        few = rng.integers(1, 1 << 13, shape, np.uint32) << np.uint32(18)
        return few + rng.integers(-1, 2, shape).astype(np.uint32)
    step = 2.0 ** rng.integers(-149, 110, (*shape[:-2], 1, 1))
    return F32.encode(rng.integers(-64, 65, shape) * step)


@pytest.mark.parametrize("i", SCALED, ids=str)
@pytest.mark.parametrize("kind", ["any", "subnormal", "ties", "steps"])
def test_hard_numbers(i: Instruction, kind: str) -> None:
    rng = np.random.default_rng(1)
    operands: tuple[Operand, ...] = ("A", "B")
    for operand in operands:
        matrix = hard(kind, (2, 3, 24, 3 * block_size(i)), rng).view(np.float32)
        if i.stype == "ue4m3":
            matrix = np.where(np.isfinite(matrix), matrix, np.float32(1.5))
        check(matrix, i, operand)


@pytest.mark.parametrize("i", SCALED[:1] + [x for x in SCALED if x.stype == "ue4m3"][:1], ids=str)
@pytest.mark.parametrize("at_a_time", [1, 33, 100, 700])
def test_parts_cannot_be_seen(i: Instruction, at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of one block, of some columns, of several matrices."""
    monkeypatch.setattr(rules, "_PART", at_a_time)
    rng = np.random.default_rng(2)
    operands: tuple[Operand, ...] = ("A", "B")
    for operand in operands:
        check(rng.standard_normal((3, 5, 2 * block_size(i))).astype(np.float32), i, operand)


@pytest.mark.parametrize("element", ELEMENTS)
def test_the_table_rounds_as_encode_does(element: str) -> None:
    """Every upper half of a float32, with lower halves that decide ties."""
    fmt = floating(element)
    upper = np.arange(1 << 16, dtype=np.uint32)[:, None] << np.uint32(16)
    bits = upper | np.array([0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    codes = rules.elements(fmt, bits[..., None], np.ones((len(bits), 1)))[..., 0]
    same(codes, fmt.encode(F32.decode(bits)))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_types_are_float32_first(dtype: Any) -> None:
    """Every f16 and bf16, subnormals and all; of float64 what float32 holds."""
    codes = np.arange(1 << 16, dtype=np.uint16)
    values = codes.view(dtype) if dtype != np.float64 else F32.decode(codes.astype(np.uint32) << np.uint32(16))
    with np.errstate(invalid="ignore"):  # signalling NaN
        single = values.astype(np.float32)
    i = next(x for x in SCALED if x.stype == "ue8m0" and x.a_type == "e4m3")
    q, expected = quantize(values.reshape(-1, 64), i), quantize(single.reshape(-1, 64), i)
    same(q.elements.view(np.uint8), expected.elements.view(np.uint8))
    same(q.scales, expected.scales)


def test_a_float64_that_is_no_float32_is_named_wherever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_PART", 50)
    i = SCALED[0]
    for place in ([0, 0], [1, 3], [4, 63]):
        matrix = np.ones((5, 64))
        matrix[tuple(place)] = 0.1
        matrix[4, 63] = 0.1
        with pytest.raises(
            OperandError, match=rf"A holds 0\.1 at \[{place[0]}, {place[1]}\], which is not a float32 value"
        ):
            quantize(matrix, i)


@pytest.mark.parametrize("i", SCALED[:1] + [x for x in SCALED if x.stype == "ue4m3"][:1], ids=str)
def test_matrices_may_lie_anywhere_and_be_empty(i: Instruction) -> None:
    rng, size = np.random.default_rng(3), block_size(i)
    matrix = rng.standard_normal((4, 6, 2 * size)).astype(np.float32)
    expected = quantize(matrix, i)
    for view in (np.asfortranarray(matrix), np.repeat(matrix, 2, axis=1)[:, ::2], matrix[:, ::-1].copy()[:, ::-1]):
        q = quantize(view, i)
        same(q.elements.view(np.uint8), expected.elements.view(np.uint8))
        same(q.scales, expected.scales)
        assert q.elements.flags.c_contiguous and q.scales.flags.c_contiguous
    for shape in ((0, 64), (3, 0, 64), (0, 3, 64)):
        a, b = quantize(np.empty(shape, np.float32), i), quantize(np.empty(shape, np.float32).swapaxes(-1, -2), i, "B")
        assert a.scales.shape == (*shape[:-1], 64 // size) and b.elements.shape == (*shape[:-2], 64, shape[-2])
        assert a.dequantize().shape == shape
