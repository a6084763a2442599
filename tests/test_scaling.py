"""Block scales: PTX's places as plain formulas, every code, and quantisation against gfloat and plain float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from warpmma.errors import MnemonicError, OperandError, ScaleError
from warpmma.formats import FORMATS
from warpmma.instructions import Instruction, instructions, parse
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

Array = npt.NDArray[Any]

SCALED = [i for i in instructions() if i.block_scale]
OPERANDS: tuple[Operand, ...] = ("A", "B")
MX = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.{}.{}.f32.ue8m0"
MXFP8 = MX.format("e4m3", "e4m3")
MXFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
DENSE = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
ELEMENTS = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
SCALE_TYPES = {MXFP8: ml_dtypes.float8_e8m0fnu, NVFP4: ml_dtypes.float8_e4m3fn}
each_instruction = pytest.mark.parametrize("instruction", SCALED, ids=str)
each_operand = pytest.mark.parametrize("operand", OPERANDS)


# Where a scale sits (PTX ISA 9.1, 9.7.14.3).


def lane_of(operand: Operand, index: int, thread_id: int) -> int:
    """For A the lower or upper pair of a quad, rows 0-7 in its even lane; for B one lane of a quad."""
    return 4 * (index % 8) + 2 * thread_id + (index >> 3) if operand == "A" else 4 * index + thread_id


def legal(instruction: Instruction, operand: Operand) -> Iterator[tuple[int, int]]:
    """Table 37: byte-ids and thread-ids."""
    for byte_id in {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}[instruction.scales_per_row]:
        for thread_id in (0, 1) if operand == "A" else (0, 1, 2, 3):
            yield byte_id, thread_id


def indices(instruction: Instruction, operand: Operand) -> range:
    return range(instruction.m if operand == "A" else instruction.n)


def shape_of(instruction: Instruction, operand: Operand) -> tuple[int, int]:
    s = instruction.scales_per_row
    return (instruction.m, s) if operand == "A" else (s, instruction.n)


def random_codes(instruction: Instruction, shape: tuple[int, ...], seed: int = 1) -> Array:
    above = 256 if instruction.stype == "ue8m0" else 128
    return np.random.default_rng(seed).integers(0, above, shape, np.uint8)


@each_instruction
def test_every_scale_has_ptxs_place(instruction: Instruction) -> None:
    for operand in OPERANDS:
        for byte_id, thread_id in legal(instruction, operand):
            for index in indices(instruction, operand):
                for block in range(instruction.scales_per_row):
                    place = scale_place(
                        instruction, operand, index, block, byte_id=byte_id, thread_id=thread_id
                    )
                    assert place == (lane_of(operand, index, thread_id), 8 * (byte_id + block))


@each_instruction
def test_selectors_and_block_size(instruction: Instruction) -> None:
    for operand in OPERANDS:
        expected = set(legal(instruction, operand))
        assert {(b, t) for b in byte_ids(instruction) for t in thread_ids(operand)} == expected
    # CuTe's vector sizes: 32, or 16 for 4X; twice that where A is sparse, in columns of the dense matrix.
    dense = 16 if instruction.scale_vec == "4X" else 32
    assert block_size(instruction) == block_size(str(instruction)) == dense * (2 if instruction.sparse else 1)


@each_instruction
@each_operand
def test_packed_words_are_those_of_the_formula(instruction: Instruction, operand: Operand) -> None:
    codes = random_codes(instruction, shape_of(instruction, operand))
    into = np.random.default_rng(2).integers(0, 1 << 32, 32, np.uint32)
    for byte_id, thread_id in legal(instruction, operand):
        selectors: dict[str, int] = {"byte_id": byte_id, "thread_id": thread_id}
        blank, kept = [0] * 32, [int(x) for x in into]
        for index in indices(instruction, operand):
            lane = lane_of(operand, index, thread_id)
            for block in range(instruction.scales_per_row):
                shift = 8 * (byte_id + block)
                code = int(codes[index, block] if operand == "A" else codes[block, index])
                blank[lane] |= code << shift
                kept[lane] = kept[lane] & ~(0xFF << shift) | code << shift
        words = pack_scales(codes, instruction, operand, **selectors)
        assert words.dtype == np.uint32
        assert words.tolist() == blank
        before = into.copy()
        merged = pack_scales(codes, instruction, operand, into=into, **selectors)
        assert merged.tolist() == kept
        np.testing.assert_array_equal(into, before)
        for packed in (words, merged):
            back = unpack_scales(packed, instruction, operand, **selectors)
            assert back.dtype == np.uint8
            np.testing.assert_array_equal(back, codes)


@each_instruction
@each_operand
def test_the_selectors_share_out_all_the_bytes(instruction: Instruction, operand: Operand) -> None:
    ones = np.ones(shape_of(instruction, operand), np.uint8)
    total = np.zeros(32, np.uint32)
    for byte_id, thread_id in legal(instruction, operand):
        total += pack_scales(ones, instruction, operand, byte_id=byte_id, thread_id=thread_id)
    assert total.tolist() == [0x01010101] * 32


@pytest.mark.parametrize("mnemonic", [MXFP8, MXFP4, NVFP4])
@each_operand
def test_batches_are_packed_one_by_one(mnemonic: str, operand: Operand) -> None:
    instruction = parse(mnemonic)
    codes = random_codes(instruction, (2, 3, *shape_of(instruction, operand)))
    words = pack_scales(codes, instruction, operand, thread_id=1)
    assert words.shape == (2, 3, 32)
    for place in np.ndindex(2, 3):
        assert words[place].tolist() == pack_scales(codes[place], instruction, operand, thread_id=1).tolist()
    np.testing.assert_array_equal(unpack_scales(words, instruction, operand, thread_id=1), codes)
    every_second = np.repeat(words, 2, axis=-1)[..., ::2]  # strided
    np.testing.assert_array_equal(unpack_scales(every_second, instruction, operand, thread_id=1), codes)
    # One set of words for all, and one set of scales for several words.
    base = np.random.default_rng(3).integers(0, 1 << 32, (3, 32), np.uint32)
    for scales in (codes, codes[0, 0]):
        merged = pack_scales(scales, instruction, operand, thread_id=1, into=base)
        assert merged.shape == (*scales.shape[:-3], 3, 32)
        for place in np.ndindex(merged.shape[:-1]):
            one = scales[place] if scales.ndim > 2 else scales
            expected = pack_scales(one, instruction, operand, thread_id=1, into=base[place[-1]])
            assert merged[place].tolist() == expected.tolist()


@pytest.mark.parametrize(("mnemonic", "count"), [(MXFP8, 256), (NVFP4, 128)])
@each_operand
def test_every_code_survives(mnemonic: str, count: int, operand: Operand) -> None:
    instruction = parse(mnemonic)
    codes = np.arange(count, dtype=np.uint8).reshape(-1, *shape_of(instruction, operand))
    for scales in (codes, codes.view(SCALE_TYPES[mnemonic])):
        for byte_id, thread_id in legal(instruction, operand):
            words = pack_scales(scales, instruction, operand, byte_id=byte_id, thread_id=thread_id)
            back = unpack_scales(words, instruction, operand, byte_id=byte_id, thread_id=thread_id)
            np.testing.assert_array_equal(back, codes)


@each_operand
def test_the_hardware_ignores_the_top_bit_of_ue4m3_and_none_of_ue8m0(operand: Operand) -> None:
    for code in range(256):
        words = np.full(32, code * 0x01010101, np.uint32)
        assert set(unpack_scales(words, NVFP4, operand).ravel().tolist()) == {code & 0x7F}
        assert set(unpack_scales(words, MXFP4, operand).ravel().tolist()) == {code}


# Quantisation: MX.


def codes_of(q: Quantized, element: str) -> Array:
    return FORMATS[element].codes(q.elements)


def in_row(*values: float, size: int) -> Array:
    """One block: these values, then zeros."""
    return np.array([[*values, *[0.0] * (size - len(values))]], np.float32)


@pytest.mark.parametrize(
    ("element", "values", "scale", "expected"),
    [
        # 7.9 is in [4, 8), so X = 2 - 2 = 0, the code 127. e2m1 is 0 0.5 1 1.5 2 3 4 6, codes 0 to 7. 7.9
        # saturates; 5, 3.5, 2.5, 0.75 and 0.25 are ties, and go to even codes: 4, 4, 2, 1, 0. Zero keeps its sign.
        ("e2m1", (7.9, 5, 3.5, 2.5, 0.75, -0.25, -0.0), 127, (7, 6, 6, 4, 2, 8, 8)),
        # 511 is in [256, 512): X = 8 - 8 = 0. The largest e4m3 is 448; 264 is half way from 256 (0x78) to 288.
        ("e4m3", (511, -480, 264, 1), 127, (0x7E, 0xFE, 0x78, 0x38)),
        # The same by 2**-40; 127 - 40 = 87.
        ("e4m3", (511 * 2.0**-40, -480 * 2.0**-40, 264 * 2.0**-40, 2.0**-40), 87, (0x7E, 0xFE, 0x78, 0x38)),
        # The largest float32 is just below 2**128: X = 127 - 15 = 112, the code 239; 2**16 saturates at 57344.
        ("e5m2", (3.4028235e38, -(2.0**127)), 239, (0x7B, 0xF8)),
        # 2**-127 would have X = -127 - 8, which is clamped to -127, the code 0: the element is 1. 2**-136 is the
        # least e4m3 then; 2**-137 is half of it, a tie with 0; the least float32 is far below.
        ("e4m3", (2.0**-127, 2.0**-136, -(2.0**-137), 2.0**-149), 0, (0x38, 0x01, 0x80, 0x00)),
        # 2**-119 has X = -127 without any clamping: the element is 2**8.
        ("e4m3", (2.0**-119,), 0, (0x78,)),
        ("e2m3", (7.5, 7.75, 0.0625, 0.1875), 127, (0x1F, 0x1F, 0x00, 0x02)),  # steps of 1/8 below 2: two ties
        ("e3m2", (28, 31, 0.03125, 0.09375), 127, (0x1F, 0x1F, 0x00, 0x02)),  # steps of 1/16 below 1/2: two ties
        ("e4m3", (0.0, -0.0), 0, (0x00, 0x80)),  # nothing but zeros
    ],
)  # fmt: skip
def test_mx_rows_worked_by_hand(
    element: str, values: tuple[float, ...], scale: int, expected: tuple[int, ...]
) -> None:
    q = quantize(in_row(*values, size=32), MX.format(element, element))
    assert q.scales.tolist() == [[scale]]
    assert codes_of(q, element).tolist() == [[*expected, *[0] * (32 - len(expected))]]
    assert q.tensor_scale is None


def mx_blocks() -> Array:
    """Blocks of 32: all magnitudes, subnormals, powers of two and their neighbours, ties, zeros."""
    rng = np.random.default_rng(4)
    spread = rng.standard_normal((60, 32)) * 2.0 ** rng.integers(-20, 1, (60, 32))
    blocks = [(spread * 2.0 ** rng.integers(-145, 122, (60, 1))).astype(np.float32)]
    blocks.append(rng.integers(0, 1 << 24, (20, 32), np.uint32).view(np.float32))  # subnormal, or nearly
    blocks.append(
        rng.integers(0x7E800000, 0x7F800000, (20, 32), np.uint32).view(np.float32)
    )  # 2**126 and above
    powers = np.float32(2) ** np.arange(-149, 128, 4, dtype=np.float32)
    peaks = np.stack([powers, np.nextafter(powers, np.float32(0)), np.nextafter(powers, np.float32(np.inf))])
    grid = np.arange(-15, 16, dtype=np.float32) / 16  # half steps of every element type
    row = np.concatenate([grid, [np.float32(1)]])
    blocks.append((peaks.reshape(-1, 1) * row).astype(np.float32))
    blocks.append(np.array([[0.0, -0.0] * 16], np.float32))
    return np.concatenate(blocks)


@pytest.mark.parametrize("element", ELEMENTS)
def test_mx_is_gfloats(element: str) -> None:
    pytest.importorskip("gfloat")
    from gfloat import formats
    from gfloat.block import BlockFormatInfo, compute_scale_amax, encode_block

    kind = getattr(formats, f"format_info_ocp_{element}")
    block_format = BlockFormatInfo(element, kind, 32, formats.format_info_ocp_e8m0)
    blocks = mx_blocks()
    a, b = quantize(blocks, MX.format(element, "e4m3")), quantize(blocks.T, MX.format("e4m3", element), "B")
    assert a.elements.dtype == b.elements.dtype == FORMATS[element].dtype
    np.testing.assert_array_equal(codes_of(b, element), codes_of(a, element).T)
    np.testing.assert_array_equal(b.scales, a.scales.T)
    for row, block in enumerate(blocks.astype(np.float64)):  # gfloat takes log2, which float32 would round
        scale = compute_scale_amax(kind.emax, block)
        code, *elements = encode_block(block_format, scale, (block / scale).tolist())
        assert (code, elements) == (a.scales[row, 0], codes_of(a, element)[row].tolist()), block


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("special", [np.nan, -np.nan, np.inf, -np.inf])
def test_a_block_with_nan_or_infinity_is_nan(element: str, special: float) -> None:
    # gfloat cannot tell: infinity gets it the scale 2**127, and NaN an element that most types do not have.
    matrix = np.full((2, 64), -1.5, np.float32)
    matrix[1, 40] = special
    q = quantize(matrix, MX.format(element, element))
    plain = quantize(np.full((1, 32), -1.5, np.float32), MX.format(element, element))
    good = int(plain.scales[0, 0])
    assert q.scales.tolist() == [[good, good], [good, 0xFF]]
    minus = int(codes_of(plain, element)[0, 0])
    assert codes_of(q, element).tolist() == [[minus] * 64, [minus] * 32 + [0] * 32]
    assert np.isnan(q.dequantize()).tolist() == [[False] * 64, [False] * 32 + [True] * 32]


FLOATS = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, 1.0])
)


@given(element=st.sampled_from(ELEMENTS), values=st.lists(FLOATS, min_size=32, max_size=32))
@example(element="e4m3", values=[511.0] * 32)  # saturates: without that, X would grow with the element
@example(element="e2m1", values=[2.0**-149] * 32)
def test_what_was_quantised_by_mx_stays(element: str, values: list[float]) -> None:
    instruction = MX.format(element, element)
    once = quantize(np.array([values], np.float32), instruction)
    again = quantize(once.dequantize(), instruction)  # as float64, which must hold float32's
    assert again.scales.tolist() == once.scales.tolist()
    assert codes_of(again, element).tolist() == codes_of(once, element).tolist()


# Quantisation: NVFP4.

A_BIT_ABOVE_5, A_BIT_BELOW = float.fromhex("0x1.aaaaacp-1"), float.fromhex("0x1.a49248p-9")


@pytest.mark.parametrize(
    ("blocks", "tensor", "scales", "expected"),
    [
        # 2688 = 448 * 6, so the tensor scale is 1. 2688 / 6 = 448 is 0x7E; v / 448 is 6, 3, and a tie of 2.5 to 2.
        # In the second block 6 / 6 = 1 is 0x38, and 5 is a tie of 4 and 6, -0.25 one of -0 and -0.5. 7 / 6 = 1.167
        # is nearer to 1.125 (0x39) than to 1.25; 7 / 1.125 = 6.2 saturates, 3.3 / 1.125 = 2.93 is 3. The last:
        # 0.005 / 6 is below 2**-10, half of the least ue4m3: the scale is 0, and so are the elements.
        (
            [(2688, 1344, 1120), (6, 5, -0.25), (7, 3.3), (0.005, -0.005)], 0x3F800000,
            [0x7E, 0x38, 0x39, 0x00], [(7, 5, 4), (7, 6, 8), (7, 5), (0, 8)],
        ),
        # 1 / 2688 = 2**-12 * 1.5238095238, and .5238095238 * 2**23 = 4394032.8 rounds to 4394033 = 0x430C31.
        # float32(1 / 6) by that is close to 448, 1 / (448 * tensor scale) to 6, and 0.5 / 6 by it to 224, 0x76.
        ([(1, -0.5), (0.5,)], 0x39C30C31, [0x7E, 0x76], [(7, 13), (7,)]),
        # The quotients round to float32 first. By 448 times the same tensor scale the second value is 5 + 9e-8 and
        # the third 0.75 - 2e-8, and the last maximum gives a scale of 1.4375 - 9e-8: all are ties in float32, which
        # go to 4, 1 and 1.5, where one rounding would give 6, 0.5 and 1.375.
        ([(1, A_BIT_ABOVE_5, 0.125), (A_BIT_BELOW,)], 0x39C30C31, [0x7E, 0x3C], [(7, 6, 2), (7,)]),
        ([(0.0, -0.0)], 0x3F800000, [0x00], [(0, 8)]),  # zeros: tensor scale 1
        # 2**-149, the least float32, by 2688 would be 0; the tensor scale is 2**-149 instead. 2**-149 / 6 is 0.
        ([(2.0**-149,)], 0x00000001, [0x00], [(0,)]),
        # 60 * 2**-149: 60 / 6 = 10 is 0x52; elements are v / 10.
        ([(60 * 2.0**-149, -25 * 2.0**-149)], 0x00000001, [0x52], [(7, 12)]),
        # 4030 / 2688 = 1.4993 rounds to 1: 4030 / 6 = 671.7 saturates at 448, and 4030 / 448 = 9 at 6.
        ([(4030 * 2.0**-149,)], 0x00000001, [0x7E], [(7,)]),
    ],
)  # fmt: skip
def test_nvfp4_rows_worked_by_hand(
    blocks: list[tuple[float, ...]], tensor: int, scales: list[int], expected: list[tuple[int, ...]]
) -> None:
    matrix = np.concatenate([in_row(*block, size=16) for block in blocks], axis=1)
    q = quantize(matrix, NVFP4)
    assert isinstance(q.tensor_scale, np.float32)
    assert int(q.tensor_scale.view(np.uint32)) == tensor
    assert q.scales.tolist() == [scales]
    assert codes_of(q, "e2m1").tolist() == [[c for row in expected for c in (*row, *[0] * (16 - len(row)))]]


def nvfp4_in_float32(matrix: Array, size: int) -> tuple[Array, Array, Array]:
    """Transcribe the rule in the processor's float32 and ml_dtypes' roundings: codes, scales, tensor scale."""
    blocks = matrix.reshape(*matrix.shape[:-1], -1, size)
    six, least = np.float32(6), np.float32(2.0**-149)
    whole = np.abs(matrix).max()
    tensor = np.maximum(whole / np.float32(2688), least) if whole else np.float32(1)
    scales = np.minimum(np.abs(blocks).max(axis=-1) / six / tensor, np.float32(448)).astype(
        ml_dtypes.float8_e4m3fn
    )
    divisor = (scales.astype(np.float32) * tensor)[..., None]
    quotient = np.divide(blocks, divisor, out=np.copysign(np.float32(0), blocks), where=divisor > 0)
    elements = np.clip(quotient, -six, six).astype(ml_dtypes.float4_e2m1fn)
    return elements.view(np.uint8).reshape(matrix.shape) & 0xF, scales.view(np.uint8), tensor


@pytest.mark.parametrize("exponent", [-148, -146, -142, -136, -130, -120, -60, 0, 60, 120])
@pytest.mark.parametrize("instruction", [i for i in SCALED if i.stype == "ue4m3"], ids=str)
def test_nvfp4_is_its_rule_in_float32(instruction: Instruction, exponent: int) -> None:
    rng = np.random.default_rng(5)
    spread = rng.standard_normal((3, 40, 16)) * 2.0 ** rng.integers(-12, 1, (3, 40, 1))
    matrices = (spread * 2.0**exponent).astype(np.float32).reshape(3, 5, 128)
    q = quantize(matrices, instruction)
    assert isinstance(q.tensor_scale, np.ndarray)
    assert q.tensor_scale.shape == (3,)
    for row, matrix in enumerate(matrices):
        elements, scales, tensor = nvfp4_in_float32(matrix, block_size(instruction))
        np.testing.assert_array_equal(codes_of(q, "e2m1")[row], elements)
        np.testing.assert_array_equal(q.scales[row], scales)
        assert q.tensor_scale[row] == tensor
    b = quantize(matrices.swapaxes(-1, -2), instruction, "B")
    np.testing.assert_array_equal(codes_of(b, "e2m1").swapaxes(-1, -2), codes_of(q, "e2m1"))
    np.testing.assert_array_equal(b.scales.swapaxes(-1, -2), q.scales)
    np.testing.assert_array_equal(b.tensor_scale, q.tensor_scale)


# Quantisation: both.


@each_instruction
@each_operand
def test_elements_and_scales_are_what_the_instruction_takes(
    instruction: Instruction, operand: Operand
) -> None:
    k, outer = instruction.k, instruction.m if operand == "A" else instruction.n
    matrix = np.random.default_rng(6).standard_normal((2, 3, outer, k)).astype(np.float32)
    if operand == "B":
        matrix = matrix.swapaxes(-1, -2)
    q = quantize(matrix, instruction, operand)
    assert q.elements.dtype == instruction.format(operand).dtype
    assert q.elements.shape == matrix.shape
    assert q.scales.shape == (2, 3, *shape_of(instruction, operand))
    words = pack_scales(q.scales, instruction, operand)
    np.testing.assert_array_equal(unpack_scales(words, instruction, operand), q.scales)
    # The values are elements times scales times the tensor scale, which Python's floats hold exactly.
    size, stype = block_size(instruction), FORMATS[instruction.stype or ""]
    values, scales = q.elements.astype(float), stype.decode(q.scales)
    tensor = np.ones((2, 3)) if q.tensor_scale is None else np.asarray(q.tensor_scale, float)
    expected = np.empty(matrix.shape)
    for place in np.ndindex(matrix.shape):
        *batch, row, column = place
        own = (row, column // size) if operand == "A" else (row // size, column)
        expected[place] = values[place] * scales[(*batch, *own)] * tensor[tuple(batch)]
    assert q.dequantize().dtype == np.float64
    np.testing.assert_array_equal(q.dequantize(), expected)


def test_dequantize_reaches_the_ends() -> None:
    def one(element: str, code: int, scale: int, tensor: float | None = None) -> float:
        elements = FORMATS[element].array(np.full((1, 32), code, np.uint8))  # type: ignore[arg-type]
        ends = Quantized(
            elements=elements,
            scales=np.full((1, 1), scale, np.uint8),
            tensor_scale=None if tensor is None else np.float32(tensor),
        )
        return float(ends.dequantize()[0, 31])

    assert one("e5m2", 0x7B, 254) == 57344 * 2.0**127
    assert one("e5m2", 0x01, 0) == 2.0**-143
    assert one("e2m1", 1, 0x01, 2.0**-149) == 2.0**-159
    assert one("e2m1", 15, 0x7E, 2.0**127) == -6 * 448 * 2.0**127
    assert one("e2m1", 15, 0xFE, 1) == -6 * 448  # the top bit of a ue4m3 says nothing
    assert np.isnan([one("e2m1", 0, 0xFF), one("e2m1", 0, 0x7F, 1)]).all()


@pytest.mark.parametrize("mnemonic", [MXFP8, NVFP4])
def test_other_floats_are_taken_for_their_values(mnemonic: str) -> None:
    half = np.random.default_rng(7).standard_normal((4, 64)).astype(ml_dtypes.bfloat16)
    expected = quantize(half.astype(np.float32), mnemonic)
    for dtype in (ml_dtypes.bfloat16, np.float16, np.float64):  # float16 holds these bfloat16 as well
        q = quantize(half.astype(dtype), mnemonic)
        np.testing.assert_array_equal(q.dequantize(), expected.dequantize())
    with pytest.raises(OperandError, match=r"A holds 0\.1 at \[1, 2\], which is no float32; round it with"):
        quantize(np.where(np.arange(64).reshape(2, 32) == 34, 0.1, 0.0), mnemonic)


def test_no_rows_are_no_error() -> None:
    for mnemonic in (MXFP8, NVFP4):
        q = quantize(np.empty((0, 64), np.float32), mnemonic)
        assert q.dequantize().shape == (0, 64)
        assert q.scales.shape == (0, 64 // block_size(mnemonic))


# Errors.

Call = Callable[[str, Operand], object]
EVERY: tuple[Call, ...] = (
    lambda i, o: block_size(i),
    lambda i, o: byte_ids(i),
    lambda i, o: scale_place(i, o, 0, 0),
    lambda i, o: pack_scales(np.zeros((16, 1), np.uint8), i, o),
    lambda i, o: unpack_scales(np.zeros(32, np.uint32), i, o),
    lambda i, o: quantize(np.zeros((16, 32), np.float32), i, o),
)


@pytest.mark.parametrize("call", EVERY)
def test_an_instruction_must_have_scales(call: Call) -> None:
    with pytest.raises(ScaleError, match=rf"^{DENSE} has no block scaling\. Nearest that has: {MXFP8}$"):
        call(DENSE, "A")
    with pytest.raises(MnemonicError):
        call("mma.sync", "A")


@pytest.mark.parametrize("call", [*EVERY[2:], lambda i, o: thread_ids(o)])
def test_an_operand_must_have_scales(call: Call) -> None:
    with pytest.raises(OperandError, match=r"^operand 'D' has no scales; expected 'A' or 'B'$"):
        call(MXFP8, "D")


@pytest.mark.parametrize(
    ("mnemonic", "operand", "selectors", "expected"),
    [
        (MXFP8, "A", {"byte_id": 4}, "byte-id of A is 4; expected 0, 1, 2, 3"),
        (MXFP8, "B", {"byte_id": -1}, "byte-id of B is -1; expected 0, 1, 2, 3"),
        (MXFP8, "B", {"byte_id": 1.0}, r"byte-id of B is 1\.0; expected 0, 1, 2, 3"),
        (MXFP4, "A", {"byte_id": 1}, "byte-id of A is 1; expected 0, 2"),
        (NVFP4, "B", {"byte_id": 2}, "byte-id of B is 2; expected 0"),
        (NVFP4, "A", {"thread_id": 2}, "thread-id of A is 2; expected 0, 1"),
        (NVFP4, "B", {"thread_id": 4}, "thread-id of B is 4; expected 0, 1, 2, 3"),
    ],
)
def test_undefined_selectors(
    mnemonic: str, operand: Operand, selectors: dict[str, int], expected: str
) -> None:
    codes = np.zeros(shape_of(parse(mnemonic), operand), np.uint8)
    for call in (
        lambda: scale_place(mnemonic, operand, 0, 0, **selectors),
        lambda: pack_scales(codes, mnemonic, operand, **selectors),
        lambda: unpack_scales(np.zeros(32, np.uint32), mnemonic, operand, **selectors),
    ):
        with pytest.raises(ScaleError, match=rf"^mma\..*: {expected}$"):
            call()


ZEROS = np.zeros((16, 4), np.uint8)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: scale_place(NVFP4, "A", 16, 0), "no scale for index 16, block 0 of A; it has 16 by 4"),
        (lambda: scale_place(NVFP4, "B", 0, 4), "no scale for index 0, block 4 of B; it has 8 by 4"),
        (lambda: scale_place(NVFP4, "B", -1, 0), "no scale for index -1, block 0 of B; it has 8 by 4"),
        (lambda: pack_scales(ZEROS, NVFP4, "B"), r"scales of B are \(16, 4\); expected \[\.\.\., 4, 8\]"),
        (lambda: pack_scales(ZEROS[0], NVFP4, "A"), r"scales of A are \(4,\); expected \[\.\.\., 16, 4\]"),
        (lambda: pack_scales(ZEROS + 1.0, NVFP4, "A"), "scales of A are float64; expected float8_e4m3fn, or .*encode"),
        (lambda: pack_scales(ZEROS.view(ml_dtypes.float8_e8m0fnu), NVFP4, "A"), "scales of A are float8_e8m0fnu"),
        (lambda: pack_scales(ZEROS[:, :1].astype(int), MXFP8, "A"), "scales of A are int64; expected float8_e8m0fnu"),
        (lambda: pack_scales(ZEROS + np.uint8(128), NVFP4, "A"), r"scale 0x80 of A at \[0, 0\] has its top bit set"),
        (lambda: pack_scales(-(ZEROS + 1).view(SCALE_TYPES[NVFP4]), NVFP4, "A"), "scale 0x81 of A .* has no sign$"),
        (lambda: pack_scales(ZEROS, NVFP4, "A", into=np.zeros(31, np.uint32)), r"are uint32 \(31,\); expected uint32"),
        (lambda: pack_scales(ZEROS, NVFP4, "A", into=np.zeros(32)), r"words of A's scales are float64 \(32,\)"),
        (
            lambda: pack_scales(np.stack([ZEROS] * 3), NVFP4, "A", into=np.zeros((2, 32), np.uint32)),
            r"scales \(3, 16, 4\) and into \(2, 32\) do not broadcast",
        ),
        (lambda: unpack_scales(np.uint32(0), NVFP4, "B"), r"words of B's scales are uint32 \(\); expected uint32"),
        (lambda: unpack_scales(np.zeros(32, np.int32), NVFP4, "B"), r"are int32 \(32,\); expected uint32 \[\.\.\., 32\]"),
    ],
)  # fmt: skip
def test_wrong_scales_and_words(call: Callable[[], object], expected: str) -> None:
    with pytest.raises(ScaleError, match=rf"^mma\..*: .*{expected}"):
        call()


@pytest.mark.parametrize(
    ("matrix", "operand", "expected"),
    [
        (np.zeros((16, 40), np.float32), "A", r"A is \(16, 40\); expected \[\.\.\., rows, K\], K a multiple of 16"),
        (np.zeros((40, 16), np.float32), "B", r"B is \(40, 16\); expected \[\.\.\., K, columns\], K a multiple of 16"),
        (np.zeros((16, 0), np.float32), "A", r"A is \(16, 0\)"),
        (np.zeros(16, np.float32), "A", r"A is \(16,\)"),
        (np.zeros((16, 16), int), "A", "A is int64; expected float32, 64 or 16, or bfloat16"),
        (np.zeros((16, 16), ml_dtypes.float8_e4m3fn), "A", "A is float8_e4m3fn; expected float32"),
        (np.full((16, 16), 1e300), "A", r"A holds 1e\+300 at \[0, 0\], which is no float32"),
        (np.full((16, 16), np.nan, np.float32), "A", "A holds NaN or infinity, for which NVFP4 has no scale"),
        (np.full((16, 16), -np.inf), "B", "B holds NaN or infinity"),
    ],
)  # fmt: skip
def test_wrong_matrices(matrix: Array, operand: Operand, expected: str) -> None:
    with pytest.raises(OperandError, match=rf"^mma\..*: {expected}"):
        quantize(matrix, NVFP4, operand)
