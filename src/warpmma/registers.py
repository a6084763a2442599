"""Registers: 32 lanes of `.b32` and `.b64`, and elements packed into them.

A warp's registers are arrays `[..., register, lane]` of uint32, or of uint64 where elements are 64 bits wide. Element 0
of a register always sits in its low bits (PTX ISA 9.1, 9.7.14.5).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ._arguments import is_integer
from ._lazy_numpy import Array, _arrays, np, npt
from ._records import Record
from .errors import RegisterError, shown

__all__ = ["LANES", "WARPS", "Packing"]

LANES = 32
WARPS = 4
"""Of a warpgroup."""


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
                f"Packing({came}) is not a valid packing: bits and shift must fit a slot of 1, 4, 8, 16, 32 or 64 bits"
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
        """True if memory holds a register as its codes in whole bytes, one after the other, the lowest first."""
        return sys.byteorder == "little" and self.bits == self.slot and self.slot >= 8

    @cached_property
    def shifts(self) -> Array:
        """Bit at which each element of a register begins, ascending; read-only."""
        shifts = np.arange(self.per_register, dtype=self.dtype) * self.slot + self.shift
        return _arrays.frozen(shifts.astype(self.dtype))

    def pack(self, codes: npt.ArrayLike) -> Array:
        """Pack `[..., per_register]` codes into `[...]` registers; padding is 0.

        Raises
        ------
        RegisterError
            Codes that are not integers or do not fit `bits`, or another number of them.
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
            Registers that are not integers or do not fit `width`.
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
        array = _arrays.as_array(x, name, RegisterError)
        if array.dtype.kind not in "iu" or (array.size and not 0 <= int(array.min()) <= int(array.max()) <= most):
            raise RegisterError(f"{name} of {array.dtype}; expected integers of 0 to {most:#x}")
        return array
