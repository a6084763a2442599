"""Tensor maps: their fields, their bytes, and copies of boxes."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from lab.generators.tensor_map_cases import legal_arguments
from warpmma.hardware import TENSOR_BYTES, copy_case, map_of
from warpmma.layouts import Im2colBox, TensorMap, replace_field
from warpmma.testing import guess_copy

from .calls import Entry
from .hostile import Rng, chance, pick

__all__ = ["ENTRIES", "INNER", "tensor_map"]

_M, _L = "warpmma:TensorMap", "warpmma.layouts"
_REGION = 4096

INNER: dict[str, str] = {
    **dict.fromkeys(
        (
            f"{_L}:BoxCopy{x}"
            for x in (
                "",
                ".__getstate__",
                ".addresses",
                ".copied_bytes",
                ".load",
                ".load_each",
                ".store",
                ".store_each",
            )
        ),
        "made by `TensorMap.box_copy`; `TensorMap.read` and `write` hand arrays on",
    ),
    **{f"{_L}:{x}.__getstate__": "fields of a record" for x in ("Im2colBox",)},
    f"{_M}.__getstate__": "fields of a record",
    f"{_M}.distance": "for coordinates of copies that the machine makes",
}


def tensor_map(rng: Rng) -> TensorMap:
    """Make a legal map of either mode."""
    return map_of(legal_arguments(rng, 1 << 40))


def _fields(rng: Rng) -> dict[str, Any]:
    made = tensor_map(rng)
    return {x.name: getattr(made, x.name) for x in fields(TensorMap)}


def _box(rng: Rng) -> dict[str, Any]:
    while not isinstance(box := tensor_map(rng).box, Im2colBox):
        pass
    return {x.name: getattr(box, x.name) for x in fields(Im2colBox)}


def _copied(rng: Rng, *, store: bool = False) -> dict[str, Any]:
    while True:
        case = copy_case(rng, _REGION, store=store)
        made = map_of(case)
        if not (store and made.type.startswith("tf32")):
            return {"self": made, "coordinates": tuple(case["start"][::-1]), "at": case["at"]}


def _read(rng: Rng) -> dict[str, Any]:
    shared = {"shared": np.zeros(_REGION, np.uint8)} if chance(rng, 0.5) else {}
    return {**_copied(rng), "memory": np.zeros(TENSOR_BYTES, np.uint8), **shared}


def _written(rng: Rng) -> dict[str, Any]:
    return {
        **_copied(rng, store=True), "memory": np.zeros(TENSOR_BYTES, np.uint8), "shared": np.zeros(_REGION, np.uint8),
    }  # fmt: skip


def _guessed(rng: Rng) -> dict[str, Any]:
    while True:
        case = copy_case(rng, _REGION)
        if max(map(abs, case["start"])) < 1 << 20 and min(case["strides"], default=16):
            made = map_of(case)
            return {"map": made, "memory": np.zeros(TENSOR_BYTES, np.uint8), "coordinates": tuple(case["start"][::-1]),
                    "got": np.ones(1 << 15, np.uint8)}  # fmt: skip


def _replaced(rng: Rng) -> dict[str, Any]:
    field, value, ordinal = pick(rng, (("rank", 3, None), ("box_dim", 64, 4), ("global_stride", 1 << 20, 3)))
    return {"encoded": tensor_map(rng).encoded, "field": field, "value": value, "ordinal": ordinal}


ENTRIES = (
    Entry(name=_M, call=TensorMap, make=_fields, weight=3),
    Entry(name=f"{_L}:Im2colBox", call=Im2colBox, make=_box),
    *(Entry(name=f"{_M}.{x}", call=getattr(TensorMap, x), make=lambda rng: {"self": tensor_map(rng)})
      for x in ("__bytes__", "__str__")),
    *(Entry(name=f"{_M}.{x}", call=vars(TensorMap)[x].fget, make=lambda rng: {"self": tensor_map(rng)})
      for x in ("copied_bytes", "copied_elements", "im2col", "itemsize", "rank")),
    Entry(name=f"{_M}.encoded", call=vars(TensorMap)["encoded"].func, make=lambda rng: {"self": tensor_map(rng)}),
    Entry(name=f"{_M}.box_copy", call=TensorMap.box_copy, make=_copied, weight=2),
    Entry(name=f"{_M}.read", call=TensorMap.read, make=_read),
    Entry(name=f"{_M}.write", call=TensorMap.write, make=_written, writes=("memory",)),
    Entry(name=f"{_M}.svg", call=TensorMap.svg, make=_copied, weight=0.2),
    Entry(name="warpmma.testing:guess_copy", call=guess_copy, make=_guessed, weight=0.05),
    Entry(name=f"{_L}:replace_field", call=replace_field, make=_replaced, weight=2),
)  # fmt: skip
