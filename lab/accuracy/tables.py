"""Tables of the measurements, as Markdown, and the bounds that NVIDIA states."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

__all__ = ["BOUNDS", "Bound", "extremes", "tables", "worst", "written"]


class Bound(NamedTuple):
    """A bound that the PTX ISA promises for a form.

    Attributes
    ----------
    mnemonic, range : str
    kind : {"ulp", "steps", "absolute", "relative"}
        "steps" are numbers between the result and the nearest one.
    limit : float
    """

    mnemonic: str
    range: str
    kind: Literal["ulp", "steps", "absolute", "relative"]
    limit: float


BOUNDS = (
    Bound("rcp.approx.ftz.f32", "all", "ulp", 1),
    Bound("sqrt.approx.ftz.f32", "all", "relative", 2.0**-23),
    Bound("rsqrt.approx.ftz.f32", "all", "relative", 2.0**-22.9),
    Bound("sin.approx.ftz.f32", "[0, 2 pi]", "absolute", 2.0**-20.5),
    Bound("sin.approx.ftz.f32", "[0, 100 pi]", "absolute", 2.0**-14.7),
    Bound("cos.approx.ftz.f32", "[0, 2 pi]", "absolute", 2.0**-20.5),
    Bound("cos.approx.ftz.f32", "[0, 100 pi]", "absolute", 2.0**-14.7),
    Bound("lg2.approx.ftz.f32", "(0.5, 2)", "absolute", 2.0**-22),
    Bound("lg2.approx.ftz.f32", "up to 0.5", "relative", 2.0**-22),
    Bound("lg2.approx.ftz.f32", "from 2", "relative", 2.0**-22),
    Bound("ex2.approx.ftz.f32", "positive", "steps", 2),
    Bound("ex2.approx.ftz.f32", "negative", "steps", 2),
    Bound("ex2.approx.f32", "subnormal results", "steps", 2),
    Bound("tanh.approx.f32", "all", "relative", 2.0**-11),
    Bound("tanh.approx.f16", "all", "absolute", 2.0**-10.987),
    Bound("tanh.approx.bf16", "all", "absolute", 2.0**-8),
    Bound("ex2.approx.f16", "all", "relative", 2.0**-9.9),
    Bound("ex2.approx.ftz.bf16", "all", "relative", 2.0**-7),
)
"""PTX ISA 9.7.3 and 9.7.4; for sin and cos, for both signs."""

_SIXTEEN = (".f16", ".bf16")


def worst(whole: dict[str, Any], bound: Bound) -> tuple[float, int]:
    """Return the largest error of a bound's kind, and its operand."""
    ranges = whole["forms"][bound.mnemonic]["ranges"]
    records = [ranges[bound.range]] if bound.range in ranges else ranges.values()
    names = ("low", "high") if bound.kind == "ulp" else (bound.kind,)
    pairs = [(abs(r[name][0]), r[name][1]) for r in records for name in names]
    size, code = max(pairs)
    return size, code


def _power(value: float) -> str:
    """Format a power of two, with enough digits to distinguish it from a whole exponent."""
    exponent = math.log2(value)
    if math.isclose(exponent, round(exponent, 3), abs_tol=1e-12):
        return f"2^{exponent:.6g}"
    digits = next(d for d in range(3, 16) if float(f"{exponent:.{d}f}") != round(exponent))
    return f"2^{exponent:.{digits}f}"


def _size(kind: str, value: float) -> str:
    match kind:
        case "ulp":
            return f"{value:.4g} ulp"
        case "steps":
            return f"{value:g} from the nearest"
        case _:
            return f"{kind} {_power(value)}"


def _code(mnemonic: str, code: int) -> str:
    return f"`0x{code:0{4 if mnemonic.endswith(_SIXTEEN) else 8}X}`"


def _value(code: int) -> str:
    return f"{np.uint32(code).view(np.float32).item():.9g}"


def _short(number: float) -> str:
    return f"{number:+.3f}".replace("-", "−") if abs(number) < 1000 else f"{number:+.2g}".replace("-", "−")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _share(part: int, whole: int) -> str:
    if part in (0, whole):
        return "0" if part == 0 else "all"
    return f"{100 * part / whole:.2g} %"


def _bounds(whole: dict[str, Any]) -> str:
    rows = []
    for bound in BOUNDS:
        size, code = worst(whole, bound)
        holds = "yes" if size <= bound.limit else f"**no**, by {100 * (size / bound.limit - 1):.1g} %"
        section = whole["forms"][bound.mnemonic]["section"]
        section = "9.7.3.21" if bound.mnemonic == "ex2.approx.f32" else section
        name = bound.range.replace("pi", "π")
        rows.append([
            f"`{bound.mnemonic}`", name, section, _size(bound.kind, bound.limit), _size(bound.kind, size),
            _code(bound.mnemonic, code), holds,
        ])  # fmt: skip
    return _table(["form", "operands", "PTX", "NVIDIA's bound", "worst", "at", "holds"], rows)


