"""The call graph of an entry: functions that it may call, directly or through their addresses, and variables."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..flow import symbols_of
from ..text import AddressOf, Function, Module, Statement, Symbol
from .slots import Declared


@dataclass
class Reach:
    """What an entry can reach.

    Attributes
    ----------
    functions : list of str
        With a body, the entry first.
    variables : list of str
        Of the module.
    missing : list of str
        Functions that are called and have no body.
    taken : set of str
        Functions whose address is used.
    calls : dict of str to set of str
        Of each function, those that it calls by name.
    indirect : set of str
        Functions that call through a register.
    """

    functions: list[str] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    calls: dict[str, set[str]] = field(default_factory=dict)
    indirect: set[str] = field(default_factory=set)

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
            found.missing.append(name)
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
    """Find functions on a cycle: strongly connected components, by Tarjan's algorithm without recursion."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: set[str] = set()
    for root in graph:
        if root in number:
            continue
        work = [(root, iter(sorted(graph[root])))]
        number[root] = lowest[root] = len(number)
        stack.append(root)
        while work:
            name, others = work[-1]
            other = next(others, None)
            if other is None:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[name])
                if lowest[name] == number[name]:
                    found |= _component(stack, name, graph, number)
            elif other in graph and other not in number:
                number[other] = lowest[other] = len(number)
                stack.append(other)
                work.append((other, iter(sorted(graph[other]))))
            elif other in graph and number[other] >= 0:
                lowest[name] = min(lowest[name], number[other])
    return found


def _component(stack: list[str], first: str, graph: dict[str, set[str]], number: dict[str, int]) -> set[str]:
    """Take a component off the stack; one of its own is on a cycle if it leads to itself."""
    members: set[str] = set()
    while first not in members:
        members.add(stack.pop())
    alone = len(members) == 1 and first not in graph[first]
    number.update(dict.fromkeys(members, -1))  # done: what leads here later is on no cycle with it
    return set() if alone else members
