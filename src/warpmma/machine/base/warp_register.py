"""Registers of threads: one model for all front ends.

The rules:

1. A register holds 16, 32 or 64 bits or a predicate in every lane, and knows which lanes have written it. To read it in
   another lane is poison, which travels on in programs (`computing`).
2. What lanes write together they keep apart: lanes that do not take part keep what they had.
3. A lane that holds memory which nobody wrote has not written either; the register names the line that made it.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ...operations import DTYPES
from .site import Site

_KINDS = {np.dtype(dtype): kind for kind, dtype in DTYPES.items()}


class WarpRegister:
    """A register of every thread.

    Attributes
    ----------
    bits : ndarray of uint16, uint32, uint64 or bool
        `[..., lane]`.
    defined : ndarray of bool or None
        Which lanes have written it; None for all. What a lane has not written is poison: reading it is a hazard.
    site : Site or None
        The line that made it, where some lanes have not written it.
    part : (ndarray, int) or None
        The fragment `[..., register, lane]` that it is a register of, and its number there.
    """

    __slots__ = ("bits", "defined", "part", "site")

    def __init__(
        self, bits: Array, defined: Array | None = None, site: Site | None = None,
        part: tuple[Array, int] | None = None,
    ) -> None:  # fmt: skip
        self.bits, self.defined, self.site, self.part = bits, defined, site, part

    @property
    def kind(self) -> str:
        """Its type: "b16", "b32", "b64" or "pred"."""
        return _KINDS[self.bits.dtype]

    def __repr__(self) -> str:
        return f"<{self.kind} register of {' x '.join(map(str, self.bits.shape))} threads>"


def merged(old: WarpRegister, new: WarpRegister, lanes: Array) -> WarpRegister:
    """Return a register with `new` in some lanes, and `old` in the others (rule 2)."""
    bits = np.where(lanes, new.bits, old.bits)
    if old.defined is None and new.defined is None:
        return WarpRegister(bits)
    kept = np.True_ if old.defined is None else old.defined
    made = np.True_ if new.defined is None else new.defined
    defined = np.where(lanes, made, kept)
    return WarpRegister(bits) if defined.all() else WarpRegister(bits, defined, new.site or old.site)
