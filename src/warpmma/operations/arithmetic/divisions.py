"""`div`, `rcp` and `sqrt` with the four roundings of IEEE 754, in f32 and f64.

Their rules are in `arithmetic.quotients`, with what was measured on an H200 where PTX ISA 9.1, 9.7.3 leaves it open.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from ..._arrays import Array
from ..._rounding import Rounding
from ...arithmetic import ElementForm, quotient, run_elements, square_root
from ...formats import FloatFormat
from ..elements import TYPES, by_element
from ..forms import Form
from ..measurements import QUOTIENTS, measured
from ..records import DTYPES, Operation


def _divided(fmt: FloatFormat, rounding: Rounding, ftz: bool, x: Array, y: Array) -> Array:
    return quotient(fmt, x, y, rounding, ftz=ftz)


def _inverted(fmt: FloatFormat, rounding: Rounding, ftz: bool, x: Array) -> Array:
    return quotient(fmt, np.array(fmt.bias << fmt.fraction_bits, fmt.code_dtype), x, rounding, ftz=ftz)


def _rooted(fmt: FloatFormat, rounding: Rounding, ftz: bool, x: Array) -> Array:
    return square_root(fmt, x, rounding, ftz=ftz)


_COMPUTE: dict[str, Callable[..., Array]] = {"div": _divided, "rcp": _inverted, "sqrt": _rooted}


def _fields(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of a mnemonic determine."""
    op, rounding, *_ = words
    operand = TYPES[words[-1]]
    sources = [operand] * (2 if op == "div" else 1)
    element = partial(_COMPUTE[op], cast(FloatFormat, operand.fmt), cast(Rounding, rounding), "ftz" in words)
    return {
        "inputs": tuple(s.register for s in sources), "input_types": tuple(s.name for s in sources),
        "outputs": (operand.register,), "compute": partial(by_element, element, sources, operand),
        "native": partial(run_elements, _native(op, operand.name, rounding, "ftz" in words), DTYPES[operand.register]),
    }  # fmt: skip


def _native(op: str, name: str, rounding: str, ftz: bool) -> ElementForm:
    return ElementForm(op=op, source=name, result=name, rounding=rounding, flush=ftz, flush_result=ftz)


_form = partial(Form, kind=Operation, fields=_fields, evidence=measured("9.7.3", QUOTIENTS))

FORMS = (
    _form(
        spelling="<div rcp sqrt>.<rn rz rm rp>{.ftz}.f32",
        left_open="NaN, and what is flushed just below the least normal number,",
    ),
    _form(spelling="<div rcp sqrt>.<rn rz rm rp>.f64", left_open="NaN"),
)
"""Every form of this module."""
