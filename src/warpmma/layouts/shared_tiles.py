"""Matrix descriptors of `wgmma`: which byte of shared memory holds an element.

1. A descriptor has 64 bits: start >> 4 in bits 0 to 13, leading >> 4 in 16 to 29, stride >> 4 in 32 to 45, the base
   offset in 49 to 51, the swizzle in 62 and 63. The hardware ignores the other bits (measured).
2. Let es be the bytes of an element, T = 16 / es, W the width of the swizzle in chunks of 16 bytes (1 without). In a
   K-major matrix, ch = k div T, an element lies at
   (row mod 8) 16W + (row div 8) stride + (ch mod W) 16 + (ch div W) leading + (k mod T) es.
3. In an MN-major matrix of 16-bit elements, ch = row div 8, it lies at
   (row mod 8) 2 + ch stride + (k mod 8) 16 + (k div 8) leading without a swizzle, else at
   (row mod 8) 2 + (ch mod W) 16 + (ch div W) leading + (k mod 8) 16W + (k div 8) stride.
4. a = start + that; the byte is a XOR ((((a >> 7) - base offset) AND (W - 1)) << 4). Sums are not reduced.

Source: measured on an H200 (docs/specification/wgmma.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from .._arguments import check_choice, is_integer
from .._lazy_numpy import Array, np
from .._records import Shown
from ..errors import OperandError, shown

Major = Literal["K", "MN"]

_SWIZZLES = (0, 128, 64, 32)
_WINDOW = 1 << 18
_MOST = 4096  # rows and columns: far more than an instruction reads


def _check_number(name: str, value: object, legal: Sequence[int]) -> None:
    if not is_integer(value) or value not in legal:
        raise OperandError(f"{name} is {shown(value)}; expected one of {', '.join(map(str, legal))}")


@dataclass(frozen=True, kw_only=True)
class MatrixDescriptor(Shown):
    """The 64 bits with which a `wgmma` reads a matrix from shared memory.

    Attributes
    ----------
    start, leading, stride : int
        Bytes, multiples of 16 below 2**18: the address of the first element, and PTX's leading and stride dimension
        byte offsets.
    swizzle : {0, 32, 64, 128}
        Width of the swizzle in bytes; 0 is none.
    base_offset : int
        0 to 7.

    Raises
    ------
    OperandError
        Another value.

    Examples
    --------
    >>> d = MatrixDescriptor(start=0x400, stride=1024, swizzle=128)
    >>> hex(d.word), int(d.addresses(64, 16, bits=16, major="K")[9, 10])
    ('0x4000004000000040', 2180)
    """

    start: int
    leading: int = 0
    stride: int = 0
    swizzle: int = 0
    base_offset: int = 0

    def __post_init__(self) -> None:
        for name in ("start", "leading", "stride"):
            value = getattr(self, name)
            if not is_integer(value) or not 0 <= value < _WINDOW or value % 16:
                raise OperandError(f"{name} is {shown(value)}; expected a multiple of 16 below {_WINDOW}")
            object.__setattr__(self, name, int(value))
        for name, legal in (("swizzle", sorted(_SWIZZLES)), ("base_offset", range(8))):
            _check_number(name, getattr(self, name), legal)
            object.__setattr__(self, name, int(getattr(self, name)))

    @property
    def word(self) -> int:
        """The 64 bits (rule 1)."""
        fields = ((self.start >> 4, 0), (self.leading >> 4, 16), (self.stride >> 4, 32), (self.base_offset, 49))
        return sum(value << at for value, at in fields) | _SWIZZLES.index(self.swizzle) << 62

    @classmethod
    def from_word(cls, word: int) -> Self:
        """Read 64 bits; ignored ones are dropped."""
        if not is_integer(word) or not 0 <= word < 1 << 64:
            raise OperandError(f"a descriptor is {shown(word)}; expected 64 bits, an integer from 0 to 2**64 - 1")
        word = int(word)
        start, leading, stride = ((word >> at & 0x3FFF) << 4 for at in (0, 16, 32))
        return cls(
            start=start, leading=leading, stride=stride, swizzle=_SWIZZLES[word >> 62], base_offset=word >> 49 & 7
        )

    def advanced(self, size: int) -> Self:
        """Return the descriptor of what begins so many bytes further on."""
        if not is_integer(size):
            raise OperandError(f"size is {shown(size)}; expected bytes, a multiple of 16")
        return replace(self, start=self.start + int(size))

    def addresses(self, rows: int, columns: int, *, bits: int, major: Major) -> Array:
        """Byte address of each element's lowest byte, int64 `[rows, columns]`; of single bits of their byte.

        Rows are those of A or columns of B, `columns` is k.

        Raises
        ------
        OperandError
            MN-major elements that have not 16 bits; another width; rows or columns beyond 1 to 4096.
        """
        _check_number("bits", bits, (1, 8, 16, 32))
        check_choice("major", major, ("K", "MN") if bits == 16 else ("K",))
        for name, count in (("rows", rows), ("columns", columns)):
            if not is_integer(count) or not 0 < count <= _MOST:
                raise OperandError(f"{name} is {shown(count)}; expected an integer from 1 to {_MOST}")
        row, k = np.arange(rows, dtype=np.int64)[:, None], np.arange(columns, dtype=np.int64)
        width = max(1, self.swizzle >> 4)
        if major == "K":
            chunk, inside = np.divmod(k * bits >> 3, 16)
            offset = row % 8 * 16 * width + row // 8 * self.stride
            offset = offset + chunk % width * 16 + chunk // width * self.leading + inside
        else:
            chunk = row // 8
            if self.swizzle:
                offset = chunk % width * 16 + chunk // width * self.leading + k // 8 * self.stride
            else:
                offset = chunk * self.stride + k // 8 * self.leading
            offset = offset + row % 8 * 2 + k % 8 * 16 * width
        plain = self.start + offset
        return np.asarray(plain ^ ((((plain >> 7) - self.base_offset) & (width - 1)) << 4))
