"""Matrix descriptors: their 64 bits, and the address of each element as measured and as CUTLASS writes it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from arrays import Array

from warpmma.errors import OperandError
from warpmma.layouts import MAJORS, SWIZZLES, Major, MatrixDescriptor, swizzled

pytestmark = pytest.mark.quick

CASES = [(bits, major) for bits in (1, 8, 16, 32) for major in MAJORS if major == "K" or bits == 16]
each_case = pytest.mark.parametrize(("bits", "major"), CASES, ids=lambda x: str(x))

# Measured on an H200: bits, major, swizzle, start, leading, stride, base offset, row, column, linear address, address.
MEASURED: list[tuple[int, Major, int, int, int, int, int, int, int, int, int]] = [
    (16, "K", 128, 0x400, 0, 1024, 0, 9, 10, 0x894, 0x884),
    (16, "K", 128, 0x420, 0, 1024, 0, 9, 10, 0x8B4, 0x8A4),
    (16, "K", 128, 0x480, 0, 1024, 1, 9, 10, 0x914, 0x904),
    (16, "K", 64, 0x430, 0, 512, 0, 5, 9, 0x582, 0x5B2),
    (16, "K", 32, 0x400, 2048, 256, 0, 13, 20, 0xDA8, 0xDB8),
    (16, "K", 0, 0x400, 128, 256, 0, 13, 11, 0x5D6, 0x5D6),
    (32, "K", 128, 0x400, 0, 1024, 0, 13, 7, 0xA9C, 0xACC),
    (8, "K", 128, 0x440, 0, 1024, 0, 21, 19, 0xED3, 0xE83),
    (16, "MN", 128, 0x400, 8192, 1024, 0, 77, 13, 0x2A9A, 0x2ACA),
    (16, "MN", 64, 0x400, 4096, 512, 0, 45, 9, 0x165A, 0x165A),
    (16, "MN", 0, 0x400, 1024, 128, 0, 45, 9, 0xA9A, 0xA9A),
]


@pytest.mark.parametrize("measured", MEASURED)
def test_measured_addresses(measured: tuple[Any, ...]) -> None:
    bits, major, swizzle, start, leading, stride, base_offset, row, column, linear, address = measured
    of = MatrixDescriptor(start=start, leading=leading, stride=stride, swizzle=swizzle, base_offset=base_offset)
    assert of.addresses(128, 64, bits=bits, major=major)[row, column] == address
    cell = of.locate(row, column, bits=bits, major=major)
    assert (cell.row, cell.column, cell.linear, cell.address) == (row, column, linear, address)
    assert (cell.bank, cell.low, cell.high) == (address // 4 % 32, address % 4 * 8, address % 4 * 8 + bits - 1)
    assert swizzled(linear, swizzle, base_offset) == address and swizzled(address, swizzle, base_offset) == linear


def test_single_bits_share_bytes() -> None:
    of = MatrixDescriptor(start=0x400, leading=1024, stride=128)
    found = of.addresses(64, 256, bits=1, major="K")
    assert found[0, :9].tolist() == [0x400] * 8 + [0x401]
    assert (found[0, 127], found[0, 128], found[9, 255]) == (0x40F, 0x800, 0x89F)
    cell = of.locate(9, 254, bits=1, major="K")
    assert (cell.address, cell.bank, cell.low, cell.high) == (0x89F, 7, 30, 30)


def test_leading_counts_where_k_passes_the_row_of_the_swizzle() -> None:
    """Sparse B has 64 bytes of k: treating LBO as unused, as PTX says, was wrong on an H200."""
    of = MatrixDescriptor(start=0, leading=4096, stride=256, swizzle=32)
    wide = of.addresses(8, 32, bits=16, major="K")
    np.testing.assert_array_equal(wide[:, 16:], wide[:, :16] + 4096)
    dense = MatrixDescriptor(start=0, stride=256, swizzle=32).addresses(8, 16, bits=16, major="K")
    np.testing.assert_array_equal(wide[:, :16], dense)


def cute(index: int, shape: Any, stride: Any) -> int:
    """Evaluate a CuTe mode: the first of nested ones is the fastest."""
    if isinstance(shape, int):
        return index * int(stride)
    offset = 0
    for each, step in zip(shape, stride, strict=True):
        size = int(np.prod(each))
        offset, index = offset + cute(index % size, each, step), index // size
    return offset


def canonical(bits: int, major: Major, swizzle: int, leading: int, stride: int, rows: int, columns: int) -> Array:
    """Offsets in bits by CUTLASS's canonical layouts (mma_traits_sm90_gmma.hpp), strides in elements there.

    CUTLASS says nothing of K-major rows that are longer than the swizzle's; those are tested above.
    """
    t, width, lbo, sbo = 128 // bits, max(1, swizzle // 16), leading * 8 // bits, stride * 8 // bits
    m, k = rows // 8, columns // 8
    modes: tuple[Any, Any]
    if major == "K":
        modes = (((8, m), (t, columns // t)), ((width * t, sbo), (1, t if swizzle else lbo)))
    elif swizzle:
        modes = (((t, width, m), (8, k)), ((1, t, lbo), (width * t, sbo)))
    else:
        modes = (((t, 1, m), (8, k)), ((1, t, sbo), (t, lbo)))
    (of_row, of_k), (row_step, k_step) = modes
    along = [[cute(i, of_row, row_step)] for i in range(rows)]
    return bits * (np.array(along) + [cute(i, of_k, k_step) for i in range(columns)])


@each_case
@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_addresses_are_those_of_the_canonical_layouts(bits: int, major: Major, swizzle: int) -> None:
    rows, columns = 128, 256 // bits
    pairs = ((2048, 1024), (128, 256), (4096, 512), (16, 8208))
    offsets = {pair: canonical(bits, major, swizzle, *pair, rows, columns) // 8 for pair in pairs}
    for start, base_offset, pair in product((0, 16, 32, 48, 96, 112, 128, 640, 1440), range(8), pairs):
        leading, stride = pair
        of = MatrixDescriptor(start=start, leading=leading, stride=stride, swizzle=swizzle, base_offset=base_offset)
        a = start + offsets[pair]
        width = max(1, swizzle // 16)
        expected = a ^ ((((a >> 7) - base_offset) % width) << 4)  # Swizzle<log2 W, 4, 3> of the absolute address
        found = of.addresses(rows, columns, bits=bits, major=major)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)
        for row, column in ((0, 0), (rows - 1, columns - 1), (77, columns // 3)):
            assert of.locate(row, column, bits=bits, major=major).address == found[row, column]


def test_words() -> None:
    """Bits as PTX ISA 9.1, 9.7.15.5.1.2.2 has them; a word of Triton's is the last."""
    assert MatrixDescriptor(start=0x3FFF0).word == 0x3FFF
    assert MatrixDescriptor(start=0, leading=0x3FFF0).word == 0x3FFF << 16
    assert MatrixDescriptor(start=0, stride=0x3FFF0).word == 0x3FFF << 32
    assert MatrixDescriptor(start=0, base_offset=7).word == 7 << 49
    assert [MatrixDescriptor(start=0, swizzle=x).word >> 62 for x in (0, 128, 64, 32)] == [0, 1, 2, 3]
    assert MatrixDescriptor(start=0x400, stride=1024, swizzle=128).word == 0x4000004000000040


