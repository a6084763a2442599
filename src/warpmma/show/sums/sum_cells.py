"""Cells of tables: what stands in a row for an addend, and for a step of few addends."""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis import Explanation
from ...arithmetic import Addend, Recipe
from .sum_folding import PlacedStep
from .sum_numbers import code_text, number_text, short
from .sum_words import Factors, factors, label, unpacked

CHAINS = ("fma", "multiply", "add", "convert")
"""Operations whose steps have few addends: a row for each."""

CHAIN_HEAD = ("step", "", "k", "a", "", "b", "", "product", "+", "result", "code", "rounded off")


def addend_cells(
    explanation: Explanation, each: PlacedStep, addends: Sequence[Addend]
) -> tuple[list[str], list[list[str]]]:
    """Make the cells of addends and their head; columns without contents are left out."""
    recipe = explanation.recipe
    head = ["k", "column", "a", "", "b", "", "scales", "product", "exponent", "cut"]
    rows = []
    for addend in addends:
        row = [label(each, addend), *[""] * 9]
        found = factors(explanation, each, addend)
        if len(found) == 1 and addend.source == "product":
            [f] = found
            if explanation.instruction.sparse:
                row[1] = str(f.position)
            row[2:6] = _operands(f, recipe)
        if found and found[0].scale_a is not None and found[0].scale_b is not None and recipe.scale:
            row[6] = f"{unpacked(found[0].scale_a, recipe.scale)} x {unpacked(found[0].scale_b, recipe.scale)}"
        if addend.source == "C" and each.link == 0:
            row[0] += " " + code_text(explanation.c, recipe.c)[2:]
        row[7] = number_text(addend.number)
        if addend.nominal is not None and addend.number.kind == "finite" and (addend.number.significand or found):
            row[8] = str(addend.nominal)
        row[9] = short(addend.lost) if addend.lost else ""
        rows.append(row)
    used = [i for i in range(len(head)) if i in (0, 7) or any(row[i] for row in rows)]
    return [head[i] for i in used], [[row[i] for i in used] for row in rows]


def chain_cells(explanation: Explanation, each: PlacedStep) -> tuple[str, ...]:
    """Make the cells of a step, under `CHAIN_HEAD`."""
    step, recipe = each.step, explanation.recipe
    first, *rest = sorted(step.addends, key=lambda x: x.source != "product")
    found = factors(explanation, each, first)
    operands = ("", "", "", "")
    if first.source == "product" and found:
        [f] = found
        operands = _operands(f, recipe)
    name = step.operation if len(each.chain.k) else each.chain.name
    if first.source != "product" and len(each.chain.k):
        name += " " + " + ".join(label(each, x).removesuffix(" before") for x in step.addends)
    k = label(each, first) if first.source == "product" else ""
    return (
        str(each.number + 1), name, k, *operands, number_text(first.number), *(number_text(x.number) for x in rest[:1]),
        *([""] if not rest else []), number_text(step.number), code_text(step.result, step.format),
        short(step.rounded_off) if step.rounded_off else "",
    )  # fmt: skip


def _operands(found: Factors, recipe: Recipe) -> tuple[str, str, str, str]:
    """Values and codes of the two factors of a product."""
    return (
        unpacked(found.a, recipe.a), code_text(found.a, recipe.a), unpacked(found.b, recipe.b),
        code_text(found.b, recipe.b),
    )  # fmt: skip
