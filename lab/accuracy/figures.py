"""Two figures: the error of each function over its operands, and the partial products of the squarer.

Colours are legible on white and on black, and the background is transparent: a page may be either. The same matplotlib
always writes the same file.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np

from warpmma.arithmetic import squarer

from .forms import FORMS, SIGN, Float, code_of
from .tables import extremes

__all__ = ["draw"]

GREY, BAND, MEAN, BOUND = "#7d8590", "#4c8dd6", "#e07a1f", "#c0504d"
_STYLE: Any = {
    "font.size": 8.5, "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Arial"],
    "svg.fonttype": "none", "svg.hashsalt": "warpmma",
    "axes.edgecolor": GREY, "axes.labelcolor": GREY, "xtick.color": GREY, "ytick.color": GREY, "text.color": GREY,
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left", "axes.titlesize": 9,
    "axes.linewidth": 0.7, "xtick.major.width": 0.7, "ytick.major.width": 0.7, "axes.axisbelow": True,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A function's errors over some operands.

    Attributes
    ----------
    mnemonic : str
    first, last : float
        The operands.
    unit : {"ulp", "absolute", "relative"}
        Errors in ulps, or in multiples of `scale`, absolute or relative to the result.
    scale : float
    label : str
        Of the errors.
    bound : callable
        From exact results to NVIDIA's bound, in the same unit.
    by_code : bool
        Whether the axis shows codes of operands: all octaves then have the same width.
    ticks : tuple of float
    bins : int
        A multiple or divisor of the number of segments.
    """

    mnemonic: str
    first: float
    last: float
    unit: Literal["ulp", "absolute", "relative"]
    scale: float = 1
    label: str
    bound: Callable[[Float], Float]
    by_code: bool = False
    ticks: tuple[float, ...] = ()
    bins: int = 256


def _ulp(y: Float) -> Float:
    step: Float = np.exp2(np.floor(np.log2(np.abs(y))) - 23)
    return step


def _constant(bound: float) -> Callable[[Float], Float]:
    return lambda y: np.full_like(y, bound)


_LAST = 2.0**-23
_PANELS = (
    Panel(
        mnemonic="rcp.approx.ftz.f32", first=1, last=2, unit="ulp", label="ulp", bound=_constant(1), by_code=True,
        ticks=(1, 1.25, 1.5, 1.75, 2),
    ),
    Panel(
        mnemonic="ex2.approx.ftz.f32", first=-1, last=1, unit="ulp", label="ulp", bound=_constant(2),
        ticks=(-1, -0.5, 0, 0.5, 1),
    ),
    Panel(
        mnemonic="sqrt.approx.ftz.f32", first=1, last=4, unit="ulp", label="ulp", by_code=True, ticks=(1, 1.5, 2, 3, 4),
        bound=lambda y: 2.0**-23 * y / _ulp(y),
    ),
    Panel(
        mnemonic="lg2.approx.ftz.f32", first=0.5, last=2, unit="absolute", scale=_LAST, by_code=True,
        ticks=(0.5, 0.75, 1, 1.5, 2), label="units of $2^{-23}$", bound=_constant(2),
    ),
    Panel(
        mnemonic="rsqrt.approx.ftz.f32", first=1, last=4, unit="ulp", label="ulp", by_code=True,
        ticks=(1, 1.5, 2, 3, 4), bound=lambda y: 2.0**-22.9 * y / _ulp(y),
    ),
    Panel(
        mnemonic="sin.approx.ftz.f32", first=0, last=2 * math.pi, unit="absolute", scale=_LAST,
        label="units of $2^{-23}$", bound=_constant(2**2.5),
    ),
    Panel(
        mnemonic="tanh.approx.f32", first=2.0**-9, last=16, unit="relative", scale=2.0**-17, by_code=True, bins=208,
        ticks=(2.0**-8, 2.0**-6, 2.0**-4, 2.0**-2, 1, 4), label="$2^{-17}$ of the result", bound=_constant(64),
    ),
    Panel(
        mnemonic="cos.approx.ftz.f32", first=0, last=2 * math.pi, unit="absolute", scale=_LAST,
        label="units of $2^{-23}$", bound=_constant(2**2.5),
    ),
)  # fmt: skip
_LEAST = 2.0**-12  # numbers nearer to 0 are not drawn


def draw(folder: Path) -> list[Path]:
    """Draw both figures; the first takes a minute."""
    matplotlib.use("svg")
    folder.mkdir(parents=True, exist_ok=True)
    whole = json.loads((folder / "errors.json").read_text())
    with matplotlib.rc_context(_STYLE):
        return [_saved(_errors(whole), folder / "errors.svg"), _saved(_triangle(), folder / "squarer.svg")]


_FONT = "font-family: 'DejaVu Sans', 'Arial', sans-serif"


def _saved(figure: Any, path: Path) -> Path:
    """Write a compact figure without a date: tenths of a point, the font named once, no indentation."""
    from matplotlib import pyplot

    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    text = re.sub(r' transform="rotate\(-0 [^)]*\)"', "", file.getvalue()).replace(f"{_FONT}; ", "")
    text = text.replace("*{stroke", f"text {{{_FONT}}} *{{stroke", 1)
    text = re.sub(r'(?:^|[ML] |[xy]=")(?:-?\d+\.\d+[ "]?)+', _rounded, text, flags=re.M)
    path.write_text(re.sub(r"\s*\n\s*(?:L )?", "\n", text))
    return path


def _rounded(numbers: re.Match[str]) -> str:
    return re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.1f}", numbers[0])


