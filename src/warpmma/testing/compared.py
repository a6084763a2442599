"""Two arrays element by element: what is compared, and where it sits in matrices and registers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._arrays import Array
from ..errors import OperandError
from ..isa import Instruction
from ..layouts import Operand
from ..registers import LANES, Packing
from .reading import Order, Reader, format_of, reader, reader_of


@dataclass(frozen=True, kw_only=True)
class RegisterPlace:
    """Places of elements in the registers of a warp, an array each."""

    lane: Array
    register: Array
    position: Array  # in the register


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Two arrays, by element.

    `bits` are compared bit for bit: the codes, with their padding if they are in registers. `tile` is the shape of an
    operand's matrix; larger arrays contain several tiles. `locate` maps indices into `bits` to indices into the
    matrix, of this shape and with these axes, and to places in registers.
    """

    reads: tuple[Reader, Reader]
    codes: tuple[Array, Array]
    bits: tuple[Array, Array]
    width: int
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    packing: Packing | None = None
    registers: int = 0
    tile: tuple[int, ...] = ()
    locate: Callable[[tuple[Array, ...]], tuple[tuple[Array, ...], RegisterPlace | None]]

    def orders(self, at: tuple[Array, ...]) -> tuple[Order, Order]:
        """Return places in the order of values of the first type, to which those of the second are rounded; and NaN."""
        own, other = self.reads
        x, y = (codes[at] for codes in self.codes)
        if other is not own and own.rounded is not None:
            y = own.rounded(other.values(y))
        return own.order(x), own.order(y)

    def values(self, at: tuple[Array, ...]) -> tuple[Array, Array]:
        """Return values as float64."""
        x, y = (read.values(codes[at]) for read, codes in zip(self.reads, self.codes, strict=True))
        return x, y


def by_element(x: Array, y: Array, record: Instruction | None, operand: Operand) -> Compared:
    """Take arrays of one shape, at least 1-dimensional; with an instruction, of one of its operands."""
    if record is not None:
        return _placed(x, y, record, operand)
    read = reader_of(x.dtype)
    reads = (read, read if y.dtype == x.dtype else reader_of(y.dtype))
    codes = (reads[0].codes(x), reads[1].codes(y))
    own = ("row", "column") if x.ndim > 1 else ()
    axes = (*_indices(x.ndim - len(own)), *own)
    return Compared(
        reads=reads, codes=codes, bits=codes, width=read.bits, shape=x.shape, axes=axes, locate=lambda at: (at, None)
    )


def _placed(x: Array, y: Array, record: Instruction, operand: Operand) -> Compared:
    """Take an operand, given as registers or as matrices."""
    layout, read = record.layout(operand), reader(format_of(record, operand, x.dtype))
    reads = (read, read if y.dtype == x.dtype else reader_of(y.dtype))
    packing, rank = layout.packing, len(layout.shape)
    own = ("matrix", "row", "column")[-rank:]
    if x.dtype == y.dtype == packing.dtype and x.shape[-2:] == (layout.registers, LANES):
        slots = Packing(slot=packing.slot, bits=packing.slot)
        bits = (slots.unpack(x), slots.unpack(y))
        a, b = (packing.unpack(z) for z in (x, y))

        def of_registers(at: tuple[Array, ...]) -> tuple[tuple[Array, ...], RegisterPlace]:
            *warp, register, lane, position = at
            number = register * packing.per_register + position
            coordinates = (c[lane, number] for c in layout.places[-rank:])
            return (*warp, *coordinates), RegisterPlace(lane=lane, register=register, position=position)

        return Compared(
            reads=reads, codes=(a, b), bits=bits, width=packing.slot, shape=(*x.shape[:-2], *layout.shape),
            axes=(*_batch_axes(x.ndim - 2), *own), packing=packing, registers=layout.registers, locate=of_registers,
        )  # fmt: skip
    if x.ndim < rank or (layout.matrix and x.shape[-rank:] != layout.shape):
        dims, tiles = ", ".join(map(str, layout.shape)), "" if layout.matrix else ", or of tiles of these"
        raise OperandError(
            f"{record}: {operand} is {x.dtype} {x.shape}; expected matrices [..., {dims}]{tiles}, or registers "
            f"{packing.dtype} [..., {layout.registers}, {LANES}]"
        )
    try:
        codes = (reads[0].codes(x), reads[1].codes(y))
    except OperandError as error:
        raise OperandError(f"{record}: {operand}: {error}") from None
    word, slot = layout.slots

    def of_matrices(at: tuple[Array, ...]) -> tuple[tuple[Array, ...], RegisterPlace]:
        inside = tuple(i % n for i, n in zip(at[-rank:], layout.shape, strict=True))
        return at, RegisterPlace(lane=word[inside] % LANES, register=word[inside] // LANES, position=slot[inside])

    return Compared(
        reads=reads, codes=codes, bits=codes, width=read.bits, shape=x.shape, axes=(*_batch_axes(x.ndim - rank), *own),
        packing=packing, registers=layout.registers, tile=layout.shape, locate=of_matrices,
    )  # fmt: skip


def _batch_axes(count: int) -> tuple[str, ...]:
    return ("warp",) if count == 1 else _indices(count)


def _indices(count: int) -> tuple[str, ...]:
    return tuple(f"index[{n}]" for n in range(count))
