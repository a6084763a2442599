"""Registers: packing against a slow loop."""

from __future__ import annotations

import numpy as np
import pytest
from arrays import Array

from warpmma.errors import RegisterError
from warpmma.registers import Packing

pytestmark = pytest.mark.quick

PACKINGS = [
    Packing(slot=1, bits=1),
    Packing(slot=4, bits=4),
    Packing(slot=8, bits=6),  # e3m2 and e2m3 in a container: bits 5..0
    Packing(slot=8, bits=4, shift=2),  # e2m1 in a container: bits 5..2
    Packing(slot=8, bits=8),
    Packing(slot=16, bits=16),
    Packing(slot=32, bits=32),
    Packing(slot=64, bits=64),
]
each_packing = pytest.mark.parametrize("packing", PACKINGS, ids=lambda p: f"{p.bits}in{p.slot}")


def random_codes(packing: Packing, *shape: int) -> Array:
    rng = np.random.default_rng(5)
    return rng.integers(0, packing.mask, (*shape, packing.per_register), packing.dtype, endpoint=True)


def pack_slowly(packing: Packing, codes: Array) -> int:
    word = 0
    for position, code in enumerate(codes):
        for bit in range(packing.bits):
            word += ((int(code) >> bit) & 1) * 2 ** (position * packing.slot + packing.shift + bit)
    return word


# Packing.


@pytest.mark.parametrize(
    ("packing", "width", "per_register"),
    list(zip(PACKINGS, (32, 32, 32, 32, 32, 32, 32, 64), (32, 8, 4, 4, 4, 2, 1, 1), strict=True)),
)
def test_elements_fill_a_register(packing: Packing, width: int, per_register: int) -> None:
    assert (packing.width, packing.per_register) == (width, per_register)
    assert packing.dtype == f"uint{width}"


@each_packing
def test_pack_and_unpack_are_the_slow_loop(packing: Packing) -> None:
    codes = random_codes(packing, 5, 3)
    words = packing.pack(codes)
    assert (words.dtype, words.shape) == (packing.dtype, (5, 3))
    expected = [pack_slowly(packing, c) for c in codes.reshape(15, -1)]
    assert words.ravel().tolist() == expected
    again = packing.unpack(words)
    assert again.dtype == packing.dtype
    np.testing.assert_array_equal(again, codes)


@each_packing
def test_element_0_sits_in_the_low_bits(packing: Packing) -> None:
    codes = np.zeros(packing.per_register, packing.dtype)
    codes[0] = packing.mask
    assert int(packing.pack(codes)) == packing.mask << packing.shift
    assert packing.unpack(packing.pack(codes)).tolist() == codes.tolist()


@each_packing
def test_padding_is_packed_as_zero_and_ignored_when_unpacked(packing: Packing) -> None:
    codes = random_codes(packing, 100)
    used = packing.pack(np.full(packing.per_register, packing.mask, packing.dtype))
    used_bits = int(used).bit_count()
    assert used_bits == packing.bits * packing.per_register
    words = packing.pack(codes)
    assert not (words & ~used).any()
    np.testing.assert_array_equal(packing.unpack(words | ~used), codes)


def test_codes_of_any_integer_type_and_shape_are_packed() -> None:
    packing = Packing(slot=8, bits=8)
    assert packing.pack([1, 2, 3, 255]) == 0xFF030201
    assert packing.pack(np.array([1, 2, 3, 255], np.uint8)) == 0xFF030201
    assert packing.pack(np.zeros((0, 4), np.uint8)).shape == (0,)
    assert packing.unpack(np.uint32(0xFF030201)).tolist() == [1, 2, 3, 255]
    assert packing.unpack(np.zeros((2, 0), np.uint32)).shape == (2, 0, 4)


@pytest.mark.parametrize(
    ("slot", "bits", "shift"),
    [(5, 4, 0), (128, 8, 0), (0, 0, 0), (8, 9, 0), (8, 6, 3), (8, 0, 0), (8, 0, 4), (8, 8, -2), (8, -1, 2)],
)
def test_what_is_no_packing_is_refused(slot: int, bits: int, shift: int) -> None:
    with pytest.raises(
        RegisterError, match=rf"Packing\(slot={slot}, bits={bits}, shift={shift}\) is not a valid packing"
    ):
        Packing(slot=slot, bits=bits, shift=shift)
