"""`slct`, `testp` and `copysign`.

The rules (PTX ISA 9.1: Comparison and Selection Instructions, Floating Point Instructions):

1. `slct` selects its first operand if the third is at least 0, otherwise its second. The f32 -0 counts as at least 0,
   NaN does not; `.ftz` flushes its subnormal values to zero first.
2. `testp` tests whether a number is finite, infinite, a number or NaN, normal, subnormal. Zeros count as normal.
3. `copysign` gives b with the sign of a, for all values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from ..._arrays import Array
from ...formats import FloatFormat, floating
from ..carriage import moved
from ..elements import is_nan, magnitude, operands, signs
from ..forms import Form
from ..measurements import OPERATIONS, measured
from ..records import Operation
from ..value_forms import Words

_F32 = floating("f32")


# Rule 1


def _first(words: Words, c: Array) -> Array:
    if words[-1] == "s32":
        return cast(Array, c < np.uint32(1 << 31))
    size = magnitude(_F32, c)
    zero = size < np.uint32(1 << _F32.fraction_bits) if "ftz" in words else size == 0
    return cast(Array, ~is_nan(_F32, c) & ((signs(_F32, c) == 0) | zero))


def _selected(words: Words) -> dict[str, Any]:
    """Return the fields of a row that the words of `slct` determine."""
    type_ = words[-2]

    def needed(a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        first = _first(words, c)
        return first, ~first, np.ones_like(first)

    return {
        **operands(f"{type_} {type_} {words[-1]} -> {type_}", words), "needed": needed, "carriage": moved(2),
        "compute": lambda a, b, c: (np.where(_first(words, c), a, b),),
    }  # fmt: skip


# Rule 2

_TESTS: dict[str, Callable[[FloatFormat, Array], Array]] = {
    "finite": lambda fmt, size: size < cast(int, fmt.inf_code),
    "infinite": lambda fmt, size: size == cast(int, fmt.inf_code),
    "number": lambda fmt, size: size <= cast(int, fmt.inf_code),
    "notanumber": lambda fmt, size: size > cast(int, fmt.inf_code),
    "normal": lambda fmt, size: ((size >= 1 << fmt.fraction_bits) & (size < cast(int, fmt.inf_code))) | (size == 0),
    "subnormal": lambda fmt, size: (size < 1 << fmt.fraction_bits) & (size > 0),
}


def _tested(words: Words) -> dict[str, Any]:
    """Return the fields of a row that the words of `testp` determine."""
    test, fmt = _TESTS[words[1]], floating(words[-1])
    return {**operands("T -> pred", words), "compute": lambda a: (test(fmt, magnitude(fmt, a)),)}


# Rule 3


def _signed(words: Words) -> dict[str, Any]:
    """Return the fields of a row that the words of `copysign` determine."""
    fmt = floating(words[-1])
    compute = lambda a, b: (signs(fmt, a) | magnitude(fmt, b),)  # noqa: E731
    return {**operands("T T -> T", words), "compute": compute, "carriage": moved()}


_form = partial(Form, kind=Operation, evidence=measured("Floating Point Instructions", OPERATIONS), ptx=(2, 0))
_slct = partial(
    Form, kind=Operation, fields=_selected, ptx=(1, 0),
    evidence=measured("Comparison and Selection Instructions", OPERATIONS),
)  # fmt: skip
_TYPES = "b16 u16 s16 b32 u32 s32 f32 b64 u64 s64 f64"

FORMS = (
    _slct(spelling=f"slct.<{_TYPES}>.s32"),
    _slct(spelling=f"slct{{.ftz}}.<{_TYPES}>.f32"),
    _form(spelling=f"testp.<{' '.join(_TESTS)}>.<f32 f64>", fields=_tested),
    _form(spelling="copysign.<f32 f64>", fields=_signed),
)
"""Every form of this module."""
