"""Explanations as JSON.

The document is an object with these keys, which stay:

* "instruction", "target", "format" (of the result), "row", "column", "matrix", "float32" (null of other types), and
  "site" in a kernel;
* "a", "b", "scale_a", "scale_b" (lists of codes), "c", "result": codes, as "0x3c00";
* "positions": the column of A at which each of a stands;
* "value", "exact", "error", "lost", "cut", "rounded_off", "bound": rational numbers as "-3/8", of what is not finite
  null, but "value" says "NaN", "infinity" or "-infinity"; "ulps", the error with its sign, too;
* "recipe": the fields of `Recipe`, with the name of the unit as "kind" of "unit"; "evidence": those of `Evidence`;
* "links": for each "name", "k" (first, and the one after the last), "weight" (what its losses count for) and "steps";
* a step: "operation", "rules", "exponent" (E), "quantum" (addends are kept to multiples of 2^quantum), "addends",
  "sum", "format", "bits", "rounding", "result" (a code), "value", "rounded_off", "lost";
* an addend: "source", "products" (values of k, counted in its link), "nominal" exponent, "value", "kept", "lost";
* "parting": null, or "link", "step" and "reason"; "against": null, or such a document for the other target; of further
  targets "further", a list of objects with these two keys.
"""

from __future__ import annotations

import json as json_
from dataclasses import asdict
from itertools import groupby
from typing import Any

from ...analysis import Explanation
from .scene import AddendRow, Figure, Scene, StepScene, scene_of
from .shown_steps import placed


def json(explanation: Explanation) -> str:
    """Write all of an explanation; the module says which keys there are."""
    shown = [placed(x) for x in (explanation, *explanation.others)]
    return json_.dumps(_document(scene_of(explanation, shown, whole=True)), indent=2)


def _document(x: Scene) -> dict[str, Any]:
    beside = [
        {"parting": None if parting is None else asdict(parting), "against": _document(other)}
        for other, parting, _ in x.others
    ]
    steps = {i: [_step(step) for step in some] for i, some in groupby(x.steps, lambda step: step.link)}
    return {
        "instruction": x.instruction, "target": x.target, "format": x.format,
        "row": x.row, "column": x.column, "matrix": x.matrix, "float32": x.float32, "site": x.site,
        "a": x.a, "b": x.b, "positions": x.positions, "scale_a": x.scale_a, "scale_b": x.scale_b, "c": x.c,
        "result": x.result, "value": x.value.exact, **x.totals,
        "recipe": {**asdict(x.recipe), "unit": {"kind": type(x.recipe.unit).__name__, **asdict(x.recipe.unit)}},
        "evidence": asdict(x.evidence), "note": x.note,
        "links": [
            {
                "name": link.name, "k": [link.k.start, link.k.stop], "weight": link.weight,
                "steps": steps.get(i, []),
            }
            for i, link in enumerate(x.links)
        ],
        **(beside[0] if beside else {"parting": None, "against": None}), "further": beside[1:],
    }  # fmt: skip


def _step(step: StepScene) -> dict[str, Any]:
    return {
        "operation": step.operation, "rules": step.rules, "exponent": step.grid.exponent,
        "quantum": step.grid.quantum, "addends": [_addend(row) for row in step.addends], "sum": step.sum.value.exact,
        "format": step.format, "bits": step.result_bits, "rounding": step.rounding, "result": step.result.code,
        "value": step.result.value.exact, "rounded_off": _exact(step.rounded_off), "lost": _exact(step.lost),
    }  # fmt: skip


def _addend(row: AddendRow) -> dict[str, Any]:
    return {
        "source": row.source, "products": row.products, "nominal": row.nominal, "value": row.value.exact,
        "kept": row.kept.exact, "lost": _exact(row.lost),
    }  # fmt: skip


def _exact(figure: Figure | None) -> str | None:
    return None if figure is None else figure.exact
