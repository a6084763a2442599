"""Registers: 32 lanes of `.b32` and `.b64`, elements packed into them, and a file of named ones.

A warp's registers are arrays `[..., register, lane]` of uint32, or of uint64 where elements are 64 bits wide. Element 0
of a register always sits in its low bits (PTX ISA 9.1, 9.7.14.5).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ._arguments import is_integer, members
from ._arrays import MOST_DIMENSIONS, as_array, frozen
from ._records import Record
from .errors import RegisterError, shown

__all__ = ["LANES", "Packing", "RegisterFile"]

LANES = 32

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Packing(Record):
    """How elements share a register.

    Attributes
    ----------
    slot : int
        Bits that one element occupies, padding included: 1, 4, 8, 16, 32 or 64.
    bits : int
        Bits of the element's code, at most `slot`.
    shift : int
        Where in its slot the code begins. An e2m1 of the `f8f6f4` kinds sits in bits 5:2 of its byte, an e3m2 or e2m3
        in bits 5:0 (PTX ISA 9.1, 9.7.14.5.10).

    Examples
    --------
    >>> e2m1 = Packing(slot=8, bits=4, shift=2)
    >>> [hex(w) for w in e2m1.pack(np.array([[1, 2, 3, 15]]))]
    ['0x3c0c0804']
    >>> e2m1.unpack(np.array([0x3C0C0804], np.uint32))
    array([[ 1,  2,  3, 15]], dtype=uint32)
    """

    slot: int
    bits: int
    shift: int = 0

    def __post_init__(self) -> None:
        named = {"slot": self.slot, "bits": self.bits, "shift": self.shift}
        slot, bits, shift = (int(x) if is_integer(x) else -1 for x in named.values())
        if slot not in (1, 4, 8, 16, 32, 64) or bits < 1 or shift < 0 or bits + shift > slot:
            came = ", ".join(f"{name}={shown(value)}" for name, value in named.items())
            raise RegisterError(
                f"Packing({came}) is no packing: bits and shift must fit a slot of 1, 4, 8, 16, 32 or 64 bits"
            )
        for name, value in named.items():
            object.__setattr__(self, name, int(value))  # NumPy's integers would overflow in what follows

    @cached_property
    def width(self) -> int:
        """Width of the register: 64 for 64-bit elements, else 32."""
        return max(32, self.slot)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Unsigned type of the register."""
        return np.dtype(f"uint{self.width}")

    @cached_property
    def per_register(self) -> int:
        """Elements in one register."""
        return self.width // self.slot

    @property
    def mask(self) -> int:
        """The code's bits, at its low end."""
        return (1 << self.bits) - 1

    @cached_property
    def _bytes(self) -> bool:
        """Whether memory holds a register as its codes, one after the other: whole bytes, the lowest first."""
        return sys.byteorder == "little" and self.bits == self.slot and self.slot >= 8

    @cached_property
    def shifts(self) -> Array:
        """Bit at which each element of a register begins, ascending; read-only."""
        return frozen((np.arange(self.per_register, dtype=self.dtype) * self.slot + self.shift).astype(self.dtype))

    def pack(self, codes: npt.ArrayLike) -> Array:
        """Pack `[..., per_register]` codes into `[...]` registers; padding is 0.

        Raises
        ------
        RegisterError
            Codes that are no integers or do not fit `bits`, or another number of them.
        """
        codes = self._checked(codes, self.mask, "codes")
        if codes.shape[-1:] != (self.per_register,):
            raise RegisterError(f"got codes {codes.shape}; expected [..., {self.per_register}]")
        return self.join(codes)

    def join(self, codes: Array) -> Array:
        """Pack codes that are known to fit."""
        if self._bytes and codes.dtype.itemsize * 8 == self.slot and codes.flags.c_contiguous:
            return codes.view(self.dtype)[..., 0]
        words: Array = np.bitwise_or.reduce(codes.astype(self.dtype) << self.shifts, axis=-1)
        return words

    def unpack(self, registers: npt.ArrayLike) -> Array:
        """Unpack `[...]` registers into `[..., per_register]` codes, of the register's dtype; padding is ignored.

        Raises
        ------
        RegisterError
            Registers that are no integers or do not fit `width`.
        """
        words = self._checked(registers, (1 << self.width) - 1, "registers").astype(self.dtype, copy=False)
        return self.split(words).astype(self.dtype)

    def split(self, words: Array) -> Array:
        """Unpack, or view, registers of the right type, `[...]`: `[..., per_register]` codes of `slot` bits or more."""
        if self._bytes and words.flags.c_contiguous:
            return words[..., None].view(f"u{self.slot // 8}")
        codes: Array = (words[..., None] >> self.shifts) & self.dtype.type(self.mask)
        return codes

    def _checked(self, x: npt.ArrayLike, most: int, name: str) -> Array:
        array = as_array(x, name, RegisterError)
        if array.dtype.kind not in "iu" or (array.size and not 0 <= int(array.min()) <= int(array.max()) <= most):
            raise RegisterError(f"{name} of {array.dtype}; expected integers of 0 to {most:#x}")
        return array


