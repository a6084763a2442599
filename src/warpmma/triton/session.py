"""Simulated GPUs as Triton's active driver: the context manager, and what it replaces.

The rules:

1. While a device is active it is Triton's driver, Triton's compiler ends at PTX, and `JITFunction.run` looks at the
   arguments first, `Autotuner.run` counts (`benchmarking`). All are restored afterwards.
2. Devices nest; the innermost is active. `install` makes one active until `uninstall`. Triton has one driver for all
   threads, whose launches go to the innermost: only the thread that made it active may make another one active.
3. Triton keeps compiled kernels by the number of the device, so each pair of targets has a number of its own, beyond
   those of real GPUs.
4. A launch runs on the device that its arrays belong to, or on the active one's own.

`PTX_TARGETS` has the targets that Triton compiles for, by the target whose bits are computed. A driver assembles PTX
for older targets, too: what Triton writes for sm_80 has sm_90's arithmetic on sm_90. For sm_90 itself `tl.dot` becomes
`wgmma`, for sm_100 to sm_110 `tcgen05`, which is not simulated. Descriptors become TMA from sm_90 on. A kernel is
compiled for the first target of its row that has all of its types: sm_80 has no e4m3, sm_89 has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from .._arguments import check_choice
from .._cuda_as_cpu import TorchAnswers, check_option, redirected_cuda
from .._progress import Watched
from .._sessions import put
from .._tracebacks import end_at_caller
from ..arithmetic import Engine
from ..errors import OperandError, TargetError, WarpmmaError, shown
from ..isa import TARGETS, check_known
from ..machine import Device, DeviceArray, HazardWarning, Limit, Policy, Watch
from ..ptx import PtxEntry
from .active_device import ActiveDevice, active, current
from .argument_checks import given_to_triton
from .benchmarking import tuned_by_counting
from .compiling import ptx_backend
from .environment import described
from .interface import TritonInterface, find_triton
from .simulated_driver import driver_class

PTX_TARGETS = MappingProxyType({
    70: (70,), 72: (70,), 75: (75,), 80: (80,), 86: (86,), 87: (87,), 88: (86,), 89: (89,), 90: (90,),
    100: (80, 89), 103: (80, 89), 110: (80, 89), 120: (89,), 121: (89,),
})  # fmt: skip
"""Number of a target, and of those for which Triton writes, in order, unless `ptx_target` names one."""


def ptx_numbers(target: str, ptx_target: str | Sequence[str] | None) -> tuple[int, ...]:
    """Return the numbers of the targets that Triton compiles for: for the first that has all types of a kernel.

    Raises
    ------
    TargetError
        No such target, or a later one than the target whose bits are computed.

    Examples
    --------
    >>> ptx_numbers("sm_90", None), ptx_numbers("sm_90", "sm_89"), ptx_numbers("sm_90", ("sm_80", "sm_89"))
    ((90,), (89,), (80, 89))
    """
    check_known(target)
    mine = TARGETS[target].number
    if ptx_target is None:
        return PTX_TARGETS[mine]
    names = (ptx_target,) if isinstance(ptx_target, str) else tuple(ptx_target)
    if not names:
        raise TargetError(f"ptx_target is {shown(ptx_target)}; expected a target, or several, such as 'sm_80'")
    for name in names:
        check_known(name)
        if TARGETS[name].number > mine:
            raise TargetError(
                f"ptx_target is {shown(name)}, later than {target}, which does not run it; give an earlier one, or "
                f"none for sm_{PTX_TARGETS[mine][0]}"
            )
    return tuple(dict.fromkeys(TARGETS[name].number for name in names))


def device_target(target: str, ptx: Sequence[int]) -> str:
    """Return the target of the simulated device: from sm_90 on Triton writes for sm_90a where it writes for sm_90.

    Examples
    --------
    >>> device_target("sm_90", (80, 89)), device_target("sm_90", (90,))
    ('sm_90', 'sm_90a')
    """
    latest = max(ptx)
    if latest < 90:
        return target
    if latest != TARGETS[target].number:
        raise TargetError(
            f"Triton writes sm_{latest}a, which {target} does not run; give ptx_target='sm_80' or 'sm_89'"
        )
    return f"sm_{latest}a"


class TritonDevice(ActiveDevice):
    """A simulated GPU that Triton launches kernels on, in a `with`.

    Attributes
    ----------
    target : str
        Whose bits are computed.
    ptx_target : str
        What Triton compiles for, unless a kernel has types that this target lacks: then for a later one.
    device : Device
        Its memory: `device.array(x)`, `device.empty(shape, dtype)`.
    launches : list of KernelLaunch
        What ran, in order, with its report.
    options : dict
        Of every launch.
    number : int
        What Triton knows it by.
    """

    def __enter__(self) -> TritonDevice:
        _activate(self)
        return self

    def __exit__(self, *_: object) -> None:
        active.deactivate(self)

    def map(self, array: Any) -> DeviceArray:
        """Place an array of NumPy at the process's own address, for kernels that are given addresses in memory.

        Raises
        ------
        OperandError
            No such array.
        """
        if not isinstance(array, np.ndarray):
            raise OperandError(
                f"map: {shown(array)} is not a NumPy array; tensors are found by the addresses that a kernel is given"
            )
        return self.device.map(array, array.ctypes.data)


def device(
    target: str | Device, *, ptx_target: str | Sequence[str] | None = None,
    hazards: Policy | Mapping[str, Policy] = "error", contract: str = "ptxas", engine: Engine = "auto",
    threads: int | None = None, resident: int | None = None, limit: int | Limit | None = None, seed: int = 0,
    progress: Watched = None, watch: Watch | None = None,
    timeline: bool | Sequence[int] = False, cuda: Literal["cpu"] | None = None,
) -> TritonDevice:  # fmt: skip
    """Make a simulated GPU, for `with warpmma.triton.device("sm_90"):`.

    Parameters
    ----------
    target : str or Device
        Whose bits are computed; a Device is used itself, with its contents.
    ptx_target : str or sequence of str, optional
        What Triton compiles for; of several, each kernel is compiled for the first that has all of its types. By
        default it is that of `PTX_TARGETS`: for sm_90, where Triton writes `wgmma`, sm_90 itself. With
        `("sm_80", "sm_89")` Triton writes `mma` for it.
    hazards, contract, engine, threads, resident, limit, seed, progress, watch, timeline
        Of every launch, as of `PtxEntry.launch` (`threads` reaches each `mma`, not programs). A kernel that Triton
        compiles without fusing has contract "off". "lane order" is only counted by default: where several lanes hold
        a result, Triton lets all of them store it.
    cuda : {"cpu"}, optional
        Let the CPU stand for PyTorch's device "cuda", while the device is active: tensors made there or moved there are
        the CPU's, and a list of questions to `torch.cuda` is answered; by rule (docs/triton.md).

    Returns
    -------
    TritonDevice

    Raises
    ------
    UnsupportedError
        Triton is not installed, or has another interface; PyTorch is not, and cuda is given.
    TargetError
        No such target.
    """
    find_triton()
    check_choice("contract", contract, ("ptxas", "off"))
    check_option(cuda)
    own, name = (target, target.target) if isinstance(target, Device) else (None, target)
    numbers = ptx_numbers(name, ptx_target)
    wanted = device_target(name, numbers)
    if own is not None and own.target != wanted:
        raise TargetError(
            f"Triton writes PTX for {wanted}, which a device of {own.target} does not run; give Device({wanted!r}), or "
            "ptx_target='sm_80', where Triton writes mma"
        )
    options = {
        "hazards": _policy(hazards), "contract": contract, "engine": engine, "threads": threads, "resident": resident,
        "limit": limit, "seed": seed, "progress": progress,
        "watch": watch, "timeline": timeline,
    }  # fmt: skip
    return TritonDevice(own or Device(wanted), numbers, options, cuda_on_cpu=cuda == "cpu")


def _policy(hazards: Policy | Mapping[str, Policy]) -> Policy | Mapping[str, Policy]:
    """Only count, unless it is asked otherwise, where replicas of a result differ: Triton writes such stores itself."""
    counted: Mapping[str, Policy] = {"lane order": "count"}
    if isinstance(hazards, str):
        return counted if hazards == "error" else hazards
    return {**counted, **hazards}


def install(target: str | Device, **options: Any) -> TritonDevice:
    """Make a simulated GPU the active one until `uninstall`; for code that asks Triton's driver when it is imported.

    `target` and `options` are those of `device`.
    """
    made = device(target, **options)
    _activate(made)
    _installed.append(made)
    return made


def install_described(text: str | None = None) -> TritonDevice:
    """Make the device that a text describes the active one, until `uninstall`; by default that of WARPMMA_TRITON.

    The text has a target, and options of `device` behind it: "sm_90,hazards=warn".
    """
    target, options = described(text)
    return install(target, **options)


def install_from_environment() -> Any:
    """Make the device that WARPMMA_TRITON describes the active one, and return Triton's driver of it."""
    install_described()
    return find_triton().active()


