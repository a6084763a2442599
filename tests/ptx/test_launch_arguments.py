"""Arguments take the types that an entry declares."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.kernel import Output
from warpmma.machine import GlobalMemory, Reporter
from warpmma.ptx import load, read
from warpmma.ptx.launch.arguments import Signature

AT = r"^<ptx>:1:\d+: "


def encoded(parameters: str, *args: Any) -> bytes:
    module = read(f".version 8.0 .target sm_80 .entry k({parameters}) {{ ret; }}")
    return Signature(module, "k").encode(args, GlobalMemory(Reporter("error")))


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("u32", 4294967295, "ffffffff"),
        ("u32", -1, "ffffffff"),
        ("s8", -128, "80"),
        ("u8", True, "01"),
        ("u64", np.uint64(1 << 63), "0000000000000080"),
        ("f32", 1.5, "0000c03f"),
        ("f32", 3, "00004040"),
        ("f64", np.float32(1.5), "000000000000f83f"),
        ("b32", 1.5, "0000c03f"),
        ("b64", 1.5, "000000000000f83f"),
        ("b16", np.float16(1.5), "003e"),
        ("b16", ml_dtypes.bfloat16(1.5), "c03f"),
        ("f16", 1.5, "003e"),
        ("u64", None, "0000000000000000"),
        ("b32", np.array(7, np.int32), "07000000"),
    ],
)
def test_values(type_: str, value: Any, expected: str) -> None:
    assert encoded(f".param .{type_} x", value).hex() == expected


@pytest.mark.parametrize(
    ("type_", "value", "says"),
    [
        ("u32", 1 << 32, "expected an integer of 32 bits, -2147483648 to 4294967295"),
        ("s16", -32769, "expected an integer of 16 bits"),
        ("u32", 1.5, r"1\.5 \(float\); expected an integer"),
        ("f32", "1", "expected a float"),
        ("f32", (1 << 60) + 1, "which no .f32 is"),
        ("f32", True, "expected a float"),
        ("u32", None, "None; expected a number"),
        ("u32", np.zeros(3), "an array"),
        ("f64", np.zeros(3), "an array"),
        ("b16", 1.5, "expected an integer of 16 bits"),
        ("b64", np.float32(1.5), "expected an integer of 64 bits"),
        ("u64", 1j, "expected an integer"),
        ("u64", "text", "expected an integer"),
    ],
)
def test_refusals(type_: str, value: Any, says: str) -> None:
    with pytest.raises(OperandError, match=rf"{AT}args\[0\] of k\(\.{type_} x\), \.{type_} x, is .*{says}"):
        encoded(f".param .{type_} x", value)


def test_structs_are_bytes() -> None:
    struct = np.zeros((), [("a", np.int32), ("b", np.float32)])
    struct["a"], struct["b"] = 7, 1.5
    parameters = ".param .u8 first, .param .align 8 .b8 s[8]"
    expected = "01" + "00" * 7 + "070000000000c03f"
    assert encoded(parameters, 1, struct[()]).hex() == encoded(parameters, 1, struct.tobytes()).hex() == expected
    with pytest.raises(OperandError, match=r"\.b8 s\[8\], is 7 bytes; expected 8"):
        encoded(parameters, 1, bytes(7))
    with pytest.raises(OperandError, match="is int; expected 8 bytes"):
        encoded(parameters, 1, 7)


def test_arrays_are_addresses() -> None:
    device = wm.Device("sm_80")
    x = device.array(np.arange(4))
    assert encoded(".param .u64 x", x) == x.address.to_bytes(8, "little")
    plain = np.zeros(4, np.float32)
    first, second = (encoded(".param .u64 x", y) for y in (plain, Output(np.zeros(4, np.float32))))
    assert int.from_bytes(first, "little") % 256 == int.from_bytes(second, "little") % 256 == 0


def test_another_number_of_arguments_shows_the_signature() -> None:
    with pytest.raises(OperandError, match=rf"{AT}k takes 2 arguments, k\(\.u64 \.ptr \.global a, \.f32 b\); got 1$"):
        encoded(".param .u64 .ptr .global .align 4 a, .param .f32 b", 1)


def test_signature() -> None:
    module = read(".version 8.0 .target sm_80 .entry k(.param .align 8 .b8 s[8]) { ret; }")
    assert str(Signature(module, "k")) == "k(.b8 s[8])"


def test_a_null_pointer_is_reported_as_one() -> None:
    text = """.version 7.0 .target sm_80 .address_size 64 .entry k(.param .u64 p) {
        .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [p]; ld.global.b32 %r, [%p+8]; }"""
    with pytest.raises(wm.machine.HazardError, match="4 bytes next to address 0, where nothing lies: a null pointer"):
        load(text)["k"].launch(wm.Device("sm_90"), 1, 1, [0])