Width = Literal[32, 64]
_CLASSES: dict[int, str] = {32: ".b32", 64: ".b64"}
_MOST_NAMES = 1 << 16  # of a fragment; no warp has as many registers


class RegisterFile:
    """Named registers of a batch of warps, which know which of their lanes were ever written.

    Parameters
    ----------
    warps : tuple of int, optional
        Shape of the batch of warps; every register is an array `[*warps, 32]`. One warp by default.

    Notes
    -----
    A lane that was never written has no value: to read it is a `RegisterError`, as it would be a bug in the kernel.

    Examples
    --------
    >>> registers = RegisterFile()
    >>> registers.declare(32, "%r0", "%r1")
    >>> registers.write("%r0", np.arange(32))
    >>> int(registers.read("%r0")[5])
    5
    >>> registers.read("%r1")
    Traceback (most recent call last):
        ...
    warpmma.errors.RegisterError: %r1 is read before it is written: lanes 0-31
    """

    def __init__(self, warps: tuple[int, ...] = ()) -> None:
        if not isinstance(warps, tuple) or not all(is_integer(n) and n >= 0 for n in warps):
            raise RegisterError(f"warps is {shown(warps)}; expected a shape, a tuple of non-negative integers")
        most = MOST_DIMENSIONS - 2  # a fragment has those of its registers and lanes too
        if len(warps) > most:
            raise RegisterError(f"warps has {len(warps)} dimensions; expected at most {most}")
        if math.prod(map(int, warps)) > sys.maxsize // (8 * LANES):
            raise RegisterError(f"warps is {shown(warps)}; a register of so many lanes fits no memory")
        self.warps = tuple(map(int, warps))
        self._values: dict[str, Array] = {}
        self._written: dict[str, npt.NDArray[np.bool_]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._values

    def __repr__(self) -> str:
        registers = ", ".join(f"{_CLASSES[self.width(name)]} {name}" for name in self)
        return f"RegisterFile(warps={self.warps}: {registers or 'empty'})"

    def declare(self, width: Width, *names: str) -> None:
        """Add unwritten registers of 32 or 64 bits.

        Raises
        ------
        RegisterError
            Another width, a name that is no string, or one that is taken; then none is added.
        """
        if not is_integer(width) or width not in _CLASSES:
            raise RegisterError(f"a register has 32 or 64 bits, not {shown(width)}")
        for index, name in enumerate(names):
            if not isinstance(name, str):
                raise RegisterError(f"the name of a register is a string, not {shown(name)}")
            if name in self._values:
                raise RegisterError(f"{name} is already declared, as {_CLASSES[self.width(name)]}")
            if name in names[:index]:
                raise RegisterError(f"{name} is declared twice")
        for name in names:
            self._values[name] = np.zeros((*self.warps, LANES), f"uint{width}")
            self._written[name] = np.zeros((*self.warps, LANES), bool)

    def width(self, name: str) -> int:
        """Width of a register in bits."""
        return 8 * self._register(name).dtype.itemsize

    def written(self, name: str) -> npt.NDArray[np.bool_]:
        """Which lanes were ever written, `[*warps, 32]`."""
        self._register(name)
        return self._written[name].copy()

    def write(self, name: str, values: npt.ArrayLike, *, where: npt.ArrayLike = True) -> None:
        """Write a register in every lane, or in those that a mask selects.

        Parameters
        ----------
        name : str
        values : array_like of int
            Broadcasts to `[*warps, 32]`; unsigned values that fit the register's width.
        where : array_like of bool
            Broadcasts to `[*warps, 32]`; the other lanes keep their value.

        Raises
        ------
        RegisterError
            Unknown name, a shape that does not broadcast, values that do not fit, or a mask that is not bool.
        """
        register, values = self._fitting(name, values)
        mask = _mask(name, where, register.shape)
        np.copyto(register, values, where=mask, casting="unsafe")
        self._written[name] |= mask

    def read(self, name: str, *, where: npt.ArrayLike = True) -> Array:
        """Value of a register, `[*warps, 32]`; a copy.

        Parameters
        ----------
        name : str
        where : array_like of bool
            The lanes that are needed; only these must have been written. Others read as whatever they hold.

        Raises
        ------
        RegisterError
            Unknown name, a needed lane that was never written (named by warp and lane), or a mask that is not bool.
        """
        register = self._register(name)
        missing = _mask(name, where, register.shape) & ~self._written[name]
        if missing.any():
            warp = tuple(int(x) for x in np.argwhere(missing)[0][:-1])
            lanes = _ranges(np.flatnonzero(missing[warp]))
            at = f" of warp {warp[0] if len(warp) == 1 else warp}" if warp else ""
            raise RegisterError(f"{name} is read before it is written: lanes {lanes}{at}")
        return register.copy()

    def write_fragment(self, names: Sequence[str], fragment: npt.ArrayLike) -> None:
        """Write `[..., register, lane]`, a fragment, to as many named registers."""
        names, fragment = _names(names), as_array(fragment, "fragment", RegisterError)
        if fragment.ndim < 2 or fragment.shape[-2:] != (len(names), LANES):
            expected = f"[..., {len(names)}, {LANES}] for {names}"
            raise RegisterError(f"got a fragment {fragment.shape}; expected {expected}")
        parts = [fragment[..., index, :] for index in range(len(names))]
        for name, part in zip(names, parts, strict=True):  # all of them before any is written
            self._fitting(name, part)
        for name, part in zip(names, parts, strict=True):
            self.write(name, part)

    def read_fragment(self, names: Sequence[str]) -> Array:
        """Read named registers of one width as a fragment `[*warps, register, lane]`."""
        names = _names(names)
        widths = {name: self.width(name) for name in names}
        if len(set(widths.values())) != 1:
            raise RegisterError(f"a fragment is one or more registers of one width; got {widths}")
        return np.stack([self.read(name) for name in names], axis=-2)

    def _fitting(self, name: str, values: npt.ArrayLike) -> tuple[Array, Array]:
        """Return a register, and values that fit it, broadcast to its shape."""
        register, array = self._register(name), as_array(values, name, RegisterError)
        if array.dtype.kind not in "iu":
            raise RegisterError(f"{name} holds bits: got dtype {array.dtype}; expected {register.dtype}")
        if array.size and (int(array.min()) < 0 or int(array.max()) > np.iinfo(register.dtype).max):
            raise RegisterError(f"{name} is {_CLASSES[self.width(name)]}: a value of {array.dtype} does not fit it")
        return register, _broadcast(name, "values", array, register.shape)

    def _register(self, name: str) -> Array:
        if name not in self:
            raise RegisterError(f"no register {shown(name)}; declared are {', '.join(self) or 'none'}")
        return self._values[name]


def _names(names: Sequence[str]) -> list[str]:
    listed = members(names, _MOST_NAMES)
    if listed is None or not all(isinstance(x, str) for x in listed):
        raise RegisterError(f"names are {shown(names)}; expected a sequence of strings")
    return listed


def _mask(name: str, where: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    mask = as_array(where, f"{name}: where", RegisterError)
    if mask.dtype != bool:
        raise RegisterError(f"{name}: where is {shown(where)}, of {mask.dtype}; expected bool")
    return _broadcast(name, "a mask", mask, shape)


def _broadcast(name: str, what: str, array: Array, shape: tuple[int, ...]) -> Array:
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise RegisterError(f"{name}: {what} {array.shape} must broadcast to {shape}") from None


def _ranges(lanes: Array) -> str:
    """Lane numbers as "0-3, 7"."""
    runs = np.split(lanes, np.flatnonzero(np.diff(lanes) > 1) + 1)
    return ", ".join(f"{r[0]}" if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)
