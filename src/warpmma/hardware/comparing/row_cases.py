"""Operations and functions of a GPU beside the simulator, lane by lane.

1. A group is operations that take the same operands. A piece of work draws operands once and executes each of them,
   with one choice of its immediates, as many lanes as the group takes; the results are compared on the host.
2. Functions take all their operands where these can be counted, in pieces (`function_operands`), and so do operations
   of one 16-bit operand; the others take as many lanes as are asked for, made for their types (`variant_inputs`).
   Reciprocals and roots of f32 in IEEE 754's roundings, whose hardest operands a generator may miss, take all operands
   besides, where there should be many; these are counted under another name.
3. Every second piece of work has results of the native engine, which kernels use, where an operation has such.
4. Lanes that skip an instruction, and lanes whose result PTX leaves undefined, do not count.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Literal

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from ...errors import UnsupportedError
from ...gpu import TextKernel, TextLaunch
from ...operations import DTYPES, Operation, operation, operations
from ...registers import LANES
from ..emitting import ptx_module
from ..generators import signature
from .findings import Found, LaneDifference, Refused
from .function_operands import Operands, every_code, function_plan
from .rooms import Room
from .row_jobs import compared_lanes, different_lanes, row_immediates, row_simulated
from .row_kernels import row_kernel
from .row_variants import every_variant, variant_inputs

__all__ = ["RowComparison", "function_groups", "left_out", "row_groups"]

EVERY_OPERAND = 10**8
"""From so many outputs of each matrix instruction on, functions take all their operands."""

EVERY_QUOTIENT = 10**9
"""From so many on, reciprocals and roots of f32 in IEEE 754's roundings do, too."""

_MOST_PIECES = 1 << 20  # before those of the next seed begin
_MOST_ROWS = 128  # of a group, so that a piece of work ends soon
_BLOCK, _ALIGNMENT = 256, 256

_ADDRESSES = ("cvta", "isspacep", "mapa", "getctarank")


