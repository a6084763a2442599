"""Forms whose rows apply functions of values, integers of the operands' PTX types, to registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from .._arrays import Array
from ..arithmetic import ElementForm, run_elements
from .carriage import moved
from .elements import operands
from .forms import Form
from .measurements import OPERATIONS, measured
from .records import DTYPES, Operation

Words = tuple[str, ...]
MOVE: Mapping[str, Any] = MappingProxyType({"travels": True, "symbols": True, "specials": True, "carriage": moved()})
"""Fields that rows of `mov` share."""
Version = tuple[int, int]


_NATIVE: dict[Words, str] = {("prmt",): "permute", ("bfe",): "extract", ("div",): "quotient", ("rem",): "remainder"}
_WORDS = ("s32", "u32", "s64", "u64")
_NATIVE_TYPES = {"permute": ("b32",), "extract": ("s32", "u32"), "quotient": _WORDS, "remainder": _WORDS}
"""Operations of the native engine that take NumPy many steps, with their types."""


def width_of(a: Array) -> int:
    """Bits of an element."""
    return a.dtype.itemsize * 8


def unsigned(a: Array) -> Array:
    """Return integers by their bits."""
    return a.view(f"uint{width_of(a)}")


def _compute(
    function: Callable[..., Any], views: tuple[Any, ...], outputs: tuple[Any, ...], *x: Any
) -> tuple[Array, ...]:
    """Apply a function of values to registers."""
    result = function(*[a if view is None else a.view(view) for a, view in zip(x, views, strict=True)])
    if not isinstance(result, tuple):
        return (result if result.dtype is outputs[0] else _register(result, outputs[0]),)
    return tuple(d if d.dtype is dtype else _register(d, dtype) for d, dtype in zip(result, outputs, strict=True))


def _compute_alike(function: Callable[..., Any], output: Any, *x: Any) -> tuple[Array]:
    """Apply a function of values with one result to registers whose bits are the values."""
    result = function(*x)
    return (result if result.dtype is output else _register(result, output),)


def _register(d: Array, dtype: Any) -> Array:
    """Return values in registers of a class; signed integers are sign-extended."""
    return d.view(dtype) if d.dtype.itemsize == dtype.itemsize else d.astype(dtype)


def value_row(text: str, function: Callable[..., Any], words: Words) -> dict[str, Any]:
    """Return the fields of a row from its operands, as for `operands`, and a function of their values."""
    given = operands(text, words)
    views = tuple(np.dtype(f"int{type_[1:]}") if type_[0] == "s" else None for type_ in given["input_types"])
    outputs = tuple(np.dtype(DTYPES[kind]) for kind in given["outputs"])
    compute: Callable[..., tuple[Array, ...]] = partial(_compute, function, views, outputs)
    if len(outputs) == 1 and not any(views):
        compute = partial(_compute_alike, function, outputs[0])
    fields = {**given, "compute": compute}
    if (op := _NATIVE.get(words[:-1])) is not None and words[-1] in _NATIVE_TYPES[op]:
        name = words[-1].replace("b", "u")
        form = ElementForm(op=op, source=name, result=name)
        fields["native"] = partial(run_elements, form, DTYPES[given["outputs"][0]])
    return fields


def _fields(text: str, by: Callable[[Words], Callable[..., Any]], more: dict[str, Any], words: Words) -> dict[str, Any]:
    return {**value_row(text, by(words), words), **more}


def chosen_form(
    section: str, spelling: str, text: str, by: Callable[[Words], Callable[..., Any]], ptx: Version = (1, 0),
    compared: str = OPERATIONS, left_open: str = "", *, since: str = "sm_70", **more: Any,
) -> Form:  # fmt: skip
    """Make a form whose words select the function, and whose rows were compared with a GPU.

    Parameters
    ----------
    section : str
        Of the PTX ISA.
    spelling : str
    text : str
        Operands, as for `operands`.
    by : callable
        From the words of a mnemonic to the function of values.
    ptx : (int, int)
    compared : str
        How many operands were compared.
    left_open : str
        What PTX leaves undefined.
    since : str
    **more
        Further fields of each row.
    """
    return Form(
        spelling=spelling, kind=Operation, fields=partial(_fields, text, by, more), since=since, ptx=ptx,
        evidence=measured(section, compared), left_open=left_open,
    )  # fmt: skip


def value_form(section: str, spelling: str, text: str, function: Callable[..., Any], *more: Any, **fields: Any) -> Form:
    """Make a form of one function, whose rows were compared with a GPU."""
    return chosen_form(section, spelling, text, lambda words: function, *more, **fields)
