"""Guesses of wrong tensor maps and loads: planted ones are named, and no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from arrays import Array

from warpmma import TensorMap
from warpmma.errors import OperandError, WarpmmaError
from warpmma.layouts import Im2colBox
from warpmma.testing import guess_copy

Rng = np.random.Generator
Case = tuple[TensorMap, tuple[int, ...], tuple[int, ...]]
TYPES = ("u8", "f16", "bf16", "f32", "tf32", "u32")
REGION = 32 << 10


def pick(rng: Rng, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def tensor(rng: Rng, shape: tuple[int, ...]) -> tuple[dict[str, Any], Array]:
    """Return the fields of a tensor whose rows are padded at times, and random bytes around it."""
    kind = pick(rng, *TYPES)
    size = TensorMap(0, (1, 16), type=kind, shape=(1, 16)).itemsize
    row = -(-shape[-1] * size // 16) * 16 + 16 * int(rng.integers(3)) * int(rng.integers(2))
    strides = [row]
    for length in shape[-2:0:-1]:
        strides.insert(0, strides[0] * length + 16 * int(rng.integers(2)))
    fill = pick(rng, "zero", "nan") if "f" in kind else "zero"
    memory = rng.integers(0, 256, 2 * strides[0] * shape[0] + (64 << 10), np.uint8)
    return {"type": kind, "shape": shape, "strides": tuple(strides), "fill": fill}, memory


def tiled(rng: Rng) -> tuple[Case, Array]:
    """Draw a load as kernels have them: most of the box inside of the tensor."""
    rank = pick(rng, 2, 2, 3)
    fields, memory = tensor(rng, tuple(int(x) for x in (*rng.integers(6, 20, rank - 1), 8 * rng.integers(8, 25))))
    swizzle = pick(rng, 0, 32, 64, 128)
    size = TensorMap(0, (1, 16), type=fields["type"], shape=(1, 16)).itemsize
    inner = (swizzle or 16 * int(rng.integers(1, 9))) // size
    box = (*(int(x) for x in rng.integers(2, 8, rank - 1)), inner)
    steps = tuple(pick(rng, 1, 1, 1, 2) for _ in range(rank - 1))
    start = (*(int(rng.integers(0, n)) for n in fields["shape"][:-1]), 16 // size * int(rng.integers(0, 4)))
    return (TensorMap(1 << 40, box, swizzle=swizzle, element_strides=(*steps, 1), **fields), start, ()), memory


def im2col(rng: Rng) -> tuple[Case, Array]:
    """Draw a load of a convolution of 3 x 3."""
    n, h, w = (int(x) for x in rng.integers((2, 6, 6), (4, 14, 14)))
    fields, memory = tensor(rng, (n, h, w, 16 * int(rng.integers(2, 6))))
    size = TensorMap(0, (1, 16), type=fields["type"], shape=(1, 16)).itemsize
    swizzle = pick(rng, 0, 32, 64)
    box = Im2colBox(lower=(-1, -1), upper=(-1, -1), channels=(swizzle or 64) // size, pixels=int(rng.integers(9, 40)))
    start = (int(rng.integers(n)), int(rng.integers(-1, h - 1)), int(rng.integers(-1, w - 1)), 0)
    offsets = tuple(int(x) for x in rng.integers(0, 3, 2))
    return (TensorMap(1 << 40, box, swizzle=swizzle, **fields), start, offsets), memory


def wrong(rng: Rng, case: Case) -> tuple[Case, tuple[str, ...], int]:
    """Plant a mistake: return the load of the kernel, the fields that are wrong, and how far its address is off."""
    map_, start, offsets = case
    axis = int(rng.integers(map_.rank))
    unit = 16 // map_.itemsize
    what = pick(rng, "reversed", "bytes", "beside", "strides", "dense", "swizzle", "fill", "type", "steps", "address",
                "shape", "box", "exchanged", "offsets", "corners", "transposed")  # fmt: skip
    changes: dict[str, Any] = {}
    moved = 0
    if what == "reversed":
        start = start[::-1]
    elif what == "bytes":
        start = (*start[:-1], start[-1] * map_.itemsize)
    elif what == "beside":
        step = 1 if map_.im2col else map_.box[axis]
        step = unit if axis == map_.rank - 1 else step
        start = (*start[:axis], start[axis] + pick(rng, -step, step), *start[axis + 1 :])
    elif what == "strides":
        i = int(rng.integers(map_.rank - 1))
        value = map_.strides[i] // map_.itemsize if rng.random() < 0.5 else map_.strides[i] + pick(rng, -16, 16)
        changes["strides"] = (*map_.strides[:i], value, *map_.strides[i + 1 :])
    elif what == "dense":
        changes["strides"] = tuple(map_.itemsize * int(np.prod(map_.shape[i:])) for i in range(1, map_.rank))
    elif what == "swizzle":
        changes["swizzle"] = pick(rng, *(x for x in (0, 32, 64, 128) if x != map_.swizzle))
    elif what == "fill":
        changes["fill"] = "nan" if map_.fill == "zero" else "zero"
    elif what == "type":
        changes["type"] = {"f32": "tf32", "tf32": "f32", "u32": "tf32"}.get(map_.type, map_.type)
    elif what == "steps":
        steps = map_.element_strides
        changes["element_strides"] = (*steps[:axis], pick(rng, 1, 2, 3), *steps[axis + 1 :])
    elif what == "address":
        moved = pick(rng, 16, 32, 64, map_.strides[0])
    elif what == "shape":
        shape = map_.shape
        changes["shape"] = (*shape[:axis], shape[axis] + pick(rng, -1, 1, shape[axis]), *shape[axis + 1 :])
    elif what == "box" and not map_.im2col:
        box = map_.box
        changes["box"] = (*box[:axis], pick(rng, box[axis] // 2, 2 * box[axis], box[axis] - 1), *box[axis + 1 :])
    elif what == "exchanged" and not map_.im2col:
        changes["box"] = map_.box[::-1]
    elif what == "transposed":
        shape = map_.shape[::-1]
        changes["shape"] = shape
        changes["strides"] = tuple(map_.itemsize * int(np.prod(shape[i:])) for i in range(1, map_.rank))
    elif what == "offsets" and offsets:
        offsets = offsets[::-1] if rng.random() < 0.5 else (offsets[0] + 1, offsets[1])
    elif what == "corners" and isinstance(map_.box, Im2colBox):
        corner: dict[str, Any] = {pick(rng, "lower", "upper"): (pick(rng, -2, 0), -1)}
        changes["box"] = replace(map_.box, **corner)
    fields = dict(zip(("coordinates", "offsets"), (start, offsets), strict=True))
    named = tuple(x for x, y in zip(("coordinates", "offsets"), case[1:], strict=True) if fields[x] != y)
    return (replace(map_, **changes), start, offsets), (*named, *changes), moved


def text(meant: Case, got: Case, fields: tuple[str, ...], moved: int) -> str:
    """Return how the mistake is to be named."""
    if moved:
        return f"the address were {moved} bytes higher"
    parts = []
    for name in fields:
        if name == "box" and isinstance(meant[0].box, Im2colBox):
            name = "lower" if got[0].box.lower != meant[0].box.lower else "upper"
            a, b = (getattr(x[0].box, name) for x in (got, meant))
        elif name in ("coordinates", "offsets"):
            a, b = (x[1 if name == "coordinates" else 2] for x in (got, meant))
        else:
            a, b = (getattr(x[0], name) for x in (got, meant))
        parts.append(f"{name.replace('_', ' ')} were {a}, meant {b}")
    return " and ".join(parts)


def cases(seed: int) -> Iterator[tuple[Case, Array, str, Array]]:
    """Yield loads that were meant, the memory, the name of the planted mistake, and what the kernel brought."""
    rng = np.random.default_rng(seed)
    while True:
        meant, memory = tiled(rng) if rng.random() < 0.7 else im2col(rng)
        try:
            kernel, fields, moved = wrong(rng, meant)
            right = meant[0].read(memory, meant[1], offsets=meant[2])
            brought = kernel[0].read(memory[moved:], kernel[1], offsets=kernel[2])
        except WarpmmaError:  # no legal map, or a trap
            continue
        got, before = (np.zeros(REGION, np.uint8) for _ in range(2))
        if len(brought) > REGION:
            continue
        got[: len(brought)], before[: len(right)] = brought, right
        if (got != before).any():
            yield meant, memory, text(meant, kernel, fields, moved), got


def outcomes(seed: int, count: int) -> Counter[str]:
    """Count planted mistakes by what is named: "alone", "among others", "alike", "none", "WRONG"."""
    found: Counter[str] = Counter()
    for (meant, memory, planted, got), _ in zip(cases(seed), range(count), strict=False):
        named = guess_copy(meant[0], memory, meant[1], offsets=meant[2], got=got)
        right = planted in named.mistakes
        found[
            "alike" if named.alike else "none" if not named.mistakes else "WRONG" if not right
            else "alone" if len(named.mistakes) == 1 else "among others"
        ] += 1  # fmt: skip
    return found


def test_planted_mistakes_are_named() -> None:
    """Of 50, at least 46; docs/tensor_maps.md has the figures of 100 others."""
    found = outcomes(3, 50)
    assert found["alone"] + found["among others"] >= 46 and not found["WRONG"], found


def test_what_is_not_a_mistake() -> None:
    (map_, start, offsets), memory, _, _ = next(cases(4))
    right = map_.read(memory, start, offsets=offsets)
    assert guess_copy(map_, memory, start, offsets=offsets, got=right).as_given
    none = guess_copy(map_, memory, start, offsets=offsets, got=right ^ np.uint8(1))
    assert not none.mistakes and not none.alike and none.alone > 50 and "no one of" in str(none)
    assert any("outside of the memory given" in x for x in none.untried)


def test_what_lay_in_shared_memory_before() -> None:
    """Half of a box leaves the other half as it was."""
    array = np.random.default_rng(0).integers(0, 1 << 16, (32, 32), np.uint16)
    meant, before = TensorMap(array, (16, 32)), np.full(1024, 0xA5, np.uint8)
    got = before.copy()
    got[:512] = replace(meant, box=(8, 32)).read(array, (8, 0))
    assert guess_copy(meant, array, (8, 0), got=got, shared=before).mistakes == ("box were (8, 32), meant (16, 32)",)
    assert not guess_copy(meant, array, (8, 0), got=got).mistakes


def test_refusals() -> None:
    array = np.zeros((32, 32), np.uint16)
    meant = TensorMap(array, (16, 32))
    with pytest.raises(
        OperandError, match="got has 1023 bytes and shared 1023; expected as many of both, at least 1024"
    ):
        guess_copy(meant, array, (0, 0), got=np.zeros(1023, np.uint8))
    with pytest.raises(OperandError, match="got has 1024 bytes and shared 8"):
        guess_copy(meant, array, (0, 0), got=np.zeros(1024, np.uint8), shared=np.zeros(8, np.uint8))
    with pytest.raises(OperandError, match="expected bytes of shared memory"):
        guess_copy(meant, array, (0, 0), got=np.array([None] * 2000))
    with pytest.raises(OperandError, match="expected a multiple of 16 bytes"):
        guess_copy(meant, array, (0, 4), got=np.zeros(1024, np.uint8))
    with pytest.raises(OperandError, match=r"map is .*expected a TensorMap"):
        guess_copy(("box", (224,)), array, (0, 0), got=np.zeros(1024, np.uint8))  # type: ignore[arg-type]
