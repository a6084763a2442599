"""Comparisons without a GPU, for tests of campaigns: importable by the processes of workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warpmma.errors import UnsupportedError
from warpmma.gpu import ProductLaunch, TextLaunch
from warpmma.hardware import Asked, ComparedGroup, Found, LaneDifference, Refused


@dataclass(frozen=True)
class Counting:
    """Each piece of work has ten outputs of each name; `does` says what is unusual."""

    names: list[str]
    does: str = ""
    kind: str = "operation"

    def wanted(self, outputs: int) -> int:
        return outputs

    def run(self, room: Any, number: int, done: int) -> Iterator[tuple[str, Found | Refused]]:
        if self.does == "slow":
            time.sleep(0.05)
        elif self.does == "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.does == "dies" and self.names[0].startswith("1 "):
            os.abort()
        elif self.does == "traps" and self.names[0].startswith("1 "):
            try:
                room.launch(self)
            except UnsupportedError as error:
                yield self.names[0], Refused(why=str(error))
        elif self.does == "fails":
            raise ValueError("an error of the test")
        for name in self.names:
            if self.does == "refused" and name == self.names[0]:
                yield name, Refused(why="too new")
                continue
            differs = self.does == "differs" and number == 1
            first = LaneDifference(immediates=(), given=(number, done), gpu=(1,), model=(0,)) if differs else None
            yield name, Found(outputs=10, differences=int(differs), first=first)
            room.note(f"{name} in process {os.getpid()}")


class AskedForCounting(Asked):
    """Asks for as many comparisons as `outputs` of what `pattern` does."""

    def comparisons(self) -> list[ComparedGroup]:
        return [Counting([f"{i} {self.pattern}", f"{i} too"], self.pattern) for i in range(self.outputs)]


class Memory:
    """A GPU that is only copied to and from."""

    def __init__(self, number: int = 0) -> None:
        self.name, self.capability, self.driver = "memory", (9, 0), 13000
        self._held: dict[int, Any] = {}
        self._lost = False

    def launch(self, what: ProductLaunch | TextLaunch, stream: int = 0) -> None:
        self._lost = True
        self._check()

    def _check(self) -> None:
        if self._lost:
            raise UnsupportedError("a trap")

    @contextmanager
    def copies(self) -> Iterator[Memory]:
        yield self
        self._check()

    def empty(self, size: int) -> int:
        self._held[len(self._held) + 1] = np.empty(size, np.uint8)
        return len(self._held)

    def write(self, address: int, array: Any) -> None:
        self._check()
        self._held[address][: array.nbytes] = array.reshape(-1).view(np.uint8)

    def get(self, address: int, into: Any) -> None:
        self._check()
        into.reshape(-1).view(np.uint8)[:] = self._held[address][: into.nbytes]


def main(path: Path) -> None:
    """Compare without end in two processes, whose numbers are written to a file."""
    from threading import Event

    from warpmma.hardware import Campaign, Report, process_worker

    asked = AskedForCounting(target="sm_90a", pattern="slow", outputs=4, seed=0)
    report = Report(device={"gpu": "none"}, seed=0)
    campaign = Campaign(
        report=report, explain=lambda name, found: "", save=lambda: None, stop=Event(),
        tell=lambda line: path.write_text(" ".join(x.split()[-1] for x in report.notes)),
    )  # fmt: skip
    campaign.run(asked.comparisons(), 10**9, [process_worker(i, asked, Memory) for i in range(2)])


if __name__ == "__main__":
    import sys

    main(Path(sys.argv[1]))
