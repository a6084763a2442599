"""Order of basic blocks: diverged lanes reconverge where their paths join."""

from __future__ import annotations

import random
import sys

import pytest

from warpmma.ptx.flow.block_order import DEEPEST, placed


@pytest.mark.parametrize(
    ("graph", "order"),
    [
        ([[]], [0]),
        ([[2, 1], [3], [3], []], [0, 1, 2, 3]),
        ([[1], [3, 2], [1], []], [0, 1, 2, 3]),
        ([[3], [2], [], [1]], [0, 3, 1, 2]),  # the text is in another order than the ways
        ([[2], [], []], [0, 2]),  # what cannot be reached
        ([[0]], [0]),
        ([[1], [4, 2], [3], [2, 1], []], [0, 1, 2, 3, 4]),  # a loop in a loop
        ([[1], [2, 4], [3], [1], [5], []], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_places(graph: list[list[int]], order: list[int]) -> None:
    assert placed(graph) == (order, {})


def test_exits_of_a_loop_come_after_it() -> None:
    # 1 is the head, 2 leaves for 5 (in the text before the loop's end), 4 leads back
    order, moved = placed([[1], [2], [5, 3], [4], [1, 6], [6], []])
    assert order.index(5) > order.index(4) and order[-1] == 6
    assert moved == {}


def test_several_edges_back_lead_over_a_block_at_the_end_of_the_loop() -> None:
    order, moved = placed([[1], [1, 2], [1, 3], []])
    assert moved == {(1, 1): 4, (2, 1): 4}
    assert order == [0, 1, 2, 4, 3]


def test_a_loop_that_is_entered_in_two_places_holds_together() -> None:
    order, _ = placed([[2, 1], [2], [1, 3], []])
    assert sorted(order) == [0, 1, 2, 3] and order[0] == 0 and order[-1] == 3


def _check(graph: list[list[int]], order: list[int], moved: dict[tuple[int, int], int]) -> None:
    """All that can be reached is there once, and edges go forward but for those to the head of a loop around them."""
    seen, todo = {0}, [0]
    while todo:
        for n in graph[todo.pop()]:
            if n not in seen:
                seen.add(n)
                todo.append(n)
    assert sorted(n for n in order if n < len(graph)) == sorted(seen)
    assert len(set(order)) == len(order) and order[0] == 0
    at = {n: i for i, n in enumerate(order)}
    for n in seen:
        for m in graph[n]:
            latch = moved.get((n, m))
            assert latch is None or (at[n] < at[latch] and at[m] < at[latch])


def test_random_graphs() -> None:
    draw = random.Random(5)
    for _ in range(300):
        size = draw.randint(1, 12)
        graph = [[draw.randrange(size) for _ in range(draw.randint(0, 2))] for _ in range(size)]
        _check(graph, *placed(graph))


def test_a_graph_without_loops_is_in_topological_order() -> None:
    draw = random.Random(6)
    for _ in range(200):
        size = draw.randint(1, 12)
        names = list(range(1, size))
        draw.shuffle(names)
        names = [0, *names]
        graph: list[list[int]] = [[] for _ in range(size)]
        for i, n in enumerate(names[:-1]):
            graph[n] = [names[j] for j in sorted({draw.randint(i + 1, size - 1) for _ in range(2)})]
        order, moved = placed(graph)
        at = {n: i for i, n in enumerate(order)}
        assert moved == {} and all(at[n] < at[m] for n in order for m in graph[n])


def test_deep_nests_and_long_chains_need_no_recursion() -> None:
    count = 4 * DEEPEST
    nest = [[i + 1] for i in range(count)] + [[2 * count - 1 - i, i + 1] for i in range(count, 2 * count)] + [[]]
    _check(nest, *placed(nest))
    chain = [[i + 1] for i in range(10 * sys.getrecursionlimit())] + [[]]
    assert placed(chain) == (list(range(len(chain))), {})
