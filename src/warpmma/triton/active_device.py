"""The active simulated GPU, its launches, and the device that a launch runs on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .._sessions import ActiveDevices, Launches
from .._text import counted
from ..errors import OperandError
from ..isa import TARGETS
from ..machine import Device, DeviceArray, Launch
from ..ptx import PtxEntry

_FIRST_NUMBER = 1000
_numbers: dict[tuple[str, tuple[int, ...]], int] = {}


@dataclass(frozen=True, kw_only=True)
class KernelLaunch:
    """A launch of a kernel of Triton.

    Attributes
    ----------
    name : str
        Of the kernel.
    grid : (int, int, int)
    num_warps : int
    shared : int
        Bytes of shared memory.
    entry : PtxEntry
        What ran.
    device : Device
        On which it ran.
    ptx_target : str
        For which Triton compiled it.
    report : Launch
        Costs, hazards that were warnings, what was printed, `unpredicted`, `notes`.
    seconds : float
        What the simulation took.
    """

    name: str
    grid: tuple[int, int, int]
    num_warps: int
    shared: int
    entry: PtxEntry
    device: Device
    ptx_target: str
    report: Launch
    seconds: float


class ActiveDevice:
    """The simulated GPU on which launches run, as they see it.

    `ptx` has the numbers of the targets that Triton compiles for (the first that has all types of a kernel), `options`
    are those of every launch, and `cuda_on_cpu` says whether the CPU stands for PyTorch's "cuda".
    """

    def __init__(
        self, own: Device, ptx: tuple[int, ...], options: Mapping[str, Any], *, cuda_on_cpu: bool = False
    ) -> None:
        self.cuda_on_cpu = cuda_on_cpu
        self.device, self.target, self.ptx_target, self.ptx_numbers = own, own.target, f"sm_{ptx[0]}", ptx
        self.options, self.launches = dict(options), Launches[KernelLaunch]()
        self.number = _numbers.setdefault((own.target, ptx), _FIRST_NUMBER + len(_numbers))

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability that Triton compiles for."""
        return TARGETS[self.ptx_target].capability

    @property
    def instructions(self) -> int:
        """The number of instructions that warps have executed."""
        return self.launches.instructions

    def __repr__(self) -> str:
        ran = counted(len(self.launches), "launch", "launches")
        return f"<TritonDevice {self.target}, PTX for {self.ptx_target}: {ran}>"

    def device_of(self, args: Iterable[Any]) -> Device:
        """Return the device on which a launch with some arguments runs (rule 4)."""
        devices = {id(x.device): x.device for x in args if isinstance(x, DeviceArray)}
        if len(devices) > 1:
            raise OperandError(f"the arguments are arrays of {len(devices)} devices; expected one")
        found: Device = next(iter(devices.values()), self.device)
        if found.target != self.target:
            hint = ""
            if TARGETS[found.target].number == TARGETS[self.target].number:
                hint = f", for which Triton writes here: make the array on Device({self.target!r}), or by gpu.device"
            raise OperandError(
                f"an argument is an array of a device of {found.target}; the active one is {self.target}{hint}"
            )
        return found


active: ActiveDevices[ActiveDevice] = ActiveDevices("Triton has one driver for all threads")
"""Devices that are active, the innermost last."""


def current() -> ActiveDevice:
    """Return the active device, or raise `OperandError` without one."""
    if not active:
        raise OperandError("no simulated device is active: launch inside `with warpmma.triton.device(...)`")
    return active[-1]
