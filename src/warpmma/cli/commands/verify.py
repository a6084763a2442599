"""The command `verify`: recorded registers, replayed and compared."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from ..._text import table
from ...errors import ArchiveError, WarpmmaError
from ...hardware import Recording, Replay, open_recording, shipped
from ..output.streams import followed, write


def add_verify(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.epilog = (
        "Exit status: 0 without differences, 1 with, 2 if the file cannot be used or the output not be written."
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="an .npz archive; without it, the one in the package")
    parser.add_argument("--target", help="execute as this target does; by default as the one recorded")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run_verify(options: argparse.Namespace) -> int:
    """Execute what a GPU was recorded to execute, and compare every output bit for bit."""
    recording = open_recording(options.file) if options.file is not None else shipped()
    target = recording.target if options.target is None else options.target
    replays = followed(recording.replay(target), len(recording.legal(target)))
    rows: list[Replay] = []
    stopped: BaseException | None = None
    try:
        rows.extend(replays)
    except KeyboardInterrupt as interrupt:  # print what was compared so far
        stopped = interrupt
    except WarpmmaError as error:
        stopped = ArchiveError(f"{recording.name}: {error}")
    if rows or not isinstance(stopped, ArchiveError):
        write(_as_json(recording, target, rows) if options.json else _as_table(recording, target, rows))
    if stopped:
        raise stopped
    return int(any(row.differences for row in rows))


def _as_json(recording: Recording, target: str, rows: list[Replay]) -> str:
    document: dict[str, Any] = {
        "file": recording.name,
        "device": recording.device,
        "target": target,
        "skipped": [str(i) for i in recording.fields if target not in i.targets],
        "instructions": len(rows),
        "outputs": sum(row.outputs for row in rows),
        "differences": sum(row.differences for row in rows),
        "rows": [{**vars(row), "instruction": str(row.instruction), "evidence": asdict(row.evidence)} for row in rows],
    }
    return json.dumps(document, indent=2)


def _as_table(recording: Recording, target: str, rows: list[Replay]) -> str:
    head = ("instruction", "outputs", "differences", "evidence")
    cells = [head, *((str(r.instruction), f"{r.outputs:,}", f"{r.differences:,}", _how(r)) for r in rows)]
    first, *rest = table(cells, left=(0, 3))
    lines = [first, "  ".join("-" * max(map(len, column)) for column in zip(*cells, strict=True))]
    for row, line in zip(rows, rest, strict=True):
        lines.append(line)
        if row.first:
            lines.append(f"  first difference: {row.first}")
    outputs, differences = sum(r.outputs for r in rows), sum(r.differences for r in rows)
    device = f" of {recording.device}" if recording.device else ""
    lines.append("")
    lines.append(f"{recording.name}{device}, executed as {target}:")
    skipped = len(recording.fields) - len(recording.legal(target))
    if skipped:
        lines.append(f"{skipped} recorded instructions are not on {target} and were skipped")
    lines.append(f"{len(rows)} instructions, {outputs:,} outputs compared, {differences:,} differences")
    return "\n".join(lines)


def _how(row: Replay) -> str:
    device = row.evidence.device.partition(",")[0]
    return f"{row.evidence.kind} ({device})" if device else row.evidence.kind
