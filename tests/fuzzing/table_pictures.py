"""Pictures: of operands, and of a warp's words."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from warpmma import lookup
from warpmma.isa import Instruction, WarpgroupInstruction
from warpmma.lookup import WarpWords

from . import legal
from .calls import Entry
from .hostile import Rng, chance, pick

__all__ = ["ENTRIES", "warp_words"]

_L = "warpmma.lookup"
_THEMES = ("auto", "light", "dark")


def _drawn(rng: Rng) -> dict[str, Any]:
    given = {"self": legal.record(rng), "operand": pick(rng, "ABCD")}
    if chance(rng, 0.3):
        given = {"self": legal.sparse(rng), "operand": "metadata"}
    elif chance(rng, 0.3):
        given = {"self": legal.scaled(rng), "operand": pick(rng, ("scale_a", "scale_b"))}
    return {**given, "by": pick(rng, ("element", "lane")), "theme": pick(rng, _THEMES)}


def _drawn_warpgroup(rng: Rng) -> dict[str, Any]:
    return {"self": legal.wgmma(rng), "operand": pick(rng, "ACD"), "by": pick(rng, ("element", "lane"))}


def _words(rng: Rng) -> dict[str, Any]:
    given: dict[str, Any] = {"words": rng.integers(0, 1 << 32, 32, dtype="uint32")}
    if chance(rng, 0.5):
        i, operand = legal.sparse(rng), "metadata"
    else:
        i, operand = legal.scaled(rng), pick(rng, ("scale_a", "scale_b"))
    ids = pick(rng, lookup.ids_of(i, operand))
    return {"instruction": legal.spelled(rng, i), "operand": operand, **given, **ids}


def warp_words(rng: Rng) -> WarpWords:
    """Read a warp's words."""
    return lookup.read_words(**_words(rng))


ENTRIES = (
    Entry(name="warpmma:Instruction.svg", call=Instruction.svg, make=_drawn, weight=0.2),
    Entry(name="warpmma.isa:WarpgroupInstruction.svg", call=WarpgroupInstruction.svg, weight=0.1,
          make=_drawn_warpgroup),
    Entry(name=f"{_L}:read_words", call=lookup.read_words, make=_words, weight=0.5),
    Entry(name=f"{_L}:WarpWords.svg", call=WarpWords.svg, weight=0.2,
          make=lambda rng: {"self": warp_words(rng), "theme": pick(rng, _THEMES)}),
    Entry(name=f"{_L}:WarpWords", call=WarpWords,
          make=lambda rng: {x.name: getattr(made, x.name) for made in [warp_words(rng)] for x in fields(WarpWords)}),
)  # fmt: skip
