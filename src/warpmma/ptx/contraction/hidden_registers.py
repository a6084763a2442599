"""Registers that a rewritten body has besides those of its text."""

from __future__ import annotations

from dataclasses import replace

from ..text import Function, Label, Position, RegisterRange, Statement, Symbol


class HiddenRegisters:
    """Registers that a way of rewriting makes.

    Parameters
    ----------
    prefix : str
        How their names begin; a blank follows, which no name in a text has.

    Examples
    --------
    >>> hidden = HiddenRegisters("%fused")
    >>> hidden.new("b32"), hidden.new("b32").name
    (Symbol(name='%fused b32 0', scope=0), '%fused b32 1')
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._made: dict[str, int] = {}

    def new(self, kind: str) -> Symbol:
        """Make a register of a class."""
        number = self._made.get(kind, 0)
        self._made[kind] = number + 1
        return Symbol(f"{self._prefix} {kind} {number}", 0)

    def declared(self, function: Function, body: list[Statement | Label]) -> Function:
        """Return a function with another body, which declares them."""
        ranges = tuple(self._range(kind, count, function.position) for kind, count in self._made.items())
        scopes = ((*function.scopes[0], *ranges), *function.scopes[1:])
        return replace(function, body=tuple(body), scopes=scopes)

    def _range(self, kind: str, count: int, position: Position) -> RegisterRange:
        return RegisterRange(f"{self._prefix} {kind} ", kind, 1, count, position)


def is_hidden(name: str) -> bool:
    """Whether a slot's name is none of the text's."""
    return " " in name