def _errors(whole: dict[str, Any]) -> Any:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(4, 2, figsize=(9.2, 9.6), layout="constrained")
    for panel, place in zip(_PANELS, axes.flat, strict=True):
        _panel(place, panel, extremes(whole, panel.mnemonic))
    handles = axes.flat[0].get_legend_handles_labels()[0][:3]
    figure.legend(
        handles, ["least to largest", "mean", "NVIDIA's bound"], loc="outside lower center", ncols=3, frameon=False
    )
    return figure


def _panel(axes: Any, panel: Panel, worst: str) -> None:
    low, high, mean = _binned(panel)
    axes.set_title(f"{panel.mnemonic}: {worst}")
    first, last = _axis(panel)
    centres = first + (np.arange(panel.bins) + 0.5) * (last - first) / panel.bins
    axes.fill_between(centres, low, high, color=BAND, alpha=0.55, linewidth=0, label="band")
    axes.plot(centres, mean, color=MEAN, linewidth=0.9, label="mean")
    axes.axhline(0, color=GREY, linewidth=0.5)
    few = np.linspace(first, last, 34)
    inside = np.clip(few, first + (last - first) / 1e4, last - (last - first) / 1e4)
    operands = inside.astype(np.uint32).view(np.float32).astype(np.float64) if panel.by_code else inside
    bound = panel.bound(FORMS[panel.mnemonic].exact(operands))
    if bound.max() < 4 * high.max():
        for sign in (1, -1):
            axes.plot(few, sign * bound, color=BOUND, linewidth=0.8, linestyle="--", label="bound")
    else:
        axes.text(0.98, 0.04, f"NVIDIA's bound is {bound.max():g}", transform=axes.transAxes, ha="right", color=BOUND)
    axes.set_ylabel(panel.label)
    axes.set_xlim(first, last)
    if panel.ticks:
        places = [code_of(x) for x in panel.ticks] if panel.by_code else panel.ticks
        axes.set_xticks(places, [_tick(x) for x in panel.ticks])
    elif panel.last == 2 * math.pi:
        axes.set_xticks([i * math.pi / 2 for i in range(5)], ["0", "π/2", "π", "3π/2", "2π"])


def _tick(x: float) -> str:
    return f"$2^{{{math.log2(x):.0f}}}$" if 0 < x < 0.5 else f"{x:g}".replace("-", "−")


def _axis(panel: Panel) -> tuple[float, float]:
    return (code_of(panel.first), code_of(panel.last)) if panel.by_code else (panel.first, panel.last)


def _binned(panel: Panel) -> tuple[Float, Float, Float]:
    """Return the least, largest and mean error in each bin, over all operands in it."""
    left, right = _axis(panel)
    low, high = np.full(panel.bins, np.inf), np.full(panel.bins, -np.inf)
    total, count = np.zeros(panel.bins), np.zeros(panel.bins)
    for first, end, negative in _operands(panel):
        for start in range(first, end, 1 << 17):
            codes = np.arange(start, min(end, start + (1 << 17)), dtype=np.uint32)
            codes |= SIGN if negative else np.uint32(0)
            x, errors = _of(panel, codes)
            along = ((codes if panel.by_code else x) - left) * (panel.bins / (right - left))
            place = np.clip(along.astype(np.int64), 0, panel.bins - 1)
            np.minimum.at(low, place, errors)
            np.maximum.at(high, place, errors)
            total += np.bincount(place, errors, panel.bins)
            count += np.bincount(place, minlength=panel.bins)
    return low, high, total / count


def _operands(panel: Panel) -> list[tuple[int, int, bool]]:
    """Return codes of magnitudes."""
    parts = [(code_of(max(panel.first, _LEAST)), code_of(panel.last), False)]
    if panel.first < 0:
        parts.append((code_of(_LEAST), code_of(-panel.first), True))
    return parts


def _of(panel: Panel, codes: Any) -> tuple[Float, Float]:
    form = FORMS[panel.mnemonic]
    x = codes.view(np.float32).astype(np.float64)
    exact = form.exact(x)
    error = form.compute(codes).view(np.float32).astype(np.float64) - exact
    match panel.unit:
        case "ulp":
            return x, error / _ulp(exact)
        case "absolute":
            return x, error / panel.scale
        case _:
            return x, error / exact / panel.scale


def _triangle() -> Any:
    """Draw the partial products b_i b_j, i down and j to the right."""
    from matplotlib import pyplot
    from matplotlib.patches import Rectangle

    bits = 17
    there = set(squarer(bits).products)
    figure, axes = pyplot.subplots(figsize=(4.6, 4.4), layout="constrained")
    for i in range(1, bits + 1):
        for j in range(i, bits + 1):
            kept = (i, j) in there
            axes.add_patch(Rectangle(
                (j - 0.44, i - 0.44), 0.88, 0.88, facecolor=BAND if kept else "none", edgecolor=BAND if kept else GREY,
                alpha=0.8 if kept else 0.5, linewidth=0.6,
            ))  # fmt: skip
    axes.set(xlim=(0.3, bits + 0.7), ylim=(bits + 0.7, 0.3), aspect="equal", xlabel="j", ylabel="i")
    axes.set_xticks(range(1, bits + 1, 2))
    axes.set_yticks(range(1, bits + 1, 2))
    count = bits * (bits + 1) // 2
    axes.text(1, 13.2, f"{len(there)} of {count}\npartial products\nare there:", va="bottom")
    axes.text(1, 13.6, "those of a weight\nof $2^{-15}$ or more", va="top")
    return figure