def test_words_are_read_back_and_ignored_bits_dropped() -> None:
    rng = np.random.default_rng(1)
    ignored = sum(1 << bit for bit in (14, 15, 30, 31, *range(46, 49), *range(52, 62)))
    for word in rng.integers(0, 1 << 64, 500, dtype=np.uint64):
        of = MatrixDescriptor.from_word(word)
        assert of.word == int(word) & ~ignored and MatrixDescriptor.from_word(of.word) == of


def test_advancing_adds_to_the_start() -> None:
    of = MatrixDescriptor(start=0x400, leading=16, stride=1024, swizzle=128, base_offset=3)
    assert of.advanced(32).word == of.word + 2 and of.advanced(32).advanced(-32) == of
    tile = of.addresses(64, 64, bits=16, major="K")
    for k in (16, 32, 48):
        np.testing.assert_array_equal(of.advanced(2 * k).addresses(64, 16, bits=16, major="K"), tile[:, k : k + 16])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MatrixDescriptor(start=1001),
         "start is 1001; expected a multiple of 16 from 0 to 262128; nearest 1008"),
        (lambda: MatrixDescriptor(start=-3), "start is -3; expected a multiple of 16 from 0 to 262128; nearest 0"),
        (lambda: MatrixDescriptor(start=0, stride=1 << 18),
         "stride is 262144; expected a multiple of 16 from 0 to 262128; nearest 262128"),
        (lambda: MatrixDescriptor(start=0, leading=0.0),  # type: ignore[arg-type]
         r"leading is 0\.0; expected a multiple of 16 from 0 to 262128$"),
        (lambda: MatrixDescriptor(start=True), "start is True; expected a multiple"),
        (lambda: MatrixDescriptor(start=0, swizzle=96), "swizzle is 96; expected one of 0, 32, 64, 128; nearest 64"),
        (lambda: MatrixDescriptor(start=0, swizzle="128B"),  # type: ignore[arg-type]
         "swizzle is '128B'; expected one of 0, 32, 64, 128$"),
        (lambda: MatrixDescriptor(start=0, base_offset=8), "base_offset is 8; expected one of 0, 1, .* 7; nearest 7"),
        (lambda: MatrixDescriptor.from_word(1 << 64), "the descriptor is 18446744073709551616; expected 64 bits"),
        (lambda: MatrixDescriptor.from_word("0x40"), "the descriptor is '0x40'; expected 64"),  # type: ignore[arg-type]
        (lambda: MatrixDescriptor(start=32).advanced(8), "size is 8; expected a multiple of 16 from -262144 to 262128"),
        (lambda: MatrixDescriptor(start=32).advanced(-64), "start is -32; expected a multiple of 16"),
        (lambda: MatrixDescriptor(start=0).addresses(8, 16, bits=4, major="K"),
         "bits is 4; expected one of 1, 8, 16, 32; nearest 1"),
        (lambda: MatrixDescriptor(start=0).addresses(8, 16, bits=16, major="N"),  # type: ignore[arg-type]
         "major is 'N'; expected 'K' or 'MN'"),
        (lambda: MatrixDescriptor(start=0).addresses(8, 32, bits=8, major="MN"),
         "major is 'MN' with elements of 8 bits, which wgmma reads K-major alone; expected 'K', or 16 bits"),
        (lambda: MatrixDescriptor(start=0).addresses(0, 16, bits=16, major="K"),
         "rows is 0; expected an integer from 1 to 4096; nearest 1"),
        (lambda: MatrixDescriptor(start=0).locate(0, 4096, bits=16, major="K"),
         "column is 4096; expected an integer from 0 to 4095; nearest 4095"),
    ],
)  # fmt: skip
def test_what_cannot_be_encoded_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(OperandError, match=f"^{message}"):
        call()
