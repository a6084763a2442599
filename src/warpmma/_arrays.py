"""Arguments taken in: arrays, integers and choices, or a typed error; and arrays given out that nobody can change."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from ._dlpack import imported
from .errors import OperandError, WarpmmaError, shown

__all__ = [
    "MOST_DIMENSIONS",
    "MOST_ELEMENTS",
    "as_array",
    "check_choice",
    "frozen",
    "is_integer",
    "members",
    "suggestion",
]

# What NumPy broadcasts. Its arrays may have twice as many, which leaves room for what the package adds inside.
MOST_DIMENSIONS = 32
# Repeated by broadcasting, an array takes no memory. What is made of it does, and machines address at most 2**47 bytes.
MOST_ELEMENTS = 1 << 47


def as_array(x: npt.ArrayLike, name: str, error: type[WarpmmaError] = OperandError) -> npt.NDArray[Any]:
    """Return an array in the machine's byte order, or raise `error` for what is none, such as a ragged list."""
    if isinstance(x, np.ma.MaskedArray):
        raise error(f"{name} is a masked array, and no instruction knows masks; fill it first")
    if type(x) is not np.ndarray:
        x = imported(x, name, error)
    try:
        array = np.asarray(x)
    except MemoryError:
        raise
    except Exception as reason:  # what an object's own `__array__` can raise has no end
        raise error(f"{name}: no array: {shown(reason, str)}") from None
    if array.size > MOST_ELEMENTS:
        raise error(f"{name} has {array.size:,} elements, {list(array.shape)}: more than any memory holds")
    if array.ndim > MOST_DIMENSIONS:
        raise error(f"{name} has {array.ndim} dimensions; expected at most {MOST_DIMENSIONS}")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy that cannot be written, nor made writable: its memory is that of an immutable object."""
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is an integer, of Python or NumPy: no bool, and no span of time, which NumPy counts as one."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def members(value: object, most: int) -> list[Any] | None:
    """Return the members of a sequence, no more than one beyond `most`; None for text and for what is no sequence."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        return None
    try:
        return list(islice(value, most + 1))
    except Exception:  # its own methods fail
        return None


def suggestion(word: object, known: Collection[str]) -> str:
    """Return "; did you mean 'x'?" where one of the known words is like this one, and nothing otherwise."""
    close = difflib.get_close_matches(word[:80], known, 1, 0.5) if isinstance(word, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def check_choice(
    what: str, value: object, choices: Collection[str], error: type[WarpmmaError] = OperandError
) -> None:  # fmt: skip
    """Raise `error` unless a value is one of some strings; name the nearest of them."""
    if isinstance(value, str) and value in choices:
        return
    *others, last = map(repr, choices)
    listed = f"{', '.join(others)} or {last}" if others else last
    raise error(f"{what} is {shown(value)}; expected {listed}{suggestion(value, choices)}")
