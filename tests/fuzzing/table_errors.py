"""Ways to call what explains elements, and measures the errors of whole products."""

from __future__ import annotations

from typing import Any

import numpy as np

import warpmma as wm
from warpmma.analysis import ErrorReport
from warpmma.kernel import Site, Watch, launch
from warpmma.machine import Timeline
from warpmma.testing import guess_launch

from .calls import Entry
from .hostile import Rng, chance, pick
from .table_execution import multiplied, product_operands

__all__ = ["ENTRIES", "INNER"]

_VIEWS = ("csv", "json", "svg", "text")

INNER: dict[str, str] = {
    **dict.fromkeys(
        (f"warpmma.analysis:{x}" for x in (
            "ErrorPlace", "ErrorPlace.__getstate__", "ErrorPlace.error", "ErrorPlace.relative", "ErrorPlace.ulps",
            "ErrorReport", "ErrorReport.__getstate__", "ErrorReport.__str__", "ErrorReport.by_name", "ProductError",
            "ProductError.__getstate__", "ProductError.histogram", *(f"ErrorReport.{view}" for view in _VIEWS),
        )),
        "made by `error`, whose entries look at all of them",
    ),
    **dict.fromkeys(
        (f"warpmma.analysis:{x}" for x in (
            "Advice", "Advice.__getstate__", "Advice.__str__", "Advice.elements", "Advice.good", "Advice.json",
            "Advice.missed", "Advice.rejected", "Advice.text", "Judged", "Judged.__getstate__",
            "Judged.hidden", "Judged.passes", "Tolerance", "Tolerance.__getstate__",
        )),
        "made by `advise`, whose entry looks at all of them",
    ),
    **dict.fromkeys(
        (f"warpmma.machine:{x}" for x in (
            "WatchedProduct", "WatchedProduct.layout", "WatchedProduct.lines", "WatchedProduct.place", "WatchedTile",
            "Watching", "Watching.see", "Watching.see_warpgroups",
        )),
        "made by launches that are given a Watch",
    ),
    **dict.fromkeys(
        (f"warpmma.machine:{x}" for x in ("Timeline", "TimelineEvent", "TimelineOperation")),
        "made by launches with timeline=True",
    ),
    **dict.fromkeys(
        ("warpmma.testing:LaunchGuess", "warpmma.testing:LaunchGuess.__str__"), "made by `guess_launch`",
    ),
}  # fmt: skip


def _explained(rng: Rng) -> dict[str, Any]:
    """Make a legal call of `explain`, of one instruction or of a whole product."""
    while True:
        given = multiplied(rng) if chance(rng, 0.5) else product_operands(rng)
        given = {name: x for name, x in given.items() if name not in ("engine", "threads")}
        record = given.get("instruction")
        a = getattr(given["a"], "elements", given["a"])
        if a.ndim == 2 and a.shape[0] and (record is not None or "metadata" not in given):
            break
    given.setdefault("instruction", None)
    given |= {"row": int(rng.integers(a.shape[0])), "column": 0}
    return given | ({"against": given["target"]} if chance(rng, 0.2) else {})


def _measured(rng: Rng) -> dict[str, Any]:
    given = product_operands(rng)
    if chance(rng, 0.2):
        given["ways"] = {"one": {}, "other": {"engine": "numpy"}}
    return given


def _error(**given: Any) -> str:
    report = wm.error(**given)
    return "\n".join(getattr(report, view)() for view in _VIEWS)


def _small() -> ErrorReport:
    return wm.error(np.ones((4, 16), np.float16), np.ones((16, 4), np.float16), targets=["sm_80", "sm_90"])


def _kernel(t: Any) -> None:
    one, zero = t.constant(0x3C003C00, "b32"), t.constant(0, "b32")
    for _ in range(2):
        t("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", [one] * 4, [one] * 2, [zero] * 4)


def _watched(**given: Any) -> Any:
    return launch(_kernel, 1, 64, [], target="sm_90", watch=Watch(**given))


