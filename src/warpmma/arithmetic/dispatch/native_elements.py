"""Instructions on registers in the native engine, element by element: parameters of the C++, and calls into it.

The NumPy forms define the results: `operations.floats`, `conversions`, `comparisons`, `divisions` and `integers`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from .native import _native, find_level

_MOST = 5  # dimensions, fewer than which the C++ takes


@dataclass(frozen=True, kw_only=True)
class ElementForm(Shown):
    """The computation of each element.

    Attributes
    ----------
    op : str
        "add", "sub", "mul", "fma", "min", "max", "div", "rcp", "sqrt", "convert" or "compare"; of integers "quotient",
        "remainder", "permute" or "extract".
    source, result : str
        Formats of the operands' elements and of the result's; "pred" of comparisons.
    rounding : {"rn", "rz", "rm", "rp"}
    comparison : str
        "eq", "ne", "lt", "le", "gt", "ge", "num" or "nan".
    unordered, integral, flush, flush_result, saturate, finite, rectify, keep_nan, magnitudes : bool
        As documented in the C++.
    """

    op: str
    source: str
    result: str
    rounding: str = "rn"
    comparison: str = "eq"
    unordered: bool = False
    integral: bool = False
    flush: bool = False
    flush_result: bool = False
    saturate: bool = False
    finite: bool = False
    rectify: bool = False
    keep_nan: bool = False
    magnitudes: bool = False


def runs_elements() -> bool:
    """Return whether the native engine is built and has this; one built before an update of the package may lack it."""
    return hasattr(_native, "ElementPlan")


def run_elements(form: ElementForm, kind: Any, *x: Array, level: str | None = None) -> tuple[Array]:
    """Compute registers of registers, as `Operation.compute` does.

    Registers of the result are of the dtype `kind`. If they hold twice as many elements as the operands', these follow
    each other: of two operands the first gives the upper element. `level` is the name of a build, for tests.
    """
    plan, number = _plan(form), _number(level)
    shape = x[0].shape
    for each in x[1:]:
        if each.shape != shape:
            shape = np.broadcast_shapes(*(each.shape for each in x))
            break
    out = np.empty(shape, np.uint8 if form.result == "pred" else kind)
    given, flat = [_registers(each, shape) for each in x], out if 0 < out.ndim < _MOST else out.reshape(-1)
    if form.op == "convert" and len(given) == 2:
        for part, each in enumerate(reversed(given)):
            _native.execute_elements(plan, number, each, None, None, flat, 2, part)
        return (out,)
    a, b, c = (*given, None, None)[:3]
    _native.execute_elements(plan, number, a, b, c, flat, 1, 0)
    return (out.view(np.bool_) if form.result == "pred" else out,)


def _registers(x: Array, shape: tuple[int, ...]) -> Array:
    """Return contiguous registers, or a single one where all are equal."""
    if x.flags.c_contiguous and x.shape == shape and x.flags.aligned:
        return x if 0 < x.ndim < _MOST else x.reshape(-1)
    if x.size and not any(x.strides):
        return x.reshape(-1)[:1] if x.size == 1 else x[(0,) * (x.ndim - 1)][:1]
    return np.ascontiguousarray(np.broadcast_to(x, shape)).reshape(-1)


@cache
def _number(level: str | None) -> int:
    return find_level(level).number


@cache
def _plan(form: ElementForm) -> Any:
    given = _native.ElementParameters()
    enumerations = {
        "op": _native.ElementOp, "source": _native.Element, "result": _native.Element, "rounding": _native.Rounding,
        "comparison": _native.Comparison,
    }  # fmt: skip
    for field in fields(form):
        value = getattr(form, field.name)
        setattr(given, field.name, enumerations[field.name][value] if field.name in enumerations else value)
    return _native.ElementPlan(given)
