"""Block scales: PTX's places as plain formulas, every code; quantisation against gfloat and plain float32."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import needs

from warpmma.errors import OperandError, ScaleError
from warpmma.formats import FORMATS
from warpmma.isa import Instruction, instructions, parse
from warpmma.layouts import Operand
from warpmma.scaling import (
    Quantized,
    block_size,
    byte_ids,
    pack_scales,
    quantize,
    scale_place,
    thread_ids,
    unpack_scales,
)

SCALED = [i for i in instructions() if i.block_scale]
OPERANDS: tuple[Operand, ...] = ("A", "B")
MX = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.{}.{}.f32.ue8m0"
MXFP8 = MX.format("e4m3", "e4m3")
MXFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
ELEMENTS = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
E8M0, E4M3 = ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e4m3fn
TINY, ABOVE, BELOW = 2.0**-149, float.fromhex("0x1.aaaaacp-1"), float.fromhex("0x1.a49248p-9")
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
ZEROS, WORDS = np.zeros((16, 4), np.uint8), np.zeros((2, 32), np.uint32)
each_instruction = pytest.mark.parametrize("instruction", SCALED, ids=str)
each_operand = pytest.mark.parametrize("operand", OPERANDS)


def lane_of(operand: Operand, index: int, thread_id: int) -> int:
    """PTX ISA 9.1, 9.7.14.3: of A a pair of lanes in each quad, rows 0-7 in the even one; of B one lane."""
    return 4 * (index % 8) + 2 * thread_id + (index >> 3) if operand == "A" else 4 * index + thread_id


def selectors_of(instruction: Instruction, operand: Operand) -> Iterator[dict[str, int]]:
    """PTX ISA 9.1, table 37."""
    for byte_id in {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}[instruction.scales_per_row]:
        for thread_id in (0, 1) if operand == "A" else (0, 1, 2, 3):
            yield {"byte_id": byte_id, "thread_id": thread_id}


def shape_of(instruction: Instruction, operand: Operand) -> tuple[int, int]:
    s = instruction.scales_per_row
    return (instruction.m, s) if operand == "A" else (s, instruction.n)


def random_codes(*shape: int) -> Array:
    return np.random.default_rng(1).integers(0, 128, shape, np.uint8)


@each_instruction
def test_selectors_and_block_size(instruction: Instruction) -> None:
    for operand in OPERANDS:
        both = [{"byte_id": b, "thread_id": t} for b in byte_ids(instruction) for t in thread_ids(operand)]
        assert both == list(selectors_of(instruction, operand))
    # CuTe's vector sizes: 32, or 16 for 4X; twice that where A is sparse, in columns of the dense matrix.
    dense = 16 if instruction.scale_vec == "4X" else 32
    assert block_size(instruction) == block_size(str(instruction)) == dense * (2 if instruction.sparse else 1)


@each_instruction
@each_operand
def test_every_scale_has_ptxs_place(instruction: Instruction, operand: Operand) -> None:
    codes = random_codes(*shape_of(instruction, operand))
    into = np.random.default_rng(2).integers(0, 1 << 32, 32, np.uint32)
    before = into.tolist()
    lines = codes if operand == "A" else codes.T
    for selectors in selectors_of(instruction, operand):
        blank, kept = [0] * 32, before.copy()
        for index, block in np.ndindex(lines.shape):
            lane = lane_of(operand, index, selectors["thread_id"])
            shift = 8 * (selectors["byte_id"] + block)
            assert scale_place(instruction, operand, index, block, **selectors) == (lane, shift)
            blank[lane] |= int(lines[index, block]) << shift
            kept[lane] = kept[lane] & ~(0xFF << shift) | int(lines[index, block]) << shift
        words = pack_scales(codes, instruction, operand, **selectors)
        merged = pack_scales(codes, instruction, operand, into=into, **selectors)
        assert words.dtype == merged.dtype == np.uint32
        assert (words.tolist(), merged.tolist(), into.tolist()) == (blank, kept, before)
        for packed in (words, merged):
            back = unpack_scales(packed, instruction, operand, **selectors)
            assert back.dtype == np.uint8
            assert back.tolist() == codes.tolist()


@pytest.mark.parametrize("mnemonic", [MXFP8, MXFP4, NVFP4])
@each_operand
def test_batches_are_packed_one_by_one(mnemonic: str, operand: Operand) -> None:
    codes = random_codes(2, 3, *shape_of(parse(mnemonic), operand))
    base = np.random.default_rng(3).integers(0, 1 << 32, (3, 32), np.uint32)
    words, merged = (pack_scales(codes, mnemonic, operand, into=into) for into in (None, base))
    shared = pack_scales(codes[1, 2], mnemonic, operand, into=base)
    assert words.shape == merged.shape == (2, 3, 32)
    assert shared[2].tolist() == merged[1, 2].tolist()
    for i, j in np.ndindex(2, 3):
        assert words[i, j].tolist() == pack_scales(codes[i, j], mnemonic, operand).tolist()
        assert merged[i, j].tolist() == pack_scales(codes[i, j], mnemonic, operand, into=base[j]).tolist()
    for x in (words, np.repeat(words, 2, axis=-1)[..., ::2]):
        assert unpack_scales(x, mnemonic, operand).tolist() == codes.tolist()


@pytest.mark.parametrize(("mnemonic", "count", "dtype"), [(MXFP8, 256, E8M0), (NVFP4, 128, E4M3)])
@each_operand
def test_every_code_survives(mnemonic: str, count: int, dtype: Any, operand: Operand) -> None:
    codes = np.arange(count, dtype=np.uint8).reshape(-1, *shape_of(parse(mnemonic), operand))
    for selectors in selectors_of(parse(mnemonic), operand):
        for scales in (codes, codes.view(dtype)):
            words = pack_scales(scales, mnemonic, operand, **selectors)
            assert unpack_scales(words, mnemonic, operand, **selectors).tolist() == codes.tolist()


def test_the_top_bit_of_a_ue4m3_is_dropped() -> None:
    for code in range(256):
        words = np.full(32, code * 0x01010101, np.uint32)
        for operand in OPERANDS:
            assert set(unpack_scales(words, NVFP4, operand).ravel().tolist()) == {code & 0x7F}


def codes_of(q: Quantized, element: str = "e2m1") -> Array:
    return FORMATS[element].codes(q.elements)


def row_of(*blocks: tuple[float, ...], size: int) -> Array:
    return np.array([[x for block in blocks for x in (*block, *[0] * (size - len(block)))]], np.float32)


@pytest.mark.parametrize(
    ("element", "values", "scale", "expected"),
    [
        # 7.9 is in [4, 8): X = 2 - 2 = 0, the code 127. e2m1 is 0 0.5 1 1.5 2 3 4 6, codes 0 to 7. 7.9
        # saturates; 5, 3.5, 2.5, 0.75, 0.25 are ties: the even codes are 4, 4, 2, 1, 0. Zero keeps its sign.
        ("e2m1", (7.9, 5, 3.5, 2.5, 0.75, -0.25, -0.0), 127, (7, 6, 6, 4, 2, 8, 8)),
        # 511 is in [256, 512): X = 8 - 8 = 0. The largest e4m3 is 448; 272 is between 256 (0x78) and 288.
        ("e4m3", (511, -480, 272, 1), 127, (0x7E, 0xFE, 0x78, 0x38)),
        # The largest float32 is just below 2**128: X = 127 - 15 = 112, code 239; 2**16 saturates at 57344.
        ("e5m2", (3.4028235e38, -(2.0**127)), 239, (0x7B, 0xF8)),
        # 2**-127 would have X = -127 - 8, which is clamped to -127, the code 0: the element is 1. The least
        # e4m3 is then 2**-136; 2**-137 is half of it, a tie with 0; the least float32 is far below.
        ("e4m3", (2.0**-127, 2.0**-136, -(2.0**-137), 2.0**-149), 0, (0x38, 0x01, 0x80, 0x00)),
        ("e2m3", (7.5, 7.75, 0.0625, 0.1875), 127, (0x1F, 0x1F, 0x00, 0x02)),  # steps of 1/8 below 2: ties
        ("e3m2", (28, 31, 0.03125, 0.09375), 127, (0x1F, 0x1F, 0x00, 0x02)),  # steps of 1/16 below 1/2: ties
        ("e4m3", (0.0, -0.0), 0, (0x00, 0x80)),  # nothing but zeros
    ],
)  # fmt: skip
def test_mx_rows_worked_by_hand(element: str, values: Any, scale: int, expected: tuple[int, ...]) -> None:
    q = quantize(row_of(values, size=32), MX.format(element, element))
    assert (q.scales.tolist(), q.tensor_scale) == ([[scale]], None)
    assert codes_of(q, element).tolist() == [[*expected, *[0] * (32 - len(expected))]]


def mx_blocks() -> Array:
    """Blocks of 32: all magnitudes, subnormals, powers of two and their neighbours, ties, zeros."""
    rng = np.random.default_rng(4)
    spread = rng.standard_normal((60, 32)) * 2.0 ** rng.integers(-20, 1, (60, 32))
    anywhere = (spread * 2.0 ** rng.integers(-145, 122, (60, 1))).astype(np.float32)
    least = rng.integers(0, 1 << 24, (20, 32), np.uint32).view(np.float32)  # below 2**-125
    greatest = rng.integers(0x7E800000, 0x7F800000, (20, 32), np.uint32).view(np.float32)  # from 2**126
    powers = np.ldexp(1.0, np.arange(-149, 128, 4)).astype(np.float32)
    peaks = [powers, np.nextafter(powers, np.float32(0)), np.nextafter(powers, np.float32(2e38))]
    ties = np.concatenate(peaks)[:, None] * (np.arange(-15, 17) / 16).astype(np.float32)
    return np.concatenate([anywhere, least, greatest, ties, np.array([[0.0, -0.0] * 16], np.float32)])


@needs("gfloat")
@pytest.mark.parametrize("element", ELEMENTS)
def test_mx_is_gfloats(element: str) -> None:
    from gfloat import formats
    from gfloat.block import BlockFormatInfo, compute_scale_amax, encode_block

    kind = getattr(formats, f"format_info_ocp_{element}")
    block_format = BlockFormatInfo(element, kind, 32, formats.format_info_ocp_e8m0)
    blocks = mx_blocks()
    q = quantize(blocks, MX.format(element, "e4m3"))
    for row, block in enumerate(blocks.astype(np.float64)):  # gfloat takes log2, which float32 would round
        scale = compute_scale_amax(kind.emax, block)
        code, *elements = encode_block(block_format, scale, (block / scale).tolist())
        assert (code, elements) == (q.scales[row, 0], codes_of(q, element)[row].tolist()), block


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("special", [np.float32(np.nan), -np.nan, np.float32(np.inf), -np.inf])
def test_a_block_with_nan_or_infinity_is_nan(element: str, special: Any) -> None:
    # Unlike gfloat, which gives infinity the scale 2**127, and NaN an element that most types do not have.
    matrix = np.full((2, 64), -1.5, type(special))
    plain = quantize(matrix, MX.format(element, element))
    matrix[1, 40] = special
    q = quantize(matrix, MX.format(element, element))
    good, minus = int(plain.scales[0, 0]), int(codes_of(plain, element)[0, 0])
    assert q.scales.tolist() == [[good, good], [good, 0xFF]]
    assert codes_of(q, element).tolist() == [[minus] * 64, [minus] * 32 + [0] * 32]
    assert np.isnan(q.dequantize()).tolist() == [[False] * 64, [False] * 32 + [True] * 32]


@given(element=st.sampled_from(ELEMENTS), values=st.lists(FINITE, min_size=32, max_size=32))
@example(element="e4m3", values=[511.0] * 32)  # saturates: without that, X would grow with the element
def test_what_was_quantised_by_mx_stays(element: str, values: list[float]) -> None:
    once = quantize(np.array([values], np.float32), MX.format(element, element))
    again = quantize(once.dequantize(), MX.format(element, element))  # as float64, which must hold float32's
    assert again.scales.tolist() == once.scales.tolist()
    assert codes_of(again, element).tolist() == codes_of(once, element).tolist()


@pytest.mark.parametrize(
    ("blocks", "tensor", "scales", "expected"),
    [
        # 2688 = 448 * 6, so the tensor scale is 1. 2688 / 6 = 448 is 0x7E; v / 448 is 6, 3 and 2.5, a tie: 2.
        # In the second block 6 / 6 = 1 is 0x38; 5 is a tie of 4 and 6, -0.25 one of -0 and -0.5.
        ([(2688, 1344, 1120), (6, 5, -0.25)], 0x3F800000, [0x7E, 0x38], [(7, 5, 4), (7, 6, 8)]),
        # 7 / 6 = 1.17 is nearer to 1.125 (0x39) than to 1.25; 7 / 1.125 = 6.2 saturates; 3.3 / 1.125 is 2.93.
        ([(2688,), (7, 3.3)], 0x3F800000, [0x7E, 0x39], [(7,), (7, 5)]),
        # 0.005 / 6 is below 2**-10, half of the least ue4m3: the scale is 0, and so are the elements.
        ([(2688,), (0.005, -0.005)], 0x3F800000, [0x7E, 0x00], [(7,), (0, 8)]),
        # 1 / 2688 = 2**-12 * 1.5238095238, and .5238095238 * 2**23 = 4394032.8 rounds to 4394033 = 0x430C31.
        # float32(1 / 6) by it is close to 448, 1 by 448 times it to 6, and 0.5 / 6 by it to 224, 0x76.
        ([(1, -0.5), (0.5,)], 0x39C30C31, [0x7E, 0x76], [(7, 13), (7,)]),
        # Quotients round to float32 first. By 448 times the same tensor scale the second value is 5 + 9e-8,
        # the third 0.75 - 2e-8; the last maximum gives a scale of 1.4375 - 9e-8. In float32 all are ties,
        # which go to 4, 1 and 1.5; rounded only once they would go to 6, 0.5 and 1.375.
        ([(1, ABOVE, 0.125), (BELOW,)], 0x39C30C31, [0x7E, 0x3C], [(7, 6, 2), (7,)]),
        ([(0.0, -0.0)], 0x3F800000, [0x00], [(0, 8)]),  # zeros: the tensor scale is 1
        # The least float32 by 2688 would be 0, so the tensor scale is 2**-149 instead. 2**-149 / 6 is 0.
        ([(TINY,)], 0x00000001, [0x00], [(0,)]),
        ([(60 * TINY, -25 * TINY)], 0x00000001, [0x52], [(7, 12)]),  # 60 / 6 = 10; elements are v / 10
        ([(4030 * TINY,)], 0x00000001, [0x7E], [(7,)]),  # 4030 / 2688 rounds to 1: 4030 / 6 saturates at 448
    ],
)  # fmt: skip
def test_nvfp4_rows_worked_by_hand(blocks: Any, tensor: int, scales: list[int], expected: Any) -> None:
    q = quantize(row_of(*blocks, size=16), NVFP4)
    assert isinstance(q.tensor_scale, np.float32)
    assert int(q.tensor_scale.view(np.uint32)) == tensor
    assert q.scales.tolist() == [scales]
    assert codes_of(q).tolist() == row_of(*expected, size=16).tolist()


def nvfp4_in_float32(matrix: Array, size: int) -> tuple[Array, Array, Any]:
    """Return codes, scales and tensor scale by the processor's float32 and ml_dtypes' roundings."""
    blocks = matrix.reshape(*matrix.shape[:-1], -1, size)
    six, most = np.float32(6), np.float32(448)
    tensor = np.maximum(np.abs(matrix).max() / np.float32(2688), np.float32(TINY))
    scales = np.minimum(np.abs(blocks).max(axis=-1) / six / tensor, most).astype(E4M3)
    divisor = (scales.astype(np.float32) * tensor)[..., None]
    quotient = np.divide(blocks, divisor, out=np.copysign(np.float32(0), blocks), where=divisor > 0)
    elements = np.clip(quotient, -six, six).astype(ml_dtypes.float4_e2m1fn)
    return elements.view(np.uint8).reshape(matrix.shape) & 0xF, scales.view(np.uint8), tensor


@pytest.mark.parametrize("exponent", [-146, -142, -136, -130, -120, -60, 0, 60, 120])
@pytest.mark.parametrize("instruction", [i for i in SCALED if i.stype == "ue4m3"], ids=str)
def test_nvfp4_is_its_rule_in_float32(instruction: Instruction, exponent: int) -> None:
    rng = np.random.default_rng(5)
    spread = rng.standard_normal((3, 40, 16)) * 2.0 ** rng.integers(-12, 1, (3, 40, 1))
    matrices = (spread * 2.0**exponent).astype(np.float32).reshape(3, 5, 128)
    q = quantize(matrices, instruction)
    expected = [nvfp4_in_float32(matrix, block_size(instruction)) for matrix in matrices]
    elements, scales, tensors = (np.array(x) for x in zip(*expected, strict=True))
    np.testing.assert_array_equal(codes_of(q), elements)
    np.testing.assert_array_equal(q.scales, scales)
    assert np.asarray(q.tensor_scale).tolist() == tensors.tolist()


@each_instruction
@each_operand
def test_values_are_elements_times_scales(instruction: Instruction, operand: Operand) -> None:
    matrix = np.random.default_rng(6).standard_normal((2, 3, 2 * instruction.k)).astype(np.float32)
    q = quantize(matrix if operand == "A" else matrix.swapaxes(-1, -2), instruction, operand)
    assert q.elements.dtype == instruction.format(operand).dtype
    assert q.elements.flags.c_contiguous and q.scales.flags.c_contiguous
    # Python's floats hold the product of element, scale and tensor scale exactly.
    size, scales = block_size(instruction), FORMATS[instruction.stype or ""].decode(q.scales)
    tensor = np.ones(2) if q.tensor_scale is None else np.asarray(q.tensor_scale, float)
    expected = np.empty(q.elements.shape)
    for i, row, column in np.ndindex(expected.shape):
        scale = scales[i, row, column // size] if operand == "A" else scales[i, row // size, column]
        expected[i, row, column] = float(q.elements[i, row, column]) * scale * tensor[i]
    assert q.dequantize().dtype == np.float64
    assert q.dequantize().tolist() == expected.tolist()
    if operand == "B" and instruction.a_type == instruction.b_type:  # B is A transposed
        a = quantize(matrix, instruction)
        assert a.dequantize().swapaxes(-1, -2).tolist() == expected.tolist()
        assert a.scales.swapaxes(-1, -2).tolist() == q.scales.tolist()


def test_dequantize_reaches_the_ends() -> None:
    def one(element: str, code: int, scale: int, tensor: float | None = None) -> float:
        elements = FORMATS[element].array(np.full((1, 32), code, np.uint8))
        scales, level = np.full((1, 1), scale, np.uint8), None if tensor is None else np.float32(tensor)
        return float(Quantized(elements=elements, scales=scales, tensor_scale=level).dequantize()[0, 31])

    assert one("e5m2", 0x7B, 254) == 57344 * 2.0**127
    assert one("e2m1", 1, 0x01, TINY) == 2.0**-159
    assert one("e2m1", 15, 0x7E, 2.0**127) == -6 * 448 * 2.0**127
    assert one("e2m1", 15, 0xFE, 1) == -6 * 448  # the top bit of a ue4m3 says nothing
    assert np.isnan([one("e2m1", 0, 0xFF), one("e2m1", 0, 0x7F, 1)]).all()


@pytest.mark.parametrize("mnemonic", [MXFP8, NVFP4])
def test_what_matrices_are_taken(mnemonic: str) -> None:
    half = np.random.default_rng(8).standard_normal((4, 64)).astype(ml_dtypes.bfloat16)
    expected = quantize(half.astype(np.float32), mnemonic).dequantize()
    for dtype in (ml_dtypes.bfloat16, np.float16, np.float64):  # float16 holds these bfloat16 as well
        assert quantize(half.astype(dtype), mnemonic).dequantize().tolist() == expected.tolist()
    assert quantize(np.empty((0, 64), np.float32), mnemonic).dequantize().shape == (0, 64)


CALLS: tuple[Any, ...] = (
    lambda i, o: block_size(i),
    lambda i, o: byte_ids(i),
    lambda i, o: scale_place(i, o, 0, 0),
    lambda i, o: pack_scales(np.zeros((16, 1), np.uint8), i, o),
    lambda i, o: unpack_scales(np.zeros(32, np.uint32), i, o),
    lambda i, o: quantize(np.zeros((16, 32), np.float32), i, o),
)


@pytest.mark.parametrize("call", CALLS)
def test_an_instruction_must_have_scales(call: Any) -> None:
    dense = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
    with pytest.raises(ScaleError, match=rf"^{dense} has no block scaling\. Nearest that has: {MXFP8}$"):
        call(dense, "A")


@pytest.mark.parametrize("call", [*CALLS[2:], lambda i, o: thread_ids(o)])
def test_an_operand_must_have_scales(call: Any) -> None:
    with pytest.raises(OperandError, match=r"^operand 'D' has no scales; expected 'A' or 'B'$"):
        call(MXFP8, "D")


def pack(scales: Any, mnemonic: str = NVFP4, operand: Operand = "A", **more: Any) -> object:
    return pack_scales(scales, mnemonic, operand, **more)


def unpack(words: Any, mnemonic: str = NVFP4, **more: Any) -> object:
    return unpack_scales(words, mnemonic, "B", **more)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: unpack(WORDS, MXFP8, byte_id=4), "byte-id of B is 4; expected 0, 1, 2, 3"),
        (lambda: unpack(WORDS, MXFP8, byte_id=1.0), "byte-id of B is 1.0; expected 0, 1, 2, 3"),
        (lambda: unpack(WORDS, MXFP4, byte_id=1), "byte-id of B is 1; expected 0, 2"),
        (lambda: unpack(WORDS, thread_id=-1), "thread-id of B is -1; expected 0, 1, 2, 3"),
        (lambda: scale_place(NVFP4, "A", 0, 0, byte_id=2), "byte-id of A is 2; expected 0"),
        (lambda: pack(ZEROS, thread_id=2), "thread-id of A is 2; expected 0, 1"),
        (lambda: scale_place(NVFP4, "A", 16, 0), "no scale for index 16, block 0 of A; it has 16 by 4"),
        (lambda: scale_place(NVFP4, "B", 0, 4), "no scale for index 0, block 4 of B; it has 8 by 4"),
        (lambda: scale_place(NVFP4, "B", -1, 0), "no scale for index -1, block 0 of B; it has 8 by 4"),
        (lambda: scale_place(NVFP4, "B", 0, -1), "no scale for index 0, block -1 of B; it has 8 by 4"),
        (lambda: pack(ZEROS, operand="B"), "scales of B are (16, 4); expected [..., 4, 8]"),
        (lambda: pack(ZEROS * 1.0), "scales of A are float64; expected float8_e4m3fn, or codes as uint8"),
        (lambda: pack(ZEROS.view(E8M0)), "scales of A are float8_e8m0fnu; expected float8_e4m3fn, or codes"),
        (lambda: pack([[127]] * 16, MXFP8), "scales of A are int64; expected float8_e8m0fnu, or codes"),
        (lambda: pack(ZEROS | np.uint8(128)), "scale 0x80 of A at [0, 0] has its top bit set; ue4m3 has no"),
        (lambda: pack(-(ZEROS + 1).view(E4M3)), "scale 0x81 of A at [0, 0] has its top bit set"),
        (lambda: pack([ZEROS] * 3, into=WORDS), "scales (3, 16, 4) and into (2, 32) do not broadcast"),
        (lambda: pack(ZEROS, into=WORDS[:, 1:]), "words of A's scales are uint32 (2, 31); expected uint32"),
        (lambda: unpack(np.uint32(0)), "words of B's scales are uint32 (); expected uint32 [..., 32]"),
        (lambda: unpack([1] * 32), "words of B's scales are int64 (32,); expected uint32 [..., 32]"),
    ],
)  # fmt: skip
def test_wrong_scales_and_words(call: Any, expected: str) -> None:
    with pytest.raises(ScaleError, match=f": {re.escape(expected)}"):
        call()


@pytest.mark.parametrize(
    ("matrix", "operand", "expected"),
    [
        (np.zeros((16, 40), "f4"), "A", "A is (16, 40); expected [..., rows, K], K a multiple of 16"),
        (np.zeros((40, 16), "f4"), "B", "B is (40, 16); expected [..., K, columns], K a multiple of 16"),
        (np.zeros((16, 0), "f4"), "A", "A is (16, 0); expected"),
        (np.zeros(16, "f4"), "A", "A is (16,); expected"),
        (np.zeros((16, 16), int), "A", "A is int64; expected float32, 64 or 16, or bfloat16"),
        (np.eye(16) / 10, "A", "A holds 0.1 at [0, 0], which is not a float32 value; round it with"),
        (np.full((16, 16), np.nan, "f4"), "A", "A holds NaN or infinity, for which NVFP4 has no scale"),
        (np.full((16, 16), -np.inf), "B", "B holds NaN or infinity, for which NVFP4 has no scale"),
    ],
)  # fmt: skip
def test_wrong_matrices(matrix: Array, operand: Operand, expected: str) -> None:
    with pytest.raises(OperandError, match=f": {re.escape(expected)}"):
        quantize(matrix, NVFP4, operand)
