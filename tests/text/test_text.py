"""Runs of numbers and columns, as people read them."""

from __future__ import annotations

import pytest

from warpmma._text import ranges, table

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([5], "5"), ([0, 1], "0-1"), ([0, 2, 4], "0, 2, 4"), (range(32), "0-31"), ([1, 3, 4, 9], "1, 3-4, 9")],
)
def test_runs_are_written_by_their_ends(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text
    assert ranges(iter(numbers), ",") == text.replace(", ", ",")


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    rows = [("", "n", "note"), ("lanes", "1,024", "x"), ("b", "7", "")]
    assert table(rows) == ["           n  note", "lanes  1,024     x", "    b      7"]
    assert table(rows, left=[0, 2]) == ["           n  note", "lanes  1,024  x", "b          7"]
    assert table([]) == []
