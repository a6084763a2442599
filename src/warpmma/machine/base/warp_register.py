"""Registers of threads, and their shadow: one model for all front ends.

The rules:

1. A register holds 16, 32 or 64 bits or a predicate in every lane. Its shadow marks the lanes that hold poison: lanes
   that have not written it, or that read what depends on luck (`poison`). Of these lanes it may know which bits are
   poison; otherwise all are. Reading poison is a hazard; in programs it propagates (`computing`).
2. An instruction writes the lanes that execute it; other lanes keep what they had.
3. A shadow names the line that made the poison, and its origin, if that was a read.
4. Lanes that an asynchronous instruction writes hold poison until it is complete: a shadow knows which of its lanes
   hold what which of these (`Pending`) writes. So do the shadows of copies of the register; what is computed from it
   stays poison.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..._arrays import Array, all_ones
from ...operations import DTYPES
from .poison import Origin
from .site import Site

_KINDS = {np.dtype(dtype): kind for kind, dtype in DTYPES.items()}


class Pending(Protocol):
    """An asynchronous instruction that writes registers."""

    active: Array  # warps in which it is not complete, bool `[block, warp]`
    origin: Origin | None  # of the poison that its registers hold meanwhile


class RegisterShadow:
    """State kept beside the bits of a register. A register without poison has none.

    Attributes
    ----------
    written : ndarray of bool
        Lanes that hold no poison, `[..., lane]`.
    site : Site or None
        The line that made the poison.
    bits : ndarray or None
        The poison bits, of the register's dtype, `[..., lane]`; None if all bits of the other lanes are.
    origin : Origin or None
        Where the poison comes from; None if lanes have not written the register.
    pending : tuple of (Pending, ndarray of bool)
        What writes it, and its lanes `[..., lane]` (rule 4).
    """

    __slots__ = ("_within", "bits", "origin", "pending", "site", "written")

    def __init__(
        self, written: Array, site: Site | None = None, bits: Array | None = None, origin: Origin | None = None,
        pending: Sequence[tuple[Pending, Array]] = (),
    ) -> None:  # fmt: skip
        self.written, self.site, self.bits, self.origin, self.pending = written, site, bits, origin, tuple(pending)
        self._within = written  # the lanes that were last found to be within `written`: a group asks again and again

    def poison(self, lanes: Array) -> Array:
        """Return which of some lanes hold poison."""
        return np.greater(lanes, self.written)

    def clean(self, lanes: Array) -> bool:
        """Whether none of some lanes holds poison."""
        if self._within is lanes:
            return True
        if np.greater(lanes, self.written).any():
            return False
        self._within = lanes
        return True

    def cleaned(self, lanes: Array, site: Site | None) -> RegisterShadow | None:
        """Return the shadow with some lanes that `site` wrote, and that hold no poison now; of all bits, no pending."""
        if self._within is lanes:
            written = self.written
        else:
            written = np.logical_or(self.written, lanes)
            if written.all():
                return None
        found = RegisterShadow(written, site or self.site, None, self.origin)
        found._within = lanes
        return found

    def mask(self, dtype: Any) -> Array:
        """Return the poison bits of a register of a dtype."""
        return all_ones(~self.written, dtype) if self.bits is None else self.bits

    def made_at(self, site: Site) -> RegisterShadow:
        """Return the same shadow with another line that made it."""
        return RegisterShadow(self.written, site, self.bits, self.origin, self.pending)

    def without(self, lanes: Array) -> RegisterShadow:
        """Return the shadow of other poison than of what is pending, with some lanes that hold none."""
        bits = None if self.bits is None else np.where(lanes, self.bits.dtype.type(0), self.bits)
        origin = None if any(by.origin is self.origin for by, _ in self.pending) else self.origin
        return RegisterShadow(self.written | lanes, self.site, bits, origin)

    def not_complete(self) -> Array:
        """Return the lanes in which what writes them is not complete (rule 4)."""
        found = np.zeros(self.written.shape, bool)
        for by, lanes in self.pending:
            found |= lanes & by.active[..., None]
        return found


class Fragment:
    """The registers of a fragment, which are made when something asks for their bits.

    Parameters
    ----------
    shape : tuple of int
        `[..., register, lane]`.
    dtype : dtype
    make : callable
        Makes them.
    """

    __slots__ = ("_make", "_registers", "dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any, make: Callable[[], Array]) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._make: Callable[[], Array] | None = make
        self._registers: Array | None = None

    @property
    def registers(self) -> Array:
        """The registers, `shape`."""
        if self._make is not None:
            self._registers, self._make = self._make(), None
        assert self._registers is not None
        return self._registers


class WarpRegister:
    """A register of every thread.

    Attributes
    ----------
    bits : ndarray of uint16, uint32, uint64 or bool
        `[..., lane]`.
    shadow : RegisterShadow or None
        Which lanes hold poison; None if none do.
    part : (ndarray or Fragment, int) or None
        The fragment `[..., register, lane]` that it is a register of, and its number there.
    """

    __slots__ = ("bits", "part", "shadow")

    def __init__(
        self, bits: Array, shadow: RegisterShadow | None = None, part: tuple[Array | Fragment, int] | None = None
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


class FragmentRegister(WarpRegister):
    """A register of a `Fragment`, by its number there."""

    __slots__ = ("_fragment", "_number")

    def __init__(self, fragment: Fragment, number: int, shadow: RegisterShadow | None = None) -> None:
        self._fragment, self._number = fragment, number
        self.shadow, self.part = shadow, (fragment, number)

    @property
    def bits(self) -> Array:  # type: ignore[override]
        """See `WarpRegister`."""
        return np.asarray(self._fragment.registers[..., self._number, :])

    @property
    def kind(self) -> str:
        """See `WarpRegister`."""
        return _KINDS[self._fragment.dtype]

    def with_shadow(self, shadow: RegisterShadow | None) -> FragmentRegister:
        """Return the same register with another shadow."""
        return FragmentRegister(self._fragment, self._number, shadow)


def with_shadow(register: WarpRegister, shadow: RegisterShadow | None) -> WarpRegister:
    """Return the same bits with another shadow; those of a fragment are not made for that."""
    if isinstance(register, FragmentRegister):
        return register.with_shadow(shadow)
    return WarpRegister(register.bits, shadow, register.part)


def merged(old: WarpRegister, new: WarpRegister, lanes: Array) -> WarpRegister:
    """Return a register with `new` in some lanes, and `old` in the others (rule 2)."""
    shadow = merged_shadow(old.shadow, new.shadow, lanes, dtype=old.bits.dtype)
    return WarpRegister(np.where(lanes, new.bits, old.bits), shadow)


def settled(shadow: RegisterShadow) -> RegisterShadow | None:
    """Return the shadow of a register whose lanes are values if what writes them is complete now (rule 4)."""
    left = shadow.not_complete()
    found = shadow.without(np.logical_or.reduce([lanes for _, lanes in shadow.pending]) & ~left)
    if left.any():
        found.pending, found.origin = shadow.pending, shadow.origin
    return None if found.written.all() else found


def merged_shadow(
    old: RegisterShadow | None, new: RegisterShadow | None, lanes: Array, site: Site | None = None, dtype: Any = None
) -> RegisterShadow | None:
    """Return the shadow of a register with `new` in some lanes, which `site` wrote, and `old` in the others.

    `dtype` is the register's.
    """
    if new is None:
        if old is None:
            return None
        if old.bits is None and not old.pending:
            return old.cleaned(lanes, site)
    if new is None or new.written is lanes:
        written = np.logical_or(True if old is None else old.written, lanes)
    else:
        written = np.where(lanes, new.written, True if old is None else old.written)
    if written.all():
        return None
    bits, known = None, [x for x in (new, old) if x is not None]
    if any(x.bits is not None for x in known):
        none = np.zeros(lanes.shape, dtype)
        masks = [none if x is None else x.mask(dtype) for x in (new, old)]
        bits = np.where(lanes, *masks)
    origin = next((x.origin for x in known if x.origin is not None), None)
    made = None if new is None else new.site
    found = RegisterShadow(written, made or site or (None if old is None else old.site), bits, origin)
    for x, some in ((new, lanes), (old, ~lanes)):
        if x is not None and x.pending:
            found.pending += tuple((by, left) for by, of in x.pending if (left := of & some).any())
    return found