@dataclass(frozen=True, kw_only=True, eq=False)
class RowComparison(Shown):
    """Operations with the same operands.

    Attributes
    ----------
    kind : {"operation", "function"}
    rows : mapping of str to Operation
        By the name for the report.
    lanes : int
        Of a piece of work.
    most : int or None
        After how many lanes all operands were compared.
    draw : callable
        From the number of a piece of work, or with `most` from that of the first lane, and how many lanes, to input
        registers `[warp, lane]`.
    """

    kind: Literal["operation", "function"]
    rows: dict[str, Operation]
    lanes: int
    draw: Callable[[int, int], tuple[Array, ...]]
    most: int | None = None
    immediates: dict[str, list[tuple[int, ...]]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "immediates", {name: row_immediates(row) for name, row in self.rows.items()})

    @property
    def names(self) -> list[str]:
        """Return the mnemonics, of variants with what distinguishes them."""
        return list(self.rows)

    def wanted(self, outputs: int) -> int:
        """Return how many lanes there should be: of operations a tenth, of functions all if there should be many."""
        most = self.most or outputs
        if self.kind == "operation":
            return max(1, min(most, outputs // 10))
        return most if outputs >= EVERY_OPERAND else min(most, outputs)

    def run(self, room: Room, number: int, done: int = 0) -> Iterator[tuple[str, Found | Refused]]:
        """Do a piece of work; it gives what was found for each operation."""
        lanes = self.lanes if self.most is None else min(self.lanes, self.most - done)
        given = self.draw(number if self.most is None else done, lanes)
        placed = [room.put(f"in{i}", x) for i, x in enumerate(given)]
        dtypes = {name: [np.dtype(DTYPES[kind]) for kind in row.outputs] for name, row in self.rows.items()}
        size = sum(_aligned(x.itemsize * lanes) for some in dtypes.values() for x in some)
        out = np.empty(size, np.uint8)
        # Lanes that skip an instruction leave zeros. All are launched before the first result is waited for.
        at, end = room.cleared("out", size), 0
        launched: list[tuple[str, tuple[int, ...], list[Array]]] = []
        for name, row in self.rows.items():
            immediates = self._immediates(name, number)
            outputs, to = list[Array](), list[int]()
            for dtype in dtypes[name]:
                to.append(at + end)
                outputs.append(out[end : end + lanes * dtype.itemsize].view(dtype).reshape(-1, LANES))
                end += _aligned(dtype.itemsize * lanes)
            try:
                if row.ptx > room.ptx:
                    raise UnsupportedError(f"the driver compiles PTX {room.ptx[0]}.{room.ptx[1]}, and it is newer")
                room.launch(_launch(room, row, immediates, lanes, [*placed[: _registers(row)], *to]))
                launched.append((name, immediates, outputs))
            except UnsupportedError as error:
                yield name, Refused(why=str(error))
        if launched:
            room.get(at, out)
        for name, immediates, outputs in launched:
            row = self.rows[name]
            yield name, _compared(row, given[: _registers(row)], immediates, outputs, native=number % 2 == 1)

    def _immediates(self, name: str, number: int) -> tuple[int, ...]:
        choices = self.immediates[name]
        return choices[number * 89 % len(choices)]  # 89 and 256 have no common divisor


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _registers(row: Operation) -> int:
    return sum(kind != "imm" for kind in row.inputs)


def _launch(
    room: Room, row: Operation, immediates: tuple[int, ...], lanes: int, addresses: Sequence[int]
) -> TextLaunch:
    block = _BLOCK if lanes % _BLOCK == 0 else LANES
    kernel = TextKernel(text=_kernel_text(row, immediates, room.target, room.ptx), name="row")
    given = np.array(addresses, np.uint64).tobytes()
    return TextLaunch(kernel=kernel, grid=lanes // block, threads=block, given=given)


def _compared(
    row: Operation, inputs: Sequence[Array], immediates: tuple[int, ...], outputs: Sequence[Array], native: bool
) -> Found:  # fmt: skip
    expected = row_simulated(row, inputs, immediates, native=native)
    lanes = compared_lanes(row, inputs, immediates)
    bad = different_lanes(lanes, outputs, expected)
    count, first = int(bad.sum()) if bad.any() else 0, None
    if count:
        place = tuple(int(x) for x in np.argwhere(bad)[0])
        codes = [tuple(int(x[place]) for x in some) for some in (inputs, outputs, expected)]
        first = LaneDifference(immediates=immediates, given=codes[0], gpu=codes[1], model=codes[2])
    return Found(outputs=int(lanes.sum()) * (len(bad) // len(lanes)), differences=count, first=first)


@cache
def _kernel_text(row: Operation, immediates: tuple[int, ...], target: str, version: tuple[int, int]) -> str:
    return ptx_module([row_kernel(row, "row", immediates)], target, version)


def left_out(target: str) -> dict[str, str]:
    """Say which operations of a target are not compared, and why, by opcode."""
    every = {row.mnemonic.partition(".")[0] for row in operations(target)}
    return {name: "results depend on where memory lies" for name in _ADDRESSES if name in every}


def row_groups(target: str, lanes: int, seed: int, fits: Callable[[str], bool]) -> Iterator[RowComparison]:
    """Sort the operations of a target and their variants whose names fit, functions aside, into groups."""
    groups: dict[tuple[str, tuple[str, ...]], dict[str, Operation]] = {}
    variants = ((name, row) for name, row in every_variant(target) if fits(name))
    rows = (
        (row.mnemonic, row) for row in sorted(operations(target), key=lambda row: row.mnemonic) if _taken(row, fits)
    )
    for name, row in (*rows, *variants):
        # Of movers of vectors, which are named by no mnemonic of the table, only widths are known.
        of = "" if any(row.vectors) else signature(operation(row.mnemonic))
        groups.setdefault((of, row.inputs), {})[name] = row
    for found in groups.values():
        first, row = next(iter(found.items()))
        every = row.inputs == ("b16",) and not row.lanes
        draw = _of_function(every_code) if every else partial(_operands, first, row, seed)
        most = 1 << 16 if every else None
        for i in range(0, len(found), _MOST_ROWS):
            part = dict(itertools.islice(found.items(), i, i + _MOST_ROWS))
            yield RowComparison(kind="operation", rows=part, lanes=min(lanes, most or lanes), draw=draw, most=most)


def _taken(row: Operation, fits: Callable[[str], bool]) -> bool:
    opcode = row.mnemonic.partition(".")[0]
    return fits(row.mnemonic) and not _is_function(row) and opcode not in _ADDRESSES


def _operands(name: str, row: Operation, seed: int, number: int, lanes: int) -> tuple[Array, ...]:
    return variant_inputs(name, row, lanes, seed * _MOST_PIECES + number)


def _is_function(row: Operation) -> bool:
    """Whether PTX calls an operation approximate."""
    return not {"approx", "full"}.isdisjoint(row.mnemonic.split("."))


def function_groups(target: str, lanes: int, pairs: int, fits: Callable[[str], bool]) -> Iterator[RowComparison]:
    """Give each approximate function of a target whose name fits; `pairs` operands where not all are compared."""
    for row in operations(target):
        rounded = pairs >= EVERY_QUOTIENT and row.mnemonic.startswith(("rcp.", "sqrt.")) and row.types == ("f32",)
        if not (fits(row.mnemonic) and (_is_function(row) or rounded)):
            continue
        name = row.mnemonic if _is_function(row) else f"{row.mnemonic} of all operands"
        total, drawn = function_plan(row, max(LANES, pairs // LANES * LANES))
        yield RowComparison(
            kind="function", rows={name: row}, lanes=min(lanes, total), most=total, draw=_of_function(drawn)
        )


def _of_function(drawn: Operands) -> Callable[[int, int], tuple[Array, ...]]:
    return lambda first, count: tuple(x.reshape(-1, LANES) for x in drawn(first, count))
