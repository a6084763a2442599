"""`mbarrier` and `cp.async.mbarrier.arrive`: the forms.

The rules (PTX ISA 9.1, 9.7.13.15, mbarrier):

1.  An mbarrier is 64 bits of shared memory, aligned to 8 bytes, that nobody else reads: a phase, how many arrivals it
    expects in each, how many are still to come in this one, and how many bytes of transactions. `init` makes one that
    expects so many arrivals, `inval` ends it.
2.  `arrive` counts one arrival, or as many as it says, and gives the state before it; `arrive_drop` expects as many
    fewer in later phases too. `.noComplete` must not be the last. `expect_tx` adds bytes to those that are to come, and
    `complete_tx` takes them away. When no arrival and no byte is to come the phase is complete, and the next begins.
3.  `test_wait` and `try_wait` say whether a phase is complete: that of a state, or with `.parity` the last one that had
    it, even or odd. `try_wait` may wait a while for it; here others run meanwhile.
4.  `pending_count` reads from a state how many arrivals were to come.
5.  `cp.async.mbarrier.arrive` arrives when all copies are done that its thread began before. With `.noinc` it is one of
    the arrivals that are expected; without, one more is.
6.  `arrive` is a release and waits are acquires unless they say `.relaxed`, of the scope `.cta` unless they say
    another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from ...isa import address, value
from ..forms import Form
from ..measurements import published
from ..records import MemoryScope
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
        Of an arrival: whether later phases expect fewer, whether it announces bytes, and whether it may be the last.
    parity : bool
        Whether a wait names a phase as even or odd, and not by a state.
    counts : bool
        Of a copy: whether it is one of the arrivals that are expected.
    orders : bool
        Whether it orders memory, and is not `.relaxed`.
    scope : {"cta", "cluster"}
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
        """Whether it may read what other threads write meanwhile: those who spin on it let others run."""
        return self.action == "wait"


def _fields(words: tuple[str, ...]) -> dict[str, Any]:
    """Return what the words of a mnemonic say of a row."""
    action = {"arrive_drop": "arrive", "test_wait": "wait", "try_wait": "wait", "async": "copy"}.get(words[1], words[1])
    takes: dict[str, tuple[str, ...]] = {
        "inval": (), "copy": (), "pending_count": ("b64",),
        "wait": ("u32" if "parity" in words else "b64", *["u32"] * ("try_wait" in words)),
    }  # fmt: skip
    outputs = {"arrive": "b64", "wait": "pred", "pending_count": "b32"}
    must = action not in ("arrive", "wait") or "expect_tx" in words or "noComplete" in words or "test_wait" in words
    space = "shared" if any(x.startswith("shared") for x in words) else "generic"
    sink = "" if action != "arrive" else "only" if "shared::cluster" in words else "alone"
    signature = [value("d0", outputs[action], role="result", sink=sink)] if action in outputs else []
    signature += [address("p", space)] if action != "pending_count" else []
    first, given = int(action != "pending_count"), takes.get(action, ("u32",))
    last = len(given) - 1
    signature += [value(f"a{i + first}", type_, optional=not must and i == last) for i, type_ in enumerate(given)]
    return {
        "action": action, "space": space,
        "drop": "arrive_drop" in words, "expects": action == "arrive" and "expect_tx" in words,
        "last": "noComplete" not in words, "parity": "parity" in words, "counts": "noinc" in words,
        "orders": "relaxed" not in words, "scope": "cluster" if "cluster" in words else "cta",
        "signature": tuple(signature),
    }  # fmt: skip


_form = partial(Form, kind=Mbarrier, fields=_fields, since="sm_80", ptx=(7, 0), evidence=published("mbarrier"))
_late = partial(_form, since="sm_90", ptx=(8, 0))
_OWN, _ANY = "{.<shared shared::cta>}", "{.<shared shared::cta shared::cluster>}"
_RELEASE, _ACQUIRE, _NONE = (f"[.<{x}>][.<cta cluster>]" for x in ("release relaxed", "acquire relaxed", "relaxed"))

FORMS = (
    _form(spelling=f"mbarrier.<init inval>{_OWN}.b64"),
    _form(spelling=f"mbarrier.<arrive arrive_drop>{_RELEASE}{_ANY}.b64"),
    _form(spelling=f"mbarrier.<arrive arrive_drop>.noComplete{_RELEASE}{_OWN}.b64"),
    _late(spelling=f"mbarrier.<arrive arrive_drop>.expect_tx{_RELEASE}{_ANY}.b64"),
    _late(spelling=f"mbarrier.<expect_tx complete_tx>{_NONE}{_ANY}.b64"),
    _form(spelling=f"mbarrier.test_wait{_ACQUIRE}{_OWN}.b64"),
    _form(spelling=f"mbarrier.test_wait.parity{_ACQUIRE}{_OWN}.b64", ptx=(7, 1)),
    _late(spelling=f"mbarrier.try_wait{{.parity}}{_ACQUIRE}{_OWN}.b64", ptx=(7, 8)),
    _form(spelling="mbarrier.pending_count.b64"),
    _form(spelling=f"cp.async.mbarrier.arrive{{.noinc}}{_OWN}.b64"),
)
"""Every form of this module."""
