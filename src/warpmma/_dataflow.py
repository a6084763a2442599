"""Data flow through a graph of blocks, backwards and forwards."""

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


def settle_forwards(successors: Sequence[Iterable[int]], visit: Callable[[int, Sequence[int]], bool]) -> None:
    """Visit every block, the first first, and again those that follow a block whose facts have changed.

    `visit`, which is also given the blocks that a block follows, computes the facts after the block from those after
    them, and returns whether they changed.
    """
    last = len(successors) - 1
    before: list[list[int]] = [[] for _ in successors]
    for a, following in enumerate(successors):
        for b in following:
            before[b].append(a)
    turned = [[last - a for a in before[last - b]] for b in range(len(before))]  # `settle` goes backwards
    settle(turned, lambda b: visit(last - b, before[last - b]))
