"""Results of a campaign: a table for people in Markdown, and all of it as JSON."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from .verdicts import Verdict

__all__ = ["markdown", "replaced", "result"]

_FOUND = ("race", "pending", "unwritten", "poison", "bounds", "misaligned", "barrier", "divergent", "error", "endless")
_OTHERS = ("wrong", "harmless", "refused by Python", "broken", "unnoticed")


def _columns(verdicts: Iterable[Verdict]) -> list[str]:
    kinds = {v.why for v in verdicts if v.what == "found"}
    return [*(kind for kind in _FOUND if kind in kinds), *sorted(kinds - {*_FOUND}), *_OTHERS]


def markdown(verdicts: Sequence[Verdict]) -> str:
    """Return what became of mutants, by kernel and by operator, and those that are harmless, as Markdown."""
    groups = [("kernel", lambda v: v.subject), ("what is changed", lambda v: v.mutation.partition(":")[0])]
    parts = [_table(title, [(key(v), v) for v in verdicts], _columns(verdicts)) for title, key in groups]
    return "\n".join([*parts, *_lists(verdicts)])


def _table(title: str, named: Sequence[tuple[str, Verdict]], columns: Sequence[str]) -> str:
    rows: dict[str, Counter[str]] = {}
    for name, verdict in named:
        column = verdict.why if verdict.what == "found" else verdict.what
        for row in (name, "all"):
            rows.setdefault(row, Counter())[column] += 1
    rows["all"] = rows.pop("all", Counter())
    lines = [f"| {title} | mutants | {' | '.join(columns)} |", f"|---|{'---:|' * (len(columns) + 1)}"]
    for name, row in rows.items():
        cells = [f"{row[column]:,}" if row[column] else "" for column in columns]
        lines.append(f"| {name} | {row.total():,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _lists(verdicts: Sequence[Verdict]) -> list[str]:
    lines: list[str] = []
    for what in ("unnoticed", "broken"):
        if those := [v for v in verdicts if v.what == what]:
            lines += [f"{what.capitalize()}:\n", *(f"* {v.line} `{v.mutation}` {v.detail}".rstrip() for v in those), ""]
    return lines


def result(verdicts: Sequence[Verdict], about: dict[str, object]) -> str:
    """Return all verdicts as JSON."""
    return json.dumps({**about, "mutants": [asdict(v) for v in verdicts]}, indent=1) + "\n"


def replaced(path: Path, text: str) -> None:
    """Write a file, which is there whole or as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    os.replace(new, path)
