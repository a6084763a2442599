"""The command `evidence`: how it is known what each instruction computes on each target.

1. Without an instruction it is a table: a row for each target, a column for each group of instructions that share a
   path through the hardware; a cell has the kinds of evidence of the instructions that the target has there.
2. With an instruction: every target that has it, or the given one, with source, device and assumption.
3. `--target` without an instruction: every group of that target, with its full evidence.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from ...arithmetic import Evidence, evidence_of, group
from ...isa import (
    TARGETS,
    MatrixInstruction,
    WarpgroupInstruction,
    check_known,
    check_target,
    instructions,
    warpgroup_instructions,
)
from ..arguments.naming import instruction_of
from ..output.streams import write
from ..output.terminal import Paint, add_output, folded, paint_of, tabulated

_LETTERS = {"measured": "M", "published": "P", "derived": "D"}
_BELOW = (
    "M measured by this project on a GPU, output bit for output bit; P published by others who measured, or exact in "
    "PTX; D derived, with an assumption that `warpmma evidence --target TARGET` names. sp: sparse. half is f16, bf16 "
    "and tf32; quad pair m8n8k4 of f16."
)


def add_evidence(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.epilog = "More, with what would settle what is derived, is in docs/evidence.md."
    parser.add_argument("instruction", nargs="*", metavar="INSTRUCTION", help="a mnemonic, or words that identify one")
    parser.add_argument("--target", help="this one alone")
    add_output(parser)


def run_evidence(options: argparse.Namespace) -> int:
    """Say how it is known what instructions compute: measured, published or derived."""
    if options.target is not None:
        check_known(options.target)
    paint = paint_of(options)
    if options.instruction:
        i = instruction_of(options.instruction, options.target)
        if options.target is not None:
            check_target(i, options.target)
        rows = _of_instruction(i, options.target)
        write(_json(rows) if options.json else f"{paint(str(i), 'bold')}\n{_text(rows, paint)}")
    elif options.target is not None:
        rows = _of_target(options.target)
        write(_json(rows) if options.json else _text(rows, paint))
    else:
        write(_json([row for target in TARGETS for row in _of_target(target)]) if options.json else _table(paint))
    return 0


def _every(target: str) -> tuple[MatrixInstruction, ...]:
    return (*instructions(target), *warpgroup_instructions(target))


def _column(i: MatrixInstruction) -> str:
    if isinstance(i, WarpgroupInstruction) and i.sparse:
        return group(i).replace("wgmma ", "wgmma sp ")
    return f"sp {group(i)}" if i.sparse else group(i)


_Row = tuple[dict[str, Any], Evidence]


def _of_instruction(i: MatrixInstruction, target: str | None) -> list[_Row]:
    """Rule 2; targets with the same evidence are one row."""
    found: dict[Evidence, list[str]] = {}
    for each in i.targets if target is None else (target,):
        found.setdefault(evidence_of(i, each), []).append(each)
    return [({"instruction": str(i), "targets": targets}, known) for known, targets in found.items()]


def _of_target(target: str) -> list[_Row]:
    """Rule 3; instructions of a group with the same evidence are one row."""
    found: dict[tuple[str, Evidence], list[str]] = {}
    for i in _every(target):
        found.setdefault((_column(i), evidence_of(i, target)), []).append(str(i))
    return [({"target": target, "group": name, "instructions": those}, known) for (name, known), those in found.items()]


def _json(rows: list[_Row]) -> str:
    return json.dumps([{**facts, **asdict(known)} for facts, known in rows], indent=2)


def _text(rows: list[_Row], paint: Paint) -> str:
    lines = []
    for facts, known in rows:
        if "targets" in facts:
            head = " ".join(facts["targets"])
        else:
            count, first = len(facts["instructions"]), facts["instructions"][0]
            head = f"{facts['target']} {facts['group']}: {first}{f' and {count - 1} more' * (count > 1)}"
        lines += [paint(folded(head), "bold"), f"  {folded(str(known), 4)}"]
    return "\n".join(lines)


def _table(paint: Paint) -> str:
    """Rule 1."""
    cells: dict[str, dict[str, set[str]]] = {}
    for target in TARGETS:
        row = cells.setdefault(target, {})
        for i in _every(target):
            row.setdefault(_column(i), set()).add(evidence_of(i, target).kind)
    columns = list(dict.fromkeys(column for row in cells.values() for column in row))
    columns.sort(key=lambda name: (name.startswith("wgmma"), name.startswith("sp ")))
    rows = [
        (target, *("".join(x for kind, x in _LETTERS.items() if kind in row.get(column, ())) for column in columns))
        for target, row in cells.items()
    ]
    return f"{_tables(columns, rows, paint)}\n\n{paint(folded(_BELOW), 'dim')}"


def _tables(columns: list[str], rows: list[tuple[str, ...]], paint: Paint) -> str:
    """Lay out dense, sparse and `wgmma` columns as tables of their own, without the rows that would be empty."""
    parts = []
    for beginning in ("", "sp ", "wgmma "):
        chosen = [n for n, name in enumerate(columns, 1) if _part(name) == beginning]
        head = ("target", *(columns[n - 1] for n in chosen))
        body = [(row[0], *(row[n] for n in chosen)) for row in rows if any(row[n] for n in chosen)]
        parts.append(tabulated([head, *body], paint, range(len(head)), ("bold",)))
    return "\n\n".join(parts)


def _part(column: str) -> str:
    return next((x for x in ("sp ", "wgmma ") if column.startswith(x)), "")
