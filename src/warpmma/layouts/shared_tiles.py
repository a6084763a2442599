"""Tiles: matrices that lie in shared memory as `wgmma` reads and tensor copies write them.

1. A line is what lies side by side: K-major a row, along k; MN-major a column, along m or n. It has whole chunks of 16
   bytes. An element narrower than a byte shares it, the first in the lowest bits.
2. A panel has the lines one below the other, each with as many bytes as the swizzle is wide; without a swizzle, 16.
   Eight lines of it are a swizzle atom. Longer lines go on in the next panel; what a last panel has too much is a gap.
   A tensor copy whose box is as wide as the swizzle writes a panel.
3. So byte b of line j has the address that a descriptor gives it (`matrix_descriptors`, rules 3 and 5) with a group of
   8w and a panel of lines w bytes, w the width of a panel. The start is a multiple of w, and the swizzle moves bytes
   only inside of lines.
4. A descriptor of a tile of one panel leaves out what leads to the next.
5. A descriptor counts chunks of a line from its own start. So it may begin inside of a panel only if what the
   instruction reads ends in the same one.
6. The base offset is 0 where writers swizzle absolute addresses, as tensor copies do. Where they swizzle offsets from
   a start that is a multiple of 128, it is (start >> 7) mod 8.

Source: PTX ISA 9.1, 9.7.15.5.1; the layouts are those of CUTLASS, DeepGEMM and ThunderKittens; measured on an H200 by
the addresses of descriptors and the bytes of tensor copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .._arguments import check_choice, is_integer
from .._lazy_numpy import Array, _arrays, np, npt
from .._records import Record
from ..errors import OperandError, shown
from .matrix_descriptors import (
    CHUNK,
    MAJORS,
    SWIZZLES,
    WINDOW,
    Major,
    MatrixDescriptor,
    SharedCell,
    check_member,
    check_multiple,
    linear_address,
    shared_cell,
    swizzled,
)

_WIDTHS = (1, 4, 8, 16, 32)
_READ = 256  # bits of k that a dense instruction reads of each row


@dataclass(frozen=True, kw_only=True)
class SharedTile(Record):
    """A matrix in shared memory, as `wgmma` reads it and tensor copies write it.

    Attributes
    ----------
    rows, columns : int
        m of A or n of B, and k; of a sparse A the stored k.
    bits : {1, 4, 8, 16, 32}
        Width of an element.
    major : {"K", "MN"}
        Which coordinate runs along the bytes of a line. Lines have a multiple of 16 bytes.
    swizzle : {0, 32, 64, 128}
        Width of the swizzle in bytes; 0 is none.
    start : int
        Shared address, a multiple of 16 and of the swizzle's width.
    base_offset : int
        0 to 7: where the swizzle's pattern begins, in lines of 128 bytes; 0 for tensor copies.

    Raises
    ------
    OperandError
        Another value; a tile that does not fit below 2**18.

    Examples
    --------
    >>> tile = SharedTile(rows=64, columns=64, bits=16, swizzle=128, start=0x400)
    >>> tile.size, hex(tile.locate(9, 10).address), tile.locate(9, 10).bank
    (8192, '0x884', 1)
    >>> found = tile.element(0x884)
    >>> found.row, found.column
    (9, 10)
    >>> hex(tile.descriptor().word), hex(tile.descriptor(k=16).word)
    ('0x4000004000000040', '0x4000004000000042')
    """

    rows: int
    columns: int
    bits: int
    major: Major = "K"
    swizzle: int = 0
    start: int = 0
    base_offset: int = 0

    def __post_init__(self) -> None:
        check_choice("major", self.major, MAJORS)
        legal = (("bits", _WIDTHS), ("swizzle", SWIZZLES), ("base_offset", tuple(range(8))))
        found = {name: check_member(name, getattr(self, name), values) for name, values in legal}
        chunk, along = 8 * CHUNK // found["bits"], "columns" if self.major == "K" else "rows"
        for name in ("rows", "columns"):
            step = chunk if name == along else 1
            found[name] = check_multiple(name, getattr(self, name), step, 8 * WINDOW + 1, step)
        found["start"] = check_multiple("start", self.start, max(CHUNK, found["swizzle"]), WINDOW)
        for name, value in found.items():
            object.__setattr__(self, name, value)
        if self.start + self.size > WINDOW:
            raise OperandError(
                f"a tile of {self.rows} x {self.columns} elements of {self.bits} bits takes {self.size} bytes from "
                f"{self.start:#x} on; expected an end of {WINDOW:#x} at most"
            )

    @property
    def width(self) -> int:
        """Bytes of a line in a panel."""
        return max(CHUNK, self.swizzle)

    @property
    def lines(self) -> int:
        """Lines of a panel: rows of a K-major tile, columns of an MN-major one."""
        return self.rows if self.major == "K" else self.columns

    @property
    def line_bytes(self) -> int:
        """Bytes of a whole line, through all panels."""
        return (self.columns if self.major == "K" else self.rows) * self.bits // 8

    @property
    def panels(self) -> int:
        """Number of panels."""
        return -(-self.line_bytes // self.width)

    @property
    def size(self) -> int:
        """Bytes that the tile takes, gaps included."""
        return self.panels * self.lines * self.width

    @property
    def steps(self) -> tuple[int, int]:
        """Bytes from eight lines to the next, and from panel to panel."""
        return 8 * self.width, self.lines * self.width

    def locate(self, row: int, column: int) -> SharedCell:
        """Find where an element lies; one that does not exist is an `OperandError`."""
        row = check_multiple("row", row, 1, self.rows)
        column = check_multiple("column", column, 1, self.columns)
        line, along = (row, column) if self.major == "K" else (column, row)
        octet, bit = divmod(along * self.bits, 8)
        linear = linear_address(self.start, self.width, *self.steps, line, octet)
        return shared_cell(row, column, linear, swizzled(linear, self.swizzle, self.base_offset), bit, self.bits)

    def element(self, address: int, bit: int = 0) -> SharedCell | None:
        """Find the element that has a bit of a byte: the inverse of `locate`.

        Parameters
        ----------
        address : int
            Shared address of the byte.
        bit : int
            0 to 7; it counts where elements are narrower than a byte.

        Returns
        -------
        SharedCell or None
            None for a byte in a gap, which has no element.

        Raises
        ------
        OperandError
            An address outside of the tile.
        """
        bit = check_multiple("bit", bit, 1, 8)
        if not is_integer(address) or not self.start <= address < self.start + self.size:
            last = self.start + self.size - 1
            raise OperandError(f"address is {_hex(address)}; the tile has {self.start:#x} to {last:#x}")
        linear = swizzled(int(address), self.swizzle, self.base_offset)  # its own inverse
        line, inside = divmod(linear - self.start, self.width)
        panel, line = divmod(line, self.lines)
        octet = panel * self.width + inside
        if octet >= self.line_bytes:
            return None
        along = (8 * octet + bit) // self.bits
        return self.locate(*((line, along) if self.major == "K" else (along, line)))

    @cached_property
    def _places(self) -> Array:
        """Offset from the start of each byte of each line, `[lines, line_bytes]` (rule 3); read-only."""
        line, octet = np.arange(self.lines)[:, None], np.arange(self.line_bytes)
        linear = linear_address(self.start, self.width, *self.steps, line, octet)
        return _arrays.frozen(np.asarray(swizzled(linear, self.swizzle, self.base_offset) - self.start, np.int64))

    @cached_property
    def addresses(self) -> Array:
        """Address of each element's lowest byte, int64 `[rows, columns]`; read-only."""
        elements = np.arange(8 * self.line_bytes // self.bits)
        found = self.start + self._places[:, elements * self.bits // 8]
        return _arrays.frozen(found if self.major == "K" else np.ascontiguousarray(found.T))

    def bytes(self, matrix: npt.ArrayLike) -> Array:
        """Lay out a matrix, as it is in shared memory from the start on.

        Parameters
        ----------
        matrix : array_like
            `[..., rows, columns]`: elements of the tile's width, of any dtype, whose bits are taken; or unsigned
            integers that fit.

        Returns
        -------
        ndarray of uint8, `[..., size]`
            Gaps are 0.

        Raises
        ------
        OperandError
            Another shape, or elements that are of another width and no integers that fit.

        Examples
        --------
        >>> tile = SharedTile(rows=8, columns=16, bits=16, swizzle=32)
        >>> tile.bytes(np.arange(128).reshape(8, 16))[128:136]
        array([72,  0, 73,  0, 74,  0, 75,  0], dtype=uint8)
        """
        codes = self._codes(_arrays.as_array(matrix, "matrix"))
        if self.major == "MN":
            codes = codes.swapaxes(-1, -2)
        if self.bits < 8:  # as many in a byte as fit, the first in the lowest bits
            apart = codes.reshape(*codes.shape[:-1], self.line_bytes, 8 // self.bits)
            shifts = np.arange(0, 8, self.bits, dtype=np.uint8)
            octets = np.bitwise_or.reduce(apart << shifts, axis=-1)
        else:
            octets = np.ascontiguousarray(codes.astype(codes.dtype.newbyteorder("<"))).view(np.uint8)
        memory = np.zeros((*codes.shape[:-2], self.size), np.uint8)
        memory[..., self._places] = octets
        return memory

    def matrix(self, memory: npt.ArrayLike) -> Array:
        """Read the matrix from bytes: the inverse of `bytes`.

        Parameters
        ----------
        memory : array_like of uint8
            `[..., size]`: the bytes of shared memory from the start on.

        Returns
        -------
        ndarray of uint8, uint16 or uint32, `[..., rows, columns]`
            Codes; `.view(np.float16)` makes numbers of them.

        Raises
        ------
        OperandError
            Another shape or dtype.
        """
        octets = _arrays.as_array(memory, "memory")
        if octets.dtype != np.uint8 or octets.shape[-1:] != (self.size,):
            raise OperandError(
                f"memory is {octets.dtype} {list(octets.shape)}; expected uint8 [..., {self.size}], the tile's bytes"
            )
        lines = np.ascontiguousarray(octets[..., self._places])
        if self.bits < 8:
            shifts = np.arange(0, 8, self.bits, dtype=np.uint8)
            apart = (lines[..., None] >> shifts) & np.uint8((1 << self.bits) - 1)
            codes = apart.reshape(*lines.shape[:-1], -1)
        else:
            codes = lines.view(f"<u{self.bits // 8}").astype(f"u{self.bits // 8}")
        return np.ascontiguousarray(codes.swapaxes(-1, -2)) if self.major == "MN" else codes

    def _codes(self, array: Array) -> Array:
        """Return the bits of a matrix's elements as unsigned integers."""
        if array.shape[-2:] != (self.rows, self.columns):
            raise OperandError(f"matrix is {list(array.shape)}; expected [..., {self.rows}, {self.columns}]")
        if array.dtype.itemsize * 8 == self.bits and array.dtype.kind in "iufV":
            return np.ascontiguousarray(array).view(f"u{self.bits // 8}")
        fits = array.dtype.kind in "iub" and (
            not array.size or 0 <= int(array.min()) <= int(array.max()) < 1 << self.bits
        )
        if not fits:
            raise OperandError(
                f"matrix is of {array.dtype}; expected elements of {self.bits} bits, or integers of 0 to "
                f"{(1 << self.bits) - 1:#x}"
            )
        return array.astype(f"u{max(8, self.bits) // 8}")

    def descriptor(
        self, k: int = 0, row: int = 0, *, columns: int | None = None, rows: int | None = None
    ) -> MatrixDescriptor:
        """Describe what an instruction reads that begins at a row and a column.

        Parameters
        ----------
        k, row : int
            Where the instruction's operand begins. Along lines, multiples of 16 bytes of elements.
        columns, rows : int, optional
            What the instruction reads. By default 32 bytes of each row, as dense instructions do (sparse ones read 64
            of B), and all rows that the tile has there; at most to the tile's end.

        Returns
        -------
        MatrixDescriptor

        Raises
        ------
        OperandError
            What no `wgmma` reads, elements of 4 bits or MN-major ones of other than 16; a start that is not a
            multiple of 16 bytes; a part outside of the tile; one that begins inside of a panel and does not end in it.

        Examples
        --------
        >>> tile = SharedTile(rows=128, columns=128, bits=16, major="MN", swizzle=128)
        >>> print(tile.descriptor(k=16, row=64))
        MatrixDescriptor(start=18432, leading=16384, stride=1024, swizzle=128, base_offset=0)
        """
        of_k = self.major == "K"
        if self.bits == 4 or (not of_k and self.bits != 16):
            raise OperandError(
                f"no wgmma reads {'K' if of_k else 'MN'}-major elements of {self.bits} bits; expected 1, 8, 16 or 32 "
                "bits K-major, or 16 MN-major"
            )
        chunk = 8 * CHUNK // self.bits
        k = check_multiple("k", k, chunk if of_k else 1, self.columns)
        row = check_multiple("row", row, 1 if of_k else chunk, self.rows)
        most_k, most_rows = self.columns - k, self.rows - row
        given = (min(_READ // self.bits, most_k) if columns is None else columns, most_rows if rows is None else rows)
        columns = check_multiple("columns", given[0], 1, most_k + 1, 1)
        rows = check_multiple("rows", given[1], 1, most_rows + 1, 1)
        first, count, line = (k, columns, row) if of_k else (row, rows, k)
        octet = first * self.bits // 8
        inside = octet % self.width
        if inside and 8 * inside + count * self.bits > 8 * self.width:  # rule 5
            name, fit = ("columns", "k") if of_k else ("rows", "row")
            raise OperandError(
                f"{fit} {first} begins inside of a panel of {self.width} bytes, and {count} {name} do not end in it; "
                f"expected {(self.width - inside) * 8 // self.bits} {name} at most, or {fit} a multiple of "
                f"{self.width * 8 // self.bits}"
            )
        group, panel = self.steps
        leading, stride = panel * (self.panels > 1), group  # rule 4
        if not of_k and not self.swizzle:
            leading, stride = stride, leading
        start = linear_address(self.start, self.width, group, panel, line, octet)
        return MatrixDescriptor(
            start=start, leading=leading, stride=stride, swizzle=self.swizzle, base_offset=self.base_offset
        )


def _hex(address: object) -> str:
    return f"{int(address):#x}" if is_integer(address) and abs(address) < 1 << 64 else shown(address)
