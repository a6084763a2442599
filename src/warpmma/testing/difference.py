"""The report on two arrays that differ: which elements, by how much, and where.

Positions are described as rows and columns, tiles, patterns, lanes and registers:

1. The indices along each axis, shortened: "rows 64-127; columns 0, 2, ..., 62".
2. For plain matrices, tiles that are aligned to powers of two: the largest ones all of whose elements are listed; or
   the smallest one that has all of them, where that is not a coincidence.
3. A band along the diagonal that is listed exactly: a diagonal, a triangle.
4. Of tiles of a shape that is given, which have such elements, by their numbers along each axis: the `program_id` of a
   grid of tiles.
5. Of operands of an instruction, lanes and registers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Array, as_array
from ..errors import OperandError, shown
from ..isa import Instruction
from ..layouts import Operand
from ..registers import LANES
from .compared import Compared, RegisterPlace, by_element
from .criteria import Rule

Indices = tuple[Array, ...]

_RUNS = 8  # of numbers, or tiles, that are written out
_SIDE = 4  # of the smallest tile that is worth a line
_CHANCE = 0.01  # that so many random elements are in one tile: above it a tile is not reported


def describe_places(found: Compared, index: Indices, place: RegisterPlace | None, tile: tuple[int, ...]) -> list[str]:
    """Describe the places of elements: `index` into the matrices, and in registers."""
    lines = _in_operand(found, index, place) if place else _in_array(found, index)
    if tile:
        lines += _in_tiles(index, found.shape, tile)
    matrix = _common_matrix(index, found.shape)
    if matrix is not None:
        if not place and not tile:
            lines += _in_aligned_tiles(matrix)
        lines += _in_band(matrix)
    return lines


def _in_array(found: Compared, index: Indices) -> list[str]:
    """Rule 1, of plain arrays."""
    seen = [_present(values) for values in index]
    some = [len(values) < size for values, size in zip(seen, found.shape, strict=True)]
    if not any(some):
        return ["where: in every row and column"] if len(seen) > 1 else []
    words = [
        _few(name, values) if part else f"all {_PLURALS[name]}" if name in _PLURALS else ""
        for name, values, part in zip(found.axes, seen, some, strict=True)
    ]
    among, count = math.prod(map(len, seen)), index[0].size
    share = ""
    if len(seen) > 1:
        share = f" (all {count:,} elements)" if count == among > 1 else f" ({count:,} of {among:,} elements)"
    return [f"where: {'; '.join(filter(None, words))}{share if among > 1 else ''}"]


def _in_operand(found: Compared, index: Indices, place: RegisterPlace) -> list[str]:
    """Rules 1 and 5, of an operand, whose larger matrices are tiles of it."""
    own = list(zip(found.axes, index, found.shape, strict=True))
    tiles = [
        (name, index[at] // found.tile[at], -(-found.shape[at] // found.tile[at]))
        for name, at in (("row of tiles", -2), ("column of tiles", -1)) if found.tile
    ]  # fmt: skip
    where = [*own[: len(own) - len(tiles)], *tiles, *own[len(own) - len(tiles) :]]
    where += [("lane", place.lane, LANES), ("register", place.register, found.registers)]
    if found.packing:
        where.append(("position in the register", place.position, found.packing.per_register))
    seen = [(name, _present(values), size) for name, values, size in where]
    common = [_few(name, values) for name, values, size in seen if len(values) < size]
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


def _common_matrix(index: Indices, shape: tuple[int, ...]) -> Array | None:
    """Return which elements of the last two axes are listed; None where it differs along the others, or for a line."""
    if len(shape) < 2:
        return None
    *outer, row, column = index
    matrices = np.zeros((math.prod(shape[:-2]), *shape[-2:]), bool)
    matrices[np.ravel_multi_index(outer, shape[:-2]) if outer else 0, row, column] = True
    some = matrices[matrices.any(axis=(1, 2))]
    return some[0] if (some == some[0]).all() else None


def _in_aligned_tiles(matrix: Array) -> list[str]:
    """Rule 2."""
    height, width = (_same_blocks(lines) for lines in (matrix, matrix.T))
    touched = np.argwhere(matrix[::height, ::width])
    tiles = f"tile{'s' * (len(touched) > 1)} of {height} x {width}"
    if min(height, width) >= _SIDE and len(touched) * height * width < matrix.size:
        return [f"tile: {_listed(touched)}, whole {tiles}"] if len(touched) <= _RUNS else []
    rows, columns = (np.flatnonzero(matrix.any(axis=axis)) for axis in (1, 0))
    height, width = (_block_of(seen) for seen in (rows, columns))
    share = min(height, len(matrix)) * min(width, matrix.shape[1]) / matrix.size
    count = int(matrix.sum())
    if min(height, width) < _SIDE or share ** (count - 1) > _CHANCE or count == len(rows) * len(columns):
        return []
    at = (int(rows[0]) // height, int(columns[0]) // width)
    last = [min(size, n * side + side) - 1 for size, n, side in zip(matrix.shape, at, (height, width), strict=True)]
    area = f"rows {at[0] * height}-{last[0]}, columns {at[1] * width}-{last[1]}"
    return [f"tile: all in tile {at} of {height} x {width}: {area}"]


def _same_blocks(matrix: Array) -> int:
    """Return the largest power of two such that rows of aligned blocks of so many are the same."""
    size, numbers = 1, np.arange(len(matrix))
    while size < len(matrix) and (matrix == matrix[numbers - numbers % (2 * size)]).all():
        size *= 2
    return size


def _block_of(numbers: Array) -> int:
    """Return the smallest power of two such that an aligned block of so many has all of some ascending numbers."""
    return 1 << (int(numbers[0]) ^ int(numbers[-1])).bit_length()


def _in_band(matrix: Array) -> list[str]:
    """Rule 3."""
    row, column = np.nonzero(matrix)
    if len(row) == matrix.any(axis=1).sum() * matrix.any(axis=0).sum():
        return []  # rows and columns say it all
    rows, columns = matrix.shape
    low, high = int((column - row).min()), int((column - row).max())
    numbers = np.arange(rows)
    first, last = np.maximum(numbers + low, 0), np.minimum(numbers + high, columns - 1)
    if np.maximum(last - first + 1, 0).sum() != len(row):
        return []
    if low == high:
        return [f"pattern: the diagonal column = {_offset(low)}"]
    if high == columns - 1:
        return [f"pattern: the upper triangle column >= {_offset(low)}"]
    if low == 1 - rows:
        return [f"pattern: the lower triangle column <= {_offset(high)}"]
    return [f"pattern: the band {_offset(low)} <= column <= {_offset(high)}"]


def _offset(by: int) -> str:
    return f"row {'+' if by > 0 else '-'} {abs(by)}" if by else "row"


def _in_tiles(index: Indices, shape: tuple[int, ...], tile: tuple[int, ...]) -> list[str]:
    """Rule 4; axes before those of a tile are numbered one by one."""
    given = (*(1,) * (len(shape) - len(tile)), *tile)
    sides = tuple(min(side, size) for side, size in zip(given, shape, strict=True))
    grid = tuple(-(-size // side) for size, side in zip(shape, sides, strict=True))
    at = tuple(i // side for i, side in zip(index, sides, strict=True))
    counts = np.bincount(np.ravel_multi_index(at, grid))
    numbers = np.flatnonzero(counts)
    head = f"program_id of tiles of {' x '.join(map(shown, tile))}: {len(numbers):,} of {math.prod(grid):,}"
    if len(numbers) > _RUNS:
        seen = [_present(i) for i in at]
        axes = [
            f"axis {n} {_ranges(values)}" if len(values) < size else f"axis {n} all"
            for n, (values, size) in enumerate(zip(seen, grid, strict=True)) if size > 1
        ]  # fmt: skip
        return [f"{head}; {'; '.join(axes)}" if len(numbers) < math.prod(grid) else head]
    lines = [head]
    for number, count in zip(numbers.tolist(), counts[numbers].tolist(), strict=True):
        places = tuple(int(i) for i in np.unravel_index(number, grid))
        size = math.prod(min(s, n - s * p) for s, n, p in zip(sides, shape, places, strict=True))
        linear = f", number {number:,}" if sum(n > 1 for n in grid) > 1 else ""
        lines.append(f"  {places if len(places) > 1 else number}{linear}: {count:,} of {size:,} elements")
    return lines


def _listed(places: Array) -> str:
    return ", ".join(str(tuple(place)) for place in places.tolist())


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


def _present(numbers: Array) -> Array:
    """Return each of some numbers once, ascending."""
    return np.flatnonzero(np.bincount(numbers))


def _ranges(values: Array) -> str:
    """Write ascending numbers as "0-3, 7", "0, 4, ..., 28" or "8-15, 24-31, ..., 120-127"; long lists are cut short."""
    runs = np.split(values, np.flatnonzero(np.diff(values) > 1) + 1)
    shown = [f"{r[0]}" if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs]
    regular = len({len(r) for r in runs}) == len({*np.diff([r[0] for r in runs]).tolist()}) == 1
    if len(runs) > 3 and regular:
        return f"{shown[0]}, {shown[1]}, ..., {shown[-1]}"
    return ", ".join(shown[:_RUNS]) + (f", ... ({len(values)} of them)" if len(runs) > _RUNS else "")


def _threads(lanes: Array) -> str:
    """Name the lanes in PTX's terms, if they are whole groups or the same threads of groups."""
    groups, threads = np.unique(lanes >> 2), np.unique(lanes & 3)
    words = []
    if len(groups) * len(threads) == len(lanes):
        words += [f"groupID {_ranges(groups)}"] if len(groups) < 8 else []
        words += [f"threadID_in_group {_ranges(threads)}"] if len(threads) < 4 else []
    return f" ({', '.join(words)})" if words else ""


