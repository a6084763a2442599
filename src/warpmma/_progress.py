"""Progress of long work: a callback, or a bar on the error stream.

1. `progress` is None or False: nothing is reported; a function: it is called as `progress(done, total)`; True:
   a bar, where the error stream is a terminal or a notebook shows it.
2. The bar is rich's where rich is installed, else a line that is written over. It appears after a third
   of a second, so quick work shows none, and disappears when the work ends, however it ends.
3. A failure to show the bar does not stop the work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from ._arguments import check_threads
from .errors import OperandError, shown

T = TypeVar("T")


def for_each(
    run: Callable[[T], object], items: Sequence[T], threads: int | None = None, progress: Watched = None,
    what: str = "pieces",
) -> None:  # fmt: skip
    """Run every piece, on one thread by default; after an exception or an interrupt no further piece begins.

    `progress` is called in the caller's thread; the bar names the pieces by `what`.
    """
    check_threads(threads)
    with Progressing(progress, what) as tell:
        tell.begin(len(items))
        _run(run, items, threads, tell)


def _run(run: Callable[[T], object], items: Sequence[T], threads: int | None, tell: Progressing) -> None:
    if threads is None or threads == 1:
        for done, item in enumerate(items, 1):
            run(item)
            tell(done, len(items))
        return
    from concurrent.futures import ThreadPoolExecutor, as_completed  # a tenth of the time that importing all else takes

    pool = ThreadPoolExecutor(threads)
    try:
        for done, future in enumerate(as_completed([pool.submit(run, item) for item in items]), 1):
            future.result()
            tell(done, len(items))
    finally:
        pool.shutdown(cancel_futures=True)


Progress = Callable[[int, int], object]
"""Called with how many pieces are done, and how many there are."""

DELAY = 0.3
"""Seconds after which a bar comes; 0 for at once."""

Watched = bool | Progress | None
"""The type of an argument `progress`."""


class Progressing:
    """Progress of work in several pieces, reported if requested; a context that removes the bar.

    A bar waits until the work has taken a while if `late`. Another kind of `progress` is an `OperandError`.
    """

    def __init__(self, progress: Watched, what: str, *, late: bool = True) -> None:
        self._call: Progress | None = None
        self._bar: _LateBar | None = None
        if progress is True and _is_seen():
            self._bar = self._call = _LateBar(what, DELAY if late else 0)
        elif callable(progress):
            self._call = progress
        elif progress is not None and not isinstance(progress, bool):
            raise OperandError(f"progress is {shown(progress)}; expected a function of two integers, True or None")

    def __call__(self, done: int, total: int) -> None:
        """Report how many pieces are done."""
        if self._call is not None:
            self._call(done, total)

    def begin(self, total: int) -> None:
        """Pass the total number of pieces to a bar, before the first is done."""
        if self._bar is not None:
            self._bar(0, total)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _is_seen() -> bool:
    return _is_terminal() or "ipykernel" in sys.modules  # which every notebook has loaded


def _bar(what: str) -> _RichBar | _PlainBar | None:
    try:
        return _RichBar(what)
    except ImportError:  # rich is an extra
        return _PlainBar(what) if _is_terminal() else None


class _LateBar:
    """A bar that appears after some seconds, shown by a thread of its own."""

    def __init__(self, what: str, delay: float) -> None:
        from threading import Lock, Timer  # nothing that is not watched needs them

        self._what, self._lock, self._ended = what, Lock(), False
        self._reached: tuple[int, int] | None = None
        self._bar: _RichBar | _PlainBar | None = None
        self._timer = Timer(delay, self.come)
        self._timer.daemon = True
        if delay:
            self._timer.start()
        else:
            self.come()

    def come(self) -> None:
        """Show the bar, unless the work has ended."""
        with self._lock:
            if not self._ended:
                self._bar = _bar(self._what)
                if self._bar is not None and self._reached is not None:
                    self._bar(*self._reached)

    def __call__(self, done: int, total: int) -> None:
        with self._lock:
            self._reached = done, total
            if self._bar is not None:
                self._bar(done, total)

    def close(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._bar is not None:
                self._bar.close()


class _RichBar:
    def __init__(self, what: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
        self._shown = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
        self._task: Any = None
        self._what = what

    def __call__(self, done: int, total: int) -> None:
        if self._task is None:
            self._shown.start()
            self._task = self._shown.add_task(self._what, total=total)
        self._shown.update(self._task, completed=done, total=total)

    def close(self) -> None:
        self._shown.stop()


class _PlainBar:
    def __init__(self, what: str) -> None:
        self._what, self._wrote = what, False

    def __call__(self, done: int, total: int) -> None:
        self._wrote = True
        self._write(f"\r{self._what} {done}/{total}")

    def close(self) -> None:
        if self._wrote:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            print(text, end="", file=sys.stderr, flush=True)
        except OSError:  # rule 3
            self._what, self._wrote = "", False
