"""The streams of the command line, which may be closed, full or absent."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO, TypeVar

from .._progress import Progressing

__all__ = ["discard", "followed", "note", "say", "silence", "write"]

T = TypeVar("T")
_NOTES: list[str] = []


def say(text: str) -> None:
    """Print on the error stream, if there is one and it takes it."""
    try:
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def note(text: str) -> None:
    """Say something on the error stream when there is a result to which it belongs: beside an error it is noise."""
    _NOTES.append(text)


def silence() -> None:
    """Forget the notes that no result came to."""
    _NOTES.clear()


def discard(stream: TextIO | None) -> None:
    """Let what a stream still holds go nowhere: the interpreter flushes it again before it exits."""
    if stream is not None:
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


def write(text: str) -> None:
    """Print, and know that it arrived; without an output there is nothing that anybody could have seen."""
    while _NOTES:
        say(_NOTES.pop(0))
    if sys.stdout is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    print(text, flush=True)


def followed(items: Iterable[T], total: int, what: str = "replaying") -> Iterator[T]:
    """Pass items on, with a progress display where the error stream is a terminal."""
    with Progressing(True, what) as tell:
        for count, item in enumerate(items, 1):
            tell(count, total)
            yield item
