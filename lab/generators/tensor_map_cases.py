"""Arguments of tensor maps, legal ones and near misses, from a NumPy generator.

They are like those of `warpmma.hardware.generators.drawn_tensors`, and of a wider range.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from warpmma.hardware import ITEM_BYTES, map_modes, map_row, map_strides, picked

__all__ = ["legal_arguments", "near_miss"]

Arguments = dict[str, Any]
Rng = np.random.Generator

_CORNER_BITS = {3: 16, 4: 8, 5: 5}


def legal_arguments(rng: Rng, base: int) -> Arguments:
    """Choose arguments that the driver takes, of either mode, with extreme sizes among them."""
    im2col = bool(rng.random() < 0.45)
    given = map_modes(rng, interleave=bool(rng.random() < 0.35))
    least = 3 if im2col or given["interleave"] else 1
    rank = int(rng.integers(least, 6))
    dims = [picked(rng, [rng.integers(1, 300), rng.integers(1, 1 << 20), 1, 1 << 32]) for _ in range(rank)]
    unit = 32 if given["interleave"] == 2 else 16
    given |= {
        "dims": dims, "strides": map_strides(rng, given, dims, any_=True),
        "address": base + unit * int(rng.integers(64)), "steps": [int(x) for x in rng.integers(1, 9, rank)],
    }  # fmt: skip
    if rng.random() < 0.5:
        given["steps"] = [1] * rank
    if im2col:
        half = 1 << _CORNER_BITS[rank] - 1
        sizes = [(d + half * 4) % (1 << 32) - half * 4 for d in (dims[:-2] if given["interleave"] else dims[1:-1])]
        channels = map_row(rng, given)
        most = (228 << 10) // (channels * ITEM_BYTES[given["type"]])
        while True:
            corner = [picked(rng, [rng.integers(-half, half), -half, half - 1, 0]) for _ in range(2 * (rank - 2))]
            pairs = zip(sizes, corner[: rank - 2], corner[rank - 2 :], strict=True)
            if all(0 < size + upper - lower < 1 << 31 for size, lower, upper in pairs):
                break
        return given | {
            "lower": corner[: rank - 2], "upper": corner[rank - 2 :], "channels": channels,
            "pixels": min(picked(rng, [1, 1024, rng.integers(1, 1025)]), most),
        }  # fmt: skip
    box = [map_row(rng, given)]
    for _ in range(rank - 1):  # within 128 KiB
        most = max(1, min(256, (128 << 10) // (int(np.prod(box)) * ITEM_BYTES[given["type"]])))
        box.append(int(rng.integers(1, most + 1)))
    return given | {"box": box}


# Near misses


def _at(name: str, *values: int) -> Callable[[Arguments, Rng], None]:
    def change(given: Arguments, rng: Rng) -> None:
        if given.get(name):
            given[name][int(rng.integers(len(given[name])))] = picked(rng, values)

    return change


def _to(name: str, *values: int) -> Callable[[Arguments, Rng], None]:
    def change(given: Arguments, rng: Rng) -> None:
        if name in given:
            given[name] = picked(rng, values)

    return change


def _shifted(name: str, *by: int) -> Callable[[Arguments, Rng], None]:
    def change(given: Arguments, rng: Rng) -> None:
        if isinstance(given[name], list):
            if given[name]:
                at = int(rng.integers(len(given[name])))
                given[name][at] = max(0, given[name][at] + picked(rng, by))
        else:
            given[name] += picked(rng, by)

    return change


def _rank(given: Arguments, rng: Rng) -> None:
    """Drop the outermost dimension."""
    for name in ("dims", "strides", "steps", "box", "lower", "upper"):
        if given.get(name):
            given[name].pop()


def _row(given: Arguments, rng: Rng) -> None:
    """Give a box a row of any width."""
    width = picked(rng, [rng.integers(1, 257), 1, 2, 4, 8, 16, 32, 64, 128, 256, 257])
    if "box" not in given:
        given["channels"] = width
    elif given["box"]:
        given["box"][0] = width


def _large(given: Arguments, rng: Rng) -> None:
    if "box" in given:
        given["box"][1:] = [picked(rng, [256, 128, 64, 17]) for _ in given["box"][1:]]
        given["steps"] = [int(x) for x in rng.integers(1, 3, len(given["box"]))]


_CHANGES: dict[str, Callable[[Arguments, Rng], None]] = {
    "address": _shifted("address", 1, 4, 8, 16, 24, 32, 48), "anywhere": _to("address", 0, 16, 1 << 40, 1 << 60),
    "dim": _at("dims", 0, 1, 2, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 1 << 33, 1 << 40),
    "stride": _at("strides", 0, 8, 16, 24, 32, 48, (1 << 40) - 32, (1 << 40) - 16, 1 << 40, 1 << 41, 1 << 44),
    "strides": _shifted("strides", 1, 8, 16, -16, 24, 32), "box": _at("box", 0, 1, 2, 3, 255, 256, 257, 512, 1 << 20),
    "step": _at("steps", 0, 1, 2, 7, 8, 9, 16, 256), "interleave": _to("interleave", 0, 1, 2, 3),
    "swizzle": _to("swizzle", 0, 1, 2, 3, 4, 5, 6, 7), "l2": _to("l2", 0, 3, 4), "fill": _to("fill", 0, 1, 2),
    "type": _to("type", 0, 4, 6, 12, 13, 14, 15, 16), "rank": _rank, "row": _row, "large": _large,
    "lower": _at("lower", -17, -16, 15, 16, -129, -128, 127, 128, -32769, -32768, 32767, 32768),
    "upper": _at("upper", -17, -16, 15, 16, -129, -128, 127, 128, -32769, -32768, 32767, 32768),
    "channels": _to("channels", 0, 1, 3, 8, 255, 256, 257, 1024), "pixels": _to("pixels", 0, 1, 1023, 1024, 1025, 4096),
}  # fmt: skip


def near_miss(rng: Rng, base: int) -> Arguments:
    """Change one or two of legal arguments to values at the edges of what is legal; "changed" names them."""
    given = copy.deepcopy(legal_arguments(rng, base))
    chosen = [str(x) for x in rng.choice(list(_CHANGES), int(rng.integers(1, 3)), replace=False)]
    for name in chosen:
        _CHANGES[name](given, rng)
    return given | {"changed": sorted(chosen)}
