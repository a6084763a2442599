"""Arrays with mostly equal elements, written in one line: how failing examples of hypothesis are printed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from .._arguments import is_integer
from .._arrays import MOST_ELEMENTS, Array
from ..errors import OperandError, shown
from ..formats import FORMATS, FloatFormat, Format
from .reading import reader

_MOST = 16  # elements that are written out


def array_with(format: str, shape: int | tuple[int, ...], elements: Mapping[Any, Any], fill: float = 0) -> Array:
    """Make an array in which all but a few elements are equal.

    Failing examples of `warpmma.testing.strategies` are printed as calls of this function; they can be copied into a
    test, such as into an `@example` of hypothesis.

    Parameters
    ----------
    format : str
        PTX's name of a type, such as "f16"; or "uint32" or "uint64", for words.
    shape : int or tuple of int
    elements : dict
        From an index to a value. Of floating-point formats, a float is a value, rounded to nearest even, and an integer
        is a code: bits.
    fill : float or int
        All the other elements.

    Returns
    -------
    ndarray
        Of the format's NumPy or ml_dtypes type; ue4m3 and b1 have uint8.

    Raises
    ------
    OperandError
        An unknown format, a value or a code that it does not have, an index that is outside.

    Examples
    --------
    >>> array_with("f16", (2, 4), {(0, 1): 0.5, (1, 3): 0x7C01})
    array([[0. , 0.5, 0. , 0. ],
           [0. , 0. , 0. , nan]], dtype=float16)
    """
    coder = _coder(format)
    if not isinstance(elements, Mapping):
        raise OperandError(f"array_with: elements is {type(elements).__name__}; expected a dict from indices to values")
    if not is_integer(shape) and not isinstance(shape, list | tuple):
        raise OperandError(f"array_with: shape is {shown(shape)}; expected an integer or a tuple of them")
    try:
        if math.prod(shape if isinstance(shape, list | tuple) else (shape,)) > MOST_ELEMENTS:
            raise OperandError(f"array_with: shape is {shown(shape)}: more than any memory holds")
        codes = np.full(shape, coder.read(fill), coder.dtype)
        for index, value in elements.items():
            if index is ...:
                raise OperandError(f"array_with: {shown(value, str)}: this example was too long to be printed whole")
            codes[index] = coder.read(value)
    except (MemoryError, OperandError):
        raise
    except Exception as error:  # arguments may be anything
        raise OperandError(f"array_with: {shown(error, str)}") from None
    return coder.array(codes)


@dataclass(frozen=True)
class Written:
    """An array that hypothesis prints as the call of `array_with` that makes it."""

    format: str
    codes: Array

    @property
    def array(self) -> Array:
        """The array, of the format's type."""
        return _coder(self.format).array(self.codes)

    def __str__(self) -> str:
        codes, write = self.codes, _coder(self.format).write
        found, counts = np.unique(codes, return_counts=True)
        fill = int(found[np.argmax(counts)]) if codes.size else 0
        others = np.argwhere(codes != fill).tolist()
        listed = [f"{tuple(index)}: {write(int(codes[tuple(index)]))}" for index in others[:_MOST]]
        if len(others) > _MOST:
            listed.append(f"...: '{len(others) - _MOST:,} more'")
        rest = f", fill={write(fill)}" if fill else ""
        return f"{self.format!r}, {codes.shape}, {{{', '.join(listed)}}}{rest}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


@dataclass(frozen=True, kw_only=True)
class _Coder:
    """The coding of a type: from a value to a code, from a code to text, and from codes to the array."""

    dtype: np.dtype[Any]
    read: Callable[[Any], int]
    write: Callable[[int], str]
    array: Callable[[Array], Array]


def _coder(name: str) -> _Coder:
    fmt = FORMATS.get(name) if isinstance(name, str) else None
    if fmt is not None:
        return _Coder(dtype=fmt.code_dtype, read=partial(_code, fmt), write=partial(_text, fmt), array=fmt.array)
    if not isinstance(name, str) or name not in ("uint32", "uint64"):
        raise OperandError(f"array_with: no format {shown(name)}; expected one of {', '.join(FORMATS)}, uint32, uint64")
    return _Coder(dtype=np.dtype(name), read=operator.index, write=hex, array=np.asarray)


def _code(fmt: Format, value: Any) -> int:
    """Return the code of a value in the format's range, or a code itself."""
    if isinstance(fmt, FloatFormat) and is_integer(value):
        if not 0 <= value <= fmt.mask:
            raise OperandError(
                f"array_with: {shown(value, hex)} is not a code of {fmt.name}; expected 0 to {fmt.mask:#x}"
            )
        return int(value)
    code = np.asarray(fmt.encode(value))
    if isinstance(fmt, FloatFormat):
        largest = float(fmt.decode(np.array(fmt.max_code, fmt.code_dtype)))
        held = -largest * fmt.signed <= value <= largest
    else:
        held = float(fmt.decode(code)) == value
    if not held:
        raise OperandError(f"array_with: {shown(value)} is not a value of {fmt.name}")
    return int(code)


@lru_cache(4096)  # failing examples are written again and again, and have few codes
def _text(fmt: Format, code: int) -> str:
    """Write a code as a value, or where that would not give it again, such as of a NaN, as a code."""
    text = reader(fmt).show(code)
    if not isinstance(fmt, FloatFormat):
        return text
    value = float(text)
    if not math.isfinite(value) or int(fmt.encode(value)) != code:
        return hex(code)
    return text if {*text} & {*".e"} else f"{text}.0"
