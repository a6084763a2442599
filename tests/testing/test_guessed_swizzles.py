"""Guesses of swizzles that one side forgot, in tiles of many sizes; what limits leave out; and what is not guessed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import Array
from mistakes import F16, Given, random_operands
from mistakes.in_swizzles import by_address, plain, product, through_shared, turned, xored

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.testing import assert_same_bits, guess, guess_fragment

SHAPES = [(16, 8, 48), (32, 16, 96), (64, 32, 64)]
SWIZZLES: dict[str, tuple[int, Callable[[int], Any]]] = {
    # Chunks that are exchanged with each other, and where they lie in shared memory of a pitch.
    "row % 2": (2, lambda pitch: xored(pitch, lambda r: r & 1)),
    "(row >> 2) % 2": (2, lambda pitch: xored(pitch, lambda r: r >> 2 & 1)),
    "row % 4": (4, lambda pitch: xored(pitch, lambda r: r & 3)),
    "(row >> 1) % 4": (4, lambda pitch: xored(pitch, lambda r: r >> 1 & 3)),
    "row % 8": (8, lambda pitch: xored(pitch, lambda r: r & 7)),
    "bits 8:7": (1, lambda pitch: by_address(pitch, 4)),
    "bits 9:7": (1, lambda pitch: by_address(pitch, 8)),
}
CASES = [
    *((shape, operand, name) for shape in SHAPES for operand in "ab" for name in SWIZZLES),
    ((128, 128, 256), "a", "row % 8"), ((128, 128, 256), "b", "bits 9:7"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "operand", "name"), [case for case in CASES if case[0][2] // 8 % SWIZZLES[case[2]][0] == 0], ids=str
)
@pytest.mark.alike(2)
def test_a_swizzle_on_one_side_is_named(shape: tuple[int, int, int], operand: str, name: str) -> None:
    """A stored with it and loaded without, B the other way round; with it on both sides nothing is wrong."""
    given = random_operands(F16, shape, seed=shape[2])
    chunks = shape[2] // 8
    swizzled, straight = SWIZZLES[name][1](chunks), plain(chunks)
    lines = given["a"] if operand == "a" else turned(given["b"])

    def kernel(store: Any, load: Any) -> Array:
        moved = through_shared(lines, store, load)
        return product(F16, given, **{operand: moved if operand == "a" else turned(moved)})

    right = kernel(swizzled, swizzled)
    assert guess(F16, **given, got=right, target="sm_90").as_given
    got = kernel(swizzled, straight) if operand == "a" else kernel(straight, swizzled)
    found = guess(F16, **given, got=got, target="sm_90")
    if (got == right).all():  # addresses of so small a tile have no such bits
        assert name.startswith("bits") and found.as_given
        return
    pattern = rf"chunks of 16 bytes of (the whole )?{operand.upper()}\b.* were exchanged by .* was swizzled$"
    assert found.mistakes and all(re.match(pattern, x) for x in found.mistakes), str(found)
    if not name.startswith("bits"):
        assert name.replace("row", "row" if operand == "a" else "column") in found.mistakes[0]


def test_a_shared_tile_is_compared_as_it_is() -> None:
    """Without a product: what the loader has in place of A."""
    a = random_operands(F16, (128, 8, 256))["a"]
    mine = through_shared(a, xored(32, lambda r: r & 7), plain(32))
    said = "chunks of 16 bytes of the whole A were exchanged by row % 8: only the store or only the load was swizzled"
    assert guess_fragment(F16, "A", mine, a).mistakes == (said,)
    with pytest.raises(AssertionError, match=f"guess: as if {said}$"):
        assert_same_bits(mine, a, instruction=F16, operand="A")
    small = guess_fragment(F16, "A", mine, a, elements=128 * 256 - 1)
    assert not small.mistakes
    assert small.untried == (
        "rearrangements of the whole A, such as swizzles: 128 x 256 is more than 32,767 elements; pass elements=32768",
    )


def test_limits_are_said_and_can_be_raised() -> None:
    given = random_operands(F16, (32, 16, 96))
    got = product(F16, given, a=through_shared(given["a"], xored(12, lambda r: r & 3), plain(12)))
    small = guess(F16, **given, got=got, target="sm_90", elements=3071, pairs=10)
    assert not small.mistakes
    first, *others = str(small).splitlines()
    assert re.fullmatch(r"guess: none; no one of \d+ mistakes has this result, nor any of \d+ pairs of them", first)
    assert others == [
        "  not tried: rearrangements of the whole A, such as swizzles: 32 x 96 is more than 3,071 elements; "
        "pass elements=3072",
        "  not tried: other pairs of mistakes; pass pairs=40 to try more",
    ]
    (said,) = guess(F16, **given, got=got, target="sm_90", elements=3072, pairs=10).mistakes
    assert "row % 4" in said
    with pytest.raises(AssertionError, match=r"not tried: rearrangements of the whole A.*; pass elements=3072\n"):
        assert_same_bits(got, got + 1, instruction=F16, inputs={**given, "target": "sm_90", "elements": 3071})


def test_products_of_many_tiles_along_k_say_what_was_left_out() -> None:
    given = random_operands(F16, (16, 8, 16 * 66))
    got = product(F16, given)
    got[0, 0] += 1
    found = guess(F16, **given, got=got, target="sm_90", pairs=0)
    assert found.untried == ("k-tiles after the first 64 of 66, one by one; pass a product with fewer of them",)
    assert not guess(F16, **given, got=product(F16, given), target="sm_90").untried


@pytest.mark.parametrize("elements", [-1, 1.5, "all", None])
def test_wrong_limits_are_refused(elements: Any) -> None:
    given = random_operands(F16)
    with pytest.raises(OperandError, match=r"elements is .*; expected a number of elements of a matrix"):
        guess(F16, **given, got=given["c"], target="sm_90", elements=elements)
    with pytest.raises(OperandError, match=r"elements is .*; expected a number of elements of a matrix"):
        guess_fragment(F16, "D", given["c"], given["c"], elements=elements)


def corrupted(given: Given, kind: str) -> Array:
    rng = np.random.default_rng(4)
    right, chunks = product(F16, given), given["a"].shape[1] // 8
    if kind == "a bit":
        right.view(np.uint32)[tuple(rng.integers(0, right.shape))] ^= np.uint32(1 << rng.integers(0, 32))
        return right
    if kind == "a tile":
        right[16:32, 8:16] = rng.standard_normal((16, 8)).astype(np.float32)
        return right
    if kind == "chunks in no order":
        order = rng.permuted(np.tile(np.arange(chunks), (len(right), 1)), axis=1)
        return product(F16, given, a=through_shared(given["a"], lambda r, c: r * chunks + order[r, c], plain(chunks)))
    half = len(right) // 2  # half of the rows swizzled
    a = through_shared(given["a"], xored(chunks, lambda r: r & 3 if r < half else 0), plain(chunks))
    return product(F16, given, a=a)


@pytest.mark.parametrize("kind", ["a bit", "a tile", "chunks in no order", "half of the rows"])
@pytest.mark.parametrize("shape", [(32, 16, 96), (64, 64, 64), (128, 128, 256)], ids=str)
def test_what_is_no_swizzle_is_not_taken_for_one(shape: tuple[int, int, int], kind: str) -> None:
    given = random_operands(F16, shape, seed=11)
    found = guess(F16, **given, got=corrupted(given, kind), target="sm_90", pairs=2000)
    assert not found.mistakes and not found.as_given and not found.alike, str(found)
    assert str(found).startswith("guess: none; no one of ")


def test_constant_operands_tell_nothing_of_swizzles() -> None:
    a, b = np.ones((32, 96), np.float16), np.ones((96, 16), np.float16)
    got = np.full((32, 16), 95, np.float32)
    assert not guess(F16, a, b, got=got, target="sm_90", pairs=100).mistakes
    assert guess(F16, a, b, got=wm.matmul(a, b, instruction=F16, target="sm_90"), target="sm_90").as_given
