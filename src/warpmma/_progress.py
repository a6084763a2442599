"""Progress of long work: a function of the caller's, or a bar on the error stream.

1. `progress` is None or False: nobody is told; a function: it is called with numbers of what is done and of all; True:
   a bar, where the error stream is a terminal or a notebook shows it.
2. The bar is rich's where rich is installed, else a line that is written over. When the work ends, however it ends,
   nothing of it is left.
3. What cannot be shown stops no work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from .errors import OperandError, shown

__all__ = ["Progress", "Progressing", "Watched"]

Progress = Callable[[int, int], object]
"""Called with how many pieces are done, and how many there are."""

Watched = bool | Progress | None
"""What callers give as `progress`."""


class Progressing:
    """Work of several pieces that somebody may watch; a context that takes the bar away.

    Parameters
    ----------
    progress : bool, callable or None
    what : str
        What is done, in a word or two.

    Raises
    ------
    OperandError
        When `progress` is none of these.
    """

    def __init__(self, progress: Watched, what: str) -> None:
        self._call: Progress | None = None
        self._bar: _RichBar | _PlainBar | None = None
        if progress is True:
            self._bar = _bar(what)
            self._call = self._bar
        elif callable(progress):
            self._call = progress
        elif progress is not None and progress is not False:
            raise OperandError(f"progress is {shown(progress)}; expected a function of two integers, True or None")

    def __call__(self, done: int, total: int) -> None:
        """Tell how many pieces are done."""
        if self._call is not None:
            self._call(done, total)

    def begin(self, total: int) -> None:
        """Show a bar before the first piece is done."""
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


def _bar(what: str) -> _RichBar | _PlainBar | None:
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if not terminal and "ipykernel" not in sys.modules:  # which every notebook has loaded
        return None
    try:
        return _RichBar(what)
    except ImportError:  # rich is an extra
        return _PlainBar(what) if terminal else None


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
