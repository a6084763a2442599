"""The command line: a thin reader of the library."""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO, TypeVar

from .. import __version__
from ..errors import ArchiveError, WarpmmaError
from ..hardware import Recording, Replay, open_recording, shipped

__all__ = ["main"]

_T = TypeVar("_T")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of those of the process.

    Returns
    -------
    int
        Exit status: 0 if all is well, 1 if something differs, 2 if the request or the file is unusable or the output
        cannot be written, 3 if the program fails.
    """
    parser = argparse.ArgumentParser(prog="warpmma", description="Bit-exact NVIDIA warp-level matrix instructions.")
    parser.add_argument("--version", action="version", version=f"warpmma {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    verify = commands.add_parser(
        "verify",
        help="replay recorded registers and compare",
        description="Execute what a GPU was recorded to execute, and compare every output bit for bit.",
        epilog="Exit status: 0 without differences, 1 with, 2 if the file cannot be used or the output not be written.",
    )
    verify.add_argument("file", nargs="?", metavar="FILE", help="an .npz archive; without it, the one in the package")
    verify.add_argument("--target", help="execute as this target does; by default as the one recorded")
    verify.add_argument("--json", action="store_true", help="print JSON instead of a table")
    verify.set_defaults(run=_verify)
    try:
        said = io.StringIO()  # help and version: argparse does not notice when these cannot be written
        try:
            with redirect_stdout(said):
                options = parser.parse_args(arguments)
        except SystemExit:
            if said.getvalue():
                _print(said.getvalue().removesuffix("\n"))
            raise
        return int(options.run(options))
    except WarpmmaError as error:
        _say(f"warpmma: {' '.join(str(error).split())}")  # one line, whatever a file's names hold
        return 2
    except KeyboardInterrupt:
        _say("warpmma: interrupted")
        return 130
    except BrokenPipeError:  # the reader has enough, as `head` does
        _discard(sys.stdout)
        return 141
    except OSError as error:
        _discard(sys.stdout)
        _say(f"warpmma: the output cannot be written: {error.strerror}")
        return 2
    except Exception:  # a fault of ours, which must not look like one of the GPU's: Python's own status would be 1
        _say(traceback.format_exc().rstrip())
        return 3


def _say(text: str) -> None:
    """Print on the error stream, if there is one and it takes it."""
    try:
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO | None) -> None:
    """Let what a stream still holds go nowhere: the interpreter flushes it again before it exits."""
    if stream is not None:
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


def _print(text: str) -> None:
    """Print, and know that it arrived; without an output there is nothing that anybody could have seen."""
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    print(text, flush=True)


def _verify(options: argparse.Namespace) -> int:
    recording = open_recording(options.file) if options.file is not None else shipped()
    target = recording.target if options.target is None else options.target
    replays = _progress(recording.replay(target), len(recording.legal(target)))
    rows: list[Replay] = []
    stopped: BaseException | None = None
    try:
        rows.extend(replays)
    except KeyboardInterrupt as interrupt:  # what was compared so far is still worth printing
        stopped = interrupt
    except WarpmmaError as error:
        stopped = ArchiveError(f"{recording.name}: {error}")
    if rows or not isinstance(stopped, ArchiveError):
        _print(_as_json(recording, target, rows) if options.json else _as_table(recording, target, rows))
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
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]

    def line(row: Sequence[str]) -> str:
        name, outputs, differences, how = row
        numbers = f"{outputs:>{widths[1]}}  {differences:>{widths[2]}}"
        return f"{name:<{widths[0]}}  {numbers}  {how}".rstrip()

    lines = [line(cells[0]), "  ".join("-" * width for width in widths)]
    for row, text in zip(rows, cells[1:], strict=True):
        lines.append(line(text))
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


def _progress(items: Iterable[_T], total: int) -> Iterator[_T]:
    """Pass items on, with a progress display where the error stream is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield from items
        return
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:  # rich is an extra
        try:
            for count, item in enumerate(items, 1):
                print(f"\rreplaying {count}/{total}", end="", file=sys.stderr, flush=True)
                yield item
        finally:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        return
    yield from track(items, "replaying", total, console=Console(stderr=True), transient=True)
