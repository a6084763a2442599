"""Text for people: runs of numbers, and columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def counted(number: int, noun: str, several: str = "") -> str:
    """Write how many there are.

    Examples
    --------
    >>> counted(1, "operand"), counted(2, "operand"), counted(2, "entry", "entries")
    ('1 operand', '2 operands', '2 entries')
    """
    return f"{number} {noun if number == 1 else several or noun + 's'}"


def ranges(numbers: Iterable[int], separator: str = ", ") -> str:
    """Write ascending numbers, runs of them by their ends.

    Examples
    --------
    >>> ranges([0, 1, 2, 3, 7, 9, 10])
    '0-3, 7, 9-10'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return separator.join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)


def table(rows: Iterable[Sequence[str]], left: Collection[int] = ()) -> list[str]:
    r"""Lay out rows of cells, all of one length, as lines of columns, two blanks apart.

    The columns in `left` are left-aligned, the others right-aligned, as numbers are.

    Examples
    --------
    >>> print("\n".join(table([("unit", "outputs"), ("fma", "1,024"), ("popcount", "8")], left=[0])))
    unit      outputs
    fma         1,024
    popcount        8
    """
    cells = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            x.ljust(w) if i in left else x.rjust(w) for i, (x, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
