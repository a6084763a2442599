"""Results of a campaign: a table for people in Markdown, and all of it as JSON."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from .verdicts import Verdict

__all__ = ["markdown", "replaced", "result"]

# Kinds of hazards, by column; what is found otherwise, an error of the package or a loop without end, is an "error".
_KINDS = {
    "race": "race", "lane order": "race",
    "pending": "pending", "proxy": "proxy", "barrier": "barrier", "deadlock": "stuck", "divergent": "divergent",
    "unwritten": "unwritten", "poison": "unwritten", "bounds": "bounds", "misaligned": "bounds", "strict": "strict",
}  # fmt: skip
_WIDEST = 120  # of a page
_ALWAYS = ("wrong", "argued", "missed")  # other columns are left out where they are empty
_COLUMNS = (*dict.fromkeys(_KINDS.values()), "error", "wrong", "argued", "refused", "missed")


def _column(verdict: Verdict) -> str:
    if verdict.what == "found":
        return _KINDS.get(verdict.why, "error")
    return {"harmless": "argued", "refused by Python": "refused", "broken": "missed", "unnoticed": "missed"}.get(
        verdict.what, verdict.what
    )


def markdown(verdicts: Sequence[Verdict]) -> str:
    """Return what became of mutants, by kernel and by operator, and why some are harmless, as Markdown."""
    there = {_column(v) for v in verdicts}
    columns = [x for x in _COLUMNS if x in there or x in _ALWAYS]
    kernels = _table("kernel", [(v.subject.rpartition(".")[2], v) for v in verdicts], columns)
    changes = _table("change", [(v.mutation.partition(":")[0], v) for v in verdicts], columns)
    return "\n".join([kernels, changes, _arguments(verdicts), *_lists(verdicts)])


def _table(title: str, named: Sequence[tuple[str, Verdict]], columns: Sequence[str]) -> str:
    rows: dict[str, Counter[str]] = {}
    for name, verdict in named:
        for title_of_row in (name, "all"):
            rows.setdefault(title_of_row, Counter())[_column(verdict)] += 1
    rows["all"] = rows.pop("all", Counter())
    head = f"| {title} | all | {' | '.join(columns)} |"
    head = head if len(head) <= _WIDEST else head.replace(" | ", "|")
    lines = [head, f"|---|{'---:|' * (len(columns) + 1)}"]
    for name, row in rows.items():
        cells = [f"{row[column]:,}" if row[column] else "" for column in columns]
        lines.append(f"| {name} | {row.total():,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _arguments(verdicts: Sequence[Verdict]) -> str:
    counts = Counter(v.why for v in verdicts if v.what == "harmless")
    lines = [_wrapped(f"* {number:,}: {why}") for why, number in counts.most_common()]
    return "\n".join(["Harmless, and why:\n", *(lines or ["* none"]), ""])


def _lists(verdicts: Sequence[Verdict]) -> list[str]:
    lines: list[str] = []
    for what in ("unnoticed", "broken"):
        if those := [v for v in verdicts if v.what == what]:
            lines += [
                f"{what.capitalize()}:\n",
                *(_wrapped(f"* {v.line} `{v.mutation}` {v.detail}") for v in those),
                "",
            ]
    return lines


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 118, subsequent_indent="  ", break_on_hyphens=False)


def result(verdicts: Sequence[Verdict], about: Mapping[str, object]) -> str:
    """Return all verdicts as JSON."""
    return json.dumps({**about, "mutants": [asdict(v) for v in verdicts]}, indent=1) + "\n"


def replaced(path: Path, text: str) -> None:
    """Write a file, which is there whole or as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.replace(path)
