"""Fences, hints and traps: the forms that act on threads and on the order of memory, and change no register.

The rules (PTX ISA 9.1, 9.7.13.4, `membar` and `fence`; 9.7.12.8, `nanosleep`; 9.7.19, miscellaneous instructions):

1.  `fence` orders the accesses of its thread before and after it, for the threads of its scope: `.sc`, `.acq_rel`
    (the default), `.acquire` or `.release`. `membar.cta`, `.gl` and `.sys` are `fence.sc` of `.cta`, `.gpu`
    and `.sys`.
2.  `fence.proxy.async` orders accesses of the generic proxy before those of the async proxy, for all memory or one
    space (`warpmma.machine.report.asynchronous_rules`). `fence.proxy.tensormap` is the same for the proxy
    that reads tensor maps (`warpmma.machine.handlers.map_order`). `fence.proxy.alias` has no effect.
    `fence.mbarrier_init` is a release fence of the cluster; what it says of mbarriers alone holds for all here.
3.  `nanosleep`, `pmevent`, `griddepcontrol` and `setmaxnreg` change no bit. A sleeping thread lets others run. All
    warps of a warpgroup execute the same `setmaxnreg` (`warpmma.machine.sync.register_limits`).
4.  `trap` ends the launch with an error; so does `brkpt`, as there is no debugger.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from ...isa import Signature, address, value
from ..forms import Form
from ..measurements import published
from ..records import InstructionRow, MemoryOrder, MemoryScope


@dataclass(frozen=True, kw_only=True)
class Control(InstructionRow):
    """One instruction that acts on threads and their order."""

    signature: Signature = ()


@dataclass(frozen=True, kw_only=True)
class Fence(Control):
    """One `fence` or `membar`.

    Attributes
    ----------
    order : {"sc", "acq_rel", "acquire", "release", "weak"}
        "weak" for fences of proxies.
    crosses : tuple of str
        The spaces in which earlier accesses become visible to the async proxy.
    maps : {"", "acquire", "release"}
        What it does for the proxy that reads tensor maps.
    """

    order: MemoryOrder
    scope: MemoryScope = "sys"
    crosses: tuple[Literal["shared", "global"], ...] = ()
    maps: Literal["", "acquire", "release"] = ""


@dataclass(frozen=True, kw_only=True)
class Hint(Control):
    """One instruction that changes no bit.

    Attributes
    ----------
    observes : bool
        Whether it lets other threads run.
    limits : "inc", "dec" or ""
        Whether it sets how many registers the threads of a warpgroup have, and whether it takes or gives some.
    """

    observes: bool = False
    limits: Literal["", "inc", "dec"] = ""


@dataclass(frozen=True, kw_only=True)
class Trap(Control):
    """`trap` or `brkpt`."""


_LEVELS: dict[str, MemoryScope] = {"cta": "cta", "gl": "gpu", "sys": "sys"}


def _fence(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of `fence` determine."""
    scope = next((x for x in words if x in ("cta", "cluster", "gpu", "sys")), "sys")
    return {"order": next((x for x in words if x in ("sc", "acquire", "release")), "acq_rel"), "scope": scope}


def _crosses(words: tuple[str, ...]) -> dict[str, Any]:
    spaces = ("global",) if "global" in words else ("shared",) if words[-1] != "async" else ("shared", "global")
    return {"order": "weak", "crosses": spaces}


def _none(words: tuple[str, ...]) -> dict[str, Any]:
    return {"order": "weak"}


def _maps(words: tuple[str, ...]) -> dict[str, Any]:
    order = "acquire" if "acquire" in words else "release"
    takes = (address("p", "generic"), value("a1", "imm", values=(128,)))
    return {**_fence(words), "maps": order, "signature": takes if order == "acquire" else ()}


_fences = partial(Form, kind=Fence, fields=_fence, evidence=published("membar, fence"))
_nothing = partial(Form, kind=Fence, fields=_none, evidence=published("fence.proxy"))
_hints = partial(Form, kind=Hint, evidence=published("hints"))

FORMS = (
    _fences(spelling="fence[.<sc acq_rel>].<cta cluster gpu sys>", ptx=(6, 0)),
    _fences(spelling="fence.<acquire release>.<cta cluster gpu sys>", ptx=(8, 6)),
    _fences(
        spelling="membar.<cta gl sys>", ptx=(1, 4),
        fields=lambda words: {"order": "sc", "scope": _LEVELS[words[1]]},
    ),
    _nothing(spelling="<membar fence>.proxy .alias", ptx=(7, 5)),
    _nothing(
        spelling="fence.proxy .async{.<global shared::cta shared::cluster>}", since="sm_90", ptx=(8, 0),
        fields=_crosses,
    ),
    _fences(spelling="fence.acquire.sync_restrict::shared::cluster .cluster", since="sm_90", ptx=(8, 6)),
    _fences(spelling="fence.release.sync_restrict::shared::cta .cluster", since="sm_90", ptx=(8, 6)),
    _nothing(
        spelling="fence.proxy.async::generic.<acquire.sync_restrict::shared::cluster "
        "release.sync_restrict::shared::cta> .cluster", since="sm_90", ptx=(8, 6),
        fields=lambda words: {"order": "weak", "crosses": ("shared",)},
    ),
    _fences(spelling="fence.mbarrier_init .release.cluster", since="sm_90", ptx=(8, 0)),
    _nothing(
        spelling="fence.proxy.tensormap::generic .<acquire release>.<cta cluster gpu sys>", since="sm_90", ptx=(8, 3),
        fields=_maps,
    ),
    _hints(
        spelling="nanosleep.u32", ptx=(6, 3),
        fields=lambda words: {"signature": (value("a0", "u32"),), "observes": True},
    ),
    _hints(spelling="pmevent", ptx=(1, 4), fields=lambda words: {"signature": (value("a0", "imm", values=range(16)),)}),
    _hints(
        spelling="pmevent.mask", ptx=(3, 0),
        fields=lambda words: {"signature": (value("a0", "imm", values=range(1 << 16)),)},
    ),
    _hints(spelling="griddepcontrol .<launch_dependents wait>", since="sm_90", ptx=(7, 8), fields=lambda words: {}),
    _hints(
        spelling="setmaxnreg.<inc dec> .sync.aligned.u32", since="sm_90a", ptx=(8, 0),
        fields=lambda words: {"signature": (value("a0", "imm", values=range(24, 257, 8)),), "limits": words[1]},
    ),
    Form(spelling="<trap brkpt>", kind=Trap, ptx=(1, 0), fields=lambda words: {}, evidence=published("trap, brkpt")),
)  # fmt: skip
"""Every form of this module."""
