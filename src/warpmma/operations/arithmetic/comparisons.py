"""Comparison and selection: `setp` and `selp`.

The rules (PTX ISA 9.1, Comparison and Selection Instructions):

1. Integers compare as signed or unsigned, bit types only for equality. `lo`, `ls`, `hi`, `hs` are `lt`, `le`, `gt`,
   `ge` for unsigned integers.
2. Floats compare by value: +0 equals -0. With a NaN the ordered comparisons are false, and the unordered ones, with a
   final `u`, true. `num` is true if neither operand is NaN, `nan` if one is.
3. `.ftz` flushes f32 subnormals to zero.
4. `selp` selects its first operand if the predicate is true, otherwise its second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
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
from ..value_forms import Words

_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
BOOLEAN: dict[str, Callable[[Array, Array], Array]] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor
}  # fmt: skip
"""How the result is combined with a third operand, a predicate (`comparison_results`)."""
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def _order(fmt: FloatFormat, code: Array, ftz: bool) -> tuple[Array, Array]:
    """Return integers in the order of the values, and which are NaN; float arithmetic might flush subnormals."""
    signed = code.view(f"int{8 * code.itemsize}")  # the sign is its highest bit
    magnitude = signed & signed.dtype.type(fmt.sign_bit - 1)
    nan = magnitude > cast(int, fmt.inf_code)
    if ftz:
        magnitude *= magnitude >= 1 << fmt.fraction_bits
    return np.where(signed < 0, -magnitude, magnitude), nan


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


@cache
def complemented(words: Words, row: Operation, selectors: tuple[str, ...]) -> Operation | None:
    """Return the row of two destinations, `p|q`, from that of one; None where PTX has none.

    It writes the result for the opposite comparison to the second: with a third operand, t op c and (not t) op c.
    """
    name, type_ = words[1], words[-1]
    if selectors or type_ in ("f16", "bf16"):
        return None
    if len(row.outputs) == 2:
        return row
    one = comparison(name, type_, "ftz" in words)
    combine = next((BOOLEAN[word] for word in words if word in BOOLEAN), None)

    def compute(a: Array, b: Array, c: Array | None = None) -> tuple[Array, Array]:
        (t,) = one(a, b)
        return (t, ~t) if c is None or combine is None else (combine(t, c), combine(~t, c))

    return replace(row, outputs=("pred", "pred"), compute=compute, native=None)


def _compared(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of `setp` determine."""
    name, type_ = words[1], words[-1]
    fields: dict[str, Any] = {
        **operands("T T -> pred", words), "compute": comparison(name, type_, "ftz" in words), "sinks": (0, 1),
        "variant": partial(complemented, words),
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
    """Return which lanes of each operand matter: those that select it."""
    return p, ~p, np.ones_like(p)


def _selected(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of `selp` determine."""
    return {**operands("T T pred -> T", words), "compute": _select, "needed": _chosen, "carriage": moved()}


COMPARISONS = " ".join(_COMPARE)
UNSIGNED_COMPARISONS = " ".join(_UNSIGNED)
FLOAT_COMPARISONS = " ".join([*_COMPARE, *(f"{name}u" for name in _COMPARE), "num", "nan"])
"""Words for comparisons: of all types, additional ones of unsigned integers, of floating-point numbers."""

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
