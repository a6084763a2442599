"""Requirements of the entries of a PTX module: tables of fewer than 120 columns."""

from __future__ import annotations

import json
from collections.abc import Iterable
from textwrap import wrap
from typing import Any

from ..._text import counted, table
from ...ptx import EntryNeeds, ModuleNeeds

_WIDTH, _NAME = 118, 30
_TIE = "\0"  # a blank at which no line ends
_CLASSES = ("pred", "b16", "b32", "b64")


def module_text(needs: ModuleNeeds) -> str:
    """Write a table of entries, the instructions of each, and every line that is not simulated.

    Columns are bytes of static shared memory, with a + where there is dynamic memory too, of a frame and of parameters;
    registers by class; statements, and how many kinds of instructions they are; lines that are not simulated.
    """
    major, minor = needs.version
    lines = [
        f"{needs.name}: PTX {major}.{minor} for {needs.compiled}, on {needs.target}, "
        f"{counted(len(needs.entries), 'entry', 'entries')}",
        "",
    ]
    head = ("entry", "shared", "local", "params", *_CLASSES, "statements", "kinds", "missing")
    lines += table([head, *map(_row, needs.entries)], left=[0])
    for entry in needs.entries:
        lines += ["", *wrap(f"{entry.name}: instructions by kind", _WIDTH)]
        lines += _wrapped(f"{name}{_TIE}{count:,}" for name, count in entry.instructions.items())
        if entry.functions:
            lines += _wrapped(entry.functions, "calls ")
        if entry.ignored:
            lines += _wrapped(entry.ignored, "ptxas ignores ")
    lines += ["", *_problems(needs)]
    return "\n".join(lines)


def module_json(needs: ModuleNeeds) -> str:
    """Write the same as JSON."""
    return json.dumps({
        "file": needs.name, "target": needs.target, "compiled": needs.compiled, "ptx": list(needs.version),
        "problems": needs.problems, "entries": [_facts(entry) for entry in needs.entries],
    }, indent=2)  # fmt: skip


def _facts(entry: EntryNeeds) -> dict[str, Any]:
    plain = {name: getattr(entry, name) for name in ("name", "shared", "dynamic", "local", "parameters")}
    return {
        **plain, "registers": dict(entry.registers), "instructions": dict(entry.instructions),
        "functions": list(entry.functions), "ignored": list(entry.ignored),
        "problems": [{"line": x.line, "column": x.column, "text": str(x)} for x in entry.problems],
    }  # fmt: skip


def _row(entry: EntryNeeds) -> tuple[str, ...]:
    name = entry.name if len(entry.name) <= _NAME else entry.name[: _NAME - 3] + "..."
    total = sum(entry.instructions.values())
    return (
        name, f"{entry.shared:,}{'+' if entry.dynamic else ''}", f"{entry.local:,}", f"{entry.parameters:,}",
        *(f"{entry.registers.get(kind, 0):,}" for kind in _CLASSES), f"{total:,}", f"{len(entry.instructions):,}",
        f"{len(entry.problems):,}",
    )  # fmt: skip


def _wrapped(items: Iterable[str], before: str = "") -> list[str]:
    text = before + ", ".join(items)
    lines = wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    return [line.replace(_TIE, " ") for line in lines]


def _problems(needs: ModuleNeeds) -> list[str]:
    """List the unsupported lines, each once."""
    found = {str(x): x for entry in needs.entries for x in entry.problems}
    if not found:
        return ["all is simulated"]
    lines = [f"not simulated: {counted(len(found), 'line')}"]
    for text, _ in sorted(found.items(), key=lambda item: (item[1].line, item[1].column)):
        said = text.partition("\n")[0].removeprefix(f"{needs.name}:")
        lines += wrap(said, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    return lines
