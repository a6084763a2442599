"""Comparison and selection: `setp` and `selp`.

The rules (PTX ISA 9.1, Comparison and Selection Instructions):

1. Integers compare as signed or unsigned; bits for equality alone. `lo`, `ls`, `hi`, `hs` are `lt`, `le`, `gt`, `ge` of
   unsigned ones.
2. Floats compare by value: zeros of either sign are equal. With a NaN the ordered comparisons are false, and those with
   a `u` at their end true. `num` says that neither operand is NaN, `nan` that one is.
3. `.ftz` takes f32 subnormals for zeros.
4. `selp` takes its first operand where the predicate is true, else its second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..formats import FloatFormat, floating
from .records import Operation, RegisterType, known

__all__ = ["OPERATIONS"]

Array = npt.NDArray[Any]

_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_SECTION = "PTX ISA 9.1, Comparison and Selection Instructions"


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


def _setp(
    mnemonic: str, width: str, compute: Callable[..., tuple[Array]], since: str = "sm_70", ptx: tuple[int, int] = (1, 0)
) -> Operation:
    kind, type_ = cast(RegisterType, f"b{width}"), mnemonic.rpartition(".")[2]
    return Operation(
        mnemonic=mnemonic, inputs=(kind, kind), input_types=(type_, type_), outputs=("pred",),
        compute=compute, since=since, ptx=ptx, evidence=known(f"{_SECTION}: setp"),
    )  # fmt: skip


def _select(a: Array, b: Array, p: Array) -> tuple[Array]:
    return (np.where(p, a, b),)


def _chosen(a: Array, b: Array, p: Array) -> tuple[Array, Array, Array]:
    """Of the operand that is not chosen no lane counts."""
    return p, ~p, np.ones_like(p)


def _table() -> tuple[Operation, ...]:
    rows: list[Operation] = []
    for width in ("16", "32", "64"):
        for name in _COMPARE:
            kinds = "bsu" if name in ("eq", "ne") else "su"
            rows += [_setp(f"setp.{name}.{x}{width}", width, _integer_compare(name, x + width)) for x in kinds]
        rows += [_setp(f"setp.{name}.u{width}", width, _integer_compare(name, f"u{width}")) for name in _UNSIGNED]
    names = [*_COMPARE, *(f"{name}u" for name in _COMPARE), "num", "nan"]
    floats = (("f32", False, "sm_70", (1, 0)), ("f32", True, "sm_70", (1, 0)), ("f64", False, "sm_70", (1, 0)),
              ("f16", False, "sm_70", (4, 2)), ("bf16", False, "sm_90", (7, 8)))  # fmt: skip
    for type_, ftz, since, ptx in floats:
        for name in names:
            mnemonic = f"setp.{name}{'.ftz' * ftz}.{type_}"
            width = type_.lstrip("bf")
            rows.append(_setp(mnemonic, width, _float_compare(name, type_, ftz), since, ptx))
    for width in ("16", "32", "64"):
        kind = cast(RegisterType, f"b{width}")
        for x in ("b", "u", "s", *(["f"] if width != "16" else [])):
            rows.append(
                Operation(
                    mnemonic=f"selp.{x}{width}", inputs=(kind, kind, "pred"), outputs=(kind,), needed=_chosen,
                    input_types=(f"{x}{width}", f"{x}{width}", "pred"), compute=_select, since="sm_70", ptx=(1, 0),
                    evidence=known(f"{_SECTION}: selp"),
                )
            )  # fmt: skip
    return tuple(rows)


OPERATIONS: tuple[Operation, ...] = _table()
