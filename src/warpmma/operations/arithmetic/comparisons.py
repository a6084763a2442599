"""Comparison and selection: `setp` and `selp`.

The rules (PTX ISA 9.1, Comparison and Selection Instructions):

1. Integers compare as signed or unsigned, bit types only for equality. `lo`, `ls`, `hi`, `hs` are `lt`, `le`, `gt`,
   `ge` for unsigned integers.
2. Floats compare by value: zeros of either sign are equal. With a NaN the ordered comparisons are false, and those with
   a `u` at their end true. `num` is true if neither operand is NaN, `nan` if one is.
3. `.ftz` flushes f32 subnormals to zero.
4. `selp` takes its first operand where the predicate is true, else its second.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from ..._arrays import Array
from ...arithmetic import ElementForm, run_elements
from ...formats import FORMATS, FloatFormat, floating
from ..carriage import moved
from ..elements import operands
from ..forms import Form
from ..measurements import measured
from ..records import Operation

_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def _order(fmt: FloatFormat, code: Array, ftz: bool) -> tuple[Array, Array]:
    """Return integers in the order of the values, and where these are NaN; no float arithmetic, which may flush."""
    magnitude = (code & (fmt.sign_bit - 1)).astype(np.int64)
    nan = magnitude > cast(int, fmt.inf_code)
    if ftz:
        magnitude = np.where(magnitude < 1 << fmt.fraction_bits, 0, magnitude)
    return np.where(code & fmt.sign_bit, -magnitude, magnitude), nan


def _float_compare(name: str, type_: str, ftz: bool) -> Callable[[Array, Array], tuple[Array]]:
    fmt = floating(type_)
    unordered = name.removesuffix("u") in _COMPARE and name.endswith("u")

    def compare(a: Array, b: Array) -> tuple[Array]:
        (x, x_nan), (y, y_nan) = _order(fmt, a, ftz), _order(fmt, b, ftz)
        nan = x_nan | y_nan
        if name in ("num", "nan"):
            return (nan if name == "nan" else ~nan,)
        result = _COMPARE[name.removesuffix("u")](x, y)
        return (result | nan if unordered else result & ~nan,)

    return compare


def _integer_compare(name: str, type_: str) -> Callable[[Array, Array], tuple[Array]]:
    function = _COMPARE[_UNSIGNED.get(name, name)]
    if type_[0] != "s":
        return lambda a, b: (function(a, b),)
    return lambda a, b: (function(a.view(f"int{type_[1:]}"), b.view(f"int{type_[1:]}")),)


def comparison(name: str, type_: str, ftz: bool) -> Callable[[Array, Array], tuple[Array]]:
    """Return how codes of a type, one to a register, are compared."""
    if type_ in FORMATS and isinstance(FORMATS[type_], FloatFormat):
        return _float_compare(name, type_, ftz)
    return _integer_compare(name, type_)


def _compared(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of `setp` determine."""
    name, type_ = words[1], words[-1]
    fields: dict[str, Any] = {
        **operands("T T -> pred", words), "compute": comparison(name, type_, "ftz" in words), "sinks": (0, 1),
        "variants": "complement",
    }  # fmt: skip
    if type_ in FORMATS and isinstance(FORMATS[type_], FloatFormat):
        form = ElementForm(
            op="compare", source=type_, result="pred", comparison=name.removesuffix("u"),
            unordered=name.endswith("u"), flush="ftz" in words,
        )  # fmt: skip
        fields["native"] = partial(run_elements, form, np.bool_)
    return fields


def _select(a: Array, b: Array, p: Array) -> tuple[Array]:
    return (np.where(p, a, b),)


def _chosen(a: Array, b: Array, p: Array) -> tuple[Array, Array, Array]:
    """Of the operand that is not chosen no lane counts."""
    return p, ~p, np.ones_like(p)


def _selected(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of `selp` determine."""
    return {**operands("T T pred -> T", words), "compute": _select, "needed": _chosen, "carriage": moved()}


COMPARISONS = " ".join(_COMPARE)
UNSIGNED_COMPARISONS = " ".join(_UNSIGNED)
FLOAT_COMPARISONS = " ".join([*_COMPARE, *(f"{name}u" for name in _COMPARE), "num", "nan"])
"""Words for comparisons: of all types, of unsigned integers besides, of floating-point numbers."""

_form = partial(
    Form, kind=Operation, fields=_compared, ptx=(1, 0), evidence=measured("Comparison and Selection Instructions")
)

FORMS = (
    _form(spelling=f"setp.<{COMPARISONS}>.<s16 u16 s32 u32 s64 u64>"),
    _form(spelling="setp.<eq ne>.<b16 b32 b64>"),
    _form(spelling=f"setp.<{UNSIGNED_COMPARISONS}>.<u16 u32 u64>"),
    _form(spelling=f"setp.<{FLOAT_COMPARISONS}>{{.ftz}}.f32"),
    _form(spelling=f"setp.<{FLOAT_COMPARISONS}>.f64"),
    _form(spelling=f"setp.<{FLOAT_COMPARISONS}>.f16", ptx=(4, 2)),
    _form(spelling=f"setp.<{FLOAT_COMPARISONS}>.bf16", since="sm_90", ptx=(7, 8)),
    _form(spelling="selp.<b16 u16 s16 b32 u32 s32 f32 b64 u64 s64 f64>", fields=_selected),
)
"""Every form of this module."""
