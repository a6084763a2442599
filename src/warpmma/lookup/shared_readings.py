"""What a `wgmma` reads from shared memory, element by element.

1. A reading is an instruction, its operand A or B, 64 bits and a major-ness. Any bits are a descriptor: the hardware
   ignores some, and refuses none. Elements are those of the matrix: A[m, k], of a sparse A the stored k, and B[k, n].
2. An access is eight lines by one chunk of 16 bytes: 128 bytes, which are 32 banks if the layout avoids conflicts.
   A line is a row of A or a column of B, along k; MN-major it is a step of k, along m or n.

Source: `layouts.matrix_descriptors`. Rule 2's size of an access is PTX's core matrix; how the hardware orders accesses
is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from types import MappingProxyType

from .._arguments import check_choice, is_integer
from .._lazy_numpy import Array, _arrays, np
from .._records import Record
from .._views import view
from ..errors import OperandError, shown
from ..isa import FragmentHolder, WarpgroupInstruction, parse_holder
from ..layouts import MAJORS, Major, MatrixDescriptor, SharedCell

SHARED_OPERANDS = ("A", "B")
_LINES, _CHUNK, _BANKS = 8, 16, 32


@dataclass(frozen=True, kw_only=True)
class SharedReading(Record):
    """What an instruction reads of one operand in shared memory.

    Attributes
    ----------
    instruction : WarpgroupInstruction
    operand : {"A", "B"}
    descriptor : MatrixDescriptor
    major : {"K", "MN"}
        "MN" where the instruction has 1 for `imm-trans`.

    Examples
    --------
    >>> i = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    >>> b = shared_reading(i, "B", 0x4000004000000040)
    >>> cell = b.locate(10, 3)
    >>> hex(cell.address), cell.bank, [(x.row, x.column) for x in b.elements(cell.address)]
    ('0x5a4', 9, [(10, 3)])
    """

    instruction: WarpgroupInstruction
    operand: str
    descriptor: MatrixDescriptor
    major: Major = "K"

    @property
    def bits(self) -> int:
        """Width of an element."""
        return self.instruction.format(self.operand).bits  # type: ignore[arg-type]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the operand's matrix; of a sparse A stored columns."""
        i = self.instruction
        return (i.m, i.k // (2 if i.sparse else 1)) if self.operand == "A" else (i.k, i.n)

    def _turned(self, row: int, column: int) -> tuple[int, int]:
        """Exchange coordinates of B: descriptors have n first."""
        return (row, column) if self.operand == "A" else (column, row)

    def locate(self, row: int, column: int) -> SharedCell:
        """Find where an element lies; one that does not exist is an `OperandError`."""
        for name, value, most in zip(("row", "column"), (row, column), self.shape, strict=True):
            if not is_integer(value) or not 0 <= value < most:
                raise OperandError(
                    f"{self.instruction}: {self.operand} has {most} {name}s; {name} is {shown(value)}, expected 0 to "
                    f"{most - 1}"
                )
        found = self.descriptor.locate(*self._turned(row, column), bits=self.bits, major=self.major)
        return replace(found, operand=self.operand, row=int(row), column=int(column))

    @cached_property
    def cells(self) -> tuple[SharedCell, ...]:
        """Every element, row after row."""
        rows, columns = self.shape
        return tuple(self.locate(row, column) for row in range(rows) for column in range(columns))

    @cached_property
    def _bytes(self) -> Mapping[int, tuple[SharedCell, ...]]:
        found: dict[int, list[SharedCell]] = {}
        for cell in self.cells:
            for address in range(cell.address, cell.address + max(1, self.bits // 8)):
                found.setdefault(address, []).append(cell)
        return MappingProxyType({address: tuple(cells) for address, cells in found.items()})

    def elements(self, address: int) -> tuple[SharedCell, ...]:
        """Find the elements that have a byte: the inverse of `locate`.

        There are none where nothing is read; eight of single bits; several where a wrong descriptor reads twice.
        """
        if not is_integer(address):
            raise OperandError(f"address is {shown(address)}; expected a shared address, in bytes")
        return self._bytes.get(int(address), ())

    @cached_property
    def addresses(self) -> Array:
        """Address of each element's lowest byte, int64 of the operand's shape; read-only."""
        found = self.descriptor.addresses(*self._turned(*self.shape), bits=self.bits, major=self.major)
        return _arrays.frozen(np.ascontiguousarray(found if self.operand == "A" else found.T))

    def inside(self, first: int, size: int) -> Array:
        """Say which elements lie in a window of so many bytes from an address on: bool of the operand's shape."""
        for name, value in (("first", first), ("size", size)):
            if not is_integer(value) or value < 0:
                raise OperandError(f"{name} is {shown(value)}; expected bytes of shared memory, 0 or more")
        last, end = self.addresses + max(1, self.bits // 8), min(int(first) + int(size), 1 << 62)
        return np.asarray((self.addresses >= min(int(first), 1 << 62)) & (last <= end))

    def matrix(self, memory: Array, at: int = 0) -> tuple[Array, Array]:
        """Read the tile from bytes of shared memory; what lies outside of them is named, and not read.

        Parameters
        ----------
        memory : ndarray of uint8, `[size]`
        at : int
            Address of its first byte.

        Returns
        -------
        codes : ndarray of uint8, uint16 or uint32, of the operand's shape
            0 for elements outside.
        inside : ndarray of bool

        Raises
        ------
        OperandError
            Other memory.

        Examples
        --------
        >>> a = shared_reading("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "A", 0x0000001000080000)
        >>> codes, inside = a.matrix(np.arange(1024, dtype=np.uint8))
        >>> hex(codes[1, 0]), int(inside.sum())
        ('0x1110', 512)
        """
        octets = _arrays.as_array(memory, "memory")
        if octets.dtype != np.uint8 or octets.ndim != 1:
            raise OperandError(f"memory is {octets.dtype} {list(octets.shape)}; expected uint8 [size]")
        inside, size = self.inside(at, octets.size), max(1, self.bits // 8)
        places = np.where(inside, self.addresses - at, 0)[..., None] + np.arange(size)
        taken = np.where(
            inside[..., None], octets[places] if octets.size else np.zeros(places.shape, np.uint8), np.uint8(0)
        )
        codes = np.ascontiguousarray(taken).view(f"<u{size}")[..., 0].astype(f"u{size}")
        if self.bits == 1:
            codes = codes >> (np.arange(self.shape[1 if self.operand == "A" else 0]) % 8).astype(np.uint8).reshape(
                (1, -1) if self.operand == "A" else (-1, 1)
            ) & np.uint8(1)
        return codes, inside

    @property
    def accesses(self) -> tuple[tuple[SharedCell, ...], ...]:
        """Rule 2: for each access the first element of each of its eight chunks, chunk by chunk of the lines."""
        step, (rows, columns) = 8 * _CHUNK // self.bits, self._turned(*self.shape)
        lines, along = (rows, columns) if self.major == "K" else (columns, rows)

        def first(line: int, place: int) -> SharedCell:
            row, column = (line, place) if self.major == "K" else (place, line)
            return self.locate(*self._turned(row, column))

        return tuple(
            tuple(first(line, place) for line in range(group, min(group + _LINES, lines)))
            for group in range(0, lines, _LINES) for place in range(0, along, step)
        )  # fmt: skip

    def wavefronts(self, access: tuple[SharedCell, ...]) -> int:
        """Count the words that the busiest bank gives to an access; 1 is without conflict."""
        words = {cell.address // 4 + word for cell in access for word in range(_CHUNK // 4)}
        banks = [word % _BANKS for word in words]
        return max(map(banks.count, set(banks)))

    def text(self) -> str:
        """List every element with its address, bank, and address before the swizzle."""
        return view(self, "text")

    def csv(self) -> str:
        """As `text`, with commas."""
        return view(self, "csv")

    def json(self) -> str:
        """As `text`, for programs."""
        return view(self, "json")

    def svg(self) -> str:
        """Draw shared memory, bank by bank, with what each chunk holds and the banks of the first access."""
        return view(self, "svg")


def shared_reading(
    instruction: str | FragmentHolder, operand: str, descriptor: int | MatrixDescriptor, *, major: Major = "K"
) -> SharedReading:
    """Return what an instruction reads of an operand in shared memory.

    Parameters
    ----------
    instruction : str or WarpgroupInstruction
        A `wgmma`.
    operand : {"A", "B"}
    descriptor : int or MatrixDescriptor
        Any 64 bits.
    major : {"K", "MN"}
        "MN" where `imm-trans` is 1, which types of 16 bits have.

    Returns
    -------
    SharedReading

    Raises
    ------
    MnemonicError, OperandError
        No `wgmma`, operand or descriptor; a major-ness that the type does not have.

    Examples
    --------
    >>> i = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
    >>> print(hex(shared_reading(i, "B", 0x4000004000000042).locate(8, 1).address))
    0x4a0
    """
    record = parse_holder(instruction)
    if not isinstance(record, WarpgroupInstruction):
        raise OperandError(f"{record} reads no operand by a descriptor; expected a wgmma")
    check_choice("operand", operand, SHARED_OPERANDS)
    check_choice("major", major, MAJORS)
    found = descriptor if isinstance(descriptor, MatrixDescriptor) else MatrixDescriptor.from_word(descriptor)
    return _checked(record, operand, found, major)


@lru_cache(maxsize=8)  # `what` asks again and again
def _checked(record: WarpgroupInstruction, operand: str, found: MatrixDescriptor, major: Major) -> SharedReading:
    made = SharedReading(instruction=record, operand=operand, descriptor=found, major=major)
    made.locate(0, 0)  # checks the major-ness
    return made
