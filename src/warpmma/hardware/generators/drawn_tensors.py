"""Random tensor maps and copies of them, from a NumPy generator.

Arguments are a dictionary in the driver's words and order, the innermost dimension first: type (a number of
`CUtensorMapDataType`), dims, strides, address, interleave, swizzle, l2, fill, steps, and box, or lower, upper, channels
and pixels. `map_of` makes them a `TensorMap`. A copy has also "start", coordinates, "at", where the box is in a region
of shared memory, and "offsets" of im2col.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...layouts import TensorMap

__all__ = [
    "ITEM_BYTES", "TENSOR_BYTES", "copy_case", "im2col_case", "map_modes", "map_of", "map_row", "map_strides", "picked",
    "tensor_bytes",
]  # fmt: skip

Arguments = dict[str, Any]
Rng = np.random.Generator

ITEM_BYTES = (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4)
"""Of each type, in the driver's numbering."""
TENSOR_BYTES = 1 << 20
_FLOATS = range(6, 13)
_WIDTHS = (0, 32, 64, 128)


def picked(rng: Rng, values: Sequence[Any]) -> int:
    """Choose one of some values."""
    return int(values[int(rng.integers(len(values)))])


def map_of(given: Arguments) -> TensorMap:
    """Make a `TensorMap` of arguments."""
    head = (given["type"], len(given["dims"]), given["address"], given["dims"], given["strides"])
    tail = (given["steps"], given["interleave"], given["swizzle"], given["l2"], given["fill"])
    if "box" in given:
        return TensorMap.encode_tiled(*head, given["box"], *tail)
    return TensorMap.encode_im2col(
        *head, given["lower"], given["upper"], given["channels"], given["pixels"], *tail
    )  # fmt: skip


