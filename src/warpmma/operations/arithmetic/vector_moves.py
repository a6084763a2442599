"""`mov` with a vector: packs several registers into a wider one, or unpacks one.

The rules (PTX ISA 9.1, 9.7.9.7):

1. Element 0 is in the low bits. Elements of 8 bits are the low bytes of 16-bit registers; unpacking zero-extends them.
2. Uninitialized values propagate: a register is tracked as written or not as a whole.

Such a `mov` has the mnemonic of an ordinary one, so these rows are found by their types and no table lists them.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np

from ..._arguments import is_integer
from ..._arrays import Array
from ...errors import OperandError, shown
from ..measurements import VARIANTS, measured
from ..records import DTYPES, Operation, register_type
from ..value_forms import MOVE

_COUNTS = {"b16": (2,), "b32": (2, 4), "b64": (2, 4)}
_SECTION = "Data Movement and Conversion Instructions: mov"


def _pack(bits: int, dtype: Any, *x: Array) -> tuple[Array]:
    mask, word = (1 << bits) - 1, np.zeros(x[0].shape, dtype)
    for i, element in enumerate(x):
        word |= (element.astype(dtype) & dtype(mask)) << dtype(i * bits)
    return (word,)


def _unpack(bits: int, count: int, dtype: Any, word: Array) -> tuple[Array, ...]:
    mask = word.dtype.type((1 << bits) - 1)
    return tuple(((word >> word.dtype.type(i * bits)) & mask).astype(dtype) for i in range(count))


def packing(type_: str, count: int) -> Operation:
    """Return the row of `mov.type d, {a0, a1, ...}`.

    Parameters
    ----------
    type_ : {"b16", "b32", "b64"}
    count : int
        2 elements; for b32 and b64 also 4.

    Returns
    -------
    Operation
        The same object on every call.

    Raises
    ------
    OperandError
        No such `mov`.

    Examples
    --------
    >>> row = packing("b32", 2)
    >>> row.inputs, row.outputs, row.syntax
    (('b16', 'b16'), ('b32',), 'd0, {a0, a1}')
    """
    return _rows(*_checked(type_, count))[0]


def unpacking(type_: str, count: int) -> Operation:
    """Return the row of `mov.type {d0, d1, ...}, a`.

    Parameters, errors
        See `packing`.

    Examples
    --------
    >>> row = unpacking("b64", 4)
    >>> row.inputs, row.outputs, row.syntax
    (('b64',), ('b16', 'b16', 'b16', 'b16'), '{d0, d1, d2, d3}, a0')
    """
    return _rows(*_checked(type_, count))[1]


def _checked(type_: str, count: int) -> tuple[str, int]:
    known = isinstance(type_, str) and type_ in _COUNTS
    if not known or not is_integer(count) or int(count) not in _COUNTS[type_]:
        raise OperandError(
            f"mov of {shown(count)} elements in {shown(type_)}: PTX has 2 in b16, and 2 or 4 in b32 and b64"
        )
    return type_, int(count)


@cache
def _rows(type_: str, count: int) -> tuple[Operation, Operation]:
    whole, bits = register_type(type_), int(type_[1:]) // count
    part = register_type(f"b{bits}")
    make = partial(
        Operation, mnemonic=f"mov.{type_}", since="sm_70", ptx=(1, 0), **MOVE, evidence=measured(_SECTION, VARIANTS)
    )
    return (
        make(
            inputs=(part,) * count, outputs=(whole,), compute=partial(_pack, bits, DTYPES[whole]),
            input_types=(f"b{bits}",) * count, vectors=(0, count),
        ),
        make(
            inputs=(whole,), outputs=(part,) * count, compute=partial(_unpack, bits, count, DTYPES[part]),
            vectors=(count, 0), output_types=(f"b{bits}",) * count,
        ),
    )  # fmt: skip
