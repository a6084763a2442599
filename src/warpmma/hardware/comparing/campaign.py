"""Comparisons of all that a GPU has, many pieces of work, until there are enough outputs or it is time.

1. Next comes the comparison with the least part done, so a short run has something of everything.
2. Each comparison has one piece of work at a time; workers work on different ones. Each worker has its own part of
   them, because the first piece of a comparison compiles its kernels; one that has done its part takes from others.
3. After `stop` is set, pieces of work that began end, and are counted.
4. What the driver refuses is left out, and the report says so. So is what ends its worker: a process is started again,
   and goes on with the rest. A thread cannot be: `run` raises, and so it does if the GPU is gone.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any

from ..._records import Shown
from .findings import ComparedGroup, Refused
from .reports import Report
from .workers import PieceOfWork, WorkDone, Worker, WorkerLostError

__all__ = ["Campaign"]

SAVED_EVERY, _TOLD_EVERY = 10.0, 0.3  # seconds

Explain = Callable[[str, Any], str]
"""Explains a difference of an instruction, by its name."""


@dataclass(kw_only=True)
class Campaign(Shown):
    """A run of comparisons.

    Attributes
    ----------
    report : Report
    explain : callable
        From an instruction's name and a difference to an explanation.
    save : callable
        Called now and then, and at the end.
    tell : callable
        Called with a line about the progress after pieces of work.
    stop : threading.Event
    """

    report: Report
    explain: Explain
    save: Callable[[], object]
    tell: Callable[[str], object]
    stop: threading.Event

    def run(
        self, compared: Sequence[ComparedGroup], outputs: int, workers: Sequence[Worker], until: float = float("inf")
    ) -> None:
        """Compare until each has so many outputs, and let the workers end.

        Parameters
        ----------
        compared : sequence of ComparedGroup
            The list that the workers have.
        outputs : int
            Of each matrix instruction; the others have `wanted` of it.
        workers : sequence of Worker
            They end in this call, and so do those that replace them.
        until : float
            A time of `time.monotonic`, at which it stops.

        Raises
        ------
        UnsupportedError
            The GPU does not answer any more, or a worker is gone and cannot be replaced.
        """
        workers = list(workers)
        begin = saved = told = time.monotonic()
        before, of_before = self.report.seconds, self._outputs()
        parts = self._parts(compared, outputs, len(workers))
        idle, busy = list(range(len(workers))), dict[Any, tuple[int, float, PieceOfWork]]()
        try:
            while True:
                for number in idle.copy():
                    if self.stop.is_set() or time.monotonic() >= until:
                        break
                    own = parts[number] or max(parts, key=len)
                    if not own:
                        break
                    part, place = heapq.heappop(own)
                    work = self._work(compared[place], place)
                    busy[workers[number].connection] = number, part, work
                    workers[number].give(work)
                    idle.remove(number)
                if not busy:
                    break
                for connection in wait(list(busy), timeout=1):
                    number, before_it, work = busy.pop(connection)
                    idle.append(number)
                    x = compared[work.place]
                    try:
                        self._add(x.kind, workers[number].take())
                    except WorkerLostError as error:
                        workers[number] = self._replaced(workers[number], x, error)
                        continue
                    part = self._done(x) / x.wanted(outputs)
                    if before_it < part < 1:  # otherwise all is left out, or nothing of it can be compared
                        heapq.heappush(parts[number], (part, work.place))
                now = time.monotonic()
                if now - told < _TOLD_EVERY:
                    continue
                told, self.report.seconds = now, before + now - begin
                of_now = self._outputs()
                least = min((x[0][0] for x in parts if x), default=1.0)
                rate = (of_now - of_before) / max(1e-9, now - begin) / 1e6
                self.tell(
                    f"{of_now:,} outputs, {self.report.differences:,} differ, least {least:.1%} done, "
                    f"{self.report.seconds:.0f} s, {rate:,.0f} million a second"
                )
                if now - saved > SAVED_EVERY:
                    self.save()
                    saved = now
        finally:
            for worker in workers:
                worker.leave()
            self.report.seconds = before + time.monotonic() - begin
            self.save()
            for worker in workers:
                worker.end()

    def _parts(self, compared: Sequence[ComparedGroup], outputs: int, workers: int) -> list[list[tuple[float, int]]]:
        """Deal what is to be done, that with the most instructions first; each part is a heap (rules 1 and 2)."""
        todo = [(self._done(x) / x.wanted(outputs), place) for place, x in enumerate(compared)]
        todo = sorted((x for x in todo if x[0] < 1), key=lambda x: -len(compared[x[1]].names))
        parts = [todo[i::workers] for i in range(workers)]
        for part in parts:
            heapq.heapify(part)
        return parts

    def _outputs(self) -> int:
        return sum(x.outputs for some in self.report.counts.values() for x in some.values())

    def _done(self, compared: ComparedGroup) -> int:
        """Return how many outputs there are of what has the fewest."""
        counts = self.report.counts.get(compared.kind, {})
        names = [name for name in compared.names if name in counts or name not in self.report.left_out]
        return min((counts[name].outputs if name in counts else 0 for name in names), default=0)

    def _work(self, compared: ComparedGroup, place: int) -> PieceOfWork:
        """Return the next piece of work."""
        some = self.report.counts.get(compared.kind, {})
        of = [some[name] for name in compared.names if name in some]
        return PieceOfWork(place, max((x.pieces for x in of), default=0), max((x.outputs for x in of), default=0))

    def _replaced(self, worker: Worker, compared: ComparedGroup, error: WorkerLostError) -> Worker:
        """Leave out what ended a worker (rule 4), and start another."""
        new = [name for name in compared.names if name not in self.report.counts.get(compared.kind, {})]
        for name in new or compared.names:
            self.report.left_out.setdefault(name, str(error))
        if worker.again is None:
            raise error
        worker.leave()
        worker.end()
        return worker.again()

    def _add(self, kind: str, piece: WorkDone) -> None:
        if not self.report.notes:
            self.report.notes += piece.notes[:1]
        for name, found in piece.found:
            if isinstance(found, Refused):
                self.report.left_out[name] = found.why
                continue
            self.report.left_out.pop(name, None)  # by an earlier run
            counts = self.report.of(kind, name)
            counts.outputs += found.outputs
            counts.differences += found.differences
            counts.sampled += found.sampled
            counts.wrong += found.wrong
            counts.pieces = piece.work.number + 1
            if found.first is not None and name not in self.report.first:
                self.report.first[name] = {**found.first.facts(), "explanation": self.explain(name, found.first)}
