"""What moves fragments, and `wmma`: their records, layouts and pictures."""

from __future__ import annotations

from dataclasses import fields
from functools import cache, partial
from typing import Any, cast

from warpmma import isa, lookup
from warpmma.isa import FragmentInstruction
from warpmma.kernel import MatrixMove, matrix_moves
from warpmma.operations import WmmaMove, WmmaMultiply

from . import table_rows
from .calls import Entry
from .hostile import Rng, chance, pick

__all__ = ["ENTRIES", "INNER", "KINDS", "fragment_instruction", "held"]

KINDS: dict[str, type[FragmentInstruction]] = {
    **{f"warpmma.isa:{x.__name__}": x for x in (
        isa.FragmentMove, isa.FragmentTranspose, isa.WmmaTransfer, isa.WmmaProduct,
    )},
    "warpmma.isa:FragmentInstruction": FragmentInstruction,  # type: ignore[type-abstract]
    "warpmma.kernel:MatrixMove": MatrixMove,
    "warpmma.operations:WmmaMove": WmmaMove, "warpmma.operations:WmmaMultiply": WmmaMultiply,
}  # fmt: skip
_OF_OPERANDS = ("counted", "element_type", "fragment", "fragments", "svg", "variant")


@cache
def _those(kind: type) -> tuple[FragmentInstruction, ...]:
    return tuple(x for x in isa.fragment_instructions() if isinstance(x, kind))


def fragment_instruction(kind: type, rng: Rng) -> FragmentInstruction:
    """Choose an instruction of a class."""
    if kind is MatrixMove:
        return pick(rng, matrix_moves())
    if kind in (WmmaMove, WmmaMultiply):
        return cast(FragmentInstruction, table_rows.a_row(kind, rng))
    return pick(rng, _those(kind))


def held(rng: Rng) -> dict[str, Any]:
    """Choose an instruction, an operand of it, and a target."""
    i = fragment_instruction(FragmentInstruction, rng)
    return {"instruction": pick(rng, (i, str(i))), "operand": pick(rng, i.operands), "target": pick(rng, i.targets)}


def _asked(kind: type, member: str, rng: Rng) -> dict[str, Any]:
    i = fragment_instruction(kind, rng)
    target = {"target": pick(rng, i.targets)} if member in ("counted", "fragment", "svg") else {}
    if member == "layout_known":
        return {"self": i, "target": pick(rng, (None, *i.targets))}
    return {"self": i, "operand": pick(rng, i.operands), **target}


def _mnemonic(rng: Rng) -> dict[str, Any]:
    i = fragment_instruction(FragmentInstruction, rng)
    return {"mnemonic": i if chance(rng, 0.2) else str(i)}


def _fields(kind: type, rng: Rng) -> dict[str, Any]:
    made = fragment_instruction(kind, rng)
    return {x.name: getattr(made, x.name) for x in fields(made)}


ENTRIES = (
    Entry(name="warpmma.isa:parse_fragments", call=isa.parse_fragments, make=_mnemonic),
    Entry(name="warpmma.isa:parse_holder", call=isa.parse_holder, make=_mnemonic),
    Entry(
        name="warpmma.isa:fragment_instructions", call=isa.fragment_instructions,
        make=lambda rng: {"target": pick(rng, isa.TARGET_NAMES)},
    ),
    Entry(
        name="warpmma.lookup:layout_known", call=lookup.layout_known,
        make=lambda rng: {name: x for name, x in held(rng).items() if name != "operand"},
    ),
    *(
        Entry(name=f"{name}.{x}", call=getattr(kind, x), make=partial(_asked, kind, x), weight=0.3)
        for name, kind in KINDS.items()
        for x in (*_OF_OPERANDS, "layout_known")
    ),
    *(
        Entry(name=name, call=kind, make=partial(_fields, kind), weight=0.2)
        for name, kind in KINDS.items()
        if name.startswith("warpmma.isa:") and kind is not FragmentInstruction
    ),
)  # fmt: skip

INNER: dict[str, str] = {
    **dict.fromkeys(
        (f"warpmma.isa:{x}" for x in (
            "FragmentForm", "FragmentForm.check", "FragmentForm.layout_known", "FragmentForm.match",
            "FragmentForm.record", "FragmentInstruction", "InstructionForm", "InstructionForm.check",
            "InstructionForm.match", "InstructionForm.record", "InstructionTable", "InstructionTable.find",
            "InstructionTable.forms", "InstructionTable.prove", "InstructionTable.rows", "Spelling", "Spelling.match",
        )),
        "rows of tables of mnemonics, and what reads them, for the tables themselves",
    ),
    **dict.fromkeys((f"{name}.__str__" for name in KINDS if name != "warpmma.kernel:MatrixMove"), "of no arguments"),
    "warpmma.isa:FragmentInstruction.__getstate__": "what no class but those below has",
    **dict.fromkeys(
        (f"warpmma.isa:{x}" for x in (
            "WmmaProduct.layout", "WmmaProduct.steps", "WmmaProduct.type", "WmmaTransfer.layout",
        )),
        "for the machine, with targets that have the row",
    ),
}  # fmt: skip
"""What no user calls, though it can be reached, and why."""
