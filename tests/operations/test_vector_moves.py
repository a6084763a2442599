"""`mov` of vectors: packing and unpacking registers."""

from __future__ import annotations

import numpy as np
import pytest

from warpmma.errors import OperandError
from warpmma.operations import packing, unpacking

LEGAL = [("b16", 2), ("b32", 2), ("b32", 4), ("b64", 2), ("b64", 4)]


@pytest.mark.parametrize(("type_", "count"), LEGAL)
def test_packing_and_unpacking_are_inverse(type_: str, count: int) -> None:
    pack, unpack = packing(type_, count), unpacking(type_, count)
    rng, bits = np.random.default_rng(1), int(type_[1:])
    word = rng.integers(0, 1 << bits, (5, 32), dtype=np.uint64).astype(f"uint{bits}")
    parts = unpack(word)
    assert len(parts) == count == len(unpack.outputs) == len(pack.inputs)
    for i, part in enumerate(parts):
        assert part.tolist() == (word >> word.dtype.type(i * (bits // count)) & (1 << bits // count) - 1).tolist()
    (again,) = pack(*parts)
    assert again.dtype == word.dtype and again.tolist() == word.tolist()
    assert pack.travels and unpack.travels and str(pack) == str(unpack) == f"mov.{type_}"


def test_of_wider_registers_the_low_bytes_count() -> None:
    high = np.full(32, 0xAB12, np.uint16)
    assert hex(packing("b16", 2)(high, high)[0][0]) == "0x1212"
    assert hex(packing("b32", 4)(high, high, high, high)[0][0]) == "0x12121212"


@pytest.mark.parametrize(
    ("type_", "count"), [("b16", 4), ("b32", 3), ("b64", 8), ("u32", 2), ("b128", 2), (None, 2), ("b32", None), ([], 2)]
)
def test_what_ptx_does_not_have(type_: str, count: int) -> None:
    for use in (packing, unpacking):
        with pytest.raises(
            OperandError, match=r"^mov of .* elements in .*: PTX has 2 in b16, and 2 or 4 in b32 and b64$"
        ):
            use(type_, count)
