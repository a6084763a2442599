"""Rows of operations with their immediates, and their results beside those of a GPU."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...operations import Operation
from ...registers import LANES

__all__ = ["RowJob", "compared_lanes", "different_lanes", "lane_shown", "row_immediates", "row_simulated"]

Array = npt.NDArray[Any]


class RowJob(NamedTuple):
    """An operation with its immediates, over a number of lanes whose inputs come from a seed.

    Attributes
    ----------
    mnemonic : str
    immediates : tuple of int
    lanes, seed : int
    """

    mnemonic: str
    immediates: tuple[int, ...] = ()
    lanes: int = 0
    seed: int = 0

    def __str__(self) -> str:
        return " ".join([self.mnemonic, *map(str, self.immediates)])


def row_immediates(row: Operation) -> list[tuple[int, ...]]:
    """List the immediates that a row is run with; one empty tuple if it takes none.

    Parameters
    ----------
    row : Operation

    Returns
    -------
    list of tuple of int
    """
    number = row.inputs.count("imm")
    if number and row.membermask and row.inputs[-1] == "imm":
        return [(*x, 0xFFFFFFFF) for x in itertools.product(*[range(0, 256, 17)] * (number - 1))]
    return [()] if not number else [(x,) * number for x in range(256)]


def row_simulated(
    row: Operation, given: Sequence[Array], immediates: Sequence[int] = (), native: bool = False
) -> tuple[Array, ...]:  # fmt: skip
    """Execute a row with this package.

    Parameters
    ----------
    row : Operation
    given : sequence of ndarray
        Input registers `[warp, lane]`, immediates left out.
    immediates : sequence of int
    native : bool
        Whether the native engine does it, as in kernels, if it can.

    Returns
    -------
    tuple of ndarray
        Output registers; 0 where PTX leaves them undefined.
    """
    if native and row.native is not None and row.on_target is None and row.undefined is None:
        return row.native(*_operands(row, given, immediates))
    return row(*_operands(row, given, immediates), undefined="zero")


def _operands(row: Operation, given: Sequence[Array], immediates: Sequence[int]) -> list[Any]:
    arrays, numbers = iter(given), iter(immediates)
    return [next(numbers) if kind == "imm" else next(arrays) for kind in row.inputs]


def compared_lanes(row: Operation, given: Sequence[Array], immediates: Sequence[int] = ()) -> Array:
    """Return which lanes' results are meaningful: those that their membermask names and whose result is defined.

    Parameters
    ----------
    row, given, immediates
        As for `row_simulated`.

    Returns
    -------
    ndarray of bool
        `[warp, lane]`, or `[1, lane]` where all warps are alike.
    """
    lanes: Array = np.ones((1, LANES), bool)
    if row.membermask and row.inputs[-1] == "b32":
        lanes = ((given[-1] >> np.arange(LANES, dtype=np.uint32)) & np.uint32(1)).astype(bool)
    return lanes & ~row.undefined_lanes(*_operands(row, given, immediates)) if row.lanes else lanes


def different_lanes(lanes: Array, got: Sequence[Array], expected: Sequence[Array]) -> Array:
    """Return in which of the compared lanes any output differs.

    Parameters
    ----------
    lanes : ndarray of bool
        See `compared_lanes`.
    got, expected : sequence of ndarray
        Output registers.

    Returns
    -------
    ndarray of bool
        `[warp, lane]`.
    """
    unequal = [x != y for x, y in zip(got, expected, strict=True)]
    result: Array = reduce(np.logical_or, unequal) & lanes
    return result


def lane_shown(given: Sequence[Array], got: Sequence[Array], expected: Sequence[Array], place: Sequence[int]) -> str:
    """Describe one lane.

    Parameters
    ----------
    given, got, expected : sequence of ndarray
        Inputs, outputs of the GPU, outputs of this package.
    place : sequence of int
        Warp and lane.

    Returns
    -------
    str
    """

    def show(arrays: Sequence[Array]) -> str:
        return " ".join(f"{int(x[tuple(place)]):#0{2 * x.dtype.itemsize + 2}x}" for x in arrays)

    return f"warp {place[0]} lane {place[1]}: in {show(given)}, gpu {show(got)}, ours {show(expected)}"
