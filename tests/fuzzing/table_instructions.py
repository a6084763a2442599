"""Mnemonics, instructions, targets; sparsity and block scales."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from warpmma import arithmetic, isa, scaling, sparsity
from warpmma.isa import Instruction, WarpgroupInstruction, check_known, check_target, instructions, parse, since

from . import legal
from .calls import Entry
from .hostile import Rng, chance, pick

__all__ = ["ENTRIES"]


def _fields(x: Any) -> dict[str, Any]:
    return {f.name: getattr(x, f.name) for f in fields(x) if f.init}


def _targeted(rng: Rng, name: str = "instruction", kind: str = "any") -> dict[str, Any]:
    i = legal.anything(rng) if kind == "any" else legal.record(rng, kind)
    return {name: i, "target": legal.target(rng, i)}


def _selected(rng: Rng, **more: Any) -> dict[str, Any]:
    i = more.pop("i")
    return {**more, "instruction": legal.spelled(rng, i), "selector": pick(rng, sparsity.selectors(i))}


def _size(rng: Rng, i: Instruction) -> tuple[int, int]:
    """Rows, and columns that are whole groups: the instruction's own, or others."""
    return pick(rng, ((i.m, i.k), (i.m, i.k), (3, 2 * i.k), (1, sparsity.pattern(i).width), (0, i.k), (5, 0)))


def _matrix(rng: Rng) -> dict[str, Any]:
    i = legal.sparse(rng)
    lead = legal.batch(rng)
    whole = sparsity.prune(legal.matrix(rng, i.format("A"), (*lead, *_size(rng, i))), i)
    return {"matrix": whole, "instruction": legal.spelled(rng, i)}


