"""Ways to call what explains elements, and measures the errors of whole products."""

from __future__ import annotations

from typing import Any

import numpy as np

import warpmma as wm
from warpmma.analysis import ErrorReport

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
            "Advice", "Advice.__getstate__", "Advice.__str__", "Advice.good", "Advice.json", "Advice.missed",
            "Advice.rejected", "Advice.text", "Judged", "Judged.__getstate__", "Judged.hidden", "Judged.passes",
            "Tolerance", "Tolerance.__getstate__",
        )),
        "made by `advise`, whose entry looks at all of them",
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


def _advised(report: ErrorReport, **given: Any) -> str:
    advice = report.advise(**given)
    return advice.text() + advice.json()


ENTRIES = (
    Entry(name="warpmma:explain", call=wm.explain, make=_explained, weight=4),
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
