"""Functions as syntax trees in which one thing is changed.

An `Edit` is found in the tree as it is written, and made in a copy of it. What it changes keeps its place in the
source, so that hazards name the line.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Edit", "Function", "added", "call", "combined", "number"]

_SHORT = 72  # characters of source that a mutation's name shows


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One change of a function.

    Attributes
    ----------
    operator : str
        What kind of change.
    node : ast.AST
        What is changed, as it is written.
    how : str
        What becomes of it.
    make : callable
        Changes a copy; called with a function that finds a node's or a list's copy.
    """

    operator: str
    node: ast.AST
    how: str
    make: Callable[[Callable[[Any], Any]], None]

    @property
    def name(self) -> str:
        """What is changed and how, for people and for the table of harmless ones; no line number, which would move."""
        text = re.sub(r"\s+", " ", ast.unparse(self.node))
        text = text if len(text) <= _SHORT else text[: _SHORT - 3] + "..."
        return f"{self.operator}: {text}" + (f" -> {self.how}" if self.how else "")


class Function:
    """A function of a module, and what stands where in it.

    Parameters
    ----------
    syntax : ast.FunctionDef
    names : mapping
        Of its module: what mnemonics and masks that have a name are.
    """

    def __init__(self, syntax: ast.FunctionDef, names: Mapping[str, Any]) -> None:
        self.syntax, self._names = syntax, names
        self._places: dict[int, tuple[ast.AST, str, int | None]] = {}
        self.nodes = [x for statement in syntax.body for x in _walk(statement)]
        for parent in (syntax, *self.nodes):
            for field, value in ast.iter_fields(parent):
                for i, x in enumerate(value if isinstance(value, list) else [value]):
                    if isinstance(x, ast.AST):
                        self._places[id(x)] = parent, field, i if isinstance(value, list) else None

    def parent(self, node: ast.AST) -> ast.AST:
        """Return what a node is a part of."""
        return self._places[id(node)][0]

    def value(self, x: ast.expr) -> Any:
        """Return a constant, or what a name of the module means; else None."""
        if isinstance(x, ast.Constant):
            return x.value
        return self._names.get(x.id) if isinstance(x, ast.Name) else None

    def mnemonic(self, x: ast.AST) -> str:
        """Return the instruction that an expression or statement executes, "" for none."""
        if isinstance(x, ast.Expr):
            x = x.value
        if not (isinstance(x, ast.Call) and isinstance(x.func, ast.Name) and x.func.id == "t" and x.args):
            return ""
        found = self.value(x.args[0])
        return found if isinstance(found, str) else ""

    def calls(self, *beginnings: str) -> Iterator[tuple[ast.Call, str]]:
        """Find instructions that begin like this."""
        for x in self.nodes:
            if isinstance(x, ast.Call) and (name := self.mnemonic(x)) and name.startswith(beginnings):
                yield x, name

    def bodies(self) -> Iterator[list[ast.stmt]]:
        """Find every list of statements."""
        for x in (self.syntax, *self.nodes):
            for field in ("body", "orelse", "finalbody"):
                found = getattr(x, field, None)
                if isinstance(found, list) and found:
                    yield found

    def replaced(self, operator: str, node: ast.AST, how: str, new: ast.AST | Callable[[Any], ast.AST]) -> Edit:
        """Put something else into a node's place: a node, or one made of the node's copy."""
        parent, field, i = self._places[id(node)]

        def make(twin: Callable[[Any], Any]) -> None:
            old = twin(node)
            made = ast.copy_location(new(old) if callable(new) else copy.deepcopy(new), node)
            if i is None:
                setattr(twin(parent), field, made)
            else:
                getattr(twin(parent), field)[i] = made

        return Edit(operator=operator, node=node, how=how, make=make)

    def dropped(self, operator: str, statement: ast.stmt) -> Edit:
        """Leave a statement out."""
        return self.replaced(operator, statement, "", ast.Pass())

    def made(self, edit: Edit) -> ast.FunctionDef:
        """Return the function with a change."""
        memo: dict[int, Any] = {}
        changed = copy.deepcopy(self.syntax, memo)
        edit.make(lambda x: memo[id(x)])
        return ast.fix_missing_locations(changed)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Go through nodes in the order in which they are written, all but."""
    yield node
    for x in ast.iter_child_nodes(node):
        yield from _walk(x)


def number(value: int) -> ast.Constant:
    """Return the syntax of a number."""
    return ast.Constant(value)


def added(x: ast.expr, value: int) -> ast.expr:
    """Return the syntax of a sum: of a number and a constant, or of anything."""
    if isinstance(x, ast.Constant) and isinstance(x.value, int):
        return number(x.value + value)
    operator = ast.Add() if value >= 0 else ast.Sub()
    return ast.BinOp(left=x, op=operator, right=number(abs(value)))


def combined(operator: ast.operator, right: ast.expr) -> Callable[[Any], ast.AST]:
    """Return what makes of a node an operation on it."""
    return lambda old: ast.BinOp(left=old, op=operator, right=right)


def call(name: str, *arguments: ast.expr) -> ast.Call:
    """Return the syntax of a call."""
    return ast.Call(func=ast.Name(name, ast.Load()), args=list(arguments), keywords=[])
