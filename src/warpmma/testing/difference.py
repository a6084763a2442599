"""The report on two arrays whose bits differ: which elements, by how much, and in which lanes and registers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import as_array
from ..errors import OperandError
from ..isa import Instruction
from ..layouts import Operand
from ..registers import LANES, Packing
from .reading import Reader, distance, format_of, reader, reader_of

__all__ = ["describe_difference"]

Array = npt.NDArray[Any]

_RUNS = 8  # of numbers that are written out


@dataclass(frozen=True, kw_only=True)
class _Place:
    """Where elements sit in the registers of a warp: an array each."""

    lane: Array
    register: Array
    position: Array  # in the register


@dataclass(frozen=True, kw_only=True)
class _Elements:
    """Two arrays, by element.

    `bits` are what is compared: the codes, with their padding where they come in registers. `tile` is the shape of an
    operand's matrix, of which larger ones have several. `locate` takes indices into
    `bits` to indices into the matrix, of this shape and with these axes, and to places in registers.
    """

    read: Reader
    codes: tuple[Array, Array]
    bits: tuple[Array, Array]
    width: int
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    packing: Packing | None = None
    registers: int = 0
    tile: tuple[int, ...] = ()
    locate: Callable[[tuple[Array, ...]], tuple[tuple[Array, ...], _Place | None]]


def describe_difference(
    actual: npt.ArrayLike, expected: npt.ArrayLike, *, record: Instruction | None, operand: Operand,
    names: tuple[str, str], limit: int, any_nan: bool,
) -> str:  # fmt: skip
    """Say how two arrays differ; nothing if all bits are the same. For the arguments see `assert_same_bits`."""
    x, y = (as_array(z, name) for z, name in zip((actual, expected), names, strict=True))
    kinds = [("shapes", x.shape, y.shape), ("dtypes", x.dtype, y.dtype)]
    if any(one != other for _, one, other in kinds):
        return "\n".join(f"{word} differ: {names[0]} {a}, {names[1]} {b}" for word, a, b in kinds if a != b)
    x, y = np.atleast_1d(x), np.atleast_1d(y)
    found = _plain(x, y) if record is None else _placed(x, y, record, operand)
    at = np.nonzero(found.bits[0] != found.bits[1])
    orders = [found.read.order(codes[at]) for codes in found.codes]
    if any_nan:
        keep = ~(orders[0][1] & orders[1][1])
        at, orders = tuple(i[keep] for i in at), [(order[keep], nan[keep]) for order, nan in orders]
    if not at[0].size:
        return ""
    index, place = found.locate(at)
    of = "" if record is None else f" of {operand}"
    what = found.read.name if record is None else f"{found.read.name}, {record}"
    size = found.bits[0].size
    lines = [
        f"{at[0].size:,} of {size:,} element{'s' * (size > 1)}{of} differ{'s' * (at[0].size == 1)} ({what})",
        *_table(found, at, orders, index, place, names, limit),
        *_pattern(found, index, place),
        *_extent(found.read, orders, index),
    ]
    return "\n".join(lines)


def _plain(x: Array, y: Array) -> _Elements:
    read = reader_of(x.dtype)
    codes = (read.codes(x), read.codes(y))
    axes = _indices(x.ndim)
    return _Elements(
        read=read, codes=codes, bits=codes, width=read.bits, shape=x.shape, axes=axes, locate=lambda at: (at, None)
    )


def _placed(x: Array, y: Array, record: Instruction, operand: Operand) -> _Elements:
    """Elements of an operand, given as registers or as matrices."""
    layout, read = record.layout(operand), reader(format_of(record, operand, x.dtype))
    packing, rank = layout.packing, len(layout.shape)
    own = ("matrix", "row", "column")[-rank:]
    if x.dtype == packing.dtype and x.shape[-2:] == (layout.registers, LANES):
        slots = Packing(slot=packing.slot, bits=packing.slot)
        bits = (slots.unpack(x), slots.unpack(y))
        a, b = (packing.unpack(z) for z in (x, y))

        def of_registers(at: tuple[Array, ...]) -> tuple[tuple[Array, ...], _Place]:
            *warp, register, lane, position = at
            number = register * packing.per_register + position
            coordinates = (c[lane, number] for c in layout.places[-rank:])
            return (*warp, *coordinates), _Place(lane=lane, register=register, position=position)

        return _Elements(
            read=read, codes=(a, b), bits=bits, width=packing.slot, shape=(*x.shape[:-2], *layout.shape),
            axes=(*_batch_axes(x.ndim - 2), *own), packing=packing, registers=layout.registers, locate=of_registers,
        )  # fmt: skip
    if x.ndim < rank or (layout.matrix and x.shape[-rank:] != layout.shape):
        dims, tiles = ", ".join(map(str, layout.shape)), "" if layout.matrix else ", or of tiles of these"
        raise OperandError(
            f"{record}: {operand} is {x.dtype} {x.shape}; expected matrices [..., {dims}]{tiles}, or registers "
            f"{packing.dtype} [..., {layout.registers}, {LANES}]"
        )
    try:
        codes = (read.codes(x), read.codes(y))
    except OperandError as error:
        raise OperandError(f"{record}: {operand}: {error}") from None
    word, slot = layout.slots

    def of_matrices(at: tuple[Array, ...]) -> tuple[tuple[Array, ...], _Place]:
        inside = tuple(i % n for i, n in zip(at[-rank:], layout.shape, strict=True))
        return at, _Place(lane=word[inside] % LANES, register=word[inside] // LANES, position=slot[inside])

    return _Elements(
        read=read, codes=codes, bits=codes, width=read.bits, shape=x.shape, axes=(*_batch_axes(x.ndim - rank), *own),
        packing=packing, registers=layout.registers, tile=layout.shape, locate=of_matrices,
    )  # fmt: skip


def _batch_axes(count: int) -> tuple[str, ...]:
    return ("warp",) if count == 1 else _indices(count)


def _indices(count: int) -> tuple[str, ...]:
    return tuple(f"index[{n}]" for n in range(count))


def _table(
    found: _Elements, at: tuple[Array, ...], orders: list[tuple[Array, Any]], index: tuple[Array, ...],
    place: _Place | None, names: tuple[str, str], limit: int,
) -> list[str]:  # fmt: skip
    """List the first of the differing elements."""
    count, read, digits = at[0].size, found.read, -(-found.width // 4)
    (x, nan_x), (y, nan_y) = orders
    steps = "ulps" if read.floating else "difference"
    heads = ["index", *names, *(f"{name} bits" for name in names), steps, *(["lane", "register"] if place else [])]
    rows = [heads]
    for n in range(min(limit, count)):
        one = tuple(int(i[n]) for i in at)
        row = [str([int(i[n]) for i in index]), *(read.show(int(codes[one])) for codes in found.codes)]
        row += [f"{int(bits[one]):#0{digits + 2}x}" for bits in found.bits]
        apart = int(x[n]) - int(y[n])
        row.append("NaN" if nan_x[n] or nan_y[n] else f"{apart:+,}" if apart else "0")
        if place and found.packing:
            slot, low = found.packing.slot, int(place.position[n]) * found.packing.slot
            packed = f", bits {low + slot - 1}:{low}" if found.packing.per_register > 1 else ""
            row += [str(place.lane[n]), f"{place.register[n]}{packed}"]
        rows.append(row)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  " + "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    more = [f"  and {count - limit:,} more"] if count > limit else []
    return (lines if limit else []) + more


def _pattern(found: _Elements, index: tuple[Array, ...], place: _Place | None) -> list[str]:
    """Say where all the differing elements are, and then how they spread over registers and lanes."""
    own = list(zip(found.axes, index, found.shape, strict=True))
    tiles = [
        (name, index[at] // found.tile[at], -(-found.shape[at] // found.tile[at]))
        for name, at in (("row of tiles", -2), ("column of tiles", -1)) if found.tile
    ]  # fmt: skip
    where = [*own[: len(own) - len(tiles)], *tiles, *own[len(own) - len(tiles) :]]
    if place and found.packing:
        where += [("lane", place.lane, LANES), ("register", place.register, found.registers)]
        where.append(("position in the register", place.position, found.packing.per_register))
    seen = [(name, np.flatnonzero(np.bincount(values)), size) for name, values, size in where]
    common = [_few(name, values) for name, values, size in seen if len(values) < size]
    if not place:
        return ["where: " + "; ".join(common)] if common else []
    lines = ["where: " + ("; ".join(common) or "in every row, column, lane and register")]
    counts = np.bincount(place.register * LANES + place.lane, minlength=found.registers * LANES).reshape(-1, LANES)
    groups: dict[tuple[int, ...], list[int]] = {}
    for register in np.flatnonzero(counts.any(axis=-1)).tolist():
        groups.setdefault(tuple(np.flatnonzero(counts[register]).tolist()), []).append(register)
    if len(groups) > 1:
        for lanes, registers in groups.items():
            within = "all lanes" if len(lanes) == LANES else _few("lane", np.array(lanes))
            which = _few("register", np.array(registers)).removeprefix("only ")
            lines.append(f"  {which}: {int(counts[registers].sum()):,} in {within}")
    return lines


def _few(name: str, values: Array) -> str:
    """Name some of many: "rows 8-15", "only register 2", "lanes 4-7 (groupID 1)"."""
    if name not in _PLURALS:
        return f"{name} = {_ranges(values)}"
    words = f"only {name} {values[0]}" if len(values) == 1 else f"{_PLURALS[name]} {_ranges(values)}"
    return words + (_threads(values) if name == "lane" else "")


_PLURALS = {
    "warp": "warps",
    "matrix": "matrices",
    "row of tiles": "rows of tiles",
    "column of tiles": "columns of tiles",
    "row": "rows",
    "column": "columns",
    "lane": "lanes",
    "register": "registers",
    "position in the register": "positions in the register",
}


def _ranges(values: Array) -> str:
    """Write ascending numbers as "0-3, 7" or "0, 4, ..., 28"; long lists are cut short."""
    gaps = np.unique(np.diff(values))
    if len(values) > 3 and len(gaps) == 1 and gaps[0] > 1:
        return f"{values[0]}, {values[1]}, ..., {values[-1]}"
    runs = np.split(values, np.flatnonzero(np.diff(values) > 1) + 1)
    shown = ", ".join(f"{r[0]}" if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs[:_RUNS])
    return shown + (f", ... ({len(values)} of them)" if len(runs) > _RUNS else "")


def _threads(lanes: Array) -> str:
    """Say in PTX's words which lanes these are, where they are whole groups or the same threads of groups."""
    groups, threads = np.unique(lanes >> 2), np.unique(lanes & 3)
    words = []
    if len(groups) * len(threads) == len(lanes):
        words += [f"groupID {_ranges(groups)}"] if len(groups) < 8 else []
        words += [f"threadID_in_group {_ranges(threads)}"] if len(threads) < 4 else []
    return f" ({', '.join(words)})" if words else ""


def _extent(read: Reader, orders: list[tuple[Array, Any]], index: tuple[Array, ...]) -> list[str]:
    """Say how large the differences are."""
    (x, nan_x), (y, nan_y) = orders
    nan = nan_x | nan_y
    apart = np.where(nan, 0, distance(x, y))
    largest = int(np.argmax(apart))
    lines = []
    if apart[largest]:
        unit = f" ulp{'s' * (int(apart[largest]) > 1)}" if read.floating else ""
        lines.append(f"largest difference: {int(apart[largest]):,}{unit}, at {[int(i[largest]) for i in index]}")
    if nan.any():
        lines.append(f"NaN on one side or both: {int(nan.sum()):,}")
    same = int(((x == y) & ~nan).sum())
    if same:
        lines.append(f"equal but for the sign of a zero or for padding: {same:,}")
    return lines
