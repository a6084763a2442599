"""Random tensor copies as programs: cases, what the kernel of `tensor_program_kernels` reads, and runs in warpmma."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import warpmma as wm
from lab.gpu.tensor_copy_kernels import KINDS, REGION, REPLACEMENTS
from lab.gpu.tensor_program_kernels import WAYS, program_text
from warpmma.hardware import copy_case, im2col_case, map_of
from warpmma.layouts import replace_field
from warpmma.operations import REDUCED

__all__ = ["ROOM", "in_warpmma", "random_cases", "written"]

Array = npt.NDArray[Any]
Case = dict[str, Any]

ROOM = 64 << 10
"""Bytes of memory that each case has for its tensor."""
_OTHER = {
    "rank": 4,
    "box_dim": 250,
    "global_dim": 3,
    "element_stride": 8,
    "global_stride": 1 << 30,
    "global_address": 0,
}


def random_cases(rng: np.random.Generator, count: int) -> list[Case]:
    """Make cases: arguments of a map, the copy, "way", and a replacement, its number and value, or None."""
    found: list[Case] = []
    while len(found) < count:
        way = WAYS[int(rng.integers(1, len(WAYS)))] if rng.random() < 0.6 else "load"
        kind, interleave = KINDS[int(rng.integers(len(KINDS)))], bool(rng.random() < 0.25)
        store = way != "load"
        if kind > 10:
            case = im2col_case(rng, REGION, rank=kind % 10, store=store, interleave=interleave)
        else:
            case = copy_case(rng, REGION, store=store, interleave=interleave)
        length = sum(s * d for s, d in zip(case["strides"], case["dims"][1:], strict=True))
        if case["address"] + length + case["dims"][0] * 32 >= ROOM:
            continue
        if way in REDUCED and map_of(case).type not in REDUCED[way]:
            continue
        found.append({**case, "way": way, "replaced": _replacement(rng, case) if rng.random() < 0.3 else None})
    return found


def _replacement(rng: np.random.Generator, case: Case) -> int:
    """Choose a field that the map has, and whose value a kernel can name."""
    rank = len(case["dims"])
    while True:
        number = int(rng.integers(len(REPLACEMENTS)))
        field, ordinal, immediate = REPLACEMENTS[number]
        if field == "box_dim" and "box" not in case:
            continue
        if (ordinal or 0) >= rank - (field == "global_stride") or field == "elemtype":
            continue
        modes = {"interleave_layout": "interleave", "swizzle_mode": "swizzle", "fill_mode": "fill"}
        if immediate is None or immediate == case[modes[field]]:
            return number


def _value(case: Case, address: int, field: str, ordinal: int | None) -> int:
    """Return the right value of a field."""
    names = {"box_dim": "box", "global_dim": "dims", "element_stride": "steps", "global_stride": "strides"}
    if field in names:
        return int(case[names[field]][ordinal or 0])
    return {"rank": len(case["dims"]) - 1, "global_address": address}.get(field, 0)


def written(cases: list[Case], base: int) -> tuple[Array, Array]:
    """Return maps [case, 128] and orders [case, 16] of cases whose rooms begin at `base`."""
    maps, orders = [], []
    for i, case in enumerate(cases):
        address = base + i * ROOM + case["address"]
        made = map_of({**case, "address": address})
        encoded, rank = made.encoded, len(case["dims"])
        row = [rank if "box" in case else 10 + rank, *case["start"], *[0] * (5 - rank), *case["offsets"]]
        row += [0] * (9 - len(row)) + [case["at"], WAYS.index(case["way"]), made.copied_bytes]
        if case["replaced"] is None:
            row += [0] * 4
        else:
            field, ordinal, immediate = REPLACEMENTS[case["replaced"]]
            value = _value(case, address, field, ordinal)
            wrong = _OTHER.get(field, 1 if immediate == 0 else 0)
            encoded = replace_field(encoded, field, wrong, ordinal)
            row += [case["replaced"] + 1, value & 0xFFFFFFFF, value >> 32, 0]
        maps.append(np.frombuffer(encoded, np.uint8))
        orders.append([x & 0xFFFFFFFF for x in row])
    return np.array(maps), np.array(orders, np.uint32)


def in_warpmma(arrays: Mapping[int, Array], count: int, parameters: list[int], **options: Any) -> dict[int, Array]:
    """Run the module on arrays by address; return what they become."""
    device = wm.Device("sm_90a")
    placed = {address: device.map(x.copy(), address) for address, x in arrays.items()}
    params = b"".join(x.to_bytes(8, "little") for x in parameters)
    wm.ptx.load(program_text())["copies"].launch(device, count, 128, params=params, shared=REGION, **options)
    return {address: x.numpy() for address, x in placed.items()}
