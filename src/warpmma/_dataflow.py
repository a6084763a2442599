"""Data flow backwards through a graph of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


def settle(successors: Sequence[Iterable[int]], visit: Callable[[int], bool]) -> None:
    """Visit every block, the last first, and again those that lead to a block whose facts have changed.

    `visit` computes the facts before a block from those before its successors, and returns whether they changed.
    """
    predecessors: list[list[int]] = [[] for _ in successors]
    for a, following in enumerate(successors):
        for b in following:
            predecessors[b].append(a)
    work = list(range(len(successors)))
    waiting = set(work)
    while work:
        b = work.pop()
        waiting.discard(b)
        if visit(b):
            again = [a for a in predecessors[b] if a not in waiting]
            waiting.update(again)
            work += again
