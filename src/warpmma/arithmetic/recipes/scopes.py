"""Tables in which exactly one row answers for an instruction at a place.

Rules
-----
1. A row has a scope: one group of instructions; the places where it holds, targets or generations; and of the group
   those instructions whose attributes have certain values.
2. Two rows meet if they have the group in common, a place, and a value of every attribute that both speak of.
3. Rows that meet are nested: the scope of one lies within that of the other and is not the same, and it stands first.
   So the rows that fit an instruction at a place are nested too, and the first of them, the most special, answers.
4. Every legal instruction has an answer at every place that the table knows, and every row is the answer for one.

Rule 3 is checked where a table is made, on the rows alone; rule 4 before anything is looked up, for `mma` and for
`wgmma` apart: it takes the list of all instructions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Generic, TypeVar

from ..._records import Shown
from ...errors import TableError
from ...isa import AnyInstruction, Instruction, WarpgroupInstruction, instructions, warpgroup_instructions
from .instruction_groups import WARPGROUPS, group, group_of


@dataclass(frozen=True, kw_only=True)
class Scope(Shown):
    """What a row of a table speaks of.

    Attributes
    ----------
    group : str
        See `instruction_groups.group`.
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

    def fits(self, instruction: str | AnyInstruction, place: str) -> bool:
        """Whether the row speaks of this instruction at this place."""
        return self.group == group(instruction) and self.fits_in_group(instruction, place)

    def fits_in_group(self, instruction: object, place: str) -> bool:
        """Whether the row speaks of this instruction, one of its group, at this place."""
        return place in self.places and all(getattr(instruction, name) in values for name, values in self.only)

    def within(self, other: Scope) -> bool:
        """Whether the other row speaks of all that this one speaks of."""
        mine = dict(self.only)
        return (
            self.group == other.group
            and set(self.places) <= set(other.places)
            and all(name in mine and set(mine[name]) <= set(values) for name, values in other.only)
        )

    def meets(self, other: Scope) -> bool:
        """Whether both rows may speak of one instruction at one place."""
        theirs = dict(other.only)
        return (
            self.group == other.group
            and not set(self.places).isdisjoint(other.places)
            and all(name not in theirs or not set(values).isdisjoint(theirs[name]) for name, values in self.only)
        )


Row = TypeVar("Row", bound=Scope)


class ScopedTable(Generic[Row]):
    """Rows of which exactly one answers.

    Parameters
    ----------
    name : str
        For messages.
    rows : iterable of Scope
    places : callable
        From an instruction to the places where it is legal and an answer is due.

    Raises
    ------
    TableError
        Two rows that meet and are not nested, or stand in the wrong order.
    """

    def __init__(self, name: str, rows: Iterable[Row], places: Callable[[AnyInstruction], tuple[str, ...]]) -> None:
        self.name = name
        self.rows = tuple(rows)
        self._places = places
        self._of_group: dict[str, list[Row]] = {}
        self._complete: set[type[AnyInstruction]] = set()
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
            what = "has rows that overlap, and neither lies within the other"
        else:
            return
        raise TableError(f"{self.name} {what}: {first}; {second}")

    def find(self, record: AnyInstruction, place: str) -> Row | None:
        """Return the row that answers for a legal instruction; None at a place where no answer is due.

        Raises
        ------
        TableError
            An instruction of this kind without a row, or a row that answers for none.
        """
        if type(record) not in self._complete:
            self.check_complete(type(record))
        return self._first(record, group_of(record), place)

    def _first(self, record: AnyInstruction, group: str, place: str) -> Row | None:
        return next((row for row in self._of_group.get(group, ()) if row.fits_in_group(record, place)), None)

    def check_complete(self, kind: type[AnyInstruction]) -> None:
        """Rule 4: raise `TableError` unless all instructions of a kind have rows, and all rows for it instructions."""
        # Instructions that no row can tell apart are asked for once.
        different: dict[tuple[object, ...], tuple[AnyInstruction, str]] = {}
        every: tuple[AnyInstruction, ...] = instructions() if kind is Instruction else warpgroup_instructions()
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
