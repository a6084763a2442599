"""A GPU by its target, for tests: what the package computes, with the target filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy.typing as npt

from .. import execution
from .._tasks import Progress
from ..arithmetic import Engine, Evidence
from ..isa import AnyInstruction, Instruction, check_known, parse_any
from ..products import Multiplicand, Options, matmul

if TYPE_CHECKING:
    from ..kernel import Launch
    from ..machine import Policy

__all__ = ["Gpu"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Gpu:
    """A simulated GPU: what the package computes, with its target filled in.

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

    def has(self, instruction: str | AnyInstruction) -> bool:
        """Whether the target has an instruction."""
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
    ) -> Array:  # fmt: skip
        """Multiply matrices of any size: `warpmma.matmul`."""
        __tracebackhide__ = True
        return matmul(a, b, c, target=self.target, **more)

    def launch(
        self, kernel: Callable[..., object], grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any],
        *, shared: int = 0, hazards: Policy | Mapping[str, Policy] = "error", engine: Engine = "auto",
        threads: int | None = None, progress: Progress | None = None,
    ) -> Launch:  # fmt: skip
        """Run a kernel written in Python: `warpmma.kernel.launch`."""
        from ..kernel import launch  # simulated blocks, which most tests do without

        __tracebackhide__ = True
        return launch(
            kernel, grid, block, args, target=self.target, shared=shared, hazards=hazards, engine=engine,
            threads=threads, progress=progress,
        )  # fmt: skip

    def evidence(self, instruction: str | AnyInstruction) -> Evidence:
        """Say how we know what an instruction computes: `warpmma.evidence`."""
        return execution.evidence(instruction, target=self.target)
