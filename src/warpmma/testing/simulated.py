"""A simulated GPU for tests: the functions of this package for one target."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy.typing as npt

from .. import execution
from .._arrays import Array
from .._progress import Watched
from .._records import Shown
from ..arithmetic import Engine, Evidence
from ..errors import OperandError, TargetError, shown
from ..isa import Instruction, MatrixInstruction, check_known, parse_any
from ..products import Multiplicand, Options, matmul

if TYPE_CHECKING:
    from ..cute import CuteDevice
    from ..kernel import Launch
    from ..machine import Device, Limit, Policy, Watch
    from ..ptx import PtxEntry, PtxModule
    from ..triton import TritonDevice
    from .guessing import Guesses


class CudaOptions(TypedDict, total=False):
    """Compiler options for CUDA C++, as for `warpmma.cuda.load`."""

    options: Sequence[str]
    names: Sequence[str]
    compiler: str


class PtxOptions(TypedDict, total=False):
    """Options that launches of PTX have in addition to those of kernels in Python."""

    contract: str
    resident: int | None
    limit: int | Limit | None
    seed: int


@dataclass(frozen=True)
class Gpu(Shown):
    """A simulated GPU: the functions of the package, with its target filled in.

    Attributes
    ----------
    target : str

    Examples
    --------
    >>> gpu = Gpu("sm_80")
    >>> i = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
    >>> gpu.evidence(i).kind, gpu.has(i), Gpu("sm_75").has(i)
    ('published', True, False)
    """

    target: str

    def __post_init__(self) -> None:
        check_known(self.target)

    def __str__(self) -> str:
        return self.target

    def has(self, instruction: str | MatrixInstruction) -> bool:
        """Return whether the target has an instruction."""
        return self.target in parse_any(instruction).targets

    def mma(
        self, instruction: str | Instruction, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike | None = None,
        **more: Any,
    ) -> Array:  # fmt: skip
        """Multiply matrices as one instruction does: `warpmma.mma`."""
        __tracebackhide__ = True
        return execution.mma(instruction, a, b, c, target=self.target, **more)

    def execute(
        self, instruction: str | Instruction, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, **more: Any
    ) -> Array:
        """Execute an instruction on registers: `warpmma.execute`."""
        __tracebackhide__ = True
        return execution.execute(instruction, a, b, c, target=self.target, **more)

    def matmul(
        self, a: Multiplicand, b: Multiplicand, c: npt.ArrayLike | None = None, **more: Unpack[Options]
    ) -> Array:
        """Multiply matrices of any size: `warpmma.matmul`."""
        __tracebackhide__ = True
        return matmul(a, b, c, target=self.target, **more)

    def guess(
        self, instruction: str | Instruction, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike | None = None, *,
        got: npt.ArrayLike, **more: Any,
    ) -> Guesses:  # fmt: skip
        """Guess what was swapped in the operands of an instruction: `warpmma.testing.guess`."""
        from .guessing import guess

        __tracebackhide__ = True
        return guess(instruction, a, b, c, got=got, target=self.target, **more)

    def device(self) -> Device:
        """Make a device of the target: memory that lives between launches, `warpmma.Device`."""
        from ..machine import Device

        return Device(self.target)

    def load(
        self, source: str | bytes | os.PathLike[str], name: str = "", *, arch: str = "", **of_cuda: Unpack[CudaOptions]
    ) -> PtxModule:
        """Load PTX, or compile CUDA C++: a file, or its text.

        Parameters
        ----------
        source : str, bytes or path
            A file that ends in `.cu`, or a text with `__global__`, is CUDA C++: `warpmma.cuda.load` compiles it. All
            else is PTX, for `warpmma.ptx.load`.
        name : str, optional
            What errors call a text.
        arch, options, names, compiler
            Of CUDA C++. It is compiled for sm_80, whose PTX later targets run, or for the target where that is older or
            has features of its own, as sm_90a.

        Returns
        -------
        PtxModule
            A mapping of entries, for `launch`.

        Raises
        ------
        WarpmmaError
            What cannot be read or compiled; options of CUDA C++ for PTX.
        """
        __tracebackhide__ = True
        if _is_cuda(source):
            from ..cuda import arch_for
            from ..cuda import load as compiled

            return compiled(source, arch=arch or arch_for(self.target), name=name, **of_cuda)
        from ..ptx import load

        if arch or of_cuda:
            given = ["arch"] * bool(arch) + [*of_cuda]
            raise OperandError(f"{', '.join(given)}: of CUDA C++ alone; {shown(source)} is read as PTX")
        return load(source, name)

    def triton(self, **options: Any) -> TritonDevice:
        """Run Triton's kernels on the target: `with gpu.triton(): kernel[grid](...)`, as `warpmma.triton.device`."""
        from ..triton import device

        __tracebackhide__ = True
        return device(self.target, **options)

    def cute(self, **options: Any) -> CuteDevice:
        """Run the CuTe DSL's kernels on the target: `with gpu.cute(): kernel(...)`, as `warpmma.cute.device`."""
        from ..cute import device

        __tracebackhide__ = True
        return device(self.target, **options)

    def launch(
        self, kernel: Callable[..., object] | PtxEntry | PtxModule, grid: int | Sequence[int],
        block: int | Sequence[int], args: Sequence[Any] | Mapping[str, Any], *, shared: int = 0,
        cluster: int | Sequence[int] | None = None, hazards: Policy | Mapping[str, Policy] = "error",
        engine: Engine = "auto", threads: int | None = None, progress: Watched = None, watch: Watch | None = None,
        timeline: bool | Sequence[int] = False, **of_ptx: Unpack[PtxOptions],
    ) -> Launch:  # fmt: skip
        """Run a kernel on simulated blocks.

        Parameters
        ----------
        kernel : callable, PtxEntry or PtxModule
            A kernel written in Python, as of `warpmma.kernel.launch`; an entry of PTX, or a module that has but one.
        grid, block, args, shared, cluster, hazards, engine, threads, progress, watch, timeline
            As of `warpmma.kernel.launch`. Plain arrays are placed in global memory, and written in place; those of a
            device (`gpu.device()`) stay where they are.
        contract, resident, limit, seed
            Of entries of PTX, as of `PtxEntry.launch`.

        Returns
        -------
        Launch

        Raises
        ------
        HazardError
            The first hazard, with the line of the kernel.
        WarpmmaError
            Arguments that do not fit; arrays of a device of another target.
        """
        from ..kernel import launch  # simulated blocks, which most tests do without
        from ..ptx import PtxEntry, PtxModule

        __tracebackhide__ = True
        given: Any = args  # a kernel in Python refuses a mapping
        common: Any = {
            "shared": shared, "cluster": cluster, "hazards": hazards, "engine": engine, "threads": threads,
            "progress": progress, "watch": watch, "timeline": timeline,
        }  # fmt: skip
        if isinstance(kernel, PtxModule):
            kernel = _only(kernel)
        if isinstance(kernel, PtxEntry):
            return kernel.launch(self._device_of(args), grid, block, args, **common, **of_ptx)
        if type(kernel).__module__.partition(".")[0] == "triton":
            raise OperandError(f"{shown(kernel)} is a kernel of Triton; expected with gpu.triton(): kernel[grid](...)")
        if of_ptx:
            raise OperandError(f"{', '.join(of_ptx)}: of entries of PTX alone; the kernel is {shown(kernel)}")
        return launch(kernel, grid, block, given, target=self.target, **common)

    def _device_of(self, args: Sequence[Any] | Mapping[str, Any]) -> Device:
        """Return the device of the arguments, or a new one."""
        from ..machine import DeviceArray

        listed = args.values() if isinstance(args, Mapping) else args if isinstance(args, list | tuple) else ()
        device = next((x.device for x in listed if isinstance(x, DeviceArray)), None)
        if device is None:
            return self.device()
        if device.target != self.target:
            raise TargetError(f"arrays are of a device of {device.target}; expected gpu.device(), of {self.target}")
        return device

    def evidence(self, instruction: str | MatrixInstruction) -> Evidence:
        """Return the evidence for what an instruction computes: `warpmma.evidence`."""
        return execution.evidence(instruction, target=self.target)


def _is_cuda(source: object) -> bool:
    """Return whether something to load is CUDA C++ rather than PTX."""
    if isinstance(source, bytes | bytearray):
        return b"__global__" in source and b".version" not in source
    if isinstance(source, str) and ("\n" in source or "{" in source):
        return "__global__" in source and ".version" not in source
    return isinstance(source, str | os.PathLike) and os.fspath(source)[-3:] in (".cu", b".cu")


def _only(module: PtxModule) -> PtxEntry:
    """Return the one entry of a module."""
    names = list(module)
    if len(names) != 1:
        listed = ", ".join(names[:20]) or "none"
        raise OperandError(
            f"{module!r} does not have exactly one entry; expected one, such as gpu.load(...)[name]; it has {listed}"
        )
    return module[names[0]]
