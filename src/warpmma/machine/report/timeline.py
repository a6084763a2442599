"""The timeline of asynchronous work in a launch: what threads issue, signal and wait for, and when it completes.

1. A launch records a timeline if it is asked to, of the blocks that are named, or of the first cluster; else nothing.
2. An instant is a number of steps: a step is one instruction, of all warps that execute it together. Time is not
   simulated: of two instants one is earlier, and their distance says nothing.
3. Operations complete as late as they may (rule 4 of `async_operations`), so their bars are as long as they can be:
   what a kernel does beside a bar, it may do while the operation is pending.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..._records import Shown
from ..._views import view
from ..base import Site

EventKind = Literal["commit", "fence", "barrier", "init", "arrive", "expect", "phase", "wait", "pass"]

EVENTS: dict[EventKind, str] = {
    "commit": "makes a group of what it has issued", "fence": "a fence of the async proxy, or of wgmma",
    "barrier": "arrives at a barrier of the block or cluster", "init": "makes an mbarrier",
    "arrive": "arrives at an mbarrier", "expect": "expects bytes at an mbarrier",
    "phase": "a phase of an mbarrier is complete", "wait": "looks without success: it waits from here on",
    "pass": "goes on: what it waited for is complete",
}  # fmt: skip
"""What an event is, by its kind."""


@dataclass(frozen=True, kw_only=True)
class TimelineEvent(Shown):
    """Something that warps do, or that happens to an mbarrier.

    Attributes
    ----------
    step : int
        When (rule 2).
    kind : {"commit", "fence", "barrier", "init", "arrive", "expect", "phase", "wait", "pass"}
    block : int
        Number in the grid.
    warps : tuple of int
        That do it; none of a phase.
    agent : str
        The mbarrier or the groups; "" of fences and barriers.
    site : Site or None
        None of a phase.
    text : str
        The instruction, or which phase.
    """

    step: int
    kind: EventKind
    block: int
    warps: tuple[int, ...]
    agent: str
    site: Site | None
    text: str


@dataclass(frozen=True, kw_only=True)
class TimelineOperation(Shown):
    """An asynchronous operation, or those that one instruction of a warp issues at once.

    Attributes
    ----------
    block : int
    warps : tuple of int
        That issued it: one, or the four of a warpgroup.
    agent : str
        What completes it: "mbarrier full", "bulk groups of warp 0", "wgmma of warps 4-7".
    site : Site
    text : str
        The instruction.
    bytes : int
        That it writes; 0 of `wgmma`.
    issued : int
        The step.
    read : int or None
        When its reading alone was complete, by `wait_group.read`.
    completed : int or None
        None if it was not complete at the end.
    """

    block: int
    warps: tuple[int, ...]
    agent: str
    site: Site
    text: str
    bytes: int
    issued: int
    read: int | None
    completed: int | None


@dataclass(frozen=True, kw_only=True)
class Timeline(Shown):
    """What asynchronous work a launch did, in some blocks.

    Attributes
    ----------
    blocks : tuple of int
        Numbers in the grid.
    events : tuple of TimelineEvent
        In their order.
    operations : tuple of TimelineOperation
        In the order in which they were issued.
    """

    blocks: tuple[int, ...]
    events: tuple[TimelineEvent, ...]
    operations: tuple[TimelineOperation, ...]

    def text(self) -> str:
        """List all that happened, by block and step."""
        return view(self, "text")

    def json(self) -> str:
        """Everything as a JSON document."""
        return view(self, "json")

    def svg(self, block: int | None = None, *, steps: Sequence[int] | None = None, theme: str = "auto") -> str:
        """Draw a block: rows of its warps, and of what completes their operations.

        Parameters
        ----------
        block : int, optional
            Its number in the grid; by default the first that was recorded.
        steps : (int, int), optional
            The first and the last step that are drawn; by default all, or the first 2,800.
        theme : {"auto", "light", "dark"}
            "auto" follows the reader's system or page.

        Raises
        ------
        OperandError
            A block that was not recorded; no such steps; another theme.
        """
        return view(self, "svg", block, steps, theme=theme)
