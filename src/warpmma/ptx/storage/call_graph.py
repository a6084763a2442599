"""The call graph of an entry: functions that it may call, directly or through their addresses, and variables."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..flow import components, symbols_of
from ..text import AddressOf, Function, Module, Statement, Symbol
from .slots import Declared


@dataclass
class Reach:
    """The functions with a body that an entry can reach, itself first, and the variables of the module."""

    functions: list[str] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)  # functions whose address is used
    calls: dict[str, set[str]] = field(default_factory=dict)  # of each function, those that it calls by name
    indirect: set[str] = field(default_factory=set)  # functions that call through a register

    @property
    def recursive(self) -> set[str]:
        """Functions that may run while they are running already."""
        indirectly = {name: self.taken if name in self.indirect else set() for name in self.calls}
        graph = {name: called | indirectly[name] for name, called in self.calls.items()}
        return _in_cycles(graph)


def reach(module: Module, entry: str) -> Reach:
    """Follow calls, addresses and initial values from an entry."""
    found = Reach()
    todo, seen = [entry], {entry}

    def meet(name: str) -> None:
        if name not in seen and (name in module.kinds or name in module.variables):
            seen.add(name)
            todo.append(name)

    while todo:
        name = todo.pop()
        if name in module.variables:
            found.variables.append(name)
            for address in module.variables[name].initial:
                if isinstance(address, AddressOf):
                    found.taken.update({address.name} & set(module.kinds))
                    meet(address.name)
            continue
        function = module.functions[name]
        if not function.defined:
            continue
        found.functions.append(name)
        called, used, indirect = _used(function)
        found.calls[name] = called
        found.taken |= {x for x in used if x in module.kinds}
        if indirect:
            found.indirect.add(name)
        for x in (*sorted(called), *sorted(used)):
            meet(x)
    return found


def _used(function: Function) -> tuple[set[str], set[str], bool]:
    """Names that a function calls, other names that it uses, and whether it calls through a register."""
    called: set[str] = set()
    used: set[str] = set()
    indirect = False
    declared = Declared(function)
    for _, variable in declared.variables():
        used.update(x.name for x in variable.initial if isinstance(x, AddressOf))
    for statement in function.body:
        if not isinstance(statement, Statement):
            continue
        to = callee(statement)
        if to is not None:
            if declared.find(to) is None:
                called.add(to.name)
            else:
                indirect = True
        used.update(x.name for y in statement.operands for x in symbols_of(y) if x.scope < 0 and x is not to)
    return called, used, indirect


def callee(statement: Statement) -> Symbol | None:
    """Return the callee of a `call`; None for other statements."""
    if statement.opcode != "call":
        return None
    return next((x for x in statement.operands if isinstance(x, Symbol)), None)


def _in_cycles(graph: dict[str, set[str]]) -> set[str]:
    """Find functions on a cycle: strongly connected components, and functions that call themselves."""
    names = sorted(graph)
    number = {name: i for i, name in enumerate(names)}
    edges = [[number[x] for x in graph[name] if x in number] for name in names]
    parts = components(edges, range(len(names)))
    return {names[i] for part in parts for i in part if len(part) > 1 or i in edges[i]}