def tensor_bytes(seed: int, size: int = TENSOR_BYTES) -> npt.NDArray[np.uint8]:
    """Make random bytes, of whose words of 32 bits a sixteenth each have the exponents of subnormals and of NaNs."""
    words = np.random.Philox(key=seed).random_raw(size // 8).view(np.uint32)
    kinds = np.random.Philox(key=seed + (1 << 32)).random_raw(size // 8).view(np.uint32) & np.uint32(15)
    exponent = np.uint32(0x7F800000)
    words = np.where(kinds == 0, words & ~exponent, np.where(kinds == 1, words | exponent, words))
    return words.view(np.uint8)


def map_modes(rng: Rng, *, interleave: bool) -> Arguments:
    """Choose the type of elements and the modes of a map."""
    kind = int(rng.integers(13))
    return {
        "type": kind, "interleave": int(rng.integers(1, 3)) if interleave else 0, "swizzle": int(rng.integers(4)),
        "l2": int(rng.integers(4)), "fill": int(kind in _FLOATS and rng.random() < 0.4),
    }  # fmt: skip


def map_row(rng: Rng, given: Arguments) -> int:
    """Elements of a row: a multiple of 16 bytes within the swizzle."""
    size, width = ITEM_BYTES[given["type"]], _WIDTHS[given["swizzle"]]
    most = min(width if width and not given["interleave"] else 256 * size, 256 * size)
    row = 16 * int(rng.integers(1, most // 16 + 1))
    return (most if rng.random() < 0.3 else row) // size


def _counted(given: Arguments) -> int:
    """Bytes that an innermost coordinate counts: of an element, or of a slice."""
    return 16 * given["interleave"] or ITEM_BYTES[given["type"]]


def map_strides(rng: Rng, given: Arguments, dims: list[int], *, any_: bool = False) -> list[int]:
    """Choose strides that fit the dimensions; some may overlap or be far too large with `any_`."""
    unit = 32 if given["interleave"] == 2 else 16
    found, length = [], dims[0] * _counted(given)
    for size in dims[1:]:
        stride = -(-length // unit) * unit + unit * int(rng.integers(4)) * int(rng.integers(2))
        if any_ and rng.random() < 0.15:
            stride = unit * picked(rng, [0, 1, 3, (1 << 40) // unit - 1, int(rng.integers(1 << 34))])
        stride = min(stride, (1 << 40) - unit)
        found.append(stride)
        length = stride * size
    return found


# Copies: tensors that lie in `TENSOR_BYTES`


def _start(rng: Rng, given: Arguments, count: int) -> int:
    """Choose an innermost coordinate, around a row and on 16 bytes."""
    unit = max(1, 16 // _counted(given))
    if rng.random() < 0.3:
        return 0
    return unit * int(rng.integers(-count // (3 * unit) - 1, given["dims"][0] // unit + 1))


def _placed(rng: Rng, given: Arguments, dims: list[int], *, overlap: bool) -> Arguments | None:
    """Add strides and an offset, unless the tensor is too large."""
    given |= {"dims": dims, "strides": map_strides(rng, given, dims)}
    if overlap and given["strides"] and rng.random() < 0.1:
        given["strides"][int(rng.integers(len(given["strides"])))] = 32 * int(rng.integers(3))
    size = _counted(given) * dims[0] + sum(s * (d - 1) for s, d in zip(given["strides"], dims[1:], strict=True))
    room = TENSOR_BYTES - size - 64
    if room < 0:
        return None
    return given | {"address": 32 * int(rng.integers(min(room // 32, 64) + 1))}


def copy_case(
    rng: Rng, region: int, *, store: bool = False, interleave: bool = False, base: int = 0
) -> Arguments:  # fmt: skip
    """Choose a tiled map and a copy of it: "start", innermost first, and "at" in a region of shared memory."""
    while True:
        given = map_modes(rng, interleave=interleave)
        rank = int(rng.integers(3 if interleave else 1, 6))
        box = [min(map_row(rng, given), (64 if interleave else 4096) // ITEM_BYTES[given["type"]])]
        box[0] = min(box[0], 256)
        steps = [picked(rng, [1, rng.integers(1, 9)]) for _ in range(rank)]
        if interleave:
            pitch = -(-box[0] // steps[0]) * _counted(given)
        else:
            pitch = max(box[0] * ITEM_BYTES[given["type"]], _WIDTHS[given["swizzle"]])
        left = max(1, picked(rng, [512, 2048, 8192, 16384]) // pitch)
        for step in steps[1:]:
            count = int(rng.integers(1, max(1, min(left, 12)) + 1))
            left //= count
            box.append(min(256, max(1, step * count - int(rng.integers(step)))))
        dims = [max(1, box[0] + int(rng.integers(-(box[0] // 2), 2 * box[0] + 20)))]
        dims += [int(rng.integers(b // 2 + 1, 2 * b + 4)) for b in box[1:]]
        made = _placed(rng, {**given, "box": box, "steps": steps}, dims, overlap=not store)
        if made is None:
            continue
        start = [_start(rng, made, box[0])] + [
            int(rng.integers(-(b // 3) - 1, d + 1)) for b, d in zip(box[1:], dims[1:], strict=True)
        ]
        if store or rng.random() < 0.3:
            start = [max(0, x) for x in start]
        if not store and rank > 1 and rng.random() < 0.05:
            start[int(rng.integers(1, rank))] = picked(rng, [-(1 << 31), (1 << 31) - 1])
        counts = [-(-b // e) for b, e in zip(box[1:], steps[1:], strict=True)]
        if interleave:
            counts[-2] = 1
        room = region - -(-pitch * int(np.prod(counts)) // 128) * 128
        if room >= 0:
            made["address"] += base
            return made | {"start": start, "at": 128 * int(rng.integers(room // 128 + 1)), "offsets": []}


def im2col_case(
    rng: Rng, region: int, *, rank: int, store: bool = False, interleave: bool = False, base: int = 0
) -> Arguments:  # fmt: skip
    """Choose an im2col map and a copy of it; a store's box of pixels lies inside the image."""
    while True:
        given = map_modes(rng, interleave=interleave)
        size = ITEM_BYTES[given["type"]]
        channels = min(map_row(rng, given), (64 if interleave else 4096) // size, 256)
        pitch = _counted(given) if interleave else max(channels * size, _WIDTHS[given["swizzle"]])
        pixels = int(rng.integers(1, min(picked(rng, [16, 64, 1024]), 16384 // pitch) + 1))
        spatial = [int(x) for x in rng.integers(1, 13, rank - 2)]
        lower = [int(x) for x in rng.integers(0 if store else -3, 3, rank - 2)]
        upper = [int(x) for x in rng.integers(-3, 1 if store else 4, rank - 2)]
        last = [d - 1 + u for d, u in zip(spatial, upper, strict=True)]
        if any(low > high for low, high in zip(lower, last, strict=True)):
            continue
        inner = max(1, channels + int(rng.integers(-(channels // 3), 2 * channels + 9)))
        dims = [*spatial, min(inner, 9)] if interleave else [inner, *spatial]
        dims.append(picked(rng, [1, 3, rng.integers(4, 64)]))
        steps = [int(x) if i or interleave else 1 for i, x in enumerate(rng.integers(1, 5, rank))]
        box = {"lower": lower, "upper": upper, "channels": channels, "pixels": pixels}
        made = _placed(rng, {**given, **box, "steps": steps}, dims, overlap=False)
        if made is None:
            continue
        start = [int(rng.integers(low, high + 1)) for low, high in zip(lower, last, strict=True)]
        if interleave:
            start.append(int(rng.integers(-1, 10)))
        else:
            start.insert(0, _start(rng, made, channels))
        start.append(picked(rng, [0, rng.integers(-1, dims[-1] + 1)]))
        offsets = [int(x) for x in rng.integers(0, 4, rank - 2)]
        if store:
            start, offsets = [max(0, x) for x in start], []
        room = region - -(-pixels * pitch // 128) * 128
        if room >= 0:
            made["address"] += base
            return made | {"start": start, "at": 128 * int(rng.integers(room // 128 + 1)), "offsets": offsets}