def uninstall() -> None:
    """Put Triton back as it was before `install`; an error if nothing is installed, or a `with` has not ended."""
    if not _installed:
        raise OperandError("no simulated device is installed")
    active.deactivate(_installed[-1])
    _installed.pop()


_answers = TorchAnswers(current)
_installed: list[TritonDevice] = []


def _activate(session: TritonDevice) -> None:
    def settle(settings: ExitStack) -> None:
        _answers.give()
        settings.enter_context(redirected_cuda(current) if session.cuda_on_cpu else nullcontext())

    active.activate(session, lambda replaced: _replace(find_triton(), replaced), settle)


def _left_alone(delete: Any) -> Any:
    """Return `CompiledKernel.__del__`, which asks the active driver, for those that no real driver has loaded."""

    def delete_loaded(self: Any) -> None:
        if not isinstance(getattr(self, "function", None), PtxEntry):
            delete(self)

    return delete_loaded


def _replace(triton: TritonInterface, replaced: ExitStack) -> None:
    """Rule 1."""
    if "__del__" in vars(triton.compiled) and triton.compiled.__del__.__module__ != __name__:
        triton.compiled.__del__ = _left_alone(triton.compiled.__del__)  # for good: kernels live longer than a `with`
    replaced.callback(triton.drivers.set_active, triton.active())
    triton.drivers.set_active(driver_class(triton)(_answers.give))
    compiler = triton.backends["nvidia"]
    replaced.callback(triton.backends.update, nvidia=compiler)
    triton.backends["nvidia"] = ptx_backend(triton, compiler)
    put(replaced, triton.kernels, "run", _checked(triton.kernels.run, triton))
    put(replaced, triton.tuners, "run", tuned_by_counting(triton.tuners.run, triton.dtypes))
    replaced.callback(_answers.take_back)


def _checked(run: Any, triton: TritonInterface) -> Any:
    """Return `JITFunction.run` that looks at the arguments first, and whose errors end where a kernel was launched."""

    def checked_run(self: Any, *args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        try:
            given, named = given_to_triton(getattr(self, "arg_names", ()), args, options, triton.dtypes)
            return run(self, *given, **named)
        except (WarpmmaError, HazardWarning) as error:
            end_at_caller(error, triton.folder)
            raise
        except Exception as error:
            if "fp8e4nv not supported" in str(error):
                error.add_note(_without_e4m3(current()))
            raise

    return checked_run


def _without_e4m3(session: ActiveDevice) -> str:
    """Return advice on how to compile a kernel with e4m3."""
    if TARGETS[session.target].number < 89:
        return f"{session.target} has no fp8e4nv, GPUs have it from sm_89 on: device('sm_89'), or a later one"
    return f"{session.ptx_target} has no fp8e4nv: leave ptx_target out, or give ptx_target='sm_89'"
