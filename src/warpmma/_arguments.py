"""Checks of arguments: integers, choices and sequences, or a typed error; without NumPy."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any, TypeGuard

from .errors import OperandError, WarpmmaError, nearest, shown


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer of Python or NumPy; a bool, or a NumPy time span, is not."""
    if isinstance(value, int):
        return not isinstance(value, bool)
    numpy = sys.modules.get("numpy")  # a NumPy integer implies that NumPy is loaded
    return numpy is not None and isinstance(value, numpy.integer) and not isinstance(value, numpy.timedelta64)


def members(value: object, most: int) -> list[Any] | None:
    """Return the members of a sequence, at most one more than `most`; None for text and non-sequences."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        return None
    try:
        return list(islice(value, most + 1))
    except Exception:  # its own methods fail
        return None


def suggestion(word: object, known: Collection[str]) -> str:
    """Return "; did you mean 'x'?" where one of the known words is like this one, and nothing otherwise."""
    close = nearest(word[:80], known, 0.5) if isinstance(word, str) else None
    return f"; did you mean {close!r}?" if close else ""


def check_choice(what: str, value: object, choices: Collection[str], error: type[WarpmmaError] = OperandError) -> None:
    """Raise `error` unless a value is one of some strings; name the nearest of them."""
    if isinstance(value, str) and value in choices:
        return
    *others, last = map(repr, choices)
    listed = f"{', '.join(others)} or {last}" if others else last
    raise error(f"{what} is {shown(value)}; expected {listed}{suggestion(value, choices)}")


def check_threads(threads: object) -> None:
    """Raise `OperandError` unless a number of threads is a positive integer or None."""
    if threads is not None and (not is_integer(threads) or threads < 1):
        raise OperandError(f"threads is {shown(threads)}; expected a positive integer or None")
