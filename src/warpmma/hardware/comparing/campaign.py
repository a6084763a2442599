"""Comparisons of all that a GPU has, many pieces of work, until there are enough outputs or it is time.

1. Next comes the comparison with the least part done, so a short run has something of everything.
2. Each comparison has one piece of work at a time; threads work on different ones. After `stop` is set, pieces of work
   that began end, and are counted.
3. What the driver refuses is left out, and the report says so. If the GPU does not answer after that, nothing more is
   compared, and `run` raises.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..._records import Shown
from ...errors import UnsupportedError
from .findings import Found, Refused
from .reports import Report
from .rooms import AnyGpu, Room

__all__ = ["Campaign", "ComparedGroup"]

SAVED_EVERY, _TOLD_EVERY = 10.0, 0.3  # seconds


class ComparedGroup(Protocol):
    """Comparisons that share their operands."""

    @property
    def kind(self) -> str:
        """Under which the report has its counts."""

    @property
    def names(self) -> Sequence[str]:
        """Its instructions."""

    def wanted(self, outputs: int) -> int:
        """Return how many outputs of each there should be."""

    def run(self, room: Room, number: int, done: int) -> Iterator[tuple[str, Found | Refused]]:
        """Do piece of work `number`, after so many outputs."""


Explain = Callable[[str, Any], str]
"""Explains a difference of an instruction, by its name."""


@dataclass(kw_only=True)
class Campaign(Shown):
    """A run of comparisons.

    Attributes
    ----------
    gpu : AnyGpu
    target : str
    report : Report
    explain : callable
        From an instruction's name and a difference to an explanation.
    save : callable
        Called now and then, and at the end.
    tell : callable
        Called with a line about the progress after pieces of work.
    stop : threading.Event
    """

    gpu: AnyGpu
    target: str
    report: Report
    explain: Explain
    save: Callable[[], object]
    tell: Callable[[str], object]
    stop: threading.Event
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _rooms: threading.local = field(default_factory=threading.local)

    def run(self, compared: Sequence[ComparedGroup], outputs: int, threads: int, until: float = float("inf")) -> None:
        """Compare until each has so many outputs; `until` is a time of `time.monotonic`.

        Raises
        ------
        UnsupportedError
            The GPU does not answer any more.
        """
        begin = saved = told = time.monotonic()
        heap = [(self._done(x) / x.wanted(outputs), i) for i, x in enumerate(compared)]
        heap = [x for x in heap if x[0] < 1]
        heapq.heapify(heap)
        running: dict[Future[None], tuple[float, int]] = {}
        made: list[Room] = []
        before, of_before = self.report.seconds, self._outputs()
        try:
            with ThreadPoolExecutor(threads, initializer=self._enter, initargs=(made,)) as pool:
                while True:
                    now = time.monotonic()
                    while heap and len(running) < threads and not self.stop.is_set() and now < until:
                        part, number = heapq.heappop(heap)
                        running[pool.submit(self._piece, compared[number])] = part, number
                    if not running:
                        break
                    for future in wait(running, timeout=1, return_when=FIRST_COMPLETED).done:
                        before_it, number = running.pop(future)
                        future.result()
                        x = compared[number]
                        part = self._done(x) / x.wanted(outputs)
                        if before_it < part < 1:  # otherwise all is left out, or nothing of it can be compared
                            heapq.heappush(heap, (part, number))
                    now = time.monotonic()
                    if now - told < _TOLD_EVERY:
                        continue
                    told, self.report.seconds = now, before + now - begin
                    of_now = self._outputs()
                    least = heap[0][0] if heap else 1.0
                    rate = (of_now - of_before) / max(1e-9, now - begin) / 1e6
                    self.tell(
                        f"{of_now:,} outputs, {self.report.differences:,} differ, least {least:.1%} done, "
                        f"{self.report.seconds:.0f} s, {rate:,.0f} million a second"
                    )
                    if now - saved > SAVED_EVERY:
                        self._save()
                        saved = now
        finally:
            self.report.seconds = before + time.monotonic() - begin
            self._save()
            for room in made:
                room.close()

    def _enter(self, made: list[Room]) -> None:
        self._rooms.room = Room(self.gpu, self.target, self._note)
        made.append(self._rooms.room)

    def _note(self, text: str) -> None:
        with self._lock:
            if not self.report.notes:
                self.report.notes.append(text)

    def _save(self) -> None:
        with self._lock:
            self.save()

    def _outputs(self) -> int:
        with self._lock:
            return sum(x.outputs for some in self.report.counts.values() for x in some.values())

    def _done(self, compared: ComparedGroup) -> int:
        """Return how many outputs there are of what has the fewest."""
        with self._lock:
            counts = self.report.counts.get(compared.kind, {})
            names = [name for name in compared.names if name in counts or name not in self.report.left_out]
            return min((counts[name].outputs if name in counts else 0 for name in names), default=0)

    def _piece(self, compared: ComparedGroup) -> None:
        room: Room = self._rooms.room
        with self._lock:
            of = [self.report.counts.get(compared.kind, {}).get(name) for name in compared.names]
        number = max((x.pieces if x else 0 for x in of), default=0)
        done = max((x.outputs if x else 0 for x in of), default=0)
        for name, found in compared.run(room, number, done):
            self._add(compared.kind, name, number, found)
            if isinstance(found, Refused):
                self._check_alive(room)

    def _add(self, kind: str, name: str, number: int, found: Found | Refused) -> None:
        explained = ""
        if isinstance(found, Found) and found.first is not None and name not in self.report.first:
            explained = self.explain(name, found.first)
        with self._lock:
            if isinstance(found, Refused):
                self.report.left_out[name] = found.why
                return
            counts = self.report.of(kind, name)
            counts.outputs += found.outputs
            counts.differences += found.differences
            counts.sampled += found.sampled
            counts.wrong += found.wrong
            counts.pieces = number + 1
            if explained:
                self.report.first[name] = {**found.first.facts(), "explanation": explained}  # type: ignore[union-attr]

    def _check_alive(self, room: Room) -> None:
        """Raise `UnsupportedError` if nothing can be copied any more."""
        there = np.arange(4, dtype=np.uint8)
        back = np.zeros_like(there)
        room.get(room.put("alive", there), back)
        if (there != back).any():
            raise UnsupportedError("the GPU does not give back what was copied to it")
