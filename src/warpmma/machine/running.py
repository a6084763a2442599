"""Running a program to its end on a batch of blocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from .._arguments import is_integer
from ..errors import OperandError, UnsupportedError, shown
from .batch import Batch
from .grid import Grid
from .site import Site
from .steps import Program
from .warp_register import WarpRegister

__all__ = ["Limit", "Provided", "run_program"]

Array = npt.NDArray[Any]

Provided = Callable[[Batch, Site, tuple[Array, ...], Array], tuple[Array, ...]]
"""A function that the machine provides, such as vprintf: from the batch, the site of the call, the bytes of each
argument, uint8 `[block, warp, lane, n]`, and the lanes that call it, to the bytes of each result."""


class Limit:
    """How much a launch may run, and how much of that it has: one for all of its batches.

    Parameters
    ----------
    instructions : int, optional
        Of warps: an instruction counts once for every warp of which lanes execute it together.
    seconds : float, optional
        From now on.

    Raises
    ------
    OperandError
        What is no positive number.
    """

    def __init__(self, *, instructions: int | None = None, seconds: float | None = None) -> None:
        if instructions is not None and not (is_integer(instructions) and instructions > 0):
            raise OperandError(f"a limit of {shown(instructions)} instructions; expected a positive integer or None")
        if seconds is not None and not (isinstance(seconds, int | float) and seconds > 0):
            raise OperandError(f"a limit of {shown(seconds)} seconds; expected a positive number or None")
        self.instructions, self.seconds = instructions, seconds
        self.executed, self.until = 0, None if seconds is None else time.monotonic() + seconds


def run_program(
    batch: Batch, program: Program, grid: Grid, *, limit: Limit | None = None, seed: int = 0,
    provided: Mapping[str, Provided] = MappingProxyType({}),
) -> tuple[WarpRegister, ...]:  # fmt: skip
    """Run a program until all threads of a batch have ended.

    Parameters
    ----------
    batch : Batch
    program : Program
    grid : Grid
        Of the launch; its `shared` is all shared memory of a block, and what is behind the program's variables is
        dynamic.
    limit : Limit, optional
        Of the launch; without one it runs on.
    seed : int
        Who goes first where CUDA leaves it open; 0 is whoever is further behind in the program, in the order of
        numbers.
    provided : mapping of str to callable
        Functions that are called by name and are none of the program's.

    Returns
    -------
    tuple of WarpRegister
        What every slot held at the end.

    Raises
    ------
    HazardError
        What is a hazard, and not asked to be a warning.
    LimitError
        Instructions, time or memory for calls have been used up.
    OperandError
        Operands that do not fit their rows.
    """
    raise UnsupportedError("programs are not run yet")
