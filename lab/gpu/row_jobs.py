"""Kernels of rows of operations, by ptxas and CuPy; the package has the rest: `warpmma.hardware`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from warpmma.hardware import (
    RowJob,
    compared_lanes,
    different_lanes,
    lane_shown,
    row_immediates,
    row_kernel,
    row_simulated,
)
from warpmma.operations import DTYPES, operation
from warpmma.registers import LANES

from .runner import KernelGpu

__all__ = [
    "OperationGpu", "RowJob", "compared_lanes", "different_lanes", "lane_shown", "row_immediates", "row_simulated",
]  # fmt: skip

Array = npt.NDArray[Any]

_BLOCK = 256


class OperationGpu(KernelGpu[tuple[str, tuple[int, ...]]]):
    """The kernels of jobs.

    Parameters
    ----------
    jobs : iterable of RowJob
    target : str
    """

    def __init__(self, jobs: Iterable[RowJob], target: str) -> None:
        kernels = {
            (job.mnemonic, job.immediates): partial(
                row_kernel, operation(job.mnemonic), immediates=job.immediates
            ) for job in jobs
        }  # fmt: skip
        super().__init__(kernels, target, max((8, 0), *(operation(mnemonic).ptx for mnemonic, _ in kernels)))

    def run(self, job: RowJob, given: Sequence[Array]) -> tuple[Array, ...]:
        """Execute a job, a thread to a lane.

        Parameters
        ----------
        job : RowJob
        given : sequence of ndarray
            Input registers `[warp, lane]`, immediates left out.

        Returns
        -------
        tuple of ndarray
            Output registers `[warp, lane]`.
        """
        lanes = given[0].size if given else job.lanes
        outputs = [np.zeros((lanes // LANES, LANES), DTYPES[kind]) for kind in operation(job.mnemonic).outputs]
        block = _BLOCK if lanes % _BLOCK == 0 else LANES
        arrays = (*given, *outputs)
        written = range(len(given), len(arrays))
        return self.launch((job.mnemonic, job.immediates), lanes // block, block, arrays, written)
