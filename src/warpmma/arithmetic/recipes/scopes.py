"""Tables in which exactly one row answers for an instruction at a place.

Rules
-----
1. A row has a scope: one group of instructions; the places where it holds, targets or generations; and of the group
   those instructions whose attributes have certain values.
2. Two rows overlap if they share the group, a place, and a value of every attribute that both mention.
3. Rows that overlap are nested: the scope of one lies strictly within that of the other, and it comes first. So the
   rows that fit an instruction at a place are nested too, and the first of them, the most specific, answers.
4. Every legal instruction has an answer at every place that the table knows, and every row is the answer for one.

Rule 3 is checked where a table is made, on the rows alone; rule 4 before the first look-up, for `mma` and for `wgmma`
apart, since it needs the list of all instructions.

A group holds the instructions that share a path through the hardware on each target. The types of A and B decide it,
except for f16 in the one shape that has a unit of its own, and for block-scaled instructions, whose kind decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Generic, TypeVar

from ..._records import Shown
from ...errors import TableError, UnsupportedError
from ...isa import Instruction, MatrixInstruction, WarpgroupInstruction, instructions, parse_any, warpgroup_instructions

WARPGROUPS = "wgmma "
"""Prefix of the names of `wgmma` groups."""

# What the types of A and B are; e4m3 and e5m2 have a path of their own where no narrower type is with them.
_TYPES: Mapping[str, str] = MappingProxyType({
    "f16": "half", "bf16": "half", "tf32": "half", "e4m3": "fp8", "e5m2": "fp8", "e3m2": "f8f6f4", "e2m3": "f8f6f4",
    "e2m1": "f8f6f4", "f64": "f64", "s8": "int8", "u8": "int8", "s4": "int4", "u4": "int4", "b1": "b1",
})  # fmt: skip


def group(instruction: str | MatrixInstruction) -> str:
    """Name the group of instructions that share a lowering: the types decide it, or the shape where one type has two.

    Examples
    --------
    >>> group("mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32")
    'fp8'
    >>> group("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2")
    'wgmma fp8'
    """
    return group_of(parse_any(instruction))


def group_of(record: MatrixInstruction) -> str:
    """Name the group of a record that is known to be legal; `UnsupportedError` if its types are of no group."""
    if record.shape == "m8n8k4" and record.a_type == record.b_type == "f16":
        return "quad pair"
    if record.block_scale:
        return str(record.kind)
    found = {_TYPES.get(record.a_type), _TYPES.get(record.b_type)}
    if found == {"fp8", "f8f6f4"}:
        found = {"f8f6f4"}
    name = found.pop()
    if found or name is None:
        raise UnsupportedError(f"{record}: no group of instructions has A of {record.a_type} and B of {record.b_type}")
    return WARPGROUPS + name if isinstance(record, WarpgroupInstruction) else name


@dataclass(frozen=True, kw_only=True)
class Scope(Shown):
    """The instructions and places that a row of a table covers.

    Attributes
    ----------
    group : str
        See `group`.
    places : tuple of str
        Targets or generations, as the table has it.
    only : tuple of (str, tuple)
        Attributes of the instruction and the values that fit; of others any value does.
    """

    group: str
    places: tuple[str, ...]
    only: tuple[tuple[str, tuple[object, ...]], ...] = ()

    def __str__(self) -> str:
        where = " and ".join(f"{name} is {' or '.join(map(str, values))}" for name, values in self.only)
        return f"{self.group!r} on {', '.join(self.places)}" + f" where {where}" * bool(where)

    def fits(self, instruction: str | MatrixInstruction, place: str) -> bool:
        """Return whether the row covers this instruction at this place."""
        return self.group == group(instruction) and self.fits_in_group(instruction, place)

    def fits_in_group(self, instruction: object, place: str) -> bool:
        """Return whether the row covers this instruction, which is in its group, at this place."""
        return place in self.places and all(getattr(instruction, name) in values for name, values in self.only)

    def within(self, other: Scope) -> bool:
        """Return whether the other row covers all that this one covers."""
        mine = dict(self.only)
        return (
            self.group == other.group
            and set(self.places) <= set(other.places)
            and all(name in mine and set(mine[name]) <= set(values) for name, values in other.only)
        )

    def meets(self, other: Scope) -> bool:
        """Return whether both rows may cover one instruction at one place."""
        theirs = dict(other.only)
        return (
            self.group == other.group
            and not set(self.places).isdisjoint(other.places)
            and all(name not in theirs or not set(values).isdisjoint(theirs[name]) for name, values in self.only)
        )


Row = TypeVar("Row", bound=Scope)


class ScopedTable(Generic[Row]):
    """A table of rows in which exactly one row applies to each instruction and place.

    `places` maps an instruction to the places where it is legal and a row must apply. Rows that overlap without being
    nested, or are in the wrong order, are a `TableError`, whose message begins with `name`.
    """

    def __init__(self, name: str, rows: Iterable[Row], places: Callable[[MatrixInstruction], tuple[str, ...]]) -> None:
        self.name = name
        self.rows = tuple(rows)
        self._places = places
        self._of_group: dict[str, list[Row]] = {}
        self._complete: set[type[MatrixInstruction]] = set()
        for row in self.rows:
            self._of_group.setdefault(row.group, []).append(row)
        for those in self._of_group.values():
            for first, second in combinations(those, 2):
                self._check_nested(first, second)

    def _check_nested(self, first: Row, second: Row) -> None:
        """Rule 3."""
        inner, outer = first.within(second), second.within(first)
        if inner and outer:
            what = "speaks of the same twice"
        elif outer:
            what = "has a row that never answers, behind one that speaks of all it does"
        elif not inner and first.meets(second):
            what = "has rows that overlap without being nested"
        else:
            return
        raise TableError(f"{self.name} {what}: {first}; {second}")

    def find(self, record: MatrixInstruction, place: str) -> Row | None:
        """Return the row that answers for a legal instruction; None at a place where no answer is due.

        An instruction of this kind without a row, and a row without an instruction, are a `TableError`.
        """
        if type(record) not in self._complete:
            self.check_complete(type(record))
        return self._first(record, group_of(record), place)

    def _first(self, record: MatrixInstruction, group: str, place: str) -> Row | None:
        return next((row for row in self._of_group.get(group, ()) if row.fits_in_group(record, place)), None)

    def check_complete(self, kind: type[MatrixInstruction]) -> None:
        """Rule 4: raise `TableError` unless all instructions of a kind have rows, and all rows for it instructions."""
        # Instructions that no row distinguishes are looked up once.
        different: dict[tuple[object, ...], tuple[MatrixInstruction, str]] = {}
        every: tuple[MatrixInstruction, ...] = instructions() if kind is Instruction else warpgroup_instructions()
        for record in every:
            group, places = group_of(record), self._places(record)
            asked = {name: row for row in self._of_group.get(group, ()) for name, _ in row.only}
            for name in asked:
                if not hasattr(record, name):
                    raise TableError(f"{self.name} asks for {name!r}, which {record} does not have: {asked[name]}")
            values = (getattr(record, name) for name in asked)
            different.setdefault((group, places, *values), (record, group))
        used = set()
        for record, group in different.values():
            for place in self._places(record):
                row = self._first(record, group, place)
                if row is None:
                    raise TableError(f"{self.name} has no row for {record} on {place}, of the group {group!r}")
                used.add(id(row))
        for row in self.rows:
            if id(row) not in used and row.group.startswith(WARPGROUPS) == (kind is WarpgroupInstruction):
                raise TableError(f"{self.name} has a row that answers for no instruction: {row}")
        self._complete.add(kind)
