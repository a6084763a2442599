"""`mad` of f32 and f64 with a rounding: `fma` under another name (PTX ISA 9.1, 9.7.3; rules of module `floats`)."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..forms import Form
from ..measurements import OPERATIONS, measured
from ..records import Operation
from .floats import float_row


def _fields(words: tuple[str, ...]) -> dict[str, Any]:
    return float_row(("fma", *words[1:]))


_OPEN = "NaN, and what is flushed just below the least normal number,"
_form = partial(
    Form, kind=Operation, fields=_fields, left_open=_OPEN, ptx=(1, 3), evidence=measured("9.7.3: mad", OPERATIONS)
)

FORMS = (_form(spelling="mad.<rn rz rm rp>{.ftz}{.sat}.f32"), _form(spelling="mad.<rn rz rm rp>.f64"))
"""Every form of this module."""
