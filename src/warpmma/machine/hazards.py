"""Hazards: what a kernel does that a GPU would not catch, found at the access that does it.

Where a hazard is only a warning, the kernel goes on like this: a lane whose address is misaligned or outside of memory
takes no part in the access, and what it loads is 0; every other access happens as if nothing were wrong.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..errors import OperandError, WarpmmaError, shown

__all__ = ["KINDS", "Hazard", "HazardError", "HazardWarning", "Policy", "Reporter", "Site", "caller"]

Array = npt.NDArray[Any]
Policy = Literal["error", "warn"]

KINDS: Mapping[str, str] = MappingProxyType({
    "race": "two warps touch a byte of shared memory between two barriers, and one of them writes it",
    "unwritten": "memory is read that nobody wrote",
    "poison": "a register is read in a lane that did not write it",
    "bounds": "an address is outside of every allocation",
    "misaligned": "an address is no multiple of what the access needs",
    "pending": "shared memory is touched that a cp.async without its wait is still to fill",
    "barrier": "a barrier that not all threads of the block reach",
    "divergent": "a warp's lanes execute an instruction together, and some of them are masked off",
})  # fmt: skip
"""What is found, and what each word means."""


class HazardError(WarpmmaError):
    """A hazard; `hazard` says which."""

    def __init__(self, hazard: Hazard) -> None:
        super().__init__(hazard)  # whose text is the error's
        self.hazard = hazard


class HazardWarning(UserWarning):
    """A hazard that was asked to be a warning."""


@dataclass(frozen=True)
class Site:
    """A line of a kernel.

    Attributes
    ----------
    file : str
    line : int
    mnemonic : str
        What is executed there.
    """

    file: str
    line: int
    mnemonic: str

    def __str__(self) -> str:
        return f"{self.place}: {self.mnemonic}"

    @property
    def place(self) -> str:
        """The line alone, as "file:line"."""
        return f"{Path(self.file).name}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Hazard:
    """One hazard, where it was met first.

    Attributes
    ----------
    kind : str
        A key of `KINDS`.
    site : Site
    block, warp, lane : int
        Of the thread that met it: block of the grid (linear), warp of the block.
    address : int or None
        In bytes; of shared memory from the block's own 0.
    count : int
        How many lanes met it there at once.
    detail : str
        What was there, and what was expected.
    other : Site or None
        The line of the other access of a race, and that of the `cp.async` which is pending.
    """

    kind: str
    site: Site
    block: int
    warp: int
    lane: int
    address: int | None = None
    count: int = 1
    detail: str = ""
    other: Site | None = None

    def __str__(self) -> str:
        at = "" if self.address is None else f" at address {self.address:#x}"
        more = f" (and {self.count - 1} more lane{'s' * (self.count > 2)})" if self.count > 1 else ""
        where = f"block {self.block}, warp {self.warp}, lane {self.lane}{at}{more}"
        return f"{self.site}: {self.kind}: {where}: {self.detail or KINDS[self.kind]}"


class Reporter:
    """Turns masks of lanes that are in trouble into hazards, and these into errors or warnings.

    Parameters
    ----------
    policy : "error", "warn" or dict
        For all hazards, or by kind; what is not named is an error.

    Attributes
    ----------
    first_block : int
        Number of the first of the blocks that run now.
    """

    def __init__(self, policy: Policy | Mapping[str, Policy] = "error") -> None:
        chosen = policy if isinstance(policy, Mapping) else dict.fromkeys(KINDS, policy)
        for kind, what in chosen.items():
            if kind not in KINDS or not isinstance(what, str) or what not in ("error", "warn"):
                raise OperandError(
                    f"hazards: {shown(kind)}: {shown(what)}; expected 'error' or 'warn' for one of {', '.join(KINDS)}"
                )
        self._policy = dict(chosen)
        self._found: dict[tuple[str, Site], Hazard] = {}
        self.first_block = 0

    @property
    def found(self) -> list[Hazard]:
        """Hazards that were warnings: of each kind and line, the first."""
        return list(self._found.values())

    def report(
        self, kind: str, site: Site, bad: Array, address: Array | None = None, detail: str | Callable[[int], str] = "",
        other: Site | None = None,
    ) -> None:  # fmt: skip
        """Report lanes `[block, warp, lane]` that met a hazard, if any did.

        Parameters
        ----------
        kind : str
        site : Site
        bad : ndarray of bool
        address : ndarray of int, optional
            What every lane accesses.
        detail : str or callable
            What was there, and what was expected; a function of the first such lane's address.
        other : Site, optional
            The other line that has to do with it.
        """
        if not bad.any():
            return
        block, warp, lane = (int(x) for x in np.argwhere(bad)[0])
        at = None if address is None else int(np.broadcast_to(address, bad.shape)[block, warp, lane])
        hazard = Hazard(
            kind=kind, site=site, block=self.first_block + block, warp=warp, lane=lane, address=at,
            count=int(bad.sum()), detail=detail if isinstance(detail, str) else detail(at or 0),
            other=other,
        )  # fmt: skip
        if self._policy.get(kind, "error") == "error":
            raise HazardError(hazard)
        if (kind, site) not in self._found:
            self._found[kind, site] = hazard
            # As if the kernel's line had warned.
            warnings.warn_explicit(str(hazard), HazardWarning, site.file, site.line)


def caller(mnemonic: str) -> Site:
    """Return the line of the kernel that runs: that of the innermost frame outside of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return Site(frame.f_code.co_filename, frame.f_lineno, mnemonic)


_OURS = str(Path(__file__).parent) + os.sep
