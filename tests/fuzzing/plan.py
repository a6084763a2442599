"""How many calls of each entry, and what to write down while they run."""

from __future__ import annotations

import faulthandler
import os
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np

from .calls import Call, Entry, call_of
from .entries import entries
from .trial import Outcome, Streams, trial

__all__ = ["Journal", "counts", "run", "search"]

_LEAST = 3
_HANGS = 120  # seconds after which a call counts as hanging


@cache
def counts(total: int) -> dict[str, int]:
    """Share calls among the entries by their weights, a few at least to each."""
    whole = sum(entry.weight for entry in entries().values())
    return {entry.name: max(_LEAST, round(total * entry.weight / whole)) for entry in entries().values()}


class Journal:
    """Says which call is under way, in a file, for one that ends the process; and ends the process if one hangs.

    Loops inside of NumPy hear no signals, so a call that hangs can be ended in no other way.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._armed = 0.0

    def __enter__(self) -> Self:
        self._file = self.path.open("wb", buffering=0)
        self._errors = os.fdopen(os.dup(2), "w")  # the process's own, whatever is caught later
        return self

    def __exit__(self, *_: object) -> None:
        faulthandler.cancel_dump_traceback_later()
        self._file.close()
        self._errors.close()

    def note(self, call: str) -> None:
        """Write down the call that is made next."""
        self._file.seek(0)
        self._file.write(f"{call:<120}\n".encode())
        if time.monotonic() - self._armed > 1:
            self._armed = time.monotonic()
            faulthandler.dump_traceback_later(_HANGS, exit=True, file=self._errors)

    def show(self, text: str) -> None:
        """Show progress, on a terminal."""
        if self._errors.isatty():
            print(f"\r{text}", end="", file=self._errors, flush=True)


def run(entry: Entry, seed: int, number: int, streams: Streams) -> tuple[Call, Outcome]:
    """Make one call by its number, and judge it."""
    call = call_of(entry, seed, number)
    return call, trial(call, streams, np.random.default_rng([seed, number]))


def search(
    those: list[Entry], seed: int, total: int, streams: Streams, journal: Journal
) -> Iterator[tuple[Call, Outcome]]:
    """Make the share of these entries in so many calls."""
    for entry in those:
        for number in range(counts(total)[entry.name]):
            journal.note(f"{entry.name}#{number}")
            yield run(entry, seed, number, streams)
