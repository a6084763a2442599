"""Jobs of `mma` with their immediate operands, here and on a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from warpmma.execution import Undefined
from warpmma.hardware import MmaJob, execute_fields, mma_jobs, ptx_kernel
from warpmma.registers import LANES

from .runner import KernelGpu

__all__ = ["InstructionGpu", "MmaJob", "mma_jobs", "mma_simulated"]

Array = npt.NDArray[Any]

_UNWRITTEN = 0xDEADBEEF
_VERSION = (8, 8)  # at least: the first that knows every target's name


def mma_simulated(job: MmaJob, given: Mapping[str, Array], target: str, *, undefined: bool = False) -> Array:
    """Execute a job with this package.

    Parameters
    ----------
    job : MmaJob
    given : mapping of str to ndarray
        Registers by their names in a recording.
    target : str
    undefined : bool
        Whether metadata may be undefined in PTX; it is then read as the hardware does.

    Returns
    -------
    ndarray
        Registers of D.

    Raises
    ------
    WarpmmaError
        See `execute`.
    """
    wanted: Undefined = "hardware" if undefined else "error"
    return execute_fields(
        job.instruction, given, target, selector=job.selector, ids=job.ids, undefined=wanted
    )  # fmt: skip


class InstructionGpu(KernelGpu[MmaJob]):
    """The kernels of jobs.

    Parameters
    ----------
    jobs : iterable of MmaJob
    target : str
    """

    def __init__(self, jobs: Iterable[MmaJob], target: str) -> None:
        kernels = {job: partial(ptx_kernel, job.instruction, selector=job.selector, ids=job.ids) for job in jobs}
        super().__init__(kernels, target, max(_VERSION, *(job.instruction.ptx for job in kernels)))

    def run(self, job: MmaJob, given: Mapping[str, Array]) -> Array:
        """Execute a job, a warp to a block.

        Parameters
        ----------
        job : MmaJob
        given : mapping of str to ndarray
            Registers by their names in a recording.

        Returns
        -------
        ndarray
            Registers of D.
        """
        layout, warps = job.instruction.layout("D"), len(given["a"])
        words = [given[name] for name in ("e", "sa", "sb") if name in given]
        d = np.full((warps, layout.registers, LANES), _UNWRITTEN, layout.packing.dtype)
        return self.launch(job, warps, LANES, (given["a"], given["b"], given["c"], d, *words), [3])[0]
