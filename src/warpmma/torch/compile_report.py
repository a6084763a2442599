"""The report of a compiled model: its kernels, and the operators that PyTorch computes itself between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .._text import counted, table
from .report import ProductReport

if TYPE_CHECKING:
    from ..machine import Hazard
    from ..triton import KernelLaunch

_CALLS = re.compile(r"\b(?:extern_kernels\.(\w+)|torch\.ops\.([\w.]+))\(")


@dataclass(frozen=True, kw_only=True)
class CompiledKernel:
    """What the launches of one kernel of a compiled model did, together.

    Attributes
    ----------
    graph : str
        "forward" or "backward", with the number of the graph.
    name : str
        As Inductor calls the kernel.
    grid : (int, int, int)
        Of the last launch.
    launches : int
    instructions : int
        That warps have executed.
    seconds : float
        What the simulation took.
    hazards : tuple of Hazard
        Those that were warnings, each once.
    ptx_target : str
        For which Triton compiled it.
    order : int
        How many lanes met atomics whose result, or sum of floats, depends on the order of threads, which CUDA leaves
        open: a GPU's bits may differ, and need not be the same twice.
    """

    graph: str
    name: str
    grid: tuple[int, int, int] = (0, 0, 0)
    launches: int = 0
    instructions: int = 0
    seconds: float = 0.0
    hazards: tuple[Hazard, ...] = ()
    ptx_target: str = ""
    order: int = 0

    def with_launch(self, launch: KernelLaunch) -> CompiledKernel:
        """Return it with one launch more."""
        known = {str(hazard) for hazard in self.hazards}
        return replace(
            self, grid=launch.grid, launches=self.launches + 1, ptx_target=launch.ptx_target,
            instructions=self.instructions + sum(launch.report.costs.instructions.values()),
            seconds=self.seconds + launch.seconds, order=self.order + sum(launch.report.order.values()),
            hazards=self.hazards + tuple(x for x in launch.report.hazards if str(x) not in known),
        )  # fmt: skip


class CompileReport:
    """What the graphs of a compiled model have launched and called; printed, a table of kernels.

    Its size grows with the number of kernels, and not with that of launches.

    Attributes
    ----------
    target : str
        Whose bits the kernels have.
    aten : Counter of str
        How often graphs called operators that Inductor does not generate, such as "mm" or "aten.convolution.default":
        PyTorch computes these on the CPU, unless `products` says otherwise.
    products : ProductReport or None
        Products that were computed with a target's arithmetic, where that was asked.
    """

    def __init__(self, target: str, products: ProductReport | None = None) -> None:
        self.target, self.products = target, products
        self.aten: Counter[str] = Counter()
        self._kernels: dict[tuple[str, str], CompiledKernel] = {}

    @property
    def kernels(self) -> list[CompiledKernel]:
        """The kernels, in the order of their first launches."""
        return list(self._kernels.values())

    @property
    def launches(self) -> int:
        """The number of launches."""
        return sum(kernel.launches for kernel in self._kernels.values())

    @property
    def instructions(self) -> int:
        """The number of instructions that warps have executed."""
        return sum(kernel.instructions for kernel in self._kernels.values())

    @property
    def seconds(self) -> float:
        """What the simulation of all launches took."""
        return sum(kernel.seconds for kernel in self._kernels.values())

    @property
    def hazards(self) -> list[Hazard]:
        """Hazards that were warnings, of all kernels."""
        return [hazard for kernel in self._kernels.values() for hazard in kernel.hazards]

    def add(self, graph: str, launches: Iterable[KernelLaunch], called: Counter[str]) -> None:
        """Add a run of a graph: its launches, and the operators that it called."""
        for launch in launches:
            key = graph, launch.name
            known = self._kernels.get(key) or CompiledKernel(graph=graph, name=launch.name)
            self._kernels[key] = known.with_launch(launch)
        self.aten.update(called)

    def __str__(self) -> str:
        rows = [("graph", "kernel", "launches", "instructions", "seconds", "hazards")]
        rows += [
            (x.graph, x.name, f"{x.launches:,}", f"{x.instructions:,}", f"{x.seconds:.4f}", str(len(x.hazards)))
            for x in self.kernels
        ]
        lines = [f"{counted(self.launches, 'launch', 'launches')} on {self.target}", *table(rows, left=[0, 1])]
        if open_order := [x.name for x in self.kernels if x.order]:
            lines.append(f"the order of atomics, which CUDA leaves open, decides bits of: {', '.join(open_order)}")
        if self.aten:
            calls = ", ".join(f"{count} x {name}" for name, count in self.aten.items())
            lines.append(f"computed by PyTorch itself: {calls}")
        if self.products is not None:
            lines.append(str(self.products))
        return "\n".join(lines)


def calls_in(source: str) -> Counter[str]:
    """Count the calls of operators in Inductor's code of a graph.

    Examples
    --------
    >>> calls_in("extern_kernels.mm(a, b, out=c); d = torch.ops.aten.sort.default(c)")
    Counter({'mm': 1, 'aten.sort.default': 1})
    """
    return Counter(first or second for first, second in _CALLS.findall(source))
