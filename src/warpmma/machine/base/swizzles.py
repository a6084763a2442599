"""Swizzles: XORs of address bits, by which kernels spread rows over the banks of shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from ..._arguments import is_integer
from ..._arrays import as_array
from ..._records import Shown
from ...errors import OperandError, shown

T = TypeVar("T", bound=Any)

_MOST_BITS = 32  # of an address of shared memory


@dataclass(frozen=True)
class Swizzle(Shown):
    """An XOR of address bits: `bits` of them, from `shift` positions higher, onto those from `base` on.

    CUTLASS writes it `Swizzle<bits, base, shift>`.

    Examples
    --------
    >>> Swizzle(3, 4, 3)(np.array([0x080, 0x100, 0x190])).tolist()
    [144, 288, 416]
    >>> print(Swizzle(3, 4, 3))
    Swizzle<3, 4, 3>: address ^ (address >> 3 & 0x70)
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        for name in ("bits", "base", "shift"):
            if not is_integer(value := getattr(self, name)) or not 0 <= value <= _MOST_BITS:
                raise OperandError(f"{name} of a swizzle is {shown(value)}; expected 0 to {_MOST_BITS}")

    def __call__(self, address: T) -> T:
        """Return swizzled addresses, of an array or of a register of a kernel.

        Raises
        ------
        OperandError
            Not integers, or integers too narrow for the address bits.
        """
        if isinstance(address, np.ndarray):
            address = cast(T, as_array(address, "the addresses"))
        try:
            swizzled: T = address ^ (address >> int(self.shift) & self.mask)
        except (TypeError, OverflowError):
            kind = f"an array of {address.dtype}" if isinstance(address, np.ndarray) else type(address).__name__
            bits = self.bits + self.base + self.shift
            raise OperandError(
                f"an address is {kind}; expected integers that hold {bits} bits, or a register of a kernel"
            ) from None
        return swizzled

    @property
    def mask(self) -> int:
        """The address bits that it changes."""
        return ((1 << int(self.bits)) - 1) << int(self.base)

    def __str__(self) -> str:
        name = f"Swizzle<{self.bits}, {self.base}, {self.shift}>"
        return f"{name}: address ^ (address >> {self.shift} & {self.mask:#x})"


CANDIDATES = tuple(
    Swizzle(bits, base, shift) for base in (4, 5, 6, 3, 2) for bits in range(1, 8 - base) for shift in range(bits, 11)
)
"""What `Costs.advice` tries: of those that are equally good it takes the first, of 16-byte pieces and with few bits."""
