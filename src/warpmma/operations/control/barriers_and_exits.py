"""Barriers and the end of a thread: the forms.

The rules (PTX ISA 9.1, 9.7.13.1 to 9.7.13.2 and 9.7.12.7):

1.  `bar` and `barrier` name one of 16 barriers of a block and, if not all threads of the block participate, their
    number, a multiple of 32. `sync` arrives and waits for the others, `arrive` does not wait; `red` waits and reduces
    the predicates of all participants: how many are true (`popc`), whether all are, or one is.
2.  `bar` is `barrier.aligned`: all lanes of a warp execute it together. Without `.aligned` lanes may arrive separately.
3.  `bar.warp.sync` waits for the lanes of a membermask, which includes the executing lane.
4.  `barrier.cluster.arrive` arrives at the barrier of the cluster without waiting, `wait` waits until all threads of
    the cluster that have not exited arrive. An arrival releases, a wait acquires; a `.relaxed` arrival orders nothing.
5.  `exit` ends a thread. Barriers no longer wait for it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ..effects import Barrier, Exit
from ..forms import Form
from ..measurements import published


def _barrier(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of `bar` and `barrier` determine."""
    return {
        "action": next(x for x in ("arrive", "red", "sync") if x in words),
        "aligned": words[0] == "bar" or "aligned" in words,
        "reduction": next((x for x in ("popc", "and", "or") if x in words), None),
    }


def _cluster(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of `barrier.cluster` determine."""
    return {"action": words[2], "aligned": "aligned" in words, "cluster": True, "orders": "relaxed" not in words}


_form = partial(Form, kind=Barrier, fields=_barrier, evidence=published("bar, barrier"))

FORMS = (
    _form(spelling="bar .<sync arrive>", ptx=(2, 0)),
    _form(spelling="bar.cta .<sync arrive>", ptx=(7, 8)),
    _form(spelling="barrier .sync{.aligned}"),
    _form(spelling="barrier.arrive {.aligned}"),
    _form(spelling="barrier.cta .sync{.aligned}", ptx=(7, 8)),
    _form(spelling="barrier.cta.arrive {.aligned}", ptx=(7, 8)),
    *(
        _form(spelling=f"{head}.red .{what}{aligned}.{type_}", ptx=ptx)
        for head, aligned, ptx in (
            ("bar", "", (2, 0)), ("bar.cta", "", (7, 8)), ("barrier", "{.aligned}", (6, 0)),
            ("barrier.cta", "{.aligned}", (7, 8)),
        )
        for what, type_ in (("popc", "u32"), ("<and or>", "pred"))
    ),
    Form(
        spelling="bar.warp .sync", kind=Barrier, fields=lambda words: {"action": "warp", "aligned": False},
        evidence=published("bar.warp.sync"),
    ),
    Form(
        spelling="barrier.cluster.arrive [.<release relaxed>]{.aligned}", kind=Barrier, fields=_cluster, since="sm_90",
        ptx=(7, 8), evidence=published("barrier.cluster"),
    ),
    Form(
        spelling="barrier.cluster.wait [.acquire]{.aligned}", kind=Barrier, fields=_cluster, since="sm_90",
        ptx=(7, 8), evidence=published("barrier.cluster"),
    ),
    Form(spelling="exit", kind=Exit, fields=lambda words: {}, ptx=(1, 0), evidence=published("exit")),
)  # fmt: skip
"""Every form of this module."""
