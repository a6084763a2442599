"""`mbarrier` and `cp.async.mbarrier.arrive`: the forms.

The rules (PTX ISA 9.1, 9.7.13.15, mbarrier):

1.  An mbarrier is an opaque object of 64 bits in shared memory, aligned to 8 bytes: its phase, the expected arrivals
    per phase, the pending arrivals of this phase, and its pending transaction bytes. `init` makes one with a number of
    expected arrivals, `inval` invalidates it.
2.  `arrive` counts one arrival, or its operand's number, and returns the state before it; `arrive_drop` also lowers
    the expected arrivals of later phases by that number. `.noComplete` must not complete the phase. `expect_tx` adds to
    the pending bytes, `complete_tx` subtracts. Without pending arrivals and bytes the phase completes, the next begins.
3.  `test_wait` and `try_wait` return whether a phase is complete: that of a state, or with `.parity` the latest one of
    that parity, even or odd. `try_wait` may suspend its thread; here others run meanwhile.
4.  `pending_count` reads the pending arrivals from a state.
5.  `cp.async.mbarrier.arrive` arrives when all earlier copies of its thread are complete. With `.noinc` it is one of
    the expected arrivals; without, it increments the pending arrivals.
6.  `arrive` is a release and waits are acquires unless they are `.relaxed`; the default scope is `.cta`. ptxas accepts
    an order and a scope together or neither, and with `.noComplete` only `.release.cta`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from ...isa import address, value
from ..forms import Form
from ..measurements import published
from ..records import MemoryScope
from ..windows import space_of
from .fences import Control

Action = Literal["init", "inval", "arrive", "expect_tx", "complete_tx", "wait", "pending_count", "copy"]


@dataclass(frozen=True, kw_only=True)
class Mbarrier(Control):
    """One `mbarrier`, or `cp.async.mbarrier.arrive` ("copy").

    Attributes
    ----------
    action : {"init", "inval", "arrive", "expect_tx", "complete_tx", "wait", "pending_count", "copy"}
    space : {"generic", "shared"}
    drop, expects, last : bool
        For an arrival: whether later phases expect fewer, whether it adds expected bytes, whether it may be the last.
    parity : bool
        Whether a wait names a phase by its parity instead of a state.
    counts : bool
        For a copy: whether it is one of the expected arrivals.
    orders : bool
        Whether it orders memory: it is not `.relaxed`.
    """

    action: Action
    space: Literal["generic", "shared"]
    drop: bool = False
    expects: bool = False
    last: bool = True
    parity: bool = False
    counts: bool = False
    orders: bool = True
    scope: MemoryScope = "cta"

    @property
    def observes(self) -> bool:
        """Whether it may observe concurrent writes: threads that spin on it let others run."""
        return self.action == "wait"


def _fields(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of a mnemonic determine."""
    action = {"arrive_drop": "arrive", "test_wait": "wait", "try_wait": "wait", "async": "copy"}.get(words[1], words[1])
    takes: dict[str, tuple[str, ...]] = {
        "inval": (), "copy": (), "pending_count": ("b64",),
        "wait": ("u32" if "parity" in words else "b64", *["u32"] * ("try_wait" in words)),
    }  # fmt: skip
    outputs = {"arrive": "b64", "wait": "pred", "pending_count": "b32"}
    must = action not in ("arrive", "wait") or "expect_tx" in words or "noComplete" in words or "test_wait" in words
    space = space_of(words)
    sink = "" if action != "arrive" else "only" if "shared::cluster" in words else "alone"
    signature = [value("d0", outputs[action], role="result", sink=sink)] if action in outputs else []
    signature += [address("p", space)] if action != "pending_count" else []
    first, given = int(action != "pending_count"), takes.get(action, ("u32",))
    last = len(given) - 1
    signature += [value(f"a{i + first}", type_, optional=not must and i == last) for i, type_ in enumerate(given)]
    if "parity" in words:
        signature[2] = replace(signature[2], values=(0, 1))
    if action == "arrive" and "expect_tx" not in words:
        later = "sm_90" if "noComplete" not in words else ""
        signature[-1] = replace(signature[-1], values=range(1, 1 << 32), since=later)
    return {
        "action": action, "space": space,
        "drop": "arrive_drop" in words, "expects": action == "arrive" and "expect_tx" in words,
        "last": "noComplete" not in words, "parity": "parity" in words, "counts": "noinc" in words,
        "orders": "relaxed" not in words, "scope": "cluster" if "cluster" in words else "cta",
        "signature": tuple(signature),
    }  # fmt: skip


_form = partial(Form, kind=Mbarrier, fields=_fields, since="sm_80", ptx=(7, 0), evidence=published("mbarrier"))
_late = partial(_form, since="sm_90", ptx=(8, 0))
_relaxed = partial(_late, ptx=(8, 6))
_OWN, _ANY = "{.<shared shared::cta>}", "{.<shared shared::cta shared::cluster>}"
_RELEASE, _ACQUIRE, _NONE = (f"[.{x}.<cta cluster>]" for x in ("release", "acquire", "relaxed"))
_RELAXED = ".relaxed.<cta cluster>"

FORMS = (
    _form(spelling=f"mbarrier.<init inval> {_OWN}.b64"),
    _form(spelling=f"mbarrier.<arrive arrive_drop> [.release.<cta cluster>]{_ANY}.b64"),
    _relaxed(spelling=f"mbarrier.<arrive arrive_drop> {_RELAXED}{_ANY}.b64"),
    _form(spelling=f"mbarrier.<arrive arrive_drop> .noComplete[.release.cta]{_OWN}.b64"),
    _late(spelling=f"mbarrier.<arrive arrive_drop>.expect_tx {_RELEASE}{_ANY}.b64"),
    _relaxed(spelling=f"mbarrier.<arrive arrive_drop>.expect_tx {_RELAXED}{_ANY}.b64"),
    _late(spelling=f"mbarrier.<expect_tx complete_tx> {_NONE}{_ANY}.b64"),
    _form(spelling=f"mbarrier.test_wait [.acquire.<cta cluster>]{_OWN}.b64"),
    _relaxed(spelling=f"mbarrier.test_wait {_RELAXED}{_OWN}.b64"),
    _form(spelling=f"mbarrier.test_wait.parity [.acquire.<cta cluster>]{_OWN}.b64", ptx=(7, 1)),
    _relaxed(spelling=f"mbarrier.test_wait.parity {_RELAXED}{_OWN}.b64"),
    _late(spelling=f"mbarrier.try_wait{{.parity}} {_ACQUIRE}{_OWN}.b64", ptx=(7, 8)),
    _relaxed(spelling=f"mbarrier.try_wait{{.parity}} {_RELAXED}{_OWN}.b64"),
    _form(spelling="mbarrier.pending_count .b64"),
    _form(spelling=f"cp.async.mbarrier.arrive{{.noinc}}{_OWN}.b64"),
)
"""Every form of this module."""
