"""Look-ups: places, elements, tables and words."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from warpmma import lookup, scaling, sparsity
from warpmma.isa import MatrixInstruction
from warpmma.lookup import WordPart

from . import legal, table_fragments
from .calls import Entry
from .hostile import Rng, chance, pick

__all__ = ["ENTRIES", "part"]

_L = "warpmma.lookup"


def _kept(rng: Rng) -> tuple[MatrixInstruction, str]:
    """Choose an instruction and what it keeps in registers."""
    if chance(rng, 0.2):
        return legal.sparse(rng), "metadata"
    if chance(rng, 0.2):
        return legal.scaled(rng), pick(rng, ("scale_a", "scale_b"))
    if chance(rng, 0.2):
        return legal.wgmma(rng), pick(rng, "ACD")
    return legal.record(rng), pick(rng, "ABCD")


def _operand(rng: Rng) -> dict[str, Any]:
    if chance(rng, 0.2):
        return table_fragments.held(rng)
    instruction, operand = _kept(rng)
    return {"instruction": pick(rng, (instruction, str(instruction))), "operand": operand}


def _place(rng: Rng) -> dict[str, Any]:
    instruction, operand = _kept(rng)
    shape = lookup.operand_layout(instruction, operand).shape
    return {
        "instruction": instruction, "operand": operand, "row": int(rng.integers(shape[-2])),
        "column": int(rng.integers(shape[-1])), **pick(rng, lookup.ids_of(instruction, operand)),
    }  # fmt: skip


def _lane(rng: Rng) -> dict[str, Any]:
    instruction, operand = _kept(rng)
    layout = lookup.operand_layout(instruction, operand)
    given = {
        "instruction": instruction, "operand": operand, "lane": int(rng.integers(layout.lanes)),
        "register": int(rng.integers(layout.registers)),
    }  # fmt: skip
    if layout.matrix and len(operand) > 1 and chance(rng, 0.5):
        given |= pick(rng, lookup.ids_of(instruction, operand))
    return given


def _word(rng: Rng) -> dict[str, Any]:
    return {**_lane(rng), "word": int(rng.integers(1 << 32))}


def part(rng: Rng) -> WordPart:
    """Make what some bits mean."""
    given = {**_word(rng), "selector": None, "byte_id": None, "thread_id": None}
    return pick(rng, lookup.read_word(**given))


ENTRIES = (
    Entry(name="warpmma:where", call=lookup.where, make=_place, weight=3),
    Entry(name="warpmma:what", call=lookup.what, make=_lane, weight=3),
    Entry(name=f"{_L}:read_word", call=lookup.read_word, make=_word, weight=3),
    *(Entry(name=f"{_L}:{x.__name__}", call=x, make=_operand) for x in (
        lookup.layout_table, lookup.operand_layout, lookup.ids_of,
    )),
    Entry(name=f"{_L}:WordPart", call=WordPart,
          make=lambda rng: {x.name: getattr(made, x.name) for made in [part(rng)] for x in fields(WordPart)}),
    Entry(
        name="warpmma.sparsity:metadata_layout", call=sparsity.metadata_layout,
        make=lambda rng: {"instruction": legal.spelled(rng, legal.sparse(rng))},
    ),
    *(
        Entry(
            name=f"warpmma.scaling:{x.__name__}", call=x,
            make=lambda rng: {"instruction": legal.spelled(rng, legal.scaled(rng)), "operand": pick(rng, "AB")},
        )
        for x in (scaling.scale_layout, scaling.scale_ids)
    ),
)  # fmt: skip
