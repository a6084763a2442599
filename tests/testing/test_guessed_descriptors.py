"""Guesses of wrong matrix descriptors: planted ones are named, and no other."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from arrays import Array

import warpmma as wm
from warpmma.errors import OperandError, WarpmmaError
from warpmma.isa import WarpgroupInstruction, parse_warpgroup
from warpmma.layouts import Major, MatrixDescriptor, SharedTile
from warpmma.lookup import FIELDS, diagnose_descriptor, shared_reading
from warpmma.testing import guess

TYPES = (
    ("f32.f16.f16", 16), ("f16.f16.f16", 16), ("f32.bf16.bf16", 16), ("f32.tf32.tf32", 8), ("f32.e4m3.e5m2", 32),
    ("s32.s8.u8", 32), ("s32.b1.b1.and.popc", 256),
)  # fmt: skip
WINDOW = 1 << 15
Rng = np.random.Generator


def instruction_of(rng: Rng) -> WarpgroupInstruction:
    types, k = TYPES[rng.integers(len(TYPES))]
    return parse_warpgroup(f"wgmma.mma_async.sync.aligned.m64n{8 * rng.integers(1, 5)}k{k}.{types}")


def memory_of(rng: Rng, i: WarpgroupInstruction, operand: Any) -> Array:
    """Return random numbers of the operand's type in all of the window."""
    fmt = i.format(operand)
    if fmt.bits == 1 or i.d_type == "s32":
        return rng.integers(0, 256, WINDOW, np.uint8)
    numbers = rng.standard_normal(WINDOW * 8 // fmt.bits)
    return np.ascontiguousarray(wm.FORMATS[i.type(operand)].encode(numbers)).view(np.uint8)


def planted(rng: Rng, i: WarpgroupInstruction, operand: str) -> tuple[Any, Any, str]:
    """Return the descriptor and major-ness that were meant, those of the kernel, and the field that is wrong."""
    bits = i.format(operand).bits  # type: ignore[arg-type]
    major: Major = "MN" if bits == 16 and rng.random() < 0.5 else "K"
    swizzle = int(rng.choice([0, 32, 64, 128]))
    rows, columns = 64 if operand == "A" else i.n, 4 * i.k
    start = 1024 * int(rng.integers(4))
    tile = SharedTile(rows=rows, columns=columns, bits=bits, major=major, swizzle=swizzle, start=start)
    step = int(rng.integers(1, 4))
    meant = tile.descriptor(step * i.k)
    field = FIELDS[rng.integers(len(FIELDS))]
    wrong, other = meant, major
    if field == "exchanged":
        wrong = replace(meant, leading=meant.stride, stride=meant.leading)
    elif field == "swizzle":
        wrong = replace(meant, swizzle=int(rng.choice([x for x in (0, 32, 64, 128) if x != swizzle])))
    elif field == "base_offset":
        wrong = replace(meant, base_offset=int(rng.integers(1, 8)))
    elif field == "major":
        other = "K" if major == "MN" else "MN"
    elif field == "start":
        wrong = replace(meant, start=tile.descriptor((step - 1) * i.k).start if rng.random() < 0.5 else tile.start)
    else:
        wrong = replace(meant, **{field: int(rng.choice([0, 16, 128, 256, 512, 1024, 2048]))})
    return (meant, major), (wrong, other), field


def cases(seed: int) -> Any:
    """Yield planted mistakes that have an effect and read nothing outside of the window."""
    rng = np.random.default_rng(seed)
    while True:
        i, operand = instruction_of(rng), "AB"[rng.integers(2)]
        (meant, major), (wrong, other), field = planted(rng, i, operand)
        if other != "K" and i.format(operand).bits != 16:  # type: ignore[arg-type]
            continue
        right, read = (
            shared_reading(i, operand, d, major=m) for d, m in ((meant, major), (wrong, other))
        )  # fmt: skip
        if np.array_equal(right.addresses, read.addresses) or not read.inside(0, WINDOW).all():
            continue
        assert right.inside(0, WINDOW).all()
        memory = {x: memory_of(rng, i, x) for x in "AB"}
        rest = "B" if operand == "A" else "A"
        of_rest = wm.SharedOperand(memory[rest], MatrixDescriptor(start=0, leading=128, stride=256))
        given = {operand: wm.SharedOperand(memory[operand], meant, major == "MN"), rest: of_rest}
        kernel = {**given, operand: wm.SharedOperand(memory[operand], wrong, other == "MN")}
        yield i, operand, given, kernel, right, read, field


def test_planted_mistakes_are_named() -> None:
    """Of 200, at least 190 are among what is named, which all reads the same tile; in the others nothing is named."""
    found: Counter[str] = Counter()
    for (i, operand, given, kernel, right, read, _), _ in zip(cases(25), range(200), strict=False):
        zero = np.zeros((i.layout("D").registers, 128), np.uint32)
        got = wm.execute(i, kernel["A"], kernel["B"], zero, target="sm_90a")
        width = max(1, read.descriptor.swizzle // 16)  # base offsets at this distance are the same
        canonical = replace(read.descriptor, base_offset=read.descriptor.base_offset % width)
        diagnosis = diagnose_descriptor(
            i, operand, canonical, meant=right.descriptor, major=read.major, meant_major=right.major
        )
        expected = " and ".join(x.text for x in diagnosis.mistakes)
        named = guess(i, given["A"], given["B"], got=got, target="sm_90a")
        found["right" if expected in named.mistakes else "wrong" if named.mistakes else "none"] += 1
    assert found["right"] >= 190 and not found["wrong"], found


def test_planted_mistakes_are_diagnosed() -> None:
    """The correction that is named gives the tile that was meant; one field explains one planted."""
    named: Counter[tuple[str, str]] = Counter()
    for (i, operand, _, _, right, read, field), _ in zip(cases(7), range(300), strict=False):
        found = diagnose_descriptor(
            i, operand, read.descriptor, meant=right.descriptor, major=read.major, meant_major=right.major
        )
        assert len(found.mistakes) == 1 and found.moved == np.count_nonzero(right.addresses != read.addresses)
        named[field, found.mistakes[0].field] += 1
    assert {planted for planted, _ in named} == set(FIELDS)
    # Of a size that exchange would give too, exchange is named.
    assert {pair for pair in named if pair[0] != pair[1]} <= {("leading", "exchanged"), ("stride", "exchanged")}


def test_a_size_is_not_called_exchanged() -> None:
    """Though an exchange would give the tile, too: with n = 8 the stride has no effect."""
    meant = MatrixDescriptor(start=0x400, leading=128, stride=128)
    i = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    found = diagnose_descriptor(i, "B", replace(meant, leading=256), meant=meant)
    assert [x.field for x in found.mistakes] == ["leading"]
    found = diagnose_descriptor(
        i, "B", replace(meant, leading=256, stride=512), meant=replace(meant, leading=512, stride=256)
    )
    assert [x.field for x in found.mistakes] == ["exchanged"]


def test_what_is_not_a_mistake() -> None:
    i, operand, given, _, right, _, _ = next(cases(3))
    zero = np.zeros((i.layout("D").registers, 128), np.uint32)
    got = wm.execute(i, given["A"], given["B"], zero, target="sm_90a")
    assert guess(i, given["A"], given["B"], got=got, target="sm_90a").as_given
    other = guess(i, given["A"], given["B"], got=got ^ np.uint32(1), target="sm_90a")
    assert not other.mistakes and other.alone > 100
    harmless = replace(right, descriptor=replace(right.descriptor, base_offset=0))
    assert not diagnose_descriptor(i, operand, harmless.descriptor, meant=right.descriptor, major=right.major).mistakes


def test_uniform_operands_are_not_guessed() -> None:
    i = parse_warpgroup("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    memory = np.full(WINDOW, 0x3C, np.uint8)
    a, b = (wm.SharedOperand(memory, MatrixDescriptor(start=0, leading=128, stride=256)) for _ in "AB")
    zero = np.zeros((4, 128), np.uint32)
    got = wm.execute(i, a, b, zero, target="sm_90a")
    assert guess(i, a, b, got=got, target="sm_90a").as_given


def test_refusals() -> None:
    i = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    memory = np.zeros((2, WINDOW), np.uint8)
    words = np.array([0, 1], np.uint64)
    one, two = wm.SharedOperand(memory[0], 0), wm.SharedOperand(memory, words)
    with pytest.raises(OperandError, match="A has 2 descriptors; guesses take one"):
        guess(i, two, one, got=np.ones((2, 64, 8), np.float32), target="sm_90a")
    with pytest.raises(OperandError, match="takes no scale_a"):
        guess(i, one, one, got=np.ones((64, 8), np.float32), target="sm_90a", scale_a=np.zeros(32, np.uint32))
    with pytest.raises(OperandError, match=r"D is \(1, 4, 128\) in registers"):
        guess(i, one, one, got=np.ones((1, 64, 8), np.float32), target="sm_90a")
    with pytest.raises(WarpmmaError):
        guess(i, one, one, got=np.ones((64, 8), np.float32), target="sm_90")
