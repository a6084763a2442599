"""All about an `ldmatrix`, `stmatrix`, `movmatrix` or `wmma`, as text and JSON: fragments, formulas, evidence.

1. The facts are one record of plain values; JSON is that, and the text is made of it alone.
2. Targets that have one layout stand together.
"""

from __future__ import annotations

import json as json_module
import textwrap
from collections.abc import Iterable
from typing import Any

from ..._text import table
from ...isa import FragmentInstruction
from ...layouts import Layout
from ...lookup import ids_of, layout_known
from .instruction_page import order

_WIDTH = 118


def facts(i: FragmentInstruction, target: str | None = None) -> dict[str, Any]:
    """Return what there is to know, as values that JSON has; of one target if it is named."""
    return {
        "mnemonic": str(i), "shape": i.shape_name, "ptx": list(i.ptx), "threads": 32,
        "operands": {operand: _operand(i, operand, target) for operand in i.operands}, "targets": list(i.targets),
        "known": layout_known(i, target),
    }  # fmt: skip


def json(i: FragmentInstruction, target: str | None = None) -> str:
    """Return the facts as JSON."""
    return json_module.dumps(facts(i, target), indent=2)


def _operand(i: FragmentInstruction, operand: str, target: str | None) -> dict[str, Any]:
    every = i.fragments(operand)
    chosen = every if target is None else {i.fragment(operand, target): (target,)}
    return {
        "type": i.element_type(operand), "variant": i.variant(operand),
        "layouts": [
            {"targets": list(targets), "counted": len(ids_of(i, operand, targets[0])), **_layout(layout)}
            for layout, targets in chosen.items()
        ],
    }  # fmt: skip


def _layout(layout: Layout) -> dict[str, Any]:
    packing = layout.packing
    return {
        "shape": list(layout.shape), "registers": layout.registers, "bits": packing.width,
        "elements": layout.elements, "element_bits": packing.bits, "slot_bits": packing.slot,
        "order": order(layout), "formulas": layout.formulas(),
    }  # fmt: skip


def text(i: FragmentInstruction, target: str | None = None, width: int = _WIDTH) -> str:
    """Return the facts as text, with prose broken at a width."""
    known = facts(i, target)
    parts = {
        "Fragments": _fragment_lines(known), "Where elements sit": _formula_lines(known),
        "How it is known": _wrapped([known["known"]], width), "Targets": _wrapped([" ".join(known["targets"])], width),
    }  # fmt: skip
    lines = [known["mnemonic"], f"{known['shape']}; since PTX {'.'.join(map(str, known['ptx']))}"]
    for heading, rest in parts.items():
        lines += ["", heading, "-" * len(heading), *rest]
    return "\n".join(lines)


def _fragment_lines(known: dict[str, Any]) -> list[str]:
    rows = [("operand", "type", "shape", "registers", "a lane's elements, low bits first", "on")]
    for name, operand in known["operands"].items():
        for x in operand["layouts"]:
            size = " x ".join(map(str, x["shape"][-2:]))
            several = {"matrix": "matrices", "copy": "copies"}[operand["variant"]]
            number = f", {x['counted']} {several}" * (x["counted"] > 1)
            on = "" if len(operand["layouts"]) == 1 else f"{x['targets'][0]} to {x['targets'][-1]}"
            held = " | ".join(x["order"][:8]) + " | ..." * (x["registers"] > 8)
            rows.append((name, operand["type"], size + number, f"{x['registers']} of {x['bits']} bits", held, on))
    return ["  " + line.rstrip() for line in table(rows, range(6))]


def _formula_lines(known: dict[str, Any]) -> list[str]:
    lines = []
    for name, operand in known["operands"].items():
        for x in operand["layouts"]:
            on = "" if len(operand["layouts"]) == 1 else f" on {x['targets'][0]} to {x['targets'][-1]}"
            lines.append(f"  {name}{on}")
            lines += [f"    {key:<6} = {value}" for key, value in x["formulas"].items()]
    return [*lines, "  groupID = laneid >> 2, threadID_in_group = laneid & 0x3; i counts a lane's elements"]


def _wrapped(paragraphs: Iterable[str], width: int) -> list[str]:
    return [
        line
        for each in paragraphs
        for line in textwrap.wrap(each, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    ]
