"""The order of a function's blocks, chosen so that diverged lanes reconverge: a weak topological order.

The rules:

1. The machine runs lanes with the lowest program counter first. So every block on a path between a branch and its join
   comes before the join: without loops, blocks are in topological order.
2. A loop (a strongly connected component) is contiguous and precedes all that follows it: lanes that left it wait
   behind it for those that still iterate. Its head comes first; the rest, without the edges to the head, is ordered in
   the same way.
3. The head of a loop with several entries is the first of them in the text: any is correct.
4. Where several edges lead back to a head, a block that jumps there is added at the end of the loop, and they lead to
   it: lanes of one iteration wait there for each other, as at a join.
5. Unreachable blocks are left out. Loops nested deeper than `DEEPEST` stay in the order of the text, which is slower
   and also correct.

The order is that of F. Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

DEEPEST = 64


def placed(successors: Sequence[Sequence[int]]) -> tuple[list[int], dict[tuple[int, int], int]]:
    """Order the blocks of a graph that is entered at block 0.

    `successors` lists the block that each one falls through to last. Returned are the reachable blocks, with numbers
    from `len(successors)` on for those of rule 4, and the edges that lead to such a block instead.

    Examples
    --------
    >>> placed([[2, 1], [3], [3], []])  # if, else
    ([0, 1, 2, 3], {})
    >>> placed([[1], [3, 2], [1, 3], []])  # a loop that is left in two places
    ([0, 1, 2, 3], {})
    >>> placed([[1], [1, 2], [1, 3], []])  # `continue`
    ([0, 1, 2, 4, 3], {(1, 1): 4, (2, 1): 4})
    """
    graph = [list(dict.fromkeys(x)) for x in successors]
    reached = _reached(graph)
    moved: dict[tuple[int, int], int] = {}
    order: list[int] = []
    work: list[tuple[list[int], int]] = [(reached, 0)]  # depth -1: as it is
    entered = {0, *_entered(graph, reached)}
    while work:
        nodes, depth = work.pop()
        if depth < 0 or (len(nodes) == 1 and nodes[0] not in graph[nodes[0]]):
            order += nodes
            continue
        for part in components(graph, nodes):
            if len(part) == 1 and part[0] not in graph[part[0]]:
                work.append((part, -1))
            elif depth >= DEEPEST:
                work.append((sorted(part), -1))
            else:
                work.extend(_loop(graph, part, entered, moved, depth))
    return order, moved


def _loop(
    graph: list[list[int]], part: list[int], entered: set[int], moved: dict[tuple[int, int], int], depth: int
) -> Iterator[tuple[list[int], int]]:
    """Cut a loop into its head, the rest and the block that jumps back: last part first (rules 2 to 4)."""
    inside = set(part)
    head = min((n for n in part if n in entered), default=min(part))
    back = sorted(n for n in part if head in graph[n])
    if len(back) > 1:
        latch = len(graph)
        graph.append([])
        moved.update(((n, head), latch) for n in back)
        yield [latch], -1
    for n in back:
        graph[n].remove(head)
    rest = [n for n in part if n != head]
    entered.update(n for n in graph[head] if n in inside)
    if rest:
        yield rest, depth + 1
    yield [head], -1


def _reached(graph: Sequence[Sequence[int]]) -> list[int]:
    seen, todo = {0}, [0]
    while todo:
        for n in graph[todo.pop()]:
            if n not in seen:
                seen.add(n)
                todo.append(n)
    return sorted(seen)


def _entered(graph: Sequence[Sequence[int]], nodes: Collection[int]) -> set[int]:
    """Blocks that are entered from another component than their own."""
    number = {n: i for i, part in enumerate(components(graph, nodes)) for n in part}
    return {m for n in nodes for m in graph[n] if number[m] != number[n]}


def components(graph: Sequence[Sequence[int]], nodes: Collection[int]) -> list[list[int]]:
    """Strongly connected components of some blocks, those that others lead to first (R. Tarjan, 1972)."""
    inside = set(nodes)
    found: list[list[int]] = []
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    held: set[int] = set()
    for root in sorted(inside, reverse=True):
        if root in index:
            continue
        path = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        held.add(root)
        while path:
            node, following = path[-1]
            for n in following:
                if n not in inside:
                    continue
                if n not in index:
                    index[n] = low[n] = len(index)
                    stack.append(n)
                    held.add(n)
                    path.append((n, iter(graph[n])))
                    break
                if n in held:
                    low[node] = min(low[node], index[n])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    found.append([])
                    while not found[-1] or found[-1][-1] != node:
                        found[-1].append(stack.pop())
                    held.difference_update(found[-1])
    return found
