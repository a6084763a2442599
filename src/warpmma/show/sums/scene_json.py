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
from typing import Any

from ...analysis import Explanation
from ...arithmetic import Addend, SumStep
from .exact_text import code_text, codes_text, number_of, rational, rational_of
from .scene import totals_of


def json(explanation: Explanation) -> str:
    """Write all of an explanation; the module says which keys there are."""
    return json_.dumps(_document(explanation), indent=2)


def _document(x: Explanation) -> dict[str, Any]:
    recipe = x.recipe
    beside = [
        {"parting": None if parting is None else asdict(parting), "against": _document(other)}
        for other, parting in zip(x.others, x.partings, strict=True)
    ]
    return {
        "instruction": str(x.instruction), "target": x.target, "format": x.format,
        "row": x.row, "column": x.column, "matrix": x.matrix, "float32": x.float32, "site": x.site,
        "a": codes_text(x.a, recipe.a), "b": codes_text(x.b, recipe.b), "positions": x.positions,
        "scale_a": codes_text(x.scale_a, recipe.scale), "scale_b": codes_text(x.scale_b, recipe.scale),
        "c": code_text(x.c, recipe.c), "result": code_text(x.result, x.format),
        "value": rational_of(number_of(x.result, x.format)),
        **{name: rational(total) for name, total in totals_of(x).items()},
        "recipe": {**asdict(recipe), "unit": {"kind": type(recipe.unit).__name__, **asdict(recipe.unit)}},
        "evidence": asdict(x.evidence), "note": x.note,
        "links": [
            {
                "name": link.name, "k": [link.k.start, link.k.stop], "weight": rational(link.weight),
                "steps": [_step(step) for step in link.steps],
            }
            for link in x.links
        ],
        **(beside[0] if beside else {"parting": None, "against": None}), "further": beside[1:],
    }  # fmt: skip


def _step(step: SumStep) -> dict[str, Any]:
    return {
        "operation": step.operation, "rules": step.rules, "exponent": step.exponent, "quantum": step.quantum,
        "addends": [_addend(addend) for addend in step.addends], "sum": rational_of(step.sum),
        "format": step.format, "bits": step.bits, "rounding": step.rounding,
        "result": code_text(step.result, step.format), "value": rational_of(step.number),
        "rounded_off": rational(step.rounded_off), "lost": rational(step.lost),
    }  # fmt: skip


def _addend(addend: Addend) -> dict[str, Any]:
    return {
        "source": addend.source, "products": addend.products, "nominal": addend.nominal,
        "value": rational_of(addend.number), "kept": rational_of(addend.kept), "lost": rational(addend.lost),
    }  # fmt: skip
