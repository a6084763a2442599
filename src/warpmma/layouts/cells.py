"""An element of an operand, and where it sits: what a look-up finds, in either direction."""

from __future__ import annotations

from dataclasses import dataclass

from .._records import Record


@dataclass(frozen=True, kw_only=True)
class Cell(Record):
    """One element of an operand, and where it sits.

    Attributes
    ----------
    operand : str
        "A", "B", "C", "D", "metadata", "scale_a", "scale_b" or "address"; empty where a layout was asked, which has
        no name.
    row, column : int
        Of the element; of metadata the row of A and the group, of scales the row (or column) and the block.
    matrix : int
        Which of several matrices: of m8n8k4 with f16 operands and of `.x4` one of four; of metadata the selector that
        reads it; of scales a number in `lookup.ids_of`, byte-id and thread-id; of `wmma` the copy; else 0.
    lane : int
        0 to 31; of a warpgroup the thread, 0 to 127.
    register : int
    low, high : int
        First and last bit of the register that it takes.
    index : int
        Which element of the lane's fragment it is: PTX's i of `ai`, `bi`, `ci`.
    """

    operand: str = ""
    row: int
    column: int
    matrix: int = 0
    lane: int
    register: int
    low: int
    high: int
    index: int
