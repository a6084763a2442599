"""What a launch found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..._records import Shown
from ..._views import view
from ..base import Site
from ..memory import Retyped
from ..report import Costs, Hazard, Timeline, Unpredicted, WatchedProduct


@dataclass(frozen=True, kw_only=True)
class Launch(Shown):
    """What a launch found.

    Attributes
    ----------
    hazards : list of Hazard
        Those whose policy is "warn": the first of each kind and line.
    counts : dict of str to int
        By kind, how often lanes had a hazard that is only counted: "same value", "order" and kinds
        whose policy is "count".
    order : dict of Site to int
        Lines whose results depend on the order of threads, which CUDA leaves open, and how often: values that atomics
        return, sums of floats.
    harmless : dict of (str, Site, Site or None) to int
        Reads that depend on luck and decided nothing, by kind ("unwritten", "race", "pending", "poison"), the line that
        read and the line of the other party: how many lanes read.
    joined : dict of (Site, Site) to int
        Pairs of lines from which lanes of one warp executed a `.sync` instruction together, and how often. This is
        legal (the opcode, the qualifiers and the membermask are the same), but may be a mistake.
    retyped : tuple of Retyped
        Arrays that PTX accessed as floats of a type other than their own.
    unpredicted : tuple of Unpredicted
        Statements of PTX for which it is unknown what ptxas fuses or computes itself, where that would have changed a
        result.
    undecided : tuple of Site
        All sums of PTX text for which it is unknown whether ptxas fuses them with a product, or with which one; here
        they are not fused, unless they are with another. And functions for which it is unknown whether ptxas computes
        them, of what a loop counts; here the GPU does.
    notes : tuple of str
        Other remarks on the results, such as which bits another compiler's text would give.
    costs : Costs
    watched : tuple of WatchedProduct
        What a `Watch` recorded of products; `warpmma.explain_launch` explains it.
    timeline : Timeline or None
        Asynchronous work, if the launch was asked to record it.
    printed : str
        What the kernel's `printf` printed.
    """

    # Hazards, and what may be one
    hazards: list[Hazard]
    counts: Mapping[str, int] = field(default_factory=dict)
    order: Mapping[Site, int] = field(default_factory=dict)
    harmless: Mapping[tuple[str, Site, Site | None], int] = field(default_factory=dict)
    joined: Mapping[tuple[Site, Site], int] = field(default_factory=dict)
    retyped: tuple[Retyped, ...] = ()
    # Bits that another compiler may give
    unpredicted: tuple[Unpredicted, ...] = ()
    undecided: tuple[Site, ...] = ()
    notes: tuple[str, ...] = ()
    # What ran
    costs: Costs
    watched: tuple[WatchedProduct, ...] = ()
    timeline: Timeline | None = None
    printed: str = ""

    def text(self) -> str:
        """Tables of instructions, bytes moved, accesses to shared memory with their conflicts, and hazards."""
        return view(self, "text")

    def json(self) -> str:
        """Everything, by line, as a JSON document."""
        return view(self, "json")

    def svg(self, site: Site | int, *, theme: str = "auto") -> str:
        """Draw which lanes access which bank, at a line that accesses shared memory.

        Parameters
        ----------
        site : Site or int
            One of `costs.sites`, or a line of the kernel with one such access.
        theme : {"auto", "light", "dark"}
            "auto" follows the reader's system or page.

        Raises
        ------
        OperandError
            No such access, or several; another theme.
        """
        return view(self, "svg", site, theme=theme)
