"""Workers of a campaign: each does pieces of work on one GPU, in a process of its own or in a thread of this one.

1. A worker has the campaign's list of comparisons: a process makes it again from `Asked`. A piece of work is named by
   the comparison's place in that list, so only numbers go to a worker, and what was found comes back.
2. A kernel that traps takes the process's GPU away, and a fault of the driver's compiler the process. Either is a
   `WorkerLostError`; a process is then started again, for what is left.
3. Ctrl-C goes to all processes of a terminal, and SIGTERM often to all of a job. Those of workers ignore them, for the
   campaign ends them. A worker that the campaign has left ends after its piece of work.
"""

from __future__ import annotations

import multiprocessing
import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from ..._records import Shown
from ...errors import UnsupportedError, WarpmmaError
from ...gpu import gpu
from .everything import comparisons
from .findings import ComparedGroup, Found, Refused
from .rooms import AnyGpu, Room

__all__ = ["Asked", "PieceOfWork", "WorkDone", "Worker", "WorkerLostError", "process_worker", "thread_worker"]

_PATIENCE = 5.0  # seconds until a process that should end is ended
_FAULTS = [-x for x in (signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)]  # statuses; not SIGKILL: memory


@dataclass(frozen=True, kw_only=True)
class Asked(Shown):
    """What is compared: the arguments of `comparisons`, and its kinds; all kinds if there are none."""

    target: str
    pattern: str
    outputs: int
    seed: int
    kinds: tuple[str, ...] = ()

    def comparisons(self) -> list[ComparedGroup]:
        """List the comparisons."""
        every = comparisons(self.target, self.pattern, self.outputs, self.seed)
        return [x for x in every if not self.kinds or x.kind in self.kinds]


class PieceOfWork(NamedTuple):
    """A piece of work: the comparison's place in the list, the number of the piece, and outputs compared before it."""

    place: int
    number: int
    done: int


class WorkDone(NamedTuple):
    """What a piece of work found, by the names of instructions, and what is worth telling."""

    work: PieceOfWork
    found: list[tuple[str, Found | Refused]]
    notes: list[str]


class WorkerLostError(UnsupportedError):
    """A piece of work that ended its worker."""


class Worker:
    """A worker, as the campaign sees it.

    Parameters
    ----------
    runs : Process or Thread
    connection : Connection
        Can be waited for: it has something when a piece of work is done.
    again : callable, optional
        Starts another that is the same, if it can be.
    """

    def __init__(self, runs: Any, connection: Connection, again: Callable[[], Worker] | None = None) -> None:
        self._runs, self.connection, self.again = runs, connection, again
        runs.start()

    def give(self, work: PieceOfWork) -> None:
        """Begin a piece of work; waits for nothing."""
        with suppress(OSError):  # its end is told by `take`
            self.connection.send(work)

    def take(self) -> WorkDone:
        """Wait for what a piece of work found.

        Raises
        ------
        WarpmmaError
            What the worker raised; `WorkerLostError` if the piece of work ended it, `UnsupportedError` if it is gone.
        RuntimeError
            The worker raised anything else.
        """
        try:
            answer = self.connection.recv()
        except (EOFError, OSError):
            self._runs.join(_PATIENCE)
            code = getattr(self._runs, "exitcode", None)
            if code in _FAULTS:
                raise WorkerLostError(f"a process that compares it ends with {signal.Signals(-code).name}") from None
            raise UnsupportedError(
                f"a process of the comparison ended with status {code}; the next run goes on, with fewer --processes "
                "if memory was short"
            ) from None
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, WorkDone)
        return answer

    def leave(self) -> None:
        """Let it end: at once if it does nothing."""
        self.connection.close()

    def end(self) -> None:
        """Wait until it has ended; a process that does not is ended."""
        self._runs.join(_PATIENCE)
        if self._runs.is_alive() and hasattr(self._runs, "kill"):
            self._runs.kill()


def thread_worker(on: AnyGpu, target: str, compared: Sequence[ComparedGroup]) -> Worker:
    """Start a worker in a thread of this process."""
    mine, its = multiprocessing.Pipe()
    return Worker(threading.Thread(target=_serve, args=(its, on, target, compared), daemon=True), mine)


def process_worker(number: int, asked: Asked, find: Callable[[int], AnyGpu] = gpu) -> Worker:
    """Start a worker in a process of its own, on the GPU of this number, which it finds itself."""
    context = multiprocessing.get_context("spawn")
    mine, its = context.Pipe()
    process = context.Process(target=_in_process, args=(its, number, asked, find), daemon=True)
    worker = Worker(process, mine, lambda: process_worker(number, asked, find))
    its.close()
    return worker


def _in_process(connection: Connection, number: int, asked: Asked, find: Callable[[int], AnyGpu]) -> None:
    for number_of_signal in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number_of_signal, signal.SIG_IGN)
    try:
        on, compared = find(number), asked.comparisons()
    except Exception as error:
        connection.send(_told(error))
        return
    _serve(connection, on, asked.target, compared)


def _serve(connection: Connection, on: AnyGpu, target: str, compared: Sequence[ComparedGroup]) -> None:
    notes: list[str] = []
    # Until the campaign leaves; memory of a GPU that is lost cannot be freed.
    with suppress(EOFError, OSError, UnsupportedError), Room(on, target, notes.append) as room:
        while True:
            work = connection.recv()
            try:
                found = _done(room, compared[work.place], work)
                connection.send(WorkDone(work, found, notes.copy()))
            except Exception as error:
                connection.send(_told(error))
            notes.clear()


def _told(error: Exception) -> Exception:
    """Return an error that can be sent, with the traceback of those that are not expected."""
    if isinstance(error, WarpmmaError):
        return type(error)(str(error))
    return RuntimeError("".join(traceback.format_exception(error)))


def _done(room: Room, compared: ComparedGroup, work: PieceOfWork) -> list[tuple[str, Found | Refused]]:
    found = []
    for name, each in compared.run(room, work.number, work.done):
        found.append((name, each))
        if isinstance(each, Refused):
            _check_alive(room, f"{name}: {each.why}")
    return found


def _check_alive(room: Room, before: str) -> None:
    """Raise `WorkerLostError` if nothing can be copied any more, with what was before."""
    there = np.arange(4, dtype=np.uint8)
    back = np.zeros_like(there)
    try:
        room.get(room.put("alive", there), back)
    except UnsupportedError as error:
        raise WorkerLostError(before) from error
    if (there != back).any():
        raise WorkerLostError(f"the GPU does not give back what was copied to it, after {before}")
