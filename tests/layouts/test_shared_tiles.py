"""Tiles in shared memory: element by element against what tensor copies write and descriptors read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array

from warpmma.errors import OperandError
from warpmma.layouts import MAJORS, SWIZZLES, Major, MatrixDescriptor, SharedTile

WIDTHS = (1, 4, 8, 16, 32)
KINDS = list(product(WIDTHS, MAJORS, SWIZZLES))
each_kind = pytest.mark.parametrize(("bits", "major", "swizzle"), KINDS)


def tiles(bits: int, major: Major, swizzle: int) -> Iterator[SharedTile]:
    """Yield tiles whose lines have parts of a panel, one panel, and two and a half; odd and even numbers of them."""
    chunk, width = 128 // bits, max(16, swizzle)
    for chunks, lines, start, base_offset in (
        (1, 8, 0, 0), (width // 16, 24, 0x400, 0), (5 * width // 32 or 2, 11, 3 * width, 0), (3, 5, 0x480, 1),
        (width // 8, 16, 9 * 128, 5),
    ):  # fmt: skip
        rows, columns = (lines, chunks * chunk) if major == "K" else (chunks * chunk, lines)
        yield SharedTile(
            rows=rows, columns=columns, bits=bits, major=major, swizzle=swizzle, start=start, base_offset=base_offset
        )


@each_kind
@pytest.mark.alike(2)
def test_places_and_elements_are_inverse(bits: int, major: Major, swizzle: int) -> None:
    for tile in tiles(bits, major, swizzle):
        taken: set[int] = set()
        some = (0, 5, 7) if bits == 1 else range(8)  # bits of a byte are placed by the same rule
        for row, column in product(range(tile.rows), range(tile.columns)):
            if (column if major == "K" else row) % 8 not in some:
                continue
            cell = tile.locate(row, column)
            assert (cell.row, cell.column, cell.address) == (row, column, tile.addresses[row, column])
            assert cell.bank == cell.address // 4 % 32 and cell.high - cell.low == bits - 1
            first = 8 * (cell.address - cell.address % 4) + cell.low
            assert tile.element(cell.address, cell.low % 8) == cell
            assert tile.element((first + bits - 1) // 8, (first + bits - 1) % 8) == cell
            assert taken.isdisjoint(range(first, first + bits))
            taken |= set(range(first, first + bits))
        inside = range(tile.start, tile.start + tile.size)
        octets = {bit // 8 for bit in taken}
        assert octets <= set(inside) and len(octets) * 8 == tile.rows * tile.columns * bits
        assert all(tile.element(octet, bit) is None for octet in inside if octet not in octets for bit in (0, 7))


def copied(tile: SharedTile, matrix: Array) -> Array:
    """Write a matrix as tensor copies do: a box for each panel, each byte where the H200 put it (3.2 of the facts)."""
    memory = np.zeros(tile.start + tile.size, np.uint8)
    lines = matrix if tile.major == "K" else matrix.T
    for j, line in enumerate(lines.tolist()):
        whole = sum(code << (tile.bits * i) for i, code in enumerate(line))
        for b, octet in enumerate(whole.to_bytes(len(line) * tile.bits // 8, "little")):
            box, offset = b // tile.width, j * tile.width + b % tile.width
            a = tile.start + box * len(lines) * tile.width + offset
            memory[a ^ (((a >> 7) & (tile.width // 16 - 1)) << 4)] = octet
    return memory[tile.start :]


@each_kind
def test_bytes_are_those_of_tensor_copies(bits: int, major: Major, swizzle: int) -> None:
    rng = np.random.default_rng(2)
    for tile in tiles(bits, major, swizzle):
        codes = rng.integers(0, 1 << bits, (2, tile.rows, tile.columns), dtype=np.uint64)
        memory = tile.bytes(codes)
        assert memory.dtype == np.uint8 and memory.shape == (2, tile.size)
        if not tile.base_offset:
            for one, matrix in zip(memory, codes, strict=True):
                np.testing.assert_array_equal(one, copied(tile, matrix))
        back = tile.matrix(memory)
        assert back.dtype == np.dtype(f"u{max(8, bits) // 8}")
        np.testing.assert_array_equal(back, codes)
        gaps = np.ones(tile.size, bool)
        gaps[(tile.addresses - tile.start).ravel()[:, None] + np.arange(max(1, bits // 8))] = False
        np.testing.assert_array_equal(tile.matrix(np.where(gaps, 0xA5, memory).astype(np.uint8)), codes)


def test_base_offset_is_a_swizzle_of_offsets() -> None:
    """A writer that swizzles offsets from an unaligned start (CuTe's layout on a plain pointer), as PTX describes."""
    codes = np.arange(64 * 64).reshape(64, 64)
    for swizzle, start in product((32, 64, 128), range(0, 2048, 128)):
        aligned = SharedTile(rows=64, columns=64, bits=16, swizzle=swizzle)
        moved = SharedTile(rows=64, columns=64, bits=16, swizzle=swizzle, start=start, base_offset=(start >> 7) & 7)
        np.testing.assert_array_equal(moved.bytes(codes), aligned.bytes(codes))


@each_kind
def test_descriptors_read_the_tile(bits: int, major: Major, swizzle: int) -> None:
    if bits == 4 or (major == "MN" and bits != 16):
        with pytest.raises(OperandError, match=f"^no wgmma reads {major}-major elements of {bits} bits; expected 1, 8"):
            next(tiles(bits, major, swizzle)).descriptor()
        return
    for tile in tiles(bits, major, swizzle):
        rng, chunk = np.random.default_rng(3), 128 // bits
        seen = set()
        for _ in range(300):
            k, row = int(rng.integers(tile.columns)), int(rng.integers(tile.rows))
            k, row = (k // chunk * chunk, row) if major == "K" else (k, row // chunk * chunk)
            columns, rows = int(rng.integers(1, tile.columns - k + 1)), int(rng.integers(1, tile.rows - row + 1))
            part = tile.addresses[row : row + rows, k : k + columns]
            try:
                of, refused = tile.descriptor(k, row, columns=columns, rows=rows), False
            except OperandError as error:
                assert "begins inside of a panel" in str(error)
                of, refused = tile.descriptor(k, row, columns=1, rows=1), True
            found = of.addresses(rows, columns, bits=bits, major=major)
            assert np.array_equal(found, part) != refused
            seen.add(refused)
        assert seen == ({False, True} if 16 < tile.width < tile.line_bytes else {False})


def test_steps_along_k_and_along_rows() -> None:
    tile = SharedTile(rows=128, columns=128, bits=16, swizzle=128, start=0x800)
    words = [tile.descriptor(k=k).word - tile.descriptor().word for k in range(0, 128, 16)]
    assert words == [0, 2, 4, 6, 1024, 1026, 1028, 1030]  # "+2", and the next panel of 128 rows of 128 bytes
    assert tile.descriptor(row=64).word - tile.descriptor().word == 64 * 128 >> 4
    turned = SharedTile(rows=128, columns=64, bits=16, major="MN", swizzle=128)
    assert turned.descriptor(k=16).start == 2 * turned.descriptor().stride  # two groups of eight k
    plain = SharedTile(rows=128, columns=64, bits=16, major="MN")
    assert plain.descriptor(k=16).start == 2 * plain.descriptor().leading == 256
    assert plain.descriptor(row=64).start == 8 * plain.descriptor().stride == 8 * 64 * 16


@pytest.mark.parametrize(
    ("tile", "leading", "stride"),
    [
        (SharedTile(rows=128, columns=64, bits=16, swizzle=128), 0, 1024),  # DeepGEMM, K-major
        (SharedTile(rows=128, columns=64, bits=8, swizzle=64), 0, 512),
        (SharedTile(rows=128, columns=16, bits=16, swizzle=32), 0, 256),
        (SharedTile(rows=128, columns=64, bits=16, major="MN", swizzle=128), 64 * 128, 1024),  # BLOCK_K * 16W
        (SharedTile(rows=128, columns=128, bits=16, swizzle=64), 64 * 128, 512),  # Triton: swizzle * rows
        (SharedTile(rows=64, columns=16, bits=16), 1024, 128),
        (SharedTile(rows=64, columns=16, bits=16, major="MN"), 128, 256),
    ],
)
def test_typical_offsets(tile: SharedTile, leading: int, stride: int) -> None:
    expected = MatrixDescriptor(start=0, leading=leading, stride=stride, swizzle=tile.swizzle)
    assert tile.descriptor(rows=64) == expected


def test_elements_come_as_bits_of_any_type() -> None:
    tile = SharedTile(rows=8, columns=16, bits=16, swizzle=32)
    x = np.linspace(-2, 2, 128).reshape(8, 16)
    for dtype in (np.float16, ml_dtypes.bfloat16, np.int16):
        y = x.astype(dtype)
        np.testing.assert_array_equal(tile.matrix(tile.bytes(y)).view(dtype), y)
    np.testing.assert_array_equal(tile.bytes(y.astype(y.dtype.newbyteorder(">"))), tile.bytes(y))
    single = SharedTile(rows=2, columns=128, bits=1)
    bits = np.arange(256).reshape(2, 128) % 3 == 0
    np.testing.assert_array_equal(single.bytes(bits), np.packbits(bits, axis=-1, bitorder="little").ravel())
    assert tile.bytes(np.zeros((0, 8, 16), np.uint16)).shape == (0, 256)
    assert tile.matrix(np.zeros((3, 0, 256), np.uint8)).shape == (3, 0, 8, 16)


def test_arrays_cannot_be_written_and_copies_are_equal() -> None:
    tile = SharedTile(rows=8, columns=16, bits=np.int64(16), swizzle=32)  # type: ignore[arg-type]
    assert not tile.addresses.flags.writeable and type(tile.bits) is int
    assert tile == SharedTile(rows=8, columns=16, bits=16, swizzle=32)


F16: dict[str, Any] = {"rows": 64, "columns": 64, "bits": 16, "swizzle": 128}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SharedTile(rows=64, columns=12, bits=16),
         "columns is 12; expected a multiple of 8 from 8 to 2097152; nearest 16"),
        (lambda: SharedTile(rows=0, columns=16, bits=16), "rows is 0; expected an integer from 1 to 2097152; near"),
        (lambda: SharedTile(rows=4, columns=16, bits=16, major="MN"), "rows is 4; expected a multiple of 8 from 8"),
        (lambda: SharedTile(rows=8, columns=16, bits=6), "bits is 6; expected one of 1, 4, 8, 16, 32; nearest 4"),
        (lambda: SharedTile(rows=8, columns=16, bits=16, major="k"),  # type: ignore[arg-type]
         "major is 'k'; expected 'K' or 'MN'; did you mean 'K'|major is 'k'; expected 'K' or 'MN'"),
        (lambda: SharedTile(**F16 | {"start": 0x410}), "start is 1040; expected a multiple of 128 from 0 to 262016"),
        (lambda: SharedTile(rows=2048, columns=64, bits=16, start=16),
         "a tile of 2048 x 64 elements of 16 bits takes 262144 bytes from 0x10 on; expected an end of 0x40000 at most"),
        (lambda: SharedTile(**F16).locate(64, 0), "row is 64; expected an integer from 0 to 63; nearest 63"),
        (lambda: SharedTile(**F16).locate(0, -1), "column is -1; expected an integer from 0 to 63; nearest 0"),
        (lambda: SharedTile(**F16).element(0x2000), "address is 0x2000; the tile has 0x0 to 0x1fff"),
        (lambda: SharedTile(**F16).element("x"), "address is 'x'; the tile has"),  # type: ignore[arg-type]
        (lambda: SharedTile(**F16).element(0, 8), "bit is 8; expected an integer from 0 to 7; nearest 7"),
        (lambda: SharedTile(**F16).descriptor(k=4), "k is 4; expected a multiple of 8 from 0 to 56; nearest 8"),
        (lambda: SharedTile(**F16).descriptor(row=64), "row is 64; expected an integer from 0 to 63; nearest 63"),
        (lambda: SharedTile(**F16).descriptor(k=48, columns=32), "columns is 32; expected an integer from 1 to 16"),
        (lambda: SharedTile(**F16).descriptor(rows=65), "rows is 65; expected an integer from 1 to 64; nearest 64"),
        (lambda: SharedTile(**F16 | {"columns": 128}).descriptor(k=56),
         "k 56 begins inside of a panel of 128 bytes, and 16 columns do not end in it; expected 8 columns at most, or "
         "k a multiple of 64"),
        (lambda: SharedTile(**F16 | {"rows": 128, "major": "MN"}).descriptor(row=32),
         "row 32 begins inside of a panel of 128 bytes, and 96 rows do not end in it; expected 32 rows at most"),
        (lambda: SharedTile(**F16).bytes(np.zeros((64, 32), np.float16)),
         r"matrix is \[64, 32\]; expected \[..., 64, 64\]"),
        (lambda: SharedTile(**F16).bytes(np.zeros((64, 64), np.float32)),
         "matrix is of float32; expected elements of 16 bits, or integers of 0 to 0xffff"),
        (lambda: SharedTile(**F16).bytes(np.full((64, 64), -1)), "matrix is of int64; expected elements of 16 bits"),
        (lambda: SharedTile(**F16).matrix(np.zeros(4096, np.uint8)),
         r"memory is uint8 \[4096\]; expected uint8 \[..., 8192\], the tile's bytes"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(OperandError, match=f"^{message}"):
        call()
