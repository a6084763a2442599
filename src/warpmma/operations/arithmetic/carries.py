"""Multi-word sums: `add`, `sub` and `mad` that write a carry, `addc`, `subc` and `madc` that read one.

The rules (PTX ISA 9.1: Extended-Precision Integer Arithmetic Instructions; the code that ptxas 13.0 emits):

1. The carry is a predicate: the carry-out of the top bit of the adder. A row that reads it (`addc`, `subc`, `madc`) has
   it as its last input, a row that writes it (`.cc`) as its last output. Signedness does not matter.
2. `a - b` is a + ~b + 1, and `subc` a + ~b + carry: the carry of a difference is true if there was no borrow. PTX
   calls it a borrow, which is the same while `subc` follows `sub.cc`, and `addc` follows `add.cc`; but `addc` after
   `sub.cc` adds 1 if there was no borrow.
3. The carry of `mad` is that of its addition.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..._arrays import Array
from ..forms import Form
from ..measurements import OPERATIONS, measured
from ..records import Operation
from ..value_forms import Words, unsigned, value_row
from .integer_arithmetic import upper


def _sum(a: Array, b: Array, carry: Array | bool) -> tuple[Array, Array]:
    """Add unsigned words."""
    total = a + b
    result = total + np.asarray(carry).astype(a.dtype)
    return result, (total < a) | (result < total)


def _added(words: Words) -> Callable[..., Any]:
    opcode, writes = words[0], "cc" in words
    reads, half = opcode.endswith("c"), next((word for word in words if word in ("lo", "hi")), "")

    def add(*x: Array) -> Any:
        values = x[:-1] if reads else x
        carry: Any = x[-1] if reads else opcode == "sub"
        if half:
            part = upper(*values[:2]) if half == "hi" else values[0] * values[1]
            values = (part, values[2])
        first, second = (unsigned(v) if v.dtype.kind == "i" else v for v in values)
        result, out = _sum(first, ~second if opcode in ("sub", "subc") else second, carry)
        return (result, out) if writes else result

    return add


def _fields(words: Words) -> dict[str, Any]:
    """Return the fields of a row that the words of a mnemonic determine."""
    reads, writes = words[0] in ("addc", "subc", "madc"), "cc" in words
    number = 3 if words[0].startswith("mad") else 2
    text = f"{'T ' * number}{'pred ' * reads}-> T{' pred' * writes}"
    return {**value_row(text, _added(words), words), "reads_carry": reads, "writes_carry": writes}


_form = partial(
    Form, kind=Operation, fields=_fields,
    evidence=measured("Extended-Precision Integer Arithmetic Instructions", OPERATIONS),
)  # fmt: skip
_32, _64 = "<s32 u32>", "<s64 u64>"

FORMS = (
    *(_form(spelling=f"<add sub>.cc.{types}", ptx=ptx) for types, ptx in ((_32, (1, 2)), (_64, (4, 3)))),
    *(_form(spelling=f"<addc subc>{{.cc}}.{types}", ptx=ptx) for types, ptx in ((_32, (1, 2)), (_64, (4, 3)))),
    *(_form(spelling=f"<mad.lo mad.hi> .cc.{types}", ptx=ptx) for types, ptx in ((_32, (3, 0)), (_64, (4, 3)))),
    *(_form(spelling=f"<madc.lo madc.hi>{{.cc}}.{types}", ptx=ptx) for types, ptx in ((_32, (3, 0)), (_64, (4, 3)))),
)
"""Every form of this module."""
