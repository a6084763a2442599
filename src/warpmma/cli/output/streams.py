"""The streams of the command line, which may be closed, full or absent."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeVar

from ..._progress import Progressing

T = TypeVar("T")
_NOTES: list[str] = []


def say(text: str) -> None:
    """Print on the error stream; ignore a closed or absent one."""
    try:
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def note(text: str) -> None:
    """Print something on the error stream before the next result; it is dropped if there is an error instead."""
    _NOTES.append(text)


@contextmanager
def noted() -> Iterator[None]:
    """Turn warnings of the library into notes, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(each.message) for each in caught):
        note(f"warpmma: {text}")


def silence() -> None:
    """Forget notes that were not printed."""
    _NOTES.clear()


def discard(stream: TextIO | None) -> None:
    """Discard a stream's buffer, which the interpreter flushes again before it exits."""
    if stream is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def write(text: str) -> None:
    """Print the notes and a text, and flush; a closed or absent output is an `OSError`."""
    while _NOTES:
        say(_NOTES.pop(0))
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    print(text, flush=True)


def terminal_width() -> int:
    """Return the variable COLUMNS, or the columns of the terminal, or 80.

    This is `shutil.get_terminal_size` without its imports, which would make look-ups slow.
    """
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80 if sys.__stdout__ is not None else 80
    except (OSError, ValueError, AttributeError):  # none, closed, or no terminal
        return 80


def followed(items: Iterable[T], total: int, what: str = "replaying") -> Iterator[T]:
    """Pass items on, with a progress display where the error stream is a terminal."""
    with Progressing(True, what, late=False) as tell:
        for count, item in enumerate(items, 1):
            tell(count, total)
            yield item
