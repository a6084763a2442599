"""Kernels of `ldmatrix` and `stmatrix`, by ptxas and CuPy; the package has the rest: `warpmma.hardware`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from warpmma.hardware import move_kernel
from warpmma.operations import MatrixMove
from warpmma.registers import LANES

from .runner import KernelGpu

__all__ = ["MoveGpu", "move_kernel"]

Array = npt.NDArray[Any]


class MoveGpu(KernelGpu[str]):
    """The kernels of forms of `ldmatrix` and `stmatrix`.

    Parameters
    ----------
    moves : sequence of MatrixMove
    target : str
    size : int
        Bytes of shared memory, a multiple of 512.
    """

    def __init__(self, moves: Sequence[MatrixMove], target: str, size: int = 1024) -> None:
        kernels = {move.mnemonic: partial(move_kernel, move, size=size) for move in moves}
        super().__init__(kernels, target, max((8, 0), *(move.ptx for move in moves)))

    def run(self, move: MatrixMove, memory: Array, registers: Array, addresses: Array) -> Array:
        """Execute a form, a warp to a block.

        Parameters
        ----------
        move : MatrixMove
        memory : ndarray of uint8
            `[warp, size]`.
        registers : ndarray of uint32
            `[warp, register, lane]`; a load reads none of them.
        addresses : ndarray of uint32
            `[warp, lane]`, within the memory.

        Returns
        -------
        ndarray
            Registers for a load, memory for a store.
        """
        out = np.zeros_like(registers if move.direction == "load" else memory)
        return self.launch(move.mnemonic, len(memory), LANES, (memory, registers, addresses, out), [3])[0]
