"""Registers of a function: from names in scopes to slots of a program, allocated at first use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from ...operations import RegisterType
from ..text import Declaration, Function, Symbol, Variable, bytes_of, declared


def register_class(type_: str) -> RegisterType:
    """Class of the registers of a declared type, which is its width alone; 128 bits are two registers of 64.

    Examples
    --------
    >>> register_class("f16x2"), register_class("u8"), register_class("pred"), register_class("b128")
    ('b32', 'b16', 'pred', 'b64')
    """
    return "pred" if type_ == "pred" else cast(RegisterType, f"b{8 * min(max(bytes_of(type_), 2), 8)}")


class Slots:
    """Slots of a program, by number."""

    def __init__(self) -> None:
        self.kinds: list[RegisterType] = []
        self.names: list[str] = []

    def new(self, kind: RegisterType, name: str) -> int:
        """Return the number of a new one."""
        self.kinds.append(kind)
        self.names.append(name)
        return len(self.kinds) - 1


class Declared:
    """What the scopes of a function declare, by name."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._found: dict[Symbol, Declaration | None] = {}

    def find(self, symbol: Symbol) -> Declaration | None:
        """Return the declaration of a name; None where no scope of the function has one."""
        if symbol not in self._found:
            self._found[symbol] = declared(self._function, symbol)
        return self._found[symbol]

    def variables(self) -> Iterator[tuple[int, Variable]]:
        """List the variables of all scopes with the numbers of these, parameters and results too."""
        for number, scope in enumerate(self._function.scopes):
            yield from ((number, x) for x in scope if isinstance(x, Variable))
