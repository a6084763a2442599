"""The 128 bytes of tensor maps: equal to the driver's, inverse, and refusals; `tensormap.replace`."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpmma as wm
from lab.generators.tensor_map_cases import legal_arguments, near_miss
from warpmma.errors import OperandError, UnsupportedError
from warpmma.hardware import map_of
from warpmma.layouts import MAP_BYTES, REPLACED, Im2colBox, TensorMap, replace_field
from warpmma.layouts.tensor_maps.map_fields import fields_of

pytestmark = pytest.mark.quick

DATA = Path(__file__).parents[1] / "data"
PLAIN = {"type": "f16", "shape": (100, 128)}
COLUMN = Im2colBox(lower=(-1, -1), upper=(-1, -1), channels=32, pixels=64)


def plain(**more: Any) -> TensorMap:
    return TensorMap(**{"address": 0x7F0000000400, "box": (16, 64), **PLAIN, **more})


def column(**more: Any) -> TensorMap:
    return TensorMap(**{"address": 0x7F0000000400, "box": COLUMN, "type": "f16", "shape": (2, 9, 9, 64), **more})


def test_equals_3000_encodes_of_a_driver() -> None:
    with np.load(DATA / "h200_tensor_maps.npz") as archive:
        base, maps = int(archive["base"]), archive["maps"]
        arguments = json.loads(archive["arguments"].tobytes())
    assert len(arguments) == len(maps) == 3000
    assert sum(x["kind"] == "im2col" for x in arguments) == 1405
    for case, expected in zip(arguments, maps, strict=True):
        box = {"box": case["box"]} if case["kind"] == "tiled" else {}
        found = map_of({**{k: v for k, v in case.items() if k != "box"}, **box, "address": base + case["offset"]})
        assert bytes(found) == found.encoded == expected.tobytes(), case
        assert TensorMap.from_bytes(expected.tobytes()) == found


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1 << 32))
def test_decoding_is_the_inverse_of_encoding(seed: int) -> None:
    made = map_of(legal_arguments(np.random.default_rng(seed), 1 << 44))
    encoded = made.encoded
    assert len(encoded) == MAP_BYTES and TensorMap.from_bytes(encoded) == made
    assert TensorMap.from_bytes(encoded[:64] + bytes(64)) == made  # as if built on the device
    assert replace(made) == made and pickle.loads(pickle.dumps(made)) == made and hash(replace(made)) == hash(made)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1 << 32))
def test_near_misses_are_maps_or_errors_with_the_nearest_value(seed: int) -> None:
    given_ = near_miss(np.random.default_rng(seed), 1 << 44)
    try:
        made = map_of(given_)
    except OperandError as error:
        assert "; expected" in str(error) or "has" in str(error)
        assert "nearest" in str(error) or "integers" in str(error)
    else:
        assert TensorMap.from_bytes(made.encoded) == made


def test_arrays_say_address_type_shape_and_strides() -> None:
    array = np.zeros((8, 64, 64), np.float16)[:, :50]
    made = wm.TensorMap(array, (1, 16, 64), swizzle=128)
    assert (made.address, made.type, made.shape) == (array.ctypes.data, "f16", (8, 50, 64))
    assert made.strides == (8192, 128) and made.element_strides == (1, 1, 1)
    kinds = {np.int8: "u8", np.int16: "u16", ml_dtypes.bfloat16: "bf16", ml_dtypes.float8_e5m2: "u8", np.int64: "s64"}
    for dtype, kind in kinds.items():
        assert TensorMap(np.zeros((4, 64), dtype), (2, 16)).type == kind
    assert TensorMap(np.zeros((4, 64), np.float32), (2, 16), type="tf32.ftz").type == "tf32.ftz"
    device = wm.Device("sm_90")
    there = device.array(np.zeros((4, 64), np.float32))
    assert TensorMap(there, (2, 16)).address == there.address


def test_numpy_integers_are_integers() -> None:
    made = plain(address=np.uint64(1 << 56), shape=(np.int64(100), np.int64(128)), strides=(np.int64(1 << 39),))
    assert made == plain(address=1 << 56, strides=(1 << 39,)) and type(made.address) is int
    with pytest.raises(OperandError, match=r"address is .*; the nearest is 0x100000000000000"):
        plain(address=np.uint64((1 << 56) + 1))


def test_driver_order_is_reversed() -> None:
    made = TensorMap.encode_im2col(
        "f16", 5, 0x400, [64, 9, 8, 7, 2], [128, 1152, 9216, 64512], [-1, -2, -3], [1, 2, 3], 32, 64,
        [1, 2, 3, 4, 1], swizzle=2, l2_promotion=3,
    )  # fmt: skip
    assert made.shape == (2, 7, 8, 9, 64) and made.box.lower == (-3, -2, -1) and made.box.upper == (3, 2, 1)
    assert made.strides == (64512, 9216, 1152, 128) and made.element_strides == (1, 4, 3, 2, 1)
    assert made.swizzle == 64 and made.l2_promotion == 256 and made.im2col and made.copied_elements == (64, 32)


REFUSED = [
    (lambda: plain(address=0x408), "address is 1032; expected a multiple of 16, .* the nearest is 1040"),
    (lambda: plain(address="x"), "address is 'x'; expected an integer, a NumPy array or a device array"),
    (lambda: plain(type="s16"), "type is 's16'; expected 'u8'.*did you mean 'u16'"),
    (lambda: plain(fill="NaN"), "fill is 'NaN'; expected 'zero' or 'nan'"),
    (lambda: plain(type="u16", fill="nan"), "fill is 'nan' and type 'u16'; expected a type of floats; .* 'zero'"),
    (lambda: plain(swizzle=100), "swizzle is 100; expected 0, 32, 64 or 128; the nearest is 128"),
    (lambda: plain(l2_promotion=512), "l2_promotion is 512; expected 0, 64, 128 or 256; the nearest is 256"),
    (lambda: plain(interleave=8), "interleave is 8; expected 0, 16 or 32"),
    (lambda: plain(interleave=16), "shape has 2 dimensions; an interleave has 3 to 5; the nearest is 3"),
    (lambda: plain(shape=(), box=()), "shape has 0 dimensions; a map has 1 to 5; the nearest is 1"),
    (lambda: plain(shape=(2,) * 6), r"shape is .*; expected 1 to 5 integers"),
    (lambda: plain(shape=(0, 128)), r"shape\[0\] is 0; expected an integer, 1 to 0x100000000; the nearest is 1"),
    (lambda: plain(shape=(100, (1 << 32) + 1), strides=(16,)), r"shape\[1\] is 0x100000001; .* nearest is 0x100000000"),
    (lambda: plain(shape=(100, 100)), r"strides\[0\] is 200; expected a multiple of 16, .* the nearest is 208"),
    (lambda: plain(strides=(1 << 40,)), r"strides\[0\] is 0x10000000000; .* the nearest is 0xfffffffff0"),
    (lambda: plain(strides=(256, 2)), r"strides is \(256, 2\); expected 1 integers, the outermost dimension first"),
    (lambda: plain(box=(257, 64)), r"box\[0\] is 257; expected an integer, 1 to 256; the nearest is 256"),
    (lambda: plain(box=(0, 64)), r"box\[0\] is 0; .* the nearest is 1"),
    (lambda: plain(box=(16, 12)), r"box\[1\] is 12: 24 bytes of f16; expected a multiple of 16 bytes; .* is 16"),
    (lambda: plain(swizzle=64), r"box\[1\] is 64: 128 bytes of f16; .* at most 64, the width of the swizzle; .* is 32"),
    (lambda: plain(box=(16,)), r"box is \(16,\); expected 2 integers"),
    (lambda: plain(box=(16.0, 64)), r"box\[0\] is 16.0; expected an integer"),
    (lambda: plain(element_strides=(9, 1)), r"element_strides\[0\] is 9; expected an integer, 1 to 8; .* is 8"),
    (lambda: plain(box=COLUMN), "shape has 2 dimensions; im2col has 3 to 5; the nearest is 3"),
    (lambda: column(box=replace(COLUMN, lower=(-129, 0))), r"lower\[0\] is -129; expected .*, -128 to 127; .* is -128"),
    (lambda: column(box=replace(COLUMN, upper=(0,))), r"upper is \(0,\); expected 2 integers"),
    (lambda: column(box=replace(COLUMN, pixels=1025)), "pixels is 1025; expected an integer, 1 to 1024; .* is 1024"),
    (lambda: column(box=replace(COLUMN, channels=0)), "channels is 0; expected an integer, 1 to 256; the nearest is 1"),
    (lambda: column(swizzle=32), "channels is 32: 64 bytes of f16; .* the nearest is 16"),
    (lambda: column(interleave=32, address=16), "address is 16; expected a multiple of 32"),
    (lambda: column(box=(256,) * 4, type="f64"), "box has 34,359,738,368 bytes; expected at most 233,472"),
    (lambda: plain(address=1 << 57), "address is 0x200000000000000; .* the nearest is 0x1fffffffffffff0"),
    (lambda: column(box=replace(COLUMN, upper=(-1, -11))), r"shape\[2\] is 9: a box of -1 pixels; .* upper\[1\] is -9"),
    (lambda: column(shape=(2, 9, 1 << 32, 64), strides=(16,) * 3), r"a box of 0 pixels; .* upper\[1\] is 0"),
    (lambda: plain(shape=(4, 8, 64), box=(2, 2, 4), interleave=16), "is 4: 8 bytes of f16; expected a multiple of 16"),
    (lambda: TensorMap(np.zeros((4, 64), complex), (2, 16)), "the array is of complex128; expected one of uint8"),
    (lambda: TensorMap(np.zeros((64, 32)).T, (2, 16)), "innermost stride is 256 bytes; expected 8"),
    (lambda: TensorMap(np.zeros((4, 64), np.float32), (2, 16), type="u8"), r"the nearest is array.view\(np.uint8\)"),
    (lambda: TensorMap.encode_tiled(13, 1, 0, [64], [], [16], [1]), "tensor_data_type is 13; .* the nearest is 12"),
    (lambda: TensorMap.encode_tiled(0, 2, 0, [64], [], [16], [1]), "global_dim is .64.; expected 2 integers"),
    (lambda: TensorMap.encode_tiled(0, 1, 0, [64], [], [16], [1], swizzle=4), "swizzle is 4; .* the nearest is 3"),
    (lambda: TensorMap.from_bytes(bytes(127)), "a tensor map is bytes of 127 bytes; expected bytes, 128 of them"),
    (lambda: TensorMap.from_bytes("x"), "a tensor map is str; expected bytes"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message[:40] for _, message in REFUSED])
def test_refusals_name_the_nearest_legal_value(make: Any, message: str) -> None:
    with pytest.raises((OperandError, UnsupportedError), match=message):
        make()


# Bits that no host call sets


def with_bits(made: TensorMap, *bits: int) -> bytes:
    return (int.from_bytes(made.encoded, "little") | sum(1 << bit for bit in bits)).to_bytes(128, "little")


@pytest.mark.parametrize("made", [plain(type="bf16"), plain(swizzle=128), column(), plain(shape=(64,), box=(64,))])
def test_bits_that_no_host_call_sets_are_ignored(made: TensorMap) -> None:
    known = sum(field.mask for field in fields_of(made.im2col, made.rank))
    others = [bit for bit in range(1024) if not known >> bit & 1 and bit != 64 + 22]
    assert len(others) > 500
    for bit in others:
        assert TensorMap.from_bytes(with_bits(made, bit)) == made
    assert TensorMap.from_bytes(with_bits(made, *others)) == made
    with pytest.raises(UnsupportedError, match="word 1, bit 22 is set; no host call of sm_90 sets it"):
        TensorMap.from_bytes(with_bits(made, 64 + 22))


@pytest.mark.parametrize(("bits", "message"), [
    ([64 + 7, 64 + 10], "hold element type 15; expected 0 to 10"), ([64 + 16], "hold element type 6 with bit 16"),
    ([64 + 11, 64 + 12], "hold interleave 3"), ([64 + 5, 64 + 6], "the rank is 8; expected 1 to 5"),
    ([64], "the rank is 2; expected 3 to 5 of a map of mode im2col"), ([0], "address is 0x7f0000000401"),
])  # fmt: skip
def test_fields_that_no_legal_map_has_are_refused(bits: list[int], message: str) -> None:
    with pytest.raises((OperandError, UnsupportedError), match=message):
        TensorMap.from_bytes(with_bits(plain(), *bits))


# tensormap.replace


def rebuilt(made: TensorMap) -> bytes:
    """Build a tiled map as Triton does, on zeros."""
    encoded = bytes(128)
    types = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz")
    single = {
        "global_address": made.address, "rank": made.rank - 1, "elemtype": types.index(made.type),
        "interleave_layout": made.interleave // 16, "swizzle_mode": (0, 32, 64, 128).index(made.swizzle),
        "fill_mode": int(made.fill == "nan"),
    }  # fmt: skip
    several = {
        "box_dim": made.box, "global_dim": made.shape, "global_stride": made.strides,
        "element_stride": made.element_strides,
    }  # fmt: skip
    for name, value in single.items():
        encoded = replace_field(encoded, name, value)
    for name, values in several.items():
        for ordinal, value in enumerate(values[::-1]):
            encoded = replace_field(encoded, name, value, ordinal)
    assert {*single, *several} == {*REPLACED}
    return encoded


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 32))
def test_replaced_fields_make_the_drivers_map(seed: int) -> None:
    rng = np.random.default_rng(seed)
    while "box" not in (case := legal_arguments(rng, 1 << 44)) or max(case["dims"]) == 1 << 32:
        pass
    made = map_of({**case, "l2": 0})  # which `tensormap.replace` cannot set
    assert rebuilt(made) == made.encoded[:64] + bytes(64)


def test_replacing_changes_its_field_alone() -> None:
    made = plain(swizzle=128)
    again = replace_field(made.encoded, "global_dim", 7, 1)
    assert TensorMap.from_bytes(again) == replace(made, shape=(7, 128))
    rounded = replace_field(made.encoded, "elemtype", 12)
    assert rounded != made.encoded
    kept = replace_field(
        replace_field(plain().encoded, "elemtype", 11), "elemtype", 7
    )  # f32: the bit that rounds stays
    assert TensorMap.from_bytes(kept).type == "tf32"
    high = with_bits(made, 64 + 22)
    assert replace_field(high, "swizzle_mode", 3) == made.encoded and replace_field(high, "rank", 1) == high
    far = replace_field(made.encoded, "global_stride", (1 << 40) - 16, 0)
    assert TensorMap.from_bytes(far).strides == ((1 << 40) - 16,)


@pytest.mark.parametrize(("words", "message"), [
    (("box_dims", 1, 0), "field is 'box_dims'; expected .*did you mean 'box_dim'"),
    (("box_dim", 257, 0), "tensormap.replace.tile.box_dim: the value is 257; expected an integer, 1 to 256; .* 256"),
    (("box_dim", 1, 5), "box_dim: the ordinal is 5; expected 0 to 4"),
    (("global_stride", 16, 4), "global_stride: the ordinal is 4; expected 0 to 3"),
    (("global_stride", 24, 0), "the value is 24; expected a multiple of 16, .* the nearest is 32"),
    (("element_stride", 0, 0), "the value is 0; expected an integer, 1 to 8; the nearest is 1"),
    (("global_dim", 1 << 32, 0), "the value is 0x100000000; .* the nearest is 0xffffffff"),
    (("rank", 5), "the value is 5; expected an integer, 0 to 4; the nearest is 4"),
    (("rank", 1, 0), "rank: the ordinal is 0; expected None"), (("box_dim", 1), "the ordinal is None; expected 0 to 4"),
    (("elemtype", 13), "the value is 13; .* the nearest is 12"), (("swizzle_mode", 4), "the nearest is 3"),
    (("global_address", 8), "expected a multiple of 16"), (("fill_mode", True), "the value is True"),
])  # fmt: skip
def test_illegal_replacements(words: tuple[Any, ...], message: str) -> None:
    with pytest.raises(OperandError, match=message):
        replace_field(bytes(128), *words)
