"""`alloca`, `stacksave` and `stackrestore`: stack memory that a function of a thread allocates at run time.

The rules (PTX ISA 9.1, 9.7.19: stack manipulation instructions):

1. `alloca` gives the address, in the state space `.local`, of a number of bytes at a multiple of the alignment, by
   default 8. They are valid until the function returns.
2. `stacksave` returns the end of the stack, and `stackrestore` sets it: that frees all later allocations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ...isa import value
from ..forms import Form
from ..measurements import derived
from .fences import Control


@dataclass(frozen=True, kw_only=True)
class Stack(Control):
    """One instruction on the stack of a thread."""

    action: Literal["alloca", "stacksave", "stackrestore"]


_ALIGNMENTS = tuple(1 << i for i in range(32))


def _fields(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of a mnemonic determine."""
    action, type_ = words
    result = value("d0", f"b{type_[1:]}", role="result")
    signature = {
        "alloca": (result, value("a0", type_), value("a1", "imm", optional=True, values=_ALIGNMENTS)),
        "stacksave": (result,), "stackrestore": (value("a0", type_, number=False),),
    }  # fmt: skip
    return {"action": action, "signature": signature[action]}


FORMS = (
    Form(
        spelling="<alloca stacksave stackrestore>.<u32 u64>", kind=Stack, fields=_fields, ptx=(7, 3),
        evidence=derived("alloca, stacksave", "the addresses of local memory, which PTX leaves open, are not compared"),
    ),
)  # fmt: skip
"""Every form of this module."""
