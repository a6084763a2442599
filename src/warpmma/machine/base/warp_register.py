"""Registers of threads, and their shadow: one model for all front ends.

The rules:

1. A register holds 16, 32 or 64 bits or a predicate in every lane. Its shadow marks the lanes that hold poison: lanes
   that have not written it, or that loaded unwritten memory. Reading poison is a hazard; in programs it propagates
   (`computing`).
2. An instruction writes the lanes that execute it; other lanes keep what they had.
3. A shadow names the line that made the poison.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ...operations import DTYPES
from .site import Site

_KINDS = {np.dtype(dtype): kind for kind, dtype in DTYPES.items()}


class RegisterShadow:
    """State kept beside the bits of a register. A register without poison has none.

    Attributes
    ----------
    written : ndarray of bool
        Lanes that hold no poison, `[..., lane]`.
    site : Site or None
        The line that made the poison.
    """

    __slots__ = ("site", "written")

    def __init__(self, written: Array, site: Site | None = None) -> None:
        self.written, self.site = written, site

    def poison(self, lanes: Array) -> Array:
        """Return which of some lanes hold poison."""
        return np.greater(lanes, self.written)

    def clean(self, lanes: Array) -> bool:
        """Whether none of some lanes holds poison."""
        return self.written is lanes or not bool(np.greater(lanes, self.written).any())


class WarpRegister:
    """A register of every thread.

    Attributes
    ----------
    bits : ndarray of uint16, uint32, uint64 or bool
        `[..., lane]`.
    shadow : RegisterShadow or None
        Which lanes hold poison; None if none do.
    part : (ndarray, int) or None
        The fragment `[..., register, lane]` that it is a register of, and its number there.
    """

    __slots__ = ("bits", "part", "shadow")

    def __init__(
        self, bits: Array, shadow: RegisterShadow | None = None, part: tuple[Array, int] | None = None
    ) -> None:
        self.bits, self.shadow, self.part = bits, shadow, part

    @property
    def kind(self) -> str:
        """Its type: "b16", "b32", "b64" or "pred"."""
        return _KINDS[self.bits.dtype]

    @property
    def defined(self) -> Array | None:
        """Lanes that hold no poison; None for all."""
        return None if self.shadow is None else self.shadow.written

    @property
    def site(self) -> Site | None:
        """The line that made the poison, if there is any."""
        return None if self.shadow is None else self.shadow.site

    def __repr__(self) -> str:
        return f"<{self.kind} register of {' x '.join(map(str, self.bits.shape))} threads>"


def merged(old: WarpRegister, new: WarpRegister, lanes: Array) -> WarpRegister:
    """Return a register with `new` in some lanes, and `old` in the others (rule 2)."""
    return WarpRegister(np.where(lanes, new.bits, old.bits), merged_shadow(old.shadow, new.shadow, lanes))


def merged_shadow(
    old: RegisterShadow | None, new: RegisterShadow | None, lanes: Array, site: Site | None = None
) -> RegisterShadow | None:
    """Return the shadow of a register with `new` in some lanes, which `site` wrote, and `old` in the others."""
    if old is None and new is None:
        return None
    if new is None or new.written is lanes:
        written = np.logical_or(True if old is None else old.written, lanes)
    else:
        written = np.where(lanes, new.written, True if old is None else old.written)
    if written.all():
        return None
    made = None if new is None else new.site
    return RegisterShadow(written, made or site or (None if old is None else old.site))
