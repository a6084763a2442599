"""How many calls of each entry, and what to write down while they run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from .calls import Call, Entry, call_of
from .entries import entries
from .trial import Outcome, Streams, trial

__all__ = ["Journal", "counts", "run", "search"]

_LEAST = 3


@cache
def counts(total: int) -> dict[str, int]:
    """Share calls among the entries by their weights, a few at least to each."""
    whole = sum(entry.weight for entry in entries().values())
    return {entry.name: max(_LEAST, round(total * entry.weight / whole)) for entry in entries().values()}


class Journal:
    """A file that says which call is under way, for one that ends the process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb", buffering=0)

    def note(self, call: str) -> None:
        """Write down the call that is made next."""
        self._file.seek(0)
        self._file.write(f"{call:<120}\n".encode())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


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
