"""Counts of ones as a picture: bits of A, of B, and of what they make, 64 in a line."""

from __future__ import annotations

from ...analysis import Explanation
from ..drawing.drawing import box, characters, group
from .sum_folding import PlacedStep
from .sum_numbers import code_text, number_text, rational_of
from .sum_rows import ROW, said
from .sum_words import factors, heading, outcome_text

_LINE, _CELL, _LEFT = 64, 10, 120


def ones_lines(explanation: Explanation, each: PlacedStep, length: int = _LINE) -> list[tuple[int, str, str]]:
    """Return lines of bits: the first k, what they are ("A", "B", "xor" or "and"), and the bits, k ascending."""
    products = [x for x in each.step.addends if x.source == "product"]
    operation = getattr(explanation.recipe.unit, "operation", "")
    lines = []
    for first in range(0, len(products), length):
        part = products[first : first + length]
        found = [f for x in part for f in factors(explanation, each, x)]
        k = each.chain.k.start + first
        lines += [(k, "A", "".join(str(f.a) for f in found)), (k, "B", "".join(str(f.b) for f in found))]
        lines.append((k, operation, "".join(str(x.number.significand) for x in part)))
    return lines


def ones_panel(explanation: Explanation, each: PlacedStep, y: float) -> tuple[list[str], float]:
    """Draw a step; return also where it ends."""
    step = each.step
    place: dict[str, object] = {"target": explanation.target, "step": each.number}
    parts = [said(16, y + 16, heading(each, len(explanation.steps)), weight="bold")]
    y += 32
    for k, name, bits in ones_lines(explanation, each):
        made = name not in ("A", "B")
        words = [said(_LEFT - 10, y + 14, name, size=11, anchor="end", weight="bold" if made else "normal")]
        if name == "A":
            words.append(said(16, y + 14, f"k {k}-{k + len(bits) - 1}", size=11, fill="pale"))
        if made:
            words.append(box(_LEFT, y + 2, _CELL * len(bits), ROW - 4, "fraction", weight=0.7))
            words.append(said(_LEFT + _CELL * _LINE + 12, y + 14, f"{bits.count('1')} ones", size=11))
        for digit, fill in (("1", "ink"), ("0", "pale")):
            xs = [_LEFT + (i + 0.5) * _CELL for i, bit in enumerate(bits) if bit == digit]
            weight = "bold" if made and digit == "1" else "normal"
            words.append(characters(xs, y + 14, digit * len(xs), size=11, weight=weight, fill=fill))
        data = {**place, "row": "ones", "operand": name, "k": k, "bits": bits}
        parts.append(group([word for word in words if word], data=data))
        y += ROW + (8 if made else 0)
    others = [(x.source, x.number) for x in step.addends if x.source != "product"]
    for name, number in (*others, ("sum", step.sum), ("result", step.number)):
        data = {**place, "row": name, "value": rational_of(number)}
        if name == "result":
            data["code"] = code_text(step.result, step.format)
        words = [
            said(_LEFT - 10, y + 14, name, size=11, anchor="end"),
            said(_LEFT, y + 14, number_text(number), size=11),
        ]
        parts.append(group(words, data=data))
        y += ROW
    parts.append(said(16, y + 15, outcome_text(each), size=11, fill="pale"))
    return parts, y + 28
