"""The active simulated GPU, its launches, and errors on their way through the DSL's host code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._sessions import ActiveDevices, Launches
from .._text import counted
from ..errors import OperandError
from ..isa import TARGETS
from ..machine import Device, HazardError, Launch
from ..ptx import PtxEntry
from .known_memory import KnownMemory
from .launch_configs import LaunchConfig


@dataclass(frozen=True, kw_only=True)
class CuteLaunch:
    """A launch of a kernel of the CuTe DSL.

    Attributes
    ----------
    name : str
        Of the kernel, in its PTX.
    grid, block, cluster : (int, int, int)
        Blocks; threads of a block; blocks of a cluster.
    shared : int
        Bytes of dynamic shared memory.
    cooperative : bool
        Whether blocks wait for each other.
    params : bytes
        The parameters, as the DSL's host code made them. Pointers are addresses of this process.
    entry : PtxEntry
        What ran.
    device : Device
        On which it ran.
    report : Launch
        Costs, hazards that were warnings, what was printed.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared: int
    cooperative: bool
    params: bytes
    entry: PtxEntry
    device: Device
    report: Launch

    @property
    def ptx(self) -> str:
        """The PTX that the DSL made."""
        return self.entry.module.source.text


class ActiveGpu:
    """The simulated GPU on which launches run, as they see it.

    `arch` is what the DSL compiles for, `options` are those of every launch, `memory` knows the memory of the process
    that kernels may reach. `cuda_on_cpu` says whether the CPU stands for PyTorch's "cuda", and `host_memory` knows the
    memory of the host then, which they may not.
    """

    def __init__(self, own: Device, arch: str, options: Mapping[str, Any], *, cuda_on_cpu: bool = False) -> None:
        self.cuda_on_cpu = cuda_on_cpu
        self.device, self.target, self.arch, self.options = own, own.target, arch, dict(options)
        self.launches = Launches[CuteLaunch]()
        self.memory, self.host_memory = KnownMemory(), KnownMemory()

    @property
    def capability(self) -> tuple[int, int]:
        """Its compute capability."""
        return TARGETS[self.target].capability

    @property
    def instructions(self) -> int:
        """The number of instructions that warps have executed."""
        return self.launches.instructions

    def launch(self, entry: PtxEntry, config: LaunchConfig, params: bytes) -> None:
        """Run a kernel, and list it among the launches."""
        __tracebackhide__ = True
        device = self.device
        try:
            with self.memory.mapped(device, params):
                report = entry.launch(
                    device, config.grid, config.block, params=params, shared=config.shared, cluster=config.cluster,
                    cooperative=config.cooperative, **self.options,
                )  # fmt: skip
        except HazardError as error:
            found = error.hazard
            if found.kind == "bounds" and (name := self.host_memory.name_of(found.address or 0)):
                error.add_note(f"{name} is memory of the host: with cuda='cpu', kernels take tensors on \"cuda\"")
            raise
        self.launches.append(
            CuteLaunch(
                name=entry.name, grid=config.grid, block=config.block, cluster=config.cluster or (1, 1, 1),
                shared=config.shared, cooperative=config.cooperative, params=params, entry=entry, device=device,
                report=report,
            )
        )  # fmt: skip

    def __repr__(self) -> str:
        ran = counted(len(self.launches), "launch", "launches")
        return f"<CuteDevice {self.target}: {ran}>"


active: ActiveDevices[ActiveGpu] = ActiveDevices("the CuTe DSL is one for all threads")
"""Devices that are active, the innermost last."""

failures: list[BaseException] = []
"""What was raised in a function that the DSL's host code calls, which knows nothing of exceptions."""


def current() -> ActiveGpu:
    """Return the active device, or raise `OperandError` without one."""
    if not active:
        raise OperandError(
            "no simulated device is active: call what was compiled inside `with warpmma.cute.device(...)` there, too"
        )
    return active[-1]
