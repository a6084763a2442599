"""Arrays taken in, or a typed error; and arrays given out that nobody can change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._dlpack import imported
from .errors import OperandError, WarpmmaError, shown

Array = npt.NDArray[Any]
"""An array of any dtype: the one alias of the package."""

# What NumPy broadcasts. Its arrays may have twice as many, which leaves room for what the package adds inside.
MOST_DIMENSIONS = 32
# Repeated by broadcasting, an array takes no memory. What is made of it does, and machines address at most 2**47 bytes.
MOST_ELEMENTS = 1 << 47


def everywhere(value: Any, shape: tuple[int, ...]) -> Array:
    """Return a read-only array with one scalar of NumPy everywhere; `np.broadcast_to` takes ten times as long.

    Examples
    --------
    >>> everywhere(np.uint16(7), (1, 3)), everywhere(np.uint16(7), (1, 3)).flags.writeable
    (array([[7, 7, 7]], dtype=uint16), False)
    """
    return np.ndarray(shape, value.dtype, value.tobytes(), strides=(0,) * len(shape))


def as_array(x: npt.ArrayLike, name: str, error: type[WarpmmaError] = OperandError) -> Array:
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


def broadcast(who: str, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Return arrays of one shape, or raise `OperandError` if there is none, or none that memory can hold."""
    shapes = {x.shape for x in arrays}
    try:
        size = math.prod(np.broadcast_shapes(*shapes))
    except ValueError:
        raise OperandError(f"{who}: operands of {_listed(arrays)} do not broadcast") from None
    if size > MOST_ELEMENTS:
        raise OperandError(f"{who}: operands of {_listed(arrays)}: no memory holds the results")
    return tuple(arrays) if len(shapes) == 1 else tuple(np.broadcast_arrays(*arrays))


def _listed(arrays: Sequence[Array]) -> str:
    return " and ".join(str(list(x.shape)) for x in arrays)


def frozen(array: Array) -> Array:
    """Return a copy that cannot be written, nor made writable: its memory is that of an immutable object."""
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)
