"""The control-flow graph of a function: basic blocks, from labels and jumps."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ..text import Function, Label, Module, Statement, Symbol, VectorOf

ENDS = ("ret", "exit", "trap")
"""Opcodes after which control does not continue, unless they are guarded."""

JUMPS = ("bra", "brx")

_LEAVES = ("ret", "exit")


@dataclass
class BasicBlock:
    """Statements that run one after the other; `targets` are the blocks that the last one jumps to."""

    numbers: list[int] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    next: int | None = None  # the block that it falls through to

    @property
    def branch(self) -> Statement | None:
        """The branch at its end."""
        last = self.statements[-1] if self.statements else None
        return last if last is not None and last.opcode in JUMPS else None

    @property
    def successors(self) -> list[int]:
        """Blocks that may come next, the one that it falls through to last."""
        return self.targets if self.next is None else [*self.targets, self.next]


def cut(module: Module, function: Function) -> list[BasicBlock]:
    """Cut a body into blocks: at every label, and behind jumps and what ends a thread.

    Raises
    ------
    PtxError
        A jump to an undefined label.
    """
    labels = {x.name for x in function.body if isinstance(x, Label)}
    jumps: dict[int, Sequence[str]] = {}
    for i, x in enumerate(function.body):
        if isinstance(x, Statement) and x.opcode in JUMPS:
            jumps[i] = _names(module, function, x)
            for name in jumps[i]:
                if name not in labels:
                    raise module.error_at(x, f"{x.mnemonic}: no label {name} is in this function")
    behind = [
        i for i, x in enumerate(function.body) if isinstance(x, Statement) and x.guard is None and x.opcode in ENDS
    ]
    return cut_at(function, jumps, labels, behind)


def graph(function: Function) -> list[BasicBlock]:
    """Cut a body into blocks as `cut`, but only at labels that are jumped to, and without errors."""
    statements = {i: one for i, one in enumerate(function.body) if isinstance(one, Statement)}
    jumps = {i: _led(function, one) for i, one in statements.items() if one.opcode in JUMPS}
    meant = {name for names in jumps.values() for name in names}
    return cut_at(function, jumps, meant, [i for i, one in statements.items() if one.opcode in _LEAVES])


def _led(function: Function, one: Statement) -> tuple[str, ...]:
    """Labels to which a jump may lead."""
    last = one.operands[-1] if one.operands else None
    if not isinstance(last, Symbol):
        return ()
    return function.targets.get(last.name, ()) if one.opcode == "brx" else (last.name,)


def cut_at(
    function: Function, jumps: Mapping[int, Sequence[str]], labels: Collection[str], behind: Collection[int]
) -> list[BasicBlock]:
    """Cut a body into blocks: at these labels, behind these jumps, and behind further statements, by number."""
    blocks, at, ends = [BasicBlock()], dict[str, int](), {*jumps, *behind}
    for i, x in enumerate(function.body):
        if not isinstance(x, Label):
            blocks[-1].numbers.append(i)
            blocks[-1].statements.append(x)
        if i in ends or (isinstance(x, Label) and x.name in labels and blocks[-1].statements):
            blocks.append(BasicBlock())
        if isinstance(x, Label) and x.name in labels:
            at[x.name] = len(blocks) - 1
    for b, block in enumerate(blocks[:-1]):
        i, last = block.numbers[-1], block.statements[-1]
        block.targets = [at[name] for name in jumps.get(i, ()) if name in at]
        leaves = i in ends and last.guard is None
        block.next = None if leaves else b + 1
    return blocks


def _names(module: Module, function: Function, branch: Statement) -> list[str]:
    """Labels that a branch may lead to."""
    last = branch.operands[-1] if branch.operands else None
    if branch.opcode == "bra" and isinstance(last, Symbol) and len(branch.operands) == 1:
        return [last.name]
    if branch.opcode == "brx" and len(branch.operands) == 2:
        if isinstance(last, VectorOf):
            return [x.name for x in last.items if isinstance(x, Symbol)]
        if isinstance(last, Symbol) and last.name in function.targets:
            return list(function.targets[last.name])
    expected = "an index and a list of labels" if branch.opcode == "brx" else "one label"
    raise module.error_at(branch, f"{branch.mnemonic} takes {expected}")
