"""Places in a PTX text: the statements of an entry as they are written, so that one can be changed and the rest stays.

1. A statement is found by the package's own reader, and written again from its text: the mnemonic is that of the
   record, operands are the pieces between commas.
2. A change replaces pieces of the text. What is replaced keeps its line breaks, so that all other lines keep their
   numbers.
3. A wait in a loop is one unit: its label, the wait, and the branch back to the label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from warpmma import ptx
from warpmma.ptx.text.syntax import (
    Element,
    Function,
    Immediate,
    Label,
    Negation,
    Operand,
    Place,
    RegisterRange,
    Selection,
    Statement,
    Symbol,
    VectorOf,
    bytes_of,
)

__all__ = ["Body", "Edit", "Unit", "Written", "changed", "pieces", "symbols"]

Edit = tuple[int, int, str]
"""Two offsets in a text, and what stands between them instead."""

_GUARD = re.compile(r"@\s*!?\s*[%\w$]+\s*$")
_NEAR = 6  # statements between a label, a wait and the branch back
_STORES = ("st", "red", "cp", "bar", "barrier", "fence", "membar", "bra", "ret", "exit", "prefetch", "tensormap",
           "setmaxnreg")  # fmt: skip


def changed(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with pieces replaced, whose lines keep their numbers (rule 2)."""
    for start, end, piece in sorted(edits, reverse=True):
        text = text[:start] + piece + "\n" * text.count("\n", start, end) + text[end:]
    return text


def symbols(operand: Operand) -> Iterator[Symbol]:
    """Yield the names in an operand."""
    match operand:
        case Symbol():
            yield operand
        case Negation(operand=inner) | Selection(register=inner) | Element(vector=inner):
            yield from symbols(inner)
        case VectorOf(items=items):
            for item in items:
                yield from symbols(item)
        case Place(base=base, more=more):
            for item in (*([base] if base is not None else []), *more):
                yield from symbols(item)
        case Immediate():
            return


@dataclass(frozen=True)
class Written:
    """A statement in a text.

    Attributes
    ----------
    statement : Statement
    start, end : int
        Offsets of its guard, or of its mnemonic, and behind its semicolon.
    guard : str
        "@%p " or "".
    operands : tuple of str
        As they are written; `d|p` is one.
    """

    statement: Statement
    start: int
    end: int
    guard: str
    operands: tuple[str, ...]

    def again(
        self, mnemonic: str | None = None, operands: Iterable[str] | None = None, guard: str | None = None
    ) -> str:
        """Write it again, with parts replaced."""
        pieces = ", ".join(self.operands if operands is None else operands)
        name = self.statement.mnemonic if mnemonic is None else mnemonic
        return f"{self.guard if guard is None else guard}{name} {pieces}".rstrip() + ";"

    @property
    def names(self) -> set[Symbol]:
        """All that it reads or writes."""
        found = {x for operand in self.statement.operands for x in symbols(operand)}
        return found | ({self.statement.guard} if self.statement.guard is not None else set())

    @property
    def defined(self) -> set[Symbol]:
        """The registers that it writes."""
        if self.statement.opcode in _STORES or not self.statement.operands:
            return set()
        first = self.statement.operands[: 1 + self.statement.paired]
        return {x for operand in first if not isinstance(operand, Place) for x in symbols(operand)}


@dataclass(frozen=True)
class Unit:
    """A statement, or a wait with its loop: `first` to `last` are indices of the body (rule 3)."""

    at: int
    first: int
    last: int


class Body:
    """The body of an entry in a text."""

    def __init__(self, text: str, entry: str) -> None:
        self.text = text
        self.function: Function = ptx.read(text).functions[entry]
        self.items = self.function.body
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]
        self.written = {i: self._written(x) for i, x in enumerate(self.items) if isinstance(x, Statement)}

    def offset(self, item: Statement | Label) -> int:
        """Return where a label, or the mnemonic of a statement, begins."""
        return self._lines[item.position.line - 1] + item.position.column - 1

    def _written(self, statement: Statement) -> Written:
        start = self.offset(statement)
        end = self.text.index(";", start) + 1
        rest = self.text[start : end - 1]
        for word in re.split(r"(?=\.)", statement.mnemonic):  # blanks may stand before a point
            rest = rest.lstrip().removeprefix(word)
        guard = _GUARD.search(self.text, self._lines[statement.position.line - 1], start)
        begin = start if guard is None or statement.guard is None else guard.start()
        return Written(statement, begin, end, self.text[begin:start], tuple(pieces(rest)))

    @cached_property
    def _labels(self) -> dict[str, int]:
        return {x.name: i for i, x in enumerate(self.items) if isinstance(x, Label)}

    def target(self, index: int) -> int | None:
        """Return the label that a branch goes to, by its index."""
        item = self.items[index]
        if not isinstance(item, Statement) or item.opcode != "bra" or not isinstance(item.operands[0], Symbol):
            return None
        return self._labels.get(item.operands[0].name)

    def unit(self, index: int, waits: bool) -> Unit:
        """Return a statement with its loop if it waits."""
        first = last = index
        if waits:
            back = [
                (label, i)
                for i in range(index + 1, min(index + _NEAR, len(self.items)))
                if (label := self.target(i)) is not None and index - _NEAR < label < index
            ]
            first, last = back[-1] if back else (index, index)
            after = last + 1
            if back and any(self.target(i) == after for i in range(index, last)):
                last = after  # the label where the loop ends
        return Unit(index, first, last)

    def before(self, unit: Unit) -> int:
        """Return the offset before a unit."""
        item = self.items[unit.first]
        return self.written[unit.first].start if isinstance(item, Statement) else self.offset(item)

    def after(self, unit: Unit) -> int:
        """Return the offset behind a unit."""
        item = self.items[unit.last]
        if isinstance(item, Statement):
            return self.written[unit.last].end
        return self.text.index(":", self.offset(item)) + 1

    def width(self, register: Symbol) -> int:
        """Return the bits of a register."""
        for declared in self.function.scopes[max(register.scope, 0)]:
            number = register.name.removeprefix(declared.name)
            counted = isinstance(declared, RegisterRange) and declared.count is not None and number.isdigit()
            if register.name == declared.name + number * counted:
                return 8 * bytes_of(declared.type)
        raise KeyError(register.name)


def pieces(text: str) -> list[str]:
    """Split operands at their commas."""
    depth, found = 0, [""]
    for character in text:
        depth += (character in "[{(") - (character in "]})")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [x.strip() for x in found if x.strip()]