@dataclass(frozen=True, kw_only=True)
class View:
    """The view of elements in a report: see `assert_same_bits`."""

    record: Instruction | None
    operand: Operand
    names: tuple[str, str]
    limit: int
    tile: tuple[int, ...]


def describe_difference(actual: npt.ArrayLike, expected: npt.ArrayLike, rule: Rule, view: View) -> str:
    """Describe how two arrays differ; nothing if no element is wrong."""
    names, record = view.names, view.record
    x, y = (as_array(z, name) for z, name in zip((actual, expected), names, strict=True))
    others: list[tuple[str, Any, Any]] = [("shapes", x.shape, y.shape)] if x.shape != y.shape else []
    others += [] if rule.compares(x.dtype, y.dtype) else [("dtypes", x.dtype, y.dtype)]
    if others:
        return "\n".join(f"{word} differ: {names[0]} {a}, {names[1]} {b}" for word, a, b in others)
    found = by_element(np.atleast_1d(x), np.atleast_1d(y), record, view.operand)
    if len(view.tile) > len(found.shape):
        raise OperandError(
            f"tile is {shown(view.tile)}; expected sides along at most {len(found.shape)} axes: {found.shape}"
        )
    at = rule.wrong(found)
    if not at[0].size:
        return ""
    index, place = found.locate(at)
    return "\n".join(
        [
            _headline(found, at[0].size, rule, view),
            *_table(found, at, index, place, rule, view),
            *describe_places(found, index, place, view.tile),
            *rule.extent(found, at, index),
        ]
    )


