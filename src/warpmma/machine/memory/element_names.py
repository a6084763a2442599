"""Names of elements: what reports call the place that an address is in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedArray:
    """An array that a launch was given.

    Attributes
    ----------
    name : str
        As the kernel, or the list of arguments, calls it.
    start : int
        Its generic address.
    shape : tuple of int
    dtype : dtype
    """

    name: str
    start: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def stop(self) -> int:
        """The address behind its last byte."""
        return self.start + math.prod(self.shape) * self.dtype.itemsize


def element_at(name: str, offset: int, size: int = 0, shape: tuple[int, ...] = ()) -> str:
    """Name the element at so many bytes from the beginning of an array.

    Parameters
    ----------
    name : str
    offset : int
    size : int, optional
        Bytes of an element; 0 where they are not known.
    shape : tuple of int, optional
        Of the array, if it has more dimensions than one.

    Examples
    --------
    >>> element_at("x", 40, 4), element_at("x", 42, 4, (3, 4)), element_at("table", 40), element_at("table", 0)
    ('x[10]', 'x[2, 2] + 2 bytes', 'table + 40 bytes', 'table[0]')
    """
    if not size:
        return f"{name} + {offset} bytes" if offset else f"{name}[0]"
    number, rest = divmod(offset, size)
    place = [int(i) for i in np.unravel_index(number, shape)] if len(shape) > 1 else [number]
    return f"{name}[{', '.join(map(str, place))}]" + (f" + {rest} bytes" if rest else "")
