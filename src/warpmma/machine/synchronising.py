"""Instructions by which threads wait for each other, and end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arguments import is_integer
from ..errors import OperandError, UnsupportedError, shown
from ..operations import Barrier, Exit
from .accesses import exactly
from .batch import Batch, Results
from .site import Site
from .warp_register import WarpRegister

__all__ = ["barrier", "leave"]

Array = npt.NDArray[Any]


def barrier(batch: Batch, site: Site, row: Barrier, operands: Sequence[Any], lanes: Array) -> Results:
    """Arrive at a barrier of the block or of the warp."""
    if row.action == "warp":
        (mask,) = exactly(site, operands, 1, "a membermask")
        register = batch.operand(mask, "u32", "b32", f"{site.mnemonic}: membermask")
        (bits,) = batch.read(site, [register], [lanes])
        batch.barriers.warp(site, lanes, bits)
        return ()
    if not lanes.any():
        return ()
    wait = row.action == "sync"
    numbers = _numbers(batch, site, operands, lanes)
    if len(numbers) > 2 or (len(numbers) < 2 and not wait):
        raise OperandError(f"{site.mnemonic} takes {row.syntax}; got {len(operands)} operands")
    number, threads = numbers[0] if numbers else 0, numbers[1] if len(numbers) > 1 else None
    met = batch.barriers.arrive(site, lanes, number, threads, wait=wait, aligned=row.aligned)
    batch.costs.barrier(met)
    return ()


def _numbers(batch: Batch, site: Site, operands: Sequence[Any], lanes: Array) -> list[int]:
    """Numbers of a barrier and of its threads; registers are the same for all who execute it at once."""
    numbers = []
    for x in operands:
        if isinstance(x, WarpRegister):
            (bits,) = batch.read(site, [x], [lanes])
            values = np.unique(bits[lanes])
            if len(values) > 1:
                raise UnsupportedError(
                    f"{site.mnemonic}: different warps name {shown(values.tolist())} at once; write a line for each"
                )
            x = int(values[0])
        if not is_integer(x):
            raise OperandError(f"{site.mnemonic} {shown(x)}; expected the number of a barrier, and that of its threads")
        numbers.append(int(x))
    return numbers


def leave(batch: Batch, site: Site, row: Exit, operands: Sequence[Any], lanes: Array) -> Results:
    """End threads."""
    exactly(site, operands, 0, "no operands")
    batch.leave(lanes)
    return ()
