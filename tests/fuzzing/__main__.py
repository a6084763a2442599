"""Fuzz the whole public surface: `python -m tests.fuzzing --help`.

Every call must end in a result or in an error of the package; `trial` says all that is looked at.
Calls follow from the seed, the name of what is called and a number, so each can be made again alone, with --call.
Ctrl-C stops, and prints what was found until then; the exit status is 1 if anything was.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from warpmma._text import table

from .calls import Call, Entry
from .entries import entries, missing
from .plan import Journal, counts, run, search
from .trial import Outcome, Streams

Found = dict[tuple[str, str], tuple[int, Call, Outcome]]


@dataclass
class Row:
    """What became of the calls of one entry."""

    kinds: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    number: int = 0

    def add(self, call: Call, outcome: Outcome) -> None:
        """Count one."""
        self.kinds["bad" if not outcome.good else outcome.kind] += 1
        if outcome.seconds > self.slowest:
            self.slowest, self.number = outcome.seconds, call.number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; see `--help`."""
    parser = argparse.ArgumentParser(
        "python -m tests.fuzzing", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=44_000, help="how many, about (default: 44,000)")
    parser.add_argument("--seed", type=int, default=0, help="another seed makes other calls (default: 0)")
    parser.add_argument("--only", default="", metavar="TEXT", help="those entries alone whose name contains this")
    parser.add_argument("--call", metavar="NAME#NUMBER", help="make this call alone, and print all about it")
    options = parser.parse_args(arguments)
    if options.call:
        entry, _, number = options.call.rpartition("#")
        if entry not in entries() or not number.isdecimal():
            parser.error(f"--call is {options.call!r}; expected an entry and a number, as 'warpmma:load#7'")
        return _one(options.seed, entry, int(number))
    those = [entry for name, entry in entries().items() if options.only in name]
    if not those:
        parser.error(f"no entry's name contains {options.only!r}")
    return _all(those, options.seed, options.calls)


def _one(seed: int, entry: str, number: int) -> int:
    streams = Streams()
    with streams.caught():
        call, outcome = run(entries()[entry], seed, number, streams)
    print(f"{call}\nchanged: {', '.join(call.bent) or 'nothing'}\n{outcome.kind}: {outcome.detail}")
    return int(not outcome.good)


def _all(those: list[Entry], seed: int, calls: int) -> int:
    rows: dict[str, Row] = {entry.name: Row() for entry in those}
    bad: Found = {}
    total, done, start, shown = sum(counts(calls)[e.name] for e in those), 0, time.perf_counter(), 0.0
    path, streams = Path(tempfile.gettempdir()) / "warpmma-fuzz-call", Streams()
    print(f"{total:,} calls of {len(those)} entries, seed {seed}; {path} names the one under way", flush=True)
    try:
        with Journal(path) as journal, streams.caught():
            for call, outcome in search(those, seed, calls, streams, journal):
                done += 1
                rows[call.entry.name].add(call, outcome)
                if not outcome.good:
                    _keep(bad, call, outcome)
                if time.perf_counter() - shown > 0.5:
                    shown = time.perf_counter()
                    journal.show(f"{done:,} of {total:,}, {len(bad)} found")
    except KeyboardInterrupt:
        print("stopped")
    _report(rows, bad, seed, time.perf_counter() - start)
    return int(bool(bad or missing()))


def _keep(bad: Found, call: Call, outcome: Outcome) -> None:
    """Count a violation with those like it, and keep the call that changes least."""
    key = (call.entry.name, outcome.what)
    times, least, first = bad.get(key, (0, call, outcome))
    best = (call, outcome) if len(call.bent) < len(least.bent) else (least, first)
    bad[key] = (times + 1, *best)


def _report(rows: dict[str, Row], bad: Found, seed: int, seconds: float) -> None:
    kinds = ("result", "refused", "documented", "signature", "bad")
    whole = sum((row.kinds for row in rows.values()), Counter[str]())
    lines = [(name, row.kinds, f"{row.slowest * 1e3:.1f} ms") for name, row in rows.items()]
    lines.append(("all", whole, f"{seconds:.1f} s "))
    cells = [(name, *(f"{found[kind]:,}" for kind in kinds), took) for name, found, took in lines]
    print("\n".join(table([("", *kinds, "slowest"), *cells], left=[0])))
    for (name, _), (times, call, outcome) in bad.items():
        print(
            f"\n{name}: {outcome.kind}: {outcome.detail} ({times} calls; --seed {seed} --call '{call.id}')\n    {call}"
        )
    if lacking := missing():
        print(f"\nnot in the table: {', '.join(lacking)}")


if __name__ == "__main__":
    sys.exit(main())
