"""Arguments taken in: arrays and integers, or a typed error."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from ._dlpack import imported
from .errors import OperandError, WarpmmaError

__all__ = ["as_array", "is_integer"]


def as_array(x: npt.ArrayLike, name: str, error: type[WarpmmaError] = OperandError) -> npt.NDArray[Any]:
    """Return an array in the machine's byte order, or raise `error` for what is none, such as a ragged list."""
    if isinstance(x, np.ma.MaskedArray):
        raise error(f"{name} is a masked array, and no instruction knows masks; fill it first")
    if type(x) is not np.ndarray:
        x = imported(x, name, error)
    try:
        array = np.asarray(x)
    except (ValueError, TypeError, OverflowError) as reason:
        raise error(f"{name}: no array: {reason}") from None
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is an integer, of Python or NumPy: no bool, and no span of time, which NumPy counts as one."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_ | np.timedelta64)