_IN_ULPS = (
    ("rcp.approx.ftz.f32", "all"),
    ("sqrt.approx.ftz.f32", "all"),
    ("rsqrt.approx.ftz.f32", "all"),
    ("ex2.approx.ftz.f32", "positive"),
    ("ex2.approx.ftz.f32", "negative"),
    ("ex2.approx.ftz.f32", "[1, 2)"),
    ("ex2.approx.ftz.f32", "(-2, -1]"),
    ("lg2.approx.ftz.f32", "up to 0.5"),
    ("lg2.approx.ftz.f32", "from 2"),
    ("tanh.approx.f32", "below 2^-8"),
    ("tanh.approx.f32", "[2^-8, 8)"),
    ("tanh.approx.f32", "from 8"),
    ("rcp.approx.f32", "subnormal operands"),
    ("rcp.approx.f32", "subnormal results"),
    ("sqrt.approx.f32", "subnormal operands"),
    ("rsqrt.approx.f32", "subnormal operands"),
    ("lg2.approx.f32", "subnormal operands"),
    ("ex2.approx.f32", "subnormal results"),
    ("ex2.approx.f16", "all"),
    ("ex2.approx.ftz.bf16", "all"),
    ("tanh.approx.f16", "all"),
    ("tanh.approx.bf16", "all"),
)


def _ulps(whole: dict[str, Any]) -> str:
    rows = []
    for mnemonic, name in _IN_ULPS:
        r = whole["forms"][mnemonic]["ranges"][name]
        n = r["operands"]
        rows.append([
            f"`{mnemonic}`", name.replace("-", "−"), _short(r["low"][0]), _short(r["high"][0]),
            _short(r["sum"] / n), _share(r["not_nearest"], n), _share(r["not_adjacent"], n),
        ])  # fmt: skip
    head = ["form", "operands", "least", "largest", "mean", "not the nearest", "off by 1 ulp or more"]
    return _table(head, rows)


_MONOTONE = {
    "sin.approx.ftz.f32": ("[0, 2 pi]", "0 to π/2"),
    "cos.approx.ftz.f32": ("[0, 2 pi]", "0 to π"),
    "ex2.approx.ftz.f32": (None, "all"),
    "lg2.approx.ftz.f32": (None, "all positive"),
    "tanh.approx.f32": (None, "all positive"),
    "sqrt.approx.ftz.f32": (None, "all positive"),
    "rsqrt.approx.ftz.f32": (None, "all positive"),
    "rcp.approx.ftz.f32": (None, "all positive"),
}


def _breaks(whole: dict[str, Any]) -> str:
    rows = []
    for mnemonic, (name, operands) in _MONOTONE.items():
        ranges = whole["forms"][mnemonic]["ranges"]
        if mnemonic.startswith("ex2"):  # the others lie within these
            records = [ranges["positive"], ranges["negative"]]
        else:
            records = [ranges[name]] if name else list(ranges.values())
        known = [r for r in records if "worst_break" in r]
        number, borders = (sum(r[key] for r in records) for key in ("breaks", "borders"))
        size, at = max((r["worst_break"] for r in known), default=(0, 0))
        shown = (f"{borders:,}", f"{size:g} ulp", _value(at)) if number else ("", "", "")
        rows.append([f"`{mnemonic}`", operands, f"{number:,}", *shown])
    return _table(["form", "operands", "breaks", "of these between segments", "worst", "at"], rows)


def tables(whole: dict[str, Any]) -> dict[str, str]:
    """Return tables by name."""
    return {"bounds": _bounds(whole), "ulps": _ulps(whole), "breaks": _breaks(whole)}


_TITLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "rcp.approx.ftz.f32": ("ulp", ("all",)),
    "sqrt.approx.ftz.f32": ("ulp", ("all",)),
    "rsqrt.approx.ftz.f32": ("ulp", ("all",)),
    "ex2.approx.ftz.f32": ("ulp", ("positive", "negative")),
    "lg2.approx.ftz.f32": ("absolute", ("(0.5, 2)",)),
    "sin.approx.ftz.f32": ("absolute", ("[0, 2 pi]",)),
    "cos.approx.ftz.f32": ("absolute", ("[0, 2 pi]",)),
    "tanh.approx.f32": ("relative", ("below 2^-8", "[2^-8, 8)", "from 8")),
}


def extremes(whole: dict[str, Any], mnemonic: str) -> str:
    """Return the worst errors of a form, for the title of a panel."""
    kind, names = _TITLES[mnemonic]
    records = [whole["forms"][mnemonic]["ranges"][name] for name in names]
    if kind == "ulp":
        low, high = min(r["low"][0] for r in records), max(r["high"][0] for r in records)
        return f"{_short(low)} to {_short(high)} ulp".replace("+", "")
    size = "$" + _power(max(r[kind][0] for r in records)).replace("^", "^{") + "}$"
    where = f" in {names[0].replace('pi', 'π').replace('[0, 2 π]', '[−2π, 2π]')}" if len(names) == 1 else ""
    return f"{size}{where}"


def written(whole: dict[str, Any]) -> str:
    """Return the file: a line for each range and each fact."""
    parts = [f'{{"tables": {json.dumps(whole["tables"])},', '"facts": {']
    parts.append(",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in whole["facts"].items()) + "},")
    forms = []
    for name, form in whole["forms"].items():
        rest = {k: v for k, v in form.items() if k != "ranges"}
        ranges = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in form["ranges"].items())
        forms.append(f' {json.dumps(name)}: {json.dumps(rest)[:-1]}, "ranges": {{\n{ranges}}}}}')
    return "\n".join(parts) + '\n"forms": {\n' + ",\n".join(forms) + "}}\n"