def _headline(found: Compared, count: int, rule: Rule, view: View) -> str:
    of = "" if view.record is None else f" of {view.operand}"
    types = " and ".join(dict.fromkeys(read.name for read in found.reads))
    what = ", ".join(str(x) for x in (types, view.record) if x is not None)
    size = found.bits[0].size
    said = f"; {rule.said}" if rule.said else ""
    return f"{count:,} of {size:,} element{'s' * (size > 1)}{of} {rule.verbs[count > 1]} ({what}{said})"


def _table(
    found: Compared,
    at: tuple[Array, ...],
    index: tuple[Array, ...],
    place: RegisterPlace | None,
    rule: Rule,
    view: View,
) -> list[str]:
    """List the first of the wrong elements."""
    count, some = at[0].size, tuple(i[: view.limit] for i in at)
    listed = range(min(view.limit, count))
    columns = [["index", *(str([int(i[n]) for i in index]) for n in listed)]]
    for name, read, codes in zip(view.names, found.reads, found.codes, strict=True):
        columns.append([name, *(read.show(int(code)) for code in codes[some])])
    columns += rule.columns(found, some, view.names)
    if place and found.packing:
        slot, packed = found.packing.slot, found.packing.per_register > 1
        lows = [int(place.position[n]) * slot for n in listed]
        bits = [f", bits {low + slot - 1}:{low}" if packed else "" for low in lows]
        columns.append(["lane", *(str(place.lane[n]) for n in listed)])
        columns.append(["register", *(f"{place.register[n]}{bits[n]}" for n in listed)])
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    lines = ["  " + "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    more = [f"  and {count - view.limit:,} more"] if count > view.limit else []
    return (lines if view.limit else []) + more
