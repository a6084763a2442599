"""`fma` with `.oob`: an out-of-bounds element of a product gives 0.

The rules (PTX ISA 9.1, 9.7.4: `fma`; which NaN it is was measured on an H200):

1. If a or b is the NaN that marks an out-of-bounds element, 0x7FF7 or 0xFFF7 in f16 and in bf16, the result is +0,
   whatever the other operands are. As c it is an ordinary NaN.
2. Everything else is as without `.oob`. Elements of packed operands are independent.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from ..._arrays import Array
from ...formats import FloatFormat
from ..elements import TYPES, RegisterOf, magnitude
from ..forms import Form
from ..measurements import OOB, derived, measured
from ..records import Operation
from .floats import float_row

_OUT_OF_BOUNDS = 0x7FF7


def _compute(of: RegisterOf, plain: Callable[..., tuple[Array]], *x: Array) -> tuple[Array]:
    products = zip(*(of.split(operand) for operand in (*x[:2], *plain(*x))), strict=True)
    return (of.join([np.where(_outside(of, a) | _outside(of, b), d.dtype.type(0), d) for a, b, d in products]),)


def _outside(of: RegisterOf, codes: Array) -> Array:
    return np.asarray(magnitude(cast(FloatFormat, of.fmt), codes) == _OUT_OF_BOUNDS)


def _fields(words: tuple[str, ...]) -> dict[str, Any]:
    given = float_row(tuple(word for word in words if word != "oob"))
    return {**given, "compute": partial(_compute, TYPES[words[-1]], given["compute"]), "native": None}


_form = partial(Form, kind=Operation, fields=_fields, since="sm_90", ptx=(8, 1))

FORMS = (
    _form(
        spelling="fma.rn.oob{.relu}.<f16 bf16>", evidence=measured("9.7.4: fma", OOB),
        left_open="NaN, and which of them lies out of bounds,",
    ),
    _form(
        spelling="fma.rn.oob{.relu}.<f16x2 bf16x2>",
        evidence=derived("9.7.4: fma", "that of two elements each is as one alone is on an H200"),
    ),
)  # fmt: skip
"""Every form of this module."""
