"""Sentences about recipes, chains and steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from ..._text import counted, ranges
from ...analysis import Explanation
from ...arithmetic import Addend, FloatChains, FmaChain, FusedDotAdd, GroupedDotAdd, IntegerSum, Popcount, Recipe
from ...formats import FORMATS, FloatFormat
from .exact_text import code_text, short
from .shown_steps import PlacedStep

_LISTED = 66
_ROUNDINGS = {
    "rn": "to nearest even", "rz": "toward zero", "rm": "down", "rp": "up", "wrap": "wrapped to 32 bits",
    "clamp": "clamped to 32 bits",
}  # fmt: skip
_OPERATIONS = {
    "fused": "products and accumulator, aligned and added at once",
    "grouped": "groups of products and C, aligned and added at once",
    "fma": "multiply and add, rounded once",
    "multiply": "multiplication",
    "add": "addition",
    "convert": "conversion",
    "integer": "exact sum of integers",
    "popcount": "count of ones",
}


def how(recipe: Recipe) -> str:
    """Say how a recipe computes, in one line."""
    unit = recipe.unit
    match unit:
        case FusedDotAdd():
            text = (
                f"{unit.products} products a step, F = {unit.fraction_bits} fraction bits kept below the largest "
                f"exponent, sum rounded {_ROUNDINGS[unit.rounding]} to {unit.result_bits} bits"
            )
        case GroupedDotAdd():
            text = (
                f"groups of {unit.group} products summed exactly, F = {unit.fraction_bits} fraction bits kept below "
                f"the largest exponent, sum rounded {_ROUNDINGS[unit.rounding]} to {unit.result_bits} bits"
            )
        case FmaChain():
            text = f"IEEE fused multiply-adds in {recipe.d}, k ascending, rounded {_ROUNDINGS[unit.rounding]}"
        case FloatChains():
            text = f"software: chains of {unit.length} IEEE multiply-adds in f32, added to C one after the other"
        case IntegerSum():
            text = f"exact sum, {'clamped' if unit.saturate else 'wrapped'} to 32 bits"
        case Popcount():
            text = f"ones of A {unit.operation} B, counted exactly"
    if recipe.convert:
        text = f"software: A and B become {recipe.convert}; {text}"
    if recipe.accumulate == "after":
        text += ", C added after"
    return text


def chain_text(explanation: Explanation) -> str:
    """Say what makes up a chain of several links; empty for one link."""
    if len(explanation.links) < 2:
        return ""
    names = Counter(link.name for link in explanation.links if not len(link.k))
    instructions = sum(bool(len(link.k)) for link in explanation.links)
    others = [name if count == 1 else f"{count} times {name}" for name, count in names.items()]
    return f"k = {len(explanation.a)}: {', '.join([counted(instructions, 'instruction'), *others])}"


def listed(reach: Sequence[int]) -> str:
    """Write ascending values of k, many runs of them by their ends and number."""
    text = ranges(reach)
    return text if len(text) <= _LISTED else f"{reach[0]} to {reach[-1]} ({len(reach)} of them)"


def heading(each: PlacedStep, total: int) -> str:
    """Name a step, the k it takes, and its operation."""
    what = _OPERATIONS.get(each.step.operation, each.step.operation) if len(each.chain.k) else each.chain.name
    where = f", k {listed(each.reach)}" if each.reach else ""
    return f"step {each.number + 1} of {total}{where}: {what}"


def link_text(each: PlacedStep, total: int) -> str:
    """Name a step's link, with the k it takes; empty where there is one link."""
    k = each.chain.k
    return f"link {each.link + 1} of {total}: {each.chain.name}{f', k {ranges(k)}' if len(k) else ''}" * (total > 1)


def aligned_text(each: PlacedStep) -> str:
    """Say to what a step's addends are aligned and truncated, or why not; empty where they never are."""
    step = each.step
    if step.sum.kind == "nan":
        return "A NaN, or infinities that cancel, or infinity times zero: the result is NaN (rule 8)"
    if step.sum.kind == "infinity":
        return "An addend is infinite: so is the result (rule 8)"
    if step.exponent is None or step.quantum is None:
        return ""
    return (
        f"E = {step.exponent}: every addend is truncated to multiples of 2^{step.quantum} "
        f"(F = {step.exponent - step.quantum} bits below 2^{step.exponent})"
    )


def outcome_text(each: PlacedStep) -> str:
    """Say which code a step's sum became, how it was rounded, and what that took."""
    step = each.step
    taken = "rounded off" if isinstance(FORMATS[step.format], FloatFormat) else "taken"
    off = f", {short(step.rounded_off)} {taken}" if step.rounded_off else ""
    return f"{code_text(step.result, step.format)} ({step.format}): {rounding_text(each)}{off}"


def rounding_text(each: PlacedStep) -> str:
    """Say how a step's sum was rounded."""
    step, fmt = each.step, FORMATS[each.step.format]
    if step.sum.kind != "finite":
        return "nothing to round"
    if isinstance(fmt, FloatFormat):
        return f"rounded {_ROUNDINGS.get(step.rounding, step.rounding)} to {counted(step.bits, 'fraction bit')}"
    return _ROUNDINGS.get(step.rounding, step.rounding)


def run_text(run: Sequence[PlacedStep]) -> str:
    """Name steps that are counted, and what they lost together."""
    first, last = run[0].number + 1, run[-1].number + 1
    reach = [k for each in run for k in each.reach]
    where = f" (k {ranges(range(min(reach), max(reach) + 1))})" if reach else ""
    losses = [each.step.lost for each in run]
    known = [loss for loss in losses if loss is not None]
    lost = (
        "values that are not finite" if len(known) < len(losses) else f"lost {short(sum(known, Fraction(0)))} together"
    )
    return f"{f'step {first}' if first == last else f'steps {first} to {last}'}{where}: {lost}"


def label(each: PlacedStep, addend: Addend) -> str:
    """Name an addend in a word or two: the k of a product, or its source."""
    reach = [each.chain.k.start + p for p in addend.products]
    if addend.source == "product":
        return ranges(reach)
    if addend.source == "C" and each.link and len(each.chain.k):
        return "sum before"  # the link before made it
    return {"group": f"k {listed(reach)}", "chain": "chain", "accumulator": "sum before", "C": "C"}.get(
        addend.source, addend.source
    )
