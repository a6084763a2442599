"""Arguments of a compiled kernel become the bytes of the parameters that its PTX declares."""

from __future__ import annotations

from typing import Any

import pytest

import warpmma as wm
from warpmma.ptx import Parameter
from warpmma.triton.launch_arguments import parameter_bytes

pytestmark = pytest.mark.quick


def encoded(type_: str, x: Any, size: int) -> bytes:
    return parameter_bytes([("x", type_, x)], [Parameter(name="p", type=f"u{8 * size}", offset=0, size=size)])


@pytest.mark.parametrize(
    ("type_", "value", "size", "expected"),
    [
        ("i32", -1, 4, "ffffffff"),
        ("u32", 4294967295, 4, "ffffffff"),
        ("i1", True, 1, "01"),
        ("i64", 1 << 40, 8, "0000000000010000"),
        ("fp32", 1.5, 4, "0000c03f"),
        ("fp32", 1e300, 4, "0000807f"),
        ("fp64", 1.5, 8, "000000000000f83f"),
        ("fp16", 1.5, 2, "003e"),
        ("bf16", 1.999, 2, "ff3f"),  # cut, not rounded
        ("*fp32", None, 8, "0000000000000000"),
        ("*fp32", 0x7F00, 8, "007f000000000000"),
    ],
)
def test_values(type_: str, value: Any, size: int, expected: str) -> None:
    assert encoded(type_, value, size).hex() == expected


def test_each_parameter_lies_at_its_offset() -> None:
    at = [Parameter(name=f"p{i}", type="u8", offset=x, size=y) for i, (x, y) in enumerate(((0, 1), (8, 8), (16, 2)))]
    given = [("a", "i8", 1), ("b", "*i8", 2), ("c", "fp16", 1.0)]
    assert parameter_bytes(given, at).hex() == "01" + "00" * 7 + "02" + "00" * 7 + "003c"
    assert parameter_bytes([], []) == b""


@pytest.mark.parametrize(
    ("type_", "value", "size", "says"),
    [
        ("i32", 1 << 32, 4, "x is 4294967296; expected an integer of 32 bits"),
        ("i8", -129, 1, "x is -129; expected an integer of 8 bits"),
        ("*i8", 1 << 64, 8, "expected an integer of 64 bits"),
        ("i32", 1.5, 4, "x is 1.5; expected an integer"),
        ("fp32", "1", 4, "x is '1'; expected a float"),
        ("fp16", 1e6, 2, "too large for fp16"),
        ("fp32", 1.0, 8, r"x \(fp32\) has 4 bytes; the PTX takes 8"),
        ("*i8", "p", 8, "expected a tensor, an array, an address or None"),
    ],
)
def test_refusals(type_: str, value: Any, size: int, says: str) -> None:
    with pytest.raises(wm.OperandError, match=says):
        encoded(type_, value, size)


def test_tensor_maps_that_are_passed_by_themselves_are_refused() -> None:
    with pytest.raises(wm.UnsupportedError, match=r"x is a tensor map that is passed by itself; expected a TensorDesc"):
        encoded("nvTmaDesc", None, 8)
