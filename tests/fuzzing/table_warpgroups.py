"""`wgmma` on registers and shared memory, and descriptors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

import warpmma as wm
from warpmma import lookup, sparsity
from warpmma.isa import WarpgroupInstruction
from warpmma.layouts import MatrixDescriptor, SharedTile

from . import legal
from .calls import Entry
from .hostile import Rng, chance, pick

__all__ = ["ENTRIES", "INNER"]

_D, _T, _R = "warpmma:MatrixDescriptor", "warpmma:SharedTile", "warpmma.lookup:SharedReading"


def _instruction(rng: Rng) -> WarpgroupInstruction:
    found: WarpgroupInstruction = legal.wgmma(rng)
    while found.n > 64:  # larger ones are no different, and take long
        found = legal.wgmma(rng)
    return found


def _matrix(rng: Rng, i: WarpgroupInstruction, operand: Any, lead: tuple[int, ...]) -> Any:
    shape = (i.k, i.n) if operand == "B" else i.layout(operand).shape
    return legal.matrix(rng, i.format(operand), (*lead, *shape))


def _place(rng: Rng, i: WarpgroupInstruction) -> dict[str, Any]:
    major = pick(rng, ("K", "MN")) if i.format("B").bits == 16 else "K"
    return {"swizzle": pick(rng, (0, 32, 64, 128)), "major": major}


def _loaded(rng: Rng) -> dict[str, Any]:
    i, operand = _instruction(rng), pick(rng, "ABCD")
    given = {"instruction": legal.spelled(rng, i), "operand": operand}
    given["matrix"] = _matrix(rng, i, operand, legal.batch(rng))
    return given | (_place(rng, i) if operand in "AB" and chance(rng, 0.7) else {})


def _operand(rng: Rng, i: WarpgroupInstruction, operand: Any, lead: tuple[int, ...]) -> Any:
    place = _place(rng, i) if operand == "B" or (operand == "A" and chance(rng, 0.5)) else {}
    return wm.load(i, operand, _matrix(rng, i, operand, lead), **place)


def _stored(rng: Rng) -> dict[str, Any]:
    i, operand = _instruction(rng), pick(rng, "ABCD")
    return {"instruction": legal.spelled(rng, i), "operand": operand,
            "registers": _operand(rng, i, operand, legal.batch(rng))}  # fmt: skip


def _options(rng: Rng, i: WarpgroupInstruction, lead: tuple[int, ...]) -> dict[str, Any]:
    given: dict[str, Any] = {"target": "sm_90a", "scale_d": chance(rng, 0.7)}
    if i.d_type != "s32":
        given |= {"imm_a": pick(rng, (1, -1)), "imm_b": pick(rng, (1, -1))}
    if i.sparse:
        given["selector"] = pick(rng, sparsity.selectors(i))
        given["metadata"] = legal.metadata(rng, i, given["selector"], lead)  # type: ignore[arg-type]
    return given


def _executed(rng: Rng) -> dict[str, Any]:
    i, lead = _instruction(rng), legal.batch(rng)
    given = {x.lower(): _operand(rng, i, x, lead) for x in "ABC"}
    return {"instruction": legal.spelled(rng, i), **given, **_options(rng, i, lead)}


def _multiplied(rng: Rng) -> dict[str, Any]:
    i, lead = _instruction(rng), legal.batch(rng)
    given = {x.lower(): _matrix(rng, i, x, lead) for x in "ABC"}
    return {"instruction": legal.spelled(rng, i), **given, **_options(rng, i, lead)}


def _descriptor(rng: Rng) -> MatrixDescriptor:
    start, leading, stride = (16 * int(rng.integers(0, 1 << 10)) for _ in range(3))
    return MatrixDescriptor(
        start=start, leading=leading, stride=stride, swizzle=pick(rng, (0, 32, 64, 128)),
        base_offset=int(rng.integers(8)),
    )  # fmt: skip


def _word(rng: Rng) -> int:
    return _descriptor(rng).word


def _located(rng: Rng) -> dict[str, Any]:
    bits = pick(rng, (1, 8, 16, 32))
    return {"self": _descriptor(rng), "row": int(rng.integers(256)), "column": int(rng.integers(64)), "bits": bits,
            "major": pick(rng, ("K", "MN")) if bits == 16 else "K"}  # fmt: skip


def _tile(rng: Rng) -> SharedTile:
    bits = pick(rng, (1, 8, 16, 32))
    return SharedTile(
        rows=64, columns=256, bits=bits, major=pick(rng, ("K", "MN")) if bits == 16 else "K",
        swizzle=pick(rng, (0, 32, 64, 128)), start=128 * int(rng.integers(16)), base_offset=int(rng.integers(8)),
    )  # fmt: skip


def _laid(rng: Rng) -> dict[str, Any]:
    return {"self": _tile(rng), "matrix": rng.integers(0, 2, (64, 256))}


def _back(rng: Rng) -> dict[str, Any]:
    tile = _tile(rng)
    return {"self": tile, "memory": rng.integers(0, 256, tile.size, np.uint8)}


def _read(rng: Rng) -> dict[str, Any]:
    i, operand = _instruction(rng), pick(rng, "AB")
    return {"instruction": i, "operand": operand, "descriptor": _word(rng), "major": _place(rng, i)["major"]}


def _called(kind: type, member: str) -> Any:
    found = getattr(kind, member)
    return found if callable(found) else lambda self: getattr(self, member)


def _shared(rng: Rng) -> wm.SharedOperand:
    found: wm.SharedOperand = _operand(rng, _instruction(rng), "B", legal.batch(rng))
    return found


def _fields(record: Any) -> dict[str, Any]:
    return {x.name: getattr(record, x.name) for x in fields(record)}


def _addressed(rng: Rng) -> dict[str, Any]:
    bits = pick(rng, (1, 8, 16, 32))
    return {"self": _descriptor(rng), "rows": pick(rng, (8, 64, 256)), "columns": pick(rng, (8, 16, 64)), "bits": bits,
            "major": pick(rng, ("K", "MN")) if bits == 16 else "K"}  # fmt: skip


def _self_of(made: Callable[[Rng], object]) -> Callable[[Rng], dict[str, Any]]:
    return lambda rng: {"self": made(rng)}


ENTRIES = (
    Entry(name="warpmma:load of wgmma", call=wm.load, make=_loaded, weight=6),
    Entry(name="warpmma:store of wgmma", call=wm.store, make=_stored, weight=6),
    Entry(name="warpmma:execute of wgmma", call=wm.execute, make=_executed, weight=12, engines=True),
    Entry(name="warpmma:mma of wgmma", call=wm.mma, make=_multiplied, weight=8, engines=True),
    Entry(name="warpmma:SharedOperand", call=wm.SharedOperand, make=lambda rng: _fields(_shared(rng)), weight=3),
    *(
        Entry(
            name=f"warpmma:SharedOperand.{name}", call=getattr(wm.SharedOperand, name).fget, weight=0.2,
            make=lambda rng: {"self": _shared(rng)}, fixed=("self",),
        )
        for name in ("words", "batch")
    ),
    Entry(
        name="warpmma:SharedOperand.__getstate__", call=wm.SharedOperand.__getstate__, weight=0.2,
        make=lambda rng: {"self": _shared(rng)},
    ),
    Entry(name=_D, call=MatrixDescriptor, make=lambda rng: _fields(_descriptor(rng)), weight=2),
    Entry(name=f"{_D}.addresses", call=MatrixDescriptor.addresses, make=_addressed, weight=2),
    Entry(
        name=f"{_D}.advanced", call=MatrixDescriptor.advanced, weight=0.5,
        make=lambda rng: {"self": _descriptor(rng), "size": 16 * int(rng.integers(0, 64))},
    ),
    Entry(name=f"{_D}.locate", call=MatrixDescriptor.locate, make=_located),
    Entry(name=f"{_D}.steps", call=MatrixDescriptor.steps, weight=0.2,
          make=lambda rng: {"self": _descriptor(rng), "major": pick(rng, ("K", "MN"))}),
    Entry(name=_T, call=SharedTile, make=lambda rng: _fields(_tile(rng)), weight=2),
    Entry(name=f"{_T}.bytes", call=SharedTile.bytes, make=_laid),
    Entry(name=f"{_T}.matrix", call=SharedTile.matrix, make=_back),
    Entry(name=f"{_T}.locate", call=SharedTile.locate, make=lambda rng: {"self": _tile(rng), "row": 0, "column": 0}),
    Entry(name=f"{_T}.element", call=SharedTile.element,
          make=lambda rng: {"self": (tile := _tile(rng)), "address": tile.start, "bit": int(rng.integers(8))}),
    Entry(name=f"{_T}.descriptor", call=SharedTile.descriptor, make=lambda rng: {"self": _tile(rng), "k": 0, "row": 0}),
    Entry(name="warpmma.lookup:shared_reading", call=lookup.shared_reading, make=_read, weight=2),
    Entry(name="warpmma:diagnose_descriptor", call=wm.diagnose_descriptor, weight=2,
          make=lambda rng: {**_read(rng), "meant": _word(rng)}),
    Entry(name=f"{_R}.locate", call=lookup.SharedReading.locate,
          make=lambda rng: {"self": lookup.shared_reading(**_read(rng)), "row": 0, "column": 0}),
    Entry(name=f"{_R}.elements", call=lookup.SharedReading.elements,
          make=lambda rng: {"self": lookup.shared_reading(**_read(rng)), "address": 0x400}),
    Entry(name=f"{_R}.inside", call=lookup.SharedReading.inside,
          make=lambda rng: {"self": lookup.shared_reading(**_read(rng)), "first": 0, "size": 1 << 12}),
    Entry(name=f"{_R}.matrix", call=lookup.SharedReading.matrix,
          make=lambda rng: {"self": lookup.shared_reading(**_read(rng)), "memory": np.zeros(256, np.uint8), "at": 64}),
    *(
        Entry(name=f"{name}.{member}", call=_called(kind, member), weight=0.2, fixed=("self",),
              make=_self_of(made))
        for name, kind, made, members in (
            (_D, MatrixDescriptor, _descriptor, ("word",)),
            (_T, SharedTile, _tile, (
                "width", "lines", "line_bytes", "panels", "size", "steps", "addresses", "__getstate__",
            )),
            (_R, lookup.SharedReading, lambda rng: lookup.shared_reading(**_read(rng)), (
                "bits", "shape", "cells", "addresses", "accesses", "text", "csv", "json", "svg", "__getstate__",
            )),
        )
        for member in members
    ),
)  # fmt: skip
"""The entries of this table."""

INNER = {
    **dict.fromkeys(
        ("warpmma.layouts:SharedCell", "warpmma.layouts:SharedCell.__getstate__", "warpmma.layouts:SharedCell.bank",
         "warpmma.lookup:SharedReading", "warpmma.lookup:SharedReading.wavefronts",
         *(f"warpmma.lookup:{x}{member}" for x in ("DescriptorDiagnosis", "DescriptorMistake")
           for member in ("", ".__getstate__")),
         "warpmma.lookup:DescriptorDiagnosis.__str__"),
        "made by `where`, `shared_reading` and `diagnose_descriptor`, which check",
    ),
    "warpmma.layouts:swizzled": "for rooms above, with addresses",
    "warpmma.lookup:descriptor_mistake": "for guesses, with two readings",
}  # fmt: skip
"""Callables without an entry, and why."""
