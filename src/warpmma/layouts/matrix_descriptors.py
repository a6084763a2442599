"""Matrix descriptors of `wgmma`: 64 bits that say where a matrix lies in shared memory.

1. Bits 0-13 are the start address >> 4, bits 16-29 the leading and 32-45 the stride dimension byte offset >> 4, bits
   49-51 the base offset, bits 62-63 the swizzle: 0 is none, 1 is 128, 2 is 64 and 3 is 32 bytes. The hardware ignores
   the other bits.
2. A row is m of A or n of B, a column is k; of a sparse A columns are stored elements. A line is what lies side by
   side: K-major a row, MN-major, of 16-bit elements alone, a column. Byte b of a line has its elements in order; single
   bits share it, the first the lowest.
3. w is the width of the swizzle in bytes, 16 without one. Byte b of line j has the linear address
   start + (j mod 8) w + (j div 8) group + (b div w) panel + b mod w.
   The sum is not reduced modulo 2**18.
4. The group is the stride and the panel the leading dimension; MN-major without a swizzle they trade places.
5. The address is the linear one with bits 4 to 6 changed: XOR (((linear >> 7) - base offset) AND (w / 16 - 1)) << 4.
   So the swizzle depends on the absolute shared address, not on the offset from the start.

Source: PTX ISA 9.1, 9.7.15.5.1.2; the law and the ignored bits are measured on an H200, byte by byte: K-major and
MN-major, all swizzles, 14 starts with 7 pairs of offsets, base offsets 1 to 7, elements of 1, 8, 16 and 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

from .._arguments import check_choice, is_integer
from .._lazy_numpy import Array, np
from .._records import Record, Shown
from ..errors import OperandError, shown

Major = Literal["K", "MN"]
MAJORS: tuple[Major, ...] = get_args(Major)
SWIZZLES = (0, 32, 64, 128)
"""Widths of swizzles in bytes."""
WINDOW = 1 << 18
"""Bytes that the addresses of a descriptor reach."""
CHUNK = 16
"""Bytes that a swizzle moves together."""

_CODES = (0, 128, 64, 32)
_BITS = (1, 8, 16, 32)
_MOST = 4096  # rows and columns: far more than an instruction reads
_LINES = tuple(range(8))


def swizzled(address: Any, swizzle: int, base_offset: int = 0) -> Any:
    """Rule 5, of integers and of arrays. It is its own inverse: bits from 7 up stay.

    Examples
    --------
    >>> hex(swizzled(0x894, 128)), hex(swizzled(0x884, 128)), hex(swizzled(0x914, 128, 1))
    ('0x884', '0x894', '0x904')
    """
    return address ^ ((((address >> 7) - base_offset) & (max(1, swizzle >> 4) - 1)) << 4)


def linear_address(start: int, width: int, group: int, panel: int, line: Any, octet: Any) -> Any:
    """Rule 3, of integers and of arrays."""
    return start + line % 8 * width + line // 8 * group + octet // width * panel + octet % width


def check_multiple(name: str, value: object, step: int, end: int, first: int = 0) -> int:
    """Return a multiple of `step` from `first` on and below `end`; else raise `OperandError` with the nearest one."""
    last, near = (end - 1) // step * step, ""
    if is_integer(value):
        number = min(max((int(value) + step // 2) // step * step, first), last)
        if number == value:
            return number
        near = f"; nearest {number}"
    expected = f"a multiple of {step}" if step > 1 else "an integer"
    raise OperandError(f"{name} is {shown(value)}; expected {expected} from {first} to {last}{near}")


def check_member(name: str, value: object, legal: tuple[int, ...]) -> int:
    """Return an integer that is one of some ascending ones; else raise `OperandError` with the nearest of them."""
    near = ""
    if is_integer(value):
        number = min(legal, key=lambda x: abs(x - int(value)))
        if number == value:
            return number
        near = f"; nearest {number}"
    raise OperandError(f"{name} is {shown(value)}; expected one of {', '.join(map(str, legal))}{near}")


@dataclass(frozen=True, kw_only=True)
class SharedCell(Record):
    """One element of a matrix in shared memory, and where it lies.

    Attributes
    ----------
    operand : {"", "A", "B"}
        Of an instruction; empty for an element of a plain tile.
    row, column : int
        Of the element: of a tile m or n, and k; of an operand as in the matrix, so of B its k, and n.
    address : int
        Shared address of its lowest byte; of an element narrower than a byte, of the byte that has it.
    linear : int
        The same address before the swizzle.
    low, high : int
        First and last bit that it takes of the 32-bit word of its bank.
    """

    operand: str = ""
    row: int
    column: int
    address: int
    linear: int
    low: int
    high: int

    @property
    def bank(self) -> int:
        """The bank of shared memory that has the address, 0 to 31."""
        return self.address // 4 % 32


def shared_cell(row: int, column: int, linear: int, address: int, bit: int, bits: int) -> SharedCell:
    """Make the cell of an element of so many bits that begins at a bit of its byte."""
    low = address % 4 * 8 + bit
    return SharedCell(row=row, column=column, address=address, linear=linear, low=low, high=low + bits - 1)


@dataclass(frozen=True, kw_only=True)
class MatrixDescriptor(Shown):
    """The 64 bits with which a `wgmma` reads a matrix from shared memory.

    Attributes
    ----------
    start : int
        Shared address of the first element, in bytes: a multiple of 16 below 2**18.
    leading, stride : int
        PTX's leading and stride dimension byte offsets, LBO and SBO, in bytes: multiples of 16 below 2**18.
    swizzle : {0, 32, 64, 128}
        Width of the swizzle in bytes; 0 is none.
    base_offset : int
        0 to 7: where the pattern of the swizzle begins, in lines of 128 bytes.

    Raises
    ------
    OperandError
        A value that cannot be encoded; the message has the nearest one that can.

    Examples
    --------
    >>> b = MatrixDescriptor(start=0x400, stride=1024, swizzle=128)
    >>> hex(b.word), MatrixDescriptor.from_word(b.word) == b
    ('0x4000004000000040', True)
    >>> hex(b.locate(9, 10, bits=16, major="K").address)
    '0x884'
    >>> hex(b.advanced(32).locate(9, 10, bits=16, major="K").address)
    '0x8a4'
    """

    start: int
    leading: int = 0
    stride: int = 0
    swizzle: int = 0
    base_offset: int = 0

    def __post_init__(self) -> None:
        for name in ("start", "leading", "stride"):
            object.__setattr__(self, name, check_multiple(name, getattr(self, name), CHUNK, WINDOW))
        object.__setattr__(self, "swizzle", check_member("swizzle", self.swizzle, SWIZZLES))
        object.__setattr__(self, "base_offset", check_member("base_offset", self.base_offset, _LINES))

    @property
    def word(self) -> int:
        """The 64 bits (rule 1)."""
        fields = ((self.start >> 4, 0), (self.leading >> 4, 16), (self.stride >> 4, 32), (self.base_offset, 49))
        return sum(value << low for value, low in fields) | _CODES.index(self.swizzle) << 62

    @classmethod
    def from_word(cls, word: int) -> Self:
        """Read 64 bits; those that the hardware ignores are dropped.

        Raises
        ------
        OperandError
            Not an integer of 64 bits.

        Examples
        --------
        >>> MatrixDescriptor.from_word(0x4000_0040_0001_0042)
        MatrixDescriptor(start=1056, leading=16, stride=1024, swizzle=128, base_offset=0)
        """
        if not is_integer(word) or not 0 <= word < 1 << 64:
            raise OperandError(f"the descriptor is {shown(word)}; expected 64 bits, an integer from 0 to 2**64 - 1")
        word = int(word)
        start, leading, stride = ((word >> low & 0x3FFF) << 4 for low in (0, 16, 32))
        return cls(start=start, leading=leading, stride=stride, swizzle=_CODES[word >> 62], base_offset=word >> 49 & 7)

    def advanced(self, size: int) -> Self:
        """Return the descriptor of what begins so many bytes further on; the "+2" of kernels is 32 bytes.

        Raises
        ------
        OperandError
            No multiple of 16; a start outside of what can be encoded.
        """
        moved = check_multiple("size", size, CHUNK, WINDOW, -WINDOW)
        return replace(self, start=self.start + moved)

    def locate(self, row: int, column: int, *, bits: int, major: Major) -> SharedCell:
        """Find where one element lies; arguments and errors are those of `addresses`, rows and columns from 0.

        Examples
        --------
        >>> found = MatrixDescriptor(start=0x400, stride=1024, swizzle=128).locate(9, 10, bits=16, major="K")
        >>> hex(found.address), hex(found.linear), found.bank, found.low, found.high
        ('0x884', '0x894', 1, 0, 15)
        """
        self._check(bits, major)
        row, column = check_multiple("row", row, 1, _MOST), check_multiple("column", column, 1, _MOST)
        linear = self._linear(row, column, int(bits), major)
        bit = column * int(bits) % 8  # 0 but of single bits, which are K-major
        return shared_cell(row, column, linear, self._swizzled(linear), bit, int(bits))

    def addresses(self, rows: int, columns: int, *, bits: int, major: Major) -> Array:
        """Return the address of each element's lowest byte; of a single bit, of the byte that has it as bit k mod 8.

        Parameters
        ----------
        rows, columns : int
            m of A or n of B, and k; of a sparse A the stored k. 1 to 4096.
        bits : {1, 8, 16, 32}
            Width of an element.
        major : {"K", "MN"}
            Which coordinate runs along the bytes of a chunk.

        Returns
        -------
        ndarray of int64, shape (rows, columns)

        Raises
        ------
        OperandError
            Another width, or more rows or columns; MN-major elements of other than 16 bits, which no `wgmma` takes.

        Examples
        --------
        >>> plain = MatrixDescriptor(start=0x400, leading=128, stride=256)
        >>> [hex(x) for x in plain.addresses(16, 16, bits=16, major="K")[13, 7:9]]
        ['0x55e', '0x5d0']
        """
        self._check(bits, major)
        counts = (check_multiple(name, x, 1, _MOST + 1, 1) for name, x in (("rows", rows), ("columns", columns)))
        row, column = (np.arange(count, dtype=np.int64) for count in counts)
        return np.asarray(self._swizzled(self._linear(row[:, None], column, int(bits), major)))

    @staticmethod
    def _check(bits: int, major: Major) -> None:
        check_member("bits", bits, _BITS)
        check_choice("major", major, MAJORS)
        if major == "MN" and bits != 16:
            raise OperandError(
                f"major is 'MN' with elements of {bits} bits, which wgmma reads K-major alone; expected 'K', or 16 bits"
            )

    def steps(self, major: Major) -> tuple[int, int]:
        """Bytes from eight lines to the next, and from panel to panel (rule 4)."""
        check_choice("major", major, MAJORS)
        trade = major == "MN" and not self.swizzle
        return (self.leading, self.stride) if trade else (self.stride, self.leading)

    def _linear(self, row: Any, column: Any, bits: int, major: Major) -> Any:
        line, along = (row, column) if major == "K" else (column, row)
        return linear_address(self.start, max(CHUNK, self.swizzle), *self.steps(major), line, along * bits // 8)

    def _swizzled(self, linear: Any) -> Any:
        return swizzled(linear, self.swizzle, self.base_offset)
