"""What tensor copies move: against a slow reference, spot checks of the rules, and the instruction's errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensor_map_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from warpmma.errors import OperandError, UnsupportedError
from warpmma.hardware import TENSOR_BYTES, copy_case, im2col_case, map_of, tensor_bytes
from warpmma.layouts import Im2colBox, TensorMap
from warpmma.layouts.tensor_maps.tensor_boxes import to_tf32

MEMORY = tensor_bytes(5)
SHARED = 8 << 10
COLUMN = Im2colBox(lower=(-1, -1), upper=(-1, -1), channels=32, pixels=64)


def plain(**more: Any) -> TensorMap:
    return TensorMap(**{"address": 1 << 40, "box": (16, 64), "type": "f16", "shape": (100, 128), **more})


def column(**more: Any) -> TensorMap:
    return TensorMap(**{"address": 1 << 40, "box": COLUMN, "type": "f16", "shape": (2, 9, 9, 64), **more})


def compare(case: dict[str, Any]) -> None:
    made, memory = map_of(case), MEMORY[case["address"] :]
    expected, count = reference.dump(made, case, memory.tobytes(), SHARED)
    copy = made.box_copy(case["start"][::-1], case["at"], offsets=case["offsets"][::-1])
    assert made.copied_bytes == copy.copied_bytes == count
    shared = np.full(SHARED, 0xA5, np.uint8)
    place = slice(case["at"], case["at"] + copy.span)
    shared[place] = copy.load(memory, shared[place])
    np.testing.assert_array_equal(shared, expected)
    assert np.unique(copy.target).size == copy.target.size
    touched = np.unique(np.flatnonzero(expected != 0xA5) & -16)
    assert set(touched.tolist()) <= set(copy.addresses.tolist()) and copy.addresses.size * 16 == count


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 32))
def test_tiled_loads_equal_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    compare(copy_case(rng, SHARED, interleave=rng.random() < 0.3))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from([3, 4, 5]))
def test_im2col_loads_equal_the_reference(seed: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    compare(im2col_case(rng, SHARED, rank=rank, interleave=rng.random() < 0.3))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from([0, 3, 4, 5]))
def test_stores_equal_the_reference(seed: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    sliced = rng.random() < 0.3
    if rank:
        case = im2col_case(rng, SHARED, rank=rank, store=True, interleave=sliced)
    else:
        case = copy_case(rng, SHARED, store=True, interleave=sliced)
    made = map_of({**case, "l2": 0})
    shared = MEMORY[:SHARED].copy()
    expected = bytearray(TENSOR_BYTES)
    reference.write(made, expected, case["start"][::-1], case["at"], shared.tobytes())
    memory = np.zeros(TENSOR_BYTES, np.uint8)
    made.write(memory, shared[case["at"] :], case["start"][::-1], case["at"])
    np.testing.assert_array_equal(memory, np.frombuffer(bytes(expected), np.uint8))


def test_a_row_major_array_is_read_by_its_own_indices() -> None:
    array = np.arange(40 * 64, dtype=np.uint16).reshape(40, 64)
    made = TensorMap(array, (8, 32))
    brought = made.read(array, (3, 16)).view(np.uint16).reshape(8, 32)
    np.testing.assert_array_equal(brought, array[3:11, 16:48])
    array3 = np.arange(5 * 6 * 16, dtype=np.float32).reshape(5, 6, 16)
    brought = TensorMap(array3, (4, 5, 8), element_strides=(3, 2, 1)).read(array3, (1, 1, 8)).view(np.float32)
    np.testing.assert_array_equal(brought.reshape(2, 3, 8), array3[1:5:3, 1:6:2, 8:])
    made = TensorMap(array, (8, 64), swizzle=128)
    written = np.zeros_like(array)
    made.write(written, made.read(array, (8, 0), 0x480), (8, 0), 0x480)
    np.testing.assert_array_equal(written[8:16], array[8:16])
    assert not written[:8].any() and not written[16:].any()


@pytest.mark.parametrize(("width", "address", "lands"), [
    (128, 0x400, 0x400), (128, 0x480, 0x490), (128, 0x780, 0x7F0), (64, 0x580, 0x5B0), (64, 0x600, 0x600),
    (32, 0x480, 0x490), (32, 0x500, 0x500), (0, 0x780, 0x780),
])  # fmt: skip
def test_a_swizzle_is_of_absolute_addresses(width: int, address: int, lands: int) -> None:
    assert plain(box=(1, 8), swizzle=width).box_copy((0, 0), address).target[0, 0] == lands


def test_rows_take_the_width_of_the_swizzle() -> None:
    made = plain(box=(4, 24), swizzle=128)
    copy = made.box_copy((0, 0))
    assert copy.span == 512 and copy.copied_bytes == made.copied_bytes == 192
    kept = made.read(MEMORY, (0, 0), shared=np.full(512, 0xEE, np.uint8))
    assert (kept == 0xEE).sum() >= 512 - 192 and (made.read(MEMORY, (0, 0)) == 0).sum() >= 512 - 192


@pytest.mark.parametrize(("kind", "fill"), [
    ("f16", 0x7FF7), ("bf16", 0x7FF7), ("f32", 0x7FF77FF7), ("tf32", 0x7FF77FF7), ("f64", 0x7FF77FF77FF77FF7),
])  # fmt: skip
def test_fills(kind: str, fill: int) -> None:
    made = plain(type=kind, fill="nan", box=(2, 8))
    word = f"u{made.itemsize}"
    assert (made.read(np.zeros(0, np.uint8), (100, 0)).view(word) == fill).all()  # no byte of the tensor is read
    assert (made.read(MEMORY, (-1, 120)).view(word).reshape(2, 8)[0] == fill).all()
    assert not plain(type=kind, box=(2, 8)).read(MEMORY, (0, -(1 << 31))).any()
    assert not plain(type=kind, box=(2, 8)).read(MEMORY, ((1 << 31) - 1, 0)).any()


@pytest.mark.parametrize(("code", "rounded"), [
    (0x3F800FFF, 0x3F800000), (0x3F801000, 0x3F800000), (0x3F801001, 0x3F802000), (0x3F803000, 0x3F804000),
    (0x7F7FFFFF, 0x7F800000), (0xFF800000, 0xFF800000), (0x7F800001, 0x7FFFE000), (0xFFFFFFFF, 0x7FFFE000),
    (0x00001001, 0x00002000), (0x80000FFF, 0x80000000), (0x007FFFFF, 0x00800000),
])  # fmt: skip
def test_tf32_is_rounded_to_nearest_even(code: int, rounded: int) -> None:
    assert to_tf32(np.array([code], np.uint32))[0] == reference.tf32(code) == rounded
    made = plain(type="tf32", shape=(1, 4), box=(1, 4))
    assert made.read(np.full(4, code, np.uint32), (0, 0)).view(np.uint32).tolist() == [rounded] * 4


def test_ftz_does_not_flush() -> None:
    codes = np.array([1, 0x807FFFFF, 0x7F800001, 0xFFFFFFFF], np.uint32)
    assert (
        plain(type="f32.ftz", shape=(1, 4), box=(1, 4)).read(codes, (0, 0)).view(np.uint32).tolist() == codes.tolist()
    )


def test_im2col_walks_a_window() -> None:
    image = np.arange(2 * 4 * 5 * 8, dtype=np.uint16).reshape(2, 4, 5, 8)
    box = Im2colBox(lower=(-1, -1), upper=(-1, -1), channels=8, pixels=40)
    made = TensorMap(image, box)
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)))
    for y in range(3):
        for x in range(3):
            brought = made.read(image, (0, -1, -1, 0), offsets=(y, x)).view(np.uint16).reshape(2, 4, 5, 8)
            np.testing.assert_array_equal(brought, padded[:, y : y + 4, x : x + 5])


TRAPS = [
    (plain(), ((0, 0), 64), r'at is 64; expected a multiple of 128, .* "misaligned address"; the nearest is 128'),
    (plain(), ((0, 0), -128), "at is -128; expected a multiple of 128"),
    (plain(), ((0, 0), 1.5), "at is 1.5; expected a multiple of 128"),
    (plain(), ((0, 4),), r'coordinates\[1\] is 4: byte 8 of a row; .* 8 elements: .* "illegal instruction"; .* is 8'),
    (plain(), ((0, -5),), r"coordinates\[1\] is -5: byte -10 of a row; .* the nearest is -8"),
    (plain(), ((0, 0, 0),), r"coordinates is \(0, 0, 0\); expected 2 integers"),
    (plain(), ((0, 1 << 31),), "expected 2 integers from -2147483648 to 2147483647"),
    (column(), ((0, 8, 0, 0), 0, (0, 0)), r"coordinates\[1\] is 8; expected -1 to 7, .* \"illegal instruction\""),
    (column(), ((0, 0, 8, 0), 0, (0, 0)), r"coordinates\[2\] is 8; expected -1 to 7"),
    (column(), ((0, -2, 0, 0), 0, (0, 0)), r"coordinates\[1\] is -2; expected -1 to 7"),
    (column(), ((0, 0, 0, 0), 0, ()), r"offsets is \(\); expected 2 integers from 0 to 255"),
    (column(), ((0, 0, 0, 0), 0, (256, 0)), r"offsets is \(256, 0\); expected 2 integers from 0 to 255"),
    (plain(), ((0, 0), 0, (1,)), r"offsets is \(1,\); expected none: the map is not of mode im2col"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "words", "message"), TRAPS, ids=[x[2][:40] for x in TRAPS])
def test_what_the_instruction_traps_on_is_an_error(made: TensorMap, words: Any, message: str) -> None:
    coordinates, at, offsets = (*words, *(0, ())[len(words) - 1 :])[:3]
    with pytest.raises(OperandError, match=message):
        made.box_copy(coordinates, at, offsets=offsets)


@pytest.mark.parametrize("start", [(-1, 0), (0, -8), (-100, -64)])
def test_stores_from_negative_coordinates_trap(start: tuple[int, int]) -> None:
    with pytest.raises(OperandError, match=r'is -\d+; a store with a negative start traps, "illegal instruction"'):
        plain().box_copy(start, store=True)
    assert not plain().box_copy(start).inside.all()


@pytest.mark.parametrize(("lower", "upper", "message"), [
    ((0, -1), (0, 0), r"lower\[1\] is -1; a store of a map whose box of pixels reaches beyond the image traps"),
    ((0, 0), (2, 1), r"upper\[0\] is 2; a store .* traps, \"illegal instruction\"; the nearest is 0"),
])  # fmt: skip
def test_im2col_stores_stay_in_the_image(lower: tuple[int, int], upper: tuple[int, int], message: str) -> None:
    made = column(box=Im2colBox(lower=lower, upper=upper, channels=32, pixels=64))
    with pytest.raises(OperandError, match=message):
        made.box_copy((0, 0, 0, 0), store=True)
    with pytest.raises(OperandError, match=r"offsets is \(0, 0\); expected none: a store has none"):
        made.box_copy((0, 0, 0, 0), offsets=(0, 0), store=True)


def test_an_interleaved_copy_has_one_slice_of_channels() -> None:
    """NC/8HWC8: [n, channels / 8, h, w], and 8 channels of 16 bits in each."""
    array = np.arange(2 * 3 * 4 * 5 * 8, dtype=np.uint16).reshape(2, 3, 4, 5, 8)
    made = TensorMap(array.ctypes.data, (2, 3, 2, 8), type="u16", shape=(2, 3, 4, 5), strides=(960, 320, 80),
                     interleave=16)  # fmt: skip
    brought = made.read(array, (0, 1, 2, 1)).view(np.uint16)
    assert made.copied_elements == (2, 1, 2, 8) and made.copied_bytes == 512
    expected = np.zeros((2, 2, 8, 8), np.uint16)
    expected[:, :, :4] = array[:, 1, 2:4, 1:5]
    np.testing.assert_array_equal(brought.reshape(2, 2, 8, 8), expected)
    column = TensorMap(array.ctypes.data, Im2colBox(lower=(0, 0), upper=(0, 0), channels=24, pixels=40), type="u16",
                       shape=(2, 3, 4, 5), strides=(960, 320, 80), interleave=16)  # fmt: skip
    brought = column.read(array, (0, 2, 0, 0), offsets=(0, 0)).view(np.uint16)
    np.testing.assert_array_equal(brought.reshape(2, 4, 5, 8), array[:, 2])


def test_a_store_writes_whole_chunks() -> None:
    made = TensorMap(address=0, type="f32", shape=(2, 5), strides=(48,), box=(2, 16))
    memory = np.full(96, 0xEE, np.uint8)
    made.write(memory, np.zeros(128, np.uint8), (0, 0))
    assert (memory.reshape(2, 48) == 0).sum(axis=1).tolist() == [32, 32]  # 20 bytes of the tensor, and 12 behind them
    assert made.box_copy((0, 0)).inside.sum() == 10 and made.box_copy((0, 0), store=True).inside.sum() == 16


def test_arrays_that_do_not_hold_the_copy_are_errors() -> None:
    made, shared = plain(), np.zeros(2048, np.uint8)
    with pytest.raises(OperandError, match="memory has 100 bytes; the copy touches bytes up to 3967, counted from"):
        made.read(np.zeros(100, np.uint8), (0, 0))
    with pytest.raises(OperandError, match=r"memory is .*; expected a C-contiguous ndarray"):
        made.read(np.zeros((200, 200), np.uint8).T, (0, 0))
    with pytest.raises(OperandError, match=r"shared is .*; expected uint8 \[bytes\], 2048 bytes from address 0x80 on"):
        made.write(np.zeros(25600, np.uint8), shared[:-1], (0, 0), 0x80)
    frozen = np.zeros(25600, np.uint8)
    frozen.flags.writeable = False
    with pytest.raises(OperandError, match="memory is read-only"):
        made.write(frozen, shared, (0, 0))
    with pytest.raises(UnsupportedError, match="elements of the box lie on one another"):
        plain(strides=(0,)).write(np.zeros(25600, np.uint8), shared, (0, 0))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 1 << 32))
def test_boxes_inside_of_the_tensor_differ_by_their_distance(seed: int) -> None:
    case = copy_case(np.random.default_rng(seed), SHARED, interleave=seed % 4 == 0)
    made = map_of(case)
    place = case["start"][::-1]
    copy, far = made.box_copy(place, case["at"]), made.distance(place)
    whole = bool(copy.inside.all()) and not made.interleave
    assert (far is not None) == whole
    if far is not None:
        first = made.box_copy([0] * made.rank, case["at"])
        np.testing.assert_array_equal(copy.source, first.source + far)
        np.testing.assert_array_equal(copy.target, first.target)


@pytest.mark.parametrize("start", [(3, 8), (70, 120)])
@pytest.mark.parametrize(
    "more", [{}, {"type": "tf32", "box": (16, 32)}, {"swizzle": 128}, {"box": (16, 24), "swizzle": 64}]
)
def test_several_tensors_are_copied_as_one_is(start: tuple[int, int], more: dict[str, Any]) -> None:
    rng, copy = np.random.default_rng(2), plain(**more).box_copy(start)
    memories = rng.integers(0, 256, (3, 100 * 128 * 4), np.uint8)
    landed = copy.load_each(memories)
    np.testing.assert_array_equal(landed, [copy.load(x) for x in memories])
    expected, found = memories.copy(), memories.copy()
    copy.store_each(found, landed[::-1])
    for into, x in zip(expected, landed[::-1], strict=True):
        copy.store(into, x)
    np.testing.assert_array_equal(found, expected)
