"""A campaign: every mutant is judged, in several processes; what is known is shown, and written every few seconds."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from .tables import markdown, replaced, result
from .verdicts import BAD, Verdict

__all__ = ["Names", "campaign", "command_line", "parsed", "sampled"]

T = TypeVar("T")

Names = tuple[str, str]
"""A mutant: the names of its subject and of the change."""

_EVERY = 5.0  # seconds between results that are written


def command_line(description: str | None, subject: str, out: Path) -> argparse.ArgumentParser:
    """Return the parser of a campaign's options.

    Parameters
    ----------
    description : str or None
        The docstring of the module.
    subject : str
        What is made wrong: "kernel".
    out : Path
        Where to write by default.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--only", default="", metavar="TEXT", help=f"mutants alone whose {subject} or change contains this")
    add("--sample", type=int, metavar="N", help="so many of them, at random")
    add("--jobs", type=int, default=1, help="processes (default: 1)")
    add("--list", action="store_true", help="print their names, and run none")
    add("--out", type=Path, default=out, help="where to write .json and .md")
    return parser


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options, and refuse those that leave nothing to do."""
    options = parser.parse_args(arguments)
    if options.jobs < 1 or (options.sample is not None and options.sample < 1):
        parser.error("--jobs and --sample are positive")
    return options


def sampled(items: list[T], number: int | None, seed: int = 0) -> list[T]:
    """Return so many of some items, at random and in their order; all of them for None."""
    if number is None or number >= len(items):
        return items
    chosen = set(random.Random(seed).sample(range(len(items)), number))
    return [x for i, x in enumerate(items) if i in chosen]


def campaign(
    judge: Callable[[Names], Verdict], names: Sequence[Names], jobs: int, out: Path, about: Mapping[str, object]
) -> tuple[list[Verdict], bool]:
    """Judge mutants; return the verdicts, and whether Ctrl-C has stopped it.

    Parameters
    ----------
    judge : callable
        From the names of a mutant, in a process of its own if there are several jobs.
    names : sequence of (str, str)
    jobs : int
    out : Path
        Where to write .json and .md.
    about : mapping
        What the JSON says of the campaign.
    """
    done: list[Verdict] = []
    start = shown = written = time.perf_counter()
    stopped = False
    try:
        with closing(_verdicts(judge, names, jobs)) as verdicts:
            for verdict in verdicts:
                done.append(verdict)
                now = time.perf_counter()
                if now - shown > 0.5:
                    shown = now
                    _show(done, len(names), now - start)
                if now - written > _EVERY:
                    written = now
                    _write(out, done, about)
    except KeyboardInterrupt:
        stopped = True
        print("\nstopped", file=sys.stderr)
    _show(done, len(names), time.perf_counter() - start)
    print(file=sys.stderr)
    _write(out, done, about)
    print(markdown(done))
    return done, stopped


def _write(out: Path, done: list[Verdict], about: Mapping[str, object]) -> None:
    replaced(out.with_suffix(".json"), result(done, about))
    replaced(out.with_suffix(".md"), markdown(done))


def _show(done: list[Verdict], total: int, seconds: float) -> None:
    counts = Counter(v.what for v in done)
    text = ", ".join(f"{counts[x]} {x}" for x in ("found", "wrong", "harmless", *BAD))
    print(f"\r{len(done):,} of {total:,} in {seconds:.0f} s: {text}   ", end="", file=sys.stderr, flush=True)


def _verdicts(judge: Callable[[Names], Verdict], names: Sequence[Names], jobs: int) -> Generator[Verdict]:
    if jobs == 1:
        yield from map(judge, names)
        return
    pool = ProcessPoolExecutor(
        jobs, get_context("spawn"), initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
    )
    try:
        yield from pool.map(judge, names, chunksize=8)
    finally:
        pool.shutdown(cancel_futures=True)