def _watch(rng: Rng) -> dict[str, Any]:
    return {
        "line": pick(rng, (None, 30)), "mnemonic": pick(rng, (None, "mma")), "block": pick(rng, (None, 0)),
        "warp": pick(rng, (None, 1)), "occurrence": pick(rng, (None, 0, 1)), "most": pick(rng, (4096, 0, 1)),
        "shared": pick(rng, (False, True)),
    }  # fmt: skip


def _explained_launch(rng: Rng) -> dict[str, Any]:
    given = {"launch": _watched(), "block": 0, "warp": 1, "occurrence": pick(rng, (0, 1)), "against": "sm_80"}
    return given | pick(rng, ({"lane": 3, "register": 2, "index": 0}, {"row": 3, "column": 5, "matrix": 0}))


def _guessed_launch(rng: Rng) -> dict[str, Any]:
    ones = np.ones((16, 16), np.float16)
    given = {"launch": _watched(), "a": ones, "b": ones[:, :8], "block": 0, "warp": 1, "occurrence": pick(rng, (0, 1))}
    return given | pick(rng, ({}, {"c": np.zeros((16, 8), np.float32)}, {"b": 2 * ones[:, :8]}))


def _recorded() -> Timeline:
    def kernel(t: Any) -> None:
        with t.where(t.tid[0] == 0):
            t("mbarrier.init.shared::cta.b64", 0, 1)
            t("mbarrier.arrive.shared::cta.b64", 0)
        t("bar.sync")
        t("mbarrier.try_wait.parity.shared::cta.b64", 0, 0)

    found = launch(kernel, 1, 64, [], target="sm_90", shared=8, timeline=True).timeline
    assert found is not None
    return found


def _drawn(rng: Rng) -> dict[str, Any]:
    return {"self": _recorded(), "block": pick(rng, (None, 0)), "steps": pick(rng, (None, (0, 4)))}


def _advised(report: ErrorReport, **given: Any) -> str:
    advice = report.advise(**given)
    return advice.text() + advice.json()


ENTRIES = (
    Entry(name="warpmma:explain", call=wm.explain, make=_explained, weight=4),
    Entry(name="warpmma:explain_launch", call=wm.explain_launch, make=_explained_launch, weight=0.5, fixed=("launch",)),
    Entry(name="warpmma.kernel:Watch", call=_watched, make=_watch, weight=0.3, pure=False),
    Entry(
        name="warpmma.kernel:Watch.fits", call=Watch.fits, weight=0.1, fixed=("self", "site"),
        make=lambda rng: {"self": Watch(**_watch(rng)), "site": Site("k.py", 30, "mma", "k.ptx:4:5")},
    ),
    Entry(
        name="warpmma.testing:guess_launch", call=guess_launch, make=_guessed_launch, weight=0.2, fixed=("launch",),
    ),
    Entry(name="warpmma.machine:Timeline.svg", call=Timeline.svg, make=_drawn, weight=0.2, fixed=("self",)),
    *(
        Entry(
            name=f"warpmma.machine:Timeline.{view}", call=getattr(Timeline, view), weight=0.05, fixed=("self",),
            make=lambda rng: {"self": _recorded()},
        )
        for view in ("text", "json")
    ),
    Entry(name="warpmma:error", call=wm.error, make=_measured, weight=1, pure=False),
    Entry(name="warpmma:error views", call=_error, make=_measured, weight=1, engines=True),
    Entry(
        name="warpmma.analysis:ErrorReport.__getitem__", call=lambda report, name: report[name],
        make=lambda rng: {"report": _small(), "name": pick(rng, ("sm_80", "sm_90"))}, weight=0.2, fixed=("report",),
        pure=False,
    ),
    Entry(
        name="warpmma.analysis:ErrorReport.advise", call=_advised, weight=0.3, fixed=("report",),
        make=lambda rng: {"report": _small(), "rtol": pick(rng, (0, 1e-3)), "atol": pick(rng, (1e-5, 2.0)),
                          "name": pick(rng, ("sm_80", "sm_90"))},
    ),
    Entry(
        name="warpmma.analysis:ErrorReport.worst", weight=0.2, fixed=("report",), pure=False,
        call=lambda report, name, against: report.worst(name, against=against),
        make=lambda rng: {"report": _small(), "name": pick(rng, ("sm_80", "sm_90")), "against": "sm_120"},
    ),
)  # fmt: skip
