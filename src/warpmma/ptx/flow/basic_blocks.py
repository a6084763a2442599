"""Basic blocks of a function: from labels and branches to a graph."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..text import Function, Label, Module, Statement, Symbol, VectorOf

ENDS = ("ret", "exit", "trap")
"""Behind which nothing follows, unless they are guarded."""


@dataclass
class BasicBlock:
    """Statements that follow each other.

    Attributes
    ----------
    statements : list of Statement
        The last may be a `bra` or `brx`.
    targets : list of int
        Blocks that it leads to.
    next : int or None
        The one that follows where it leads to none; None where nothing does.
    """

    statements: list[Statement] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    next: int | None = None

    @property
    def branch(self) -> Statement | None:
        """The branch at its end."""
        last = self.statements[-1] if self.statements else None
        return last if last is not None and _opcode(last) in ("bra", "brx") else None

    @property
    def successors(self) -> list[int]:
        """Blocks that may come next, the one that follows in the text last."""
        return self.targets if self.next is None else [*self.targets, self.next]


def cut(module: Module, function: Function) -> list[BasicBlock]:
    """Cut a body into blocks.

    Raises
    ------
    PtxError
        A branch to what is no label.
    """
    blocks, labels, open_ = [BasicBlock()], {}, True
    for x in function.body:
        if isinstance(x, Label):
            if open_ and blocks[-1].statements:
                blocks[-1].next = len(blocks)
            if not open_ or blocks[-1].statements:
                blocks.append(BasicBlock())
            labels[x.name], open_ = len(blocks) - 1, True
            continue
        if not open_:
            blocks.append(BasicBlock())
            open_ = True
        blocks[-1].statements.append(x)
        if _opcode(x) in ("bra", "brx") or (_opcode(x) in ENDS and x.guard is None):
            if x.guard is not None:
                blocks[-1].next = len(blocks)
                blocks.append(BasicBlock())
            else:
                open_ = False
    for block in blocks:
        if block.branch is not None:
            block.targets = [
                _found(module, block.branch, name, labels) for name in _names(module, function, block.branch)
            ]
    return blocks


def _opcode(statement: Statement) -> str:
    return statement.mnemonic.partition(".")[0]


def _names(module: Module, function: Function, branch: Statement) -> list[str]:
    """Labels that a branch may lead to."""
    last = branch.operands[-1] if branch.operands else None
    if _opcode(branch) == "bra" and isinstance(last, Symbol) and len(branch.operands) == 1:
        return [last.name]
    if _opcode(branch) == "brx" and len(branch.operands) == 2:
        if isinstance(last, VectorOf):
            return [x.name for x in last.items if isinstance(x, Symbol)]
        if isinstance(last, Symbol) and last.name in function.targets:
            return list(function.targets[last.name])
    expected = "an index and a list of labels" if _opcode(branch) == "brx" else "one label"
    raise module.error_at(branch, f"{branch.mnemonic} takes {expected}")


def _found(module: Module, branch: Statement, name: str, labels: dict[str, int]) -> int:
    if name not in labels:
        raise module.error_at(branch, f"{branch.mnemonic}: no label {name} is in this function")
    return labels[name]