def _stored(rng: Rng) -> dict[str, Any]:
    i, lead = legal.sparse(rng), legal.batch(rng)
    m, k = _size(rng, i)
    return {
        "stored": legal.matrix(rng, i.format("A"), (*lead, m, k // 2)),
        "indices": legal.indices(rng, i, lead, m, k), "instruction": legal.spelled(rng, i),
    }  # fmt: skip


def _indices(rng: Rng) -> dict[str, Any]:
    given = _stored(rng)
    del given["stored"]
    return given


def _group(rng: Rng) -> dict[str, Any]:
    i = legal.sparse(rng)
    row, group = int(rng.integers(i.m)), int(rng.integers(i.k // sparsity.pattern(i).width))
    return _selected(rng, i=i, row=row, group=group)


def _packed(rng: Rng) -> dict[str, Any]:
    i, lead = legal.sparse(rng), legal.batch(rng)
    given = _selected(rng, i=i, indices=legal.indices(rng, i, lead))
    if chance(rng, 0.3):
        given["into"] = rng.integers(0, 1 << 32, 32, np.uint32)
    return given


def _words(rng: Rng, *, tf32: bool = False) -> dict[str, Any]:
    i = legal.sparse(rng)
    while tf32 and i.a_type != "tf32":
        i = legal.sparse(rng)
    selector = pick(rng, sparsity.selectors(i))
    words = legal.metadata(rng, i, selector, legal.batch(rng))
    return {"words": words, "instruction": legal.spelled(rng, i), "selector": selector}


def _scales(rng: Rng) -> dict[str, Any]:
    i, operand = legal.scaled(rng), pick(rng, "AB")
    given = {"scales": legal.scales(rng, i, operand, legal.batch(rng)), "instruction": legal.spelled(rng, i),
             "operand": operand, **legal.ids(rng, i, operand)}  # fmt: skip
    if chance(rng, 0.3):
        given["into"] = rng.integers(0, 1 << 32, 32, np.uint32)
    return given


def _scale_words(rng: Rng) -> dict[str, Any]:
    i, operand = legal.scaled(rng), pick(rng, "AB")
    return {"words": rng.integers(0, 1 << 32, (*legal.batch(rng), 32), np.uint32),
            "instruction": legal.spelled(rng, i), "operand": operand, **legal.ids(rng, i, operand)}  # fmt: skip


def _scale_place(rng: Rng) -> dict[str, Any]:
    i, operand = legal.scaled(rng), pick(rng, "AB")
    outer = i.m if operand == "A" else i.n
    return {"instruction": legal.spelled(rng, i), "operand": operand, "index": int(rng.integers(outer)),
            "block": int(rng.integers(i.scales_per_row)), **legal.ids(rng, i, operand)}  # fmt: skip


def _ids(rng: Rng) -> dict[str, Any]:
    i = legal.scaled(rng)
    four = [x for operand in "AB" for x in legal.ids(rng, i, operand).values()]
    return {"instruction": legal.spelled(rng, i), "ids": pick(rng, (four, tuple(four)))}


def quantizable(rng: Rng, i: Instruction, operand: str, outer: int = 0, k: int = 0) -> Any:
    """Make a matrix of float32 that can be quantized."""
    outer, k = outer or (i.m if operand == "A" else i.n), k or i.k
    values = rng.standard_normal((outer, k) if operand == "A" else (k, outer)).astype(np.float32)
    return values * np.float32(2.0 ** int(rng.integers(-40, 40)))


def quantized(rng: Rng) -> scaling.Quantized:
    """Make a matrix with its scales."""
    i, operand = legal.scaled(rng), pick(rng, "AB")
    return scaling.quantize(quantizable(rng, i, operand), i, operand)  # type: ignore[arg-type]


def _to_quantize(rng: Rng) -> dict[str, Any]:
    i, operand = legal.scaled(rng), pick(rng, "AB")
    return {"matrix": quantizable(rng, i, operand, pick(rng, (0, 1, 3)), i.k * pick(rng, (1, 2))),
            "instruction": legal.spelled(rng, i), "operand": operand}  # fmt: skip


def _chosen(choose: Callable[[Rng], Any], rng: Rng) -> dict[str, Any]:
    return {"self": choose(rng)}


def _operand(rng: Rng, record: Any) -> dict[str, Any]:
    return {"self": record, "operand": pick(rng, "ABCD")}


def _worded(rng: Rng) -> dict[str, Any]:
    record = legal.anything(rng)
    mnemonic = legal.spelled(rng, record) if chance(rng, 0.5) else isa.words_of(record)
    return {"mnemonic": mnemonic, "target": legal.target(rng, record)}


_I, _W = "warpmma.isa", "warpmma.isa"
_S, _C, _T = "warpmma.sparsity", "warpmma.scaling", "warpmma.arithmetic"

ENTRIES = (
    Entry(name="warpmma:parse", call=parse, make=lambda rng: {"mnemonic": legal.instruction(rng)}, weight=4),
    Entry(
        name=f"{_W}:parse_warpgroup", call=isa.parse_warpgroup, weight=3,
        make=lambda rng: {"mnemonic": legal.spelled(rng, legal.wgmma(rng))},
    ),
    Entry(
        name=f"{_W}:parse_any", call=isa.parse_any, weight=3,
        make=lambda rng: {"mnemonic": legal.spelled(rng, legal.anything(rng))},
    ),
    Entry(name=f"{_W}:plainest", call=isa.plainest, make=_worded, weight=3),
    *(
        Entry(name=name, call=call, make=lambda rng: {"target": legal.target(rng)})
        for name, call in (
            ("warpmma:instructions", instructions), (f"{_I}:check_known", check_known),
            (f"{_W}:warpgroup_instructions", isa.warpgroup_instructions),
        )
    ),
    Entry(name=f"{_I}:check_target", call=check_target, make=_targeted, weight=2),
    Entry(name=f"{_I}:bare", call=isa.bare, make=lambda rng: {"mnemonic": legal.spelled(rng, legal.anything(rng))}),
    Entry(name=f"{_I}:since", call=since, make=lambda rng: {"first": legal.target(rng)}),
    Entry(name="warpmma:Instruction", call=Instruction, make=lambda rng: _fields(legal.record(rng)), weight=2),
    Entry(name=f"{_W}:WarpgroupInstruction", call=WarpgroupInstruction, make=lambda rng: _fields(legal.wgmma(rng))),
    Entry(
        name=f"{_W}:WarpgroupFamily", call=isa.WarpgroupFamily, make=lambda rng: _fields(legal.wgmma(rng).family),
        weight=0.2,
    ),
    *(
        Entry(name=f"warpmma:Instruction.{x}", call=getattr(Instruction, x), weight=1.5,
              make=lambda rng: _operand(rng, legal.record(rng)))
        for x in ("type", "format", "packing", "layout")
    ),
    *(
        Entry(name=f"{_W}:WarpgroupInstruction.{x}", call=getattr(WarpgroupInstruction, x),
              make=lambda rng: _operand(rng, legal.wgmma(rng)))
        for x in ("type", "format", "packing", "layout")
    ),
    *(
        Entry(name=f"{name}.__str__", call=kind.__str__, make=partial(_chosen, f), weight=0.2)
        for name, kind, f in (
            ("warpmma:Instruction", Instruction, legal.record),
            (f"{_W}:WarpgroupInstruction", WarpgroupInstruction, legal.wgmma),
        )
    ),
    Entry(name=f"{_T}:recipe", call=arithmetic.recipe, make=_targeted, weight=2),
    Entry(name=f"{_T}:lowering", call=arithmetic.lowering, make=_targeted, weight=2),
    Entry(name=f"{_T}:group", call=arithmetic.group, make=lambda rng: {"instruction": legal.anything(rng)}),
    Entry(name=f"{_T}:variants", call=arithmetic.variants, make=lambda rng: {"*numbers": [80, 90]}),
    Entry(
        name=f"{_T}:machine_text", call=arithmetic.machine_text,
        make=lambda rng: {"form": pick(rng, tuple(arithmetic.SEQUENCES)), "target": legal.target(rng)},
    ),
    Entry(
        name=f"{_T}:Lowering", call=arithmetic.Lowering, make=lambda rng: _fields(pick(rng, arithmetic.LOWERINGS)),
        weight=0.2,
    ),
    Entry(
        name="warpmma.isa:Target", call=isa.Target, make=lambda rng: _fields(pick(rng, tuple(isa.TARGETS.values()))),
        weight=0.3,
    ),
    Entry(
        name="warpmma.isa:Target.__str__", call=isa.Target.__str__, weight=0.1,
        make=lambda rng: {"self": pick(rng, tuple(isa.TARGETS.values()))},
    ),
    Entry(name=f"{_S}:pattern", call=sparsity.pattern, make=lambda rng: {"instruction": legal.sparse(rng)}),
    Entry(name=f"{_S}:Pattern", call=sparsity.Pattern, make=lambda rng: {"width": pick(rng, (2, 4, 8))}),
    Entry(name=f"{_S}:compress", call=sparsity.compress, make=_matrix, weight=4),
    Entry(name=f"{_S}:prune", call=sparsity.prune, make=_matrix, weight=4),
    Entry(name=f"{_S}:expand", call=sparsity.expand, make=_stored, weight=4),
    Entry(name=f"{_S}:rows_met", call=sparsity.rows_met, make=_indices, weight=2),
    Entry(
        name=f"{_S}:check_indices", call=sparsity.check_indices, weight=2,
        make=lambda rng: {**_indices(rng), **({"legal": [4, 8, 9, 12, 13, 14]} if chance(rng, 0.4) else {})},
    ),
    Entry(name=f"{_S}:selectors", call=sparsity.selectors, make=lambda rng: {"instruction": legal.sparse(rng)}),
    Entry(name=f"{_S}:legal_codes", call=sparsity.legal_codes, make=lambda rng: {"instruction": legal.sparse(rng)}),
    Entry(name=f"{_S}:metadata_place", call=sparsity.metadata_place, make=_group, weight=3),
    Entry(name=f"{_S}:pack_metadata", call=sparsity.pack_metadata, make=_packed, weight=4),
    Entry(name=f"{_S}:unpack_metadata", call=sparsity.unpack_metadata, make=_words, weight=3),
    Entry(
        name=f"{_S}:check_metadata", call=sparsity.check_metadata, weight=3,
        make=lambda rng: {**_words(rng), **({"legal": [4, 8, 9, 12, 13, 14]} if chance(rng, 0.4) else {})},
    ),
    Entry(name=f"{_S}:positions", call=sparsity.positions, make=_words, weight=3),
    Entry(name=f"{_S}:halves", call=sparsity.halves, make=lambda rng: _words(rng, tf32=True), weight=2),
    Entry(name=f"{_C}:block_size", call=scaling.block_size, make=lambda rng: {"instruction": legal.scaled(rng)}),
    Entry(name=f"{_C}:byte_ids", call=scaling.byte_ids, make=lambda rng: {"instruction": legal.scaled(rng)}),
    Entry(name=f"{_C}:thread_ids", call=scaling.thread_ids, make=lambda rng: {"operand": pick(rng, "AB")}, weight=2),
    Entry(name=f"{_C}:scale_place", call=scaling.scale_place, make=_scale_place, weight=3),
    Entry(name=f"{_C}:pack_scales", call=scaling.pack_scales, make=_scales, weight=4),
    Entry(name=f"{_C}:unpack_scales", call=scaling.unpack_scales, make=_scale_words, weight=4),
    Entry(name=f"{_C}:checked_ids", call=scaling.checked_ids, make=_ids),
    Entry(
        name=f"{_C}:scale_codes", call=scaling.scale_codes, weight=2,
        make=lambda rng: (lambda i, x: {"record": i, "operand": x, "scales": legal.scales(rng, i, x, ())})(
            legal.scaled(rng), pick(rng, "AB")
        ),
    ),
    Entry(name=f"{_C}:quantize", call=scaling.quantize, make=_to_quantize, weight=4),
    Entry(name=f"{_C}:Quantized", call=scaling.Quantized, make=lambda rng: _fields(quantized(rng)), weight=2),
    Entry(
        name=f"{_C}:Quantized.dequantize", call=scaling.Quantized.dequantize, make=lambda rng: {"self": quantized(rng)},
    ),
)  # fmt: skip
