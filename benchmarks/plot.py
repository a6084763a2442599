"""One figure of four panels, as SVG and PNG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .report import Record

COLOURS = ("#2a6f97", "#e07a1f", "#5f8f3e", "#8a5a9e", "#b8423f")  # of blue, orange, green, purple, red
GREY = "#777777"


def draw(
    records: Sequence[Record], kinds: Mapping[str, Mapping[str, float]], folder: Path, about: Mapping[str, object]
) -> list[Path]:  # fmt: skip
    """Draw what was measured; nothing without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    from matplotlib import pyplot

    style: Any = {
        "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10.5,
        "axes.titleweight": "bold", "axes.titlelocation": "left", "svg.hashsalt": "warpmma", "axes.axisbelow": True,
    }  # fmt: skip
    with pyplot.rc_context(style):
        figure = pyplot.figure(figsize=(12.5, 9.5), layout="constrained")
        halves: Any = figure.subfigures(2, 1, hspace=0.03)
        upper, lower = halves
        left, right = upper.subplots(1, 2, width_ratios=(1, 1.5))
        _sizes(left, records)
        _kinds(right, kinds)
        left, right = lower.subplots(1, 2)
        _families(left, records)
        _warps(right, records)
        figure.suptitle(f"warpmma {about['warpmma']} on one core of {about['processor']}", x=0.01, ha="left")
        paths = [folder / "benchmarks.svg", folder / "benchmarks.png"]
        for path in paths:
            figure.savefig(path, dpi=130)
        pyplot.close(figure)
    return paths


def _sizes(axes: Any, records: Sequence[Record]) -> None:
    axes.set_title("Matrix products, one thread", pad=24)
    found = [r for r in records if r.section == "matmul, one thread"]
    if not found:
        _nothing(axes)
        return
    numpy = [r for r in found if r.label.endswith("NumPy")]
    limit: dict[int, float] = {}
    for name, colour in zip(("f16", "bf16"), COLOURS, strict=False):
        points = {}
        for r in found:
            kind, size = r.label.split(" ", 1)
            if kind == name and r not in numpy:
                points[int(size)] = r.speed / 1e9
                if r.reference == "limit.c" and r.reference_speed:
                    limit[int(size)] = max(limit.get(int(size), 0), r.reference_speed / 1e9)
        if points:
            axes.plot(*zip(*sorted(points.items()), strict=True), "o-", color=colour, label=f"warpmma, {name}")
    if limit:
        label = "limit.c: AVX-512 by hand, finite f16 only"
        axes.plot(*zip(*sorted(limit.items()), strict=True), "--", color=GREY, label=label)
    sizes = sorted({int(r.label.split()[1].strip(",")) for r in found})
    axes.set(ylim=(0, None), ylabel="billion products a second", xlabel="m = n = k")
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(x) for x in sizes])
    axes.grid(axis="y", alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, loc="lower right")


def _kinds(axes: Any, kinds: Mapping[str, Mapping[str, float]]) -> None:
    axes.set_title("Speed by kind of input", pad=24)
    if not kinds:
        _nothing(axes)
        return
    names = list(kinds)
    order = ("random", "normal", "model-like", "denormal-heavy", "special-heavy")
    width = 0.16
    for number, (kind, colour) in enumerate(zip(order, COLOURS, strict=True)):
        at = [(i + (number - 2) * width, kinds[n][kind]) for i, n in enumerate(names) if kind in kinds[n]]
        if at:
            axes.bar(*zip(*at, strict=True), width=width * 0.92, color=colour, label=kind)
    axes.axhline(1 / 8, color="black", linewidth=0.9, linestyle=":")
    axes.text(1.005, 1 / 8, "promised:\n1/8", transform=axes.get_yaxis_transform(), va="center", fontsize=8)
    axes.set_xticks(range(len(names)), [_short(n) for n in names], fontsize=8)
    split = sum(n.startswith("matmul") for n in names)
    top = max([1.0, *(x for each in kinds.values() for x in each.values())])
    axes.set(ylim=(0, top * 1.1), ylabel="speed, normal input = 1")
    for first, last, text in ((0, split, "matmul"), (split, len(names), "registers to registers")):
        if last > first:
            axes.text((first + last - 1) / 2, top * 1.05, text, ha="center", color=GREY)
    if 0 < split < len(names):
        axes.axvline(split - 0.5, color=GREY, linewidth=0.6)
    axes.legend(
        frameon=False,
        ncols=5,
        loc="lower left",
        bbox_to_anchor=(-0.01, 1),
        fontsize=8.5,
        columnspacing=1.2,
        handlelength=1,
    )


def _families(axes: Any, records: Sequence[Record]) -> None:
    axes.set_title("Native engine over NumPy, registers to registers, 4,096 warps")
    found = [r for r in records if r.section == "registers to registers" and r.ratio]
    if not found:
        _nothing(axes)
        return
    found.sort(key=lambda r: r.ratio or 0)
    ratios = [r.ratio or 0 for r in found]
    bars = axes.barh([r.label for r in found], ratios, color=COLOURS[0], height=0.72)
    labels = [f"{r.ratio:.0f} x   {_rate(r.speed)}" for r in found]
    axes.bar_label(bars, labels, padding=3, fontsize=7.5, color=GREY)
    axes.set(xscale="log", xlabel="times as fast (and instructions a second of the native engine)")
    axes.set_xlim(1, max(ratios) * 4)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
    axes.tick_params(axis="y", labelsize=8, length=0)


def _warps(axes: Any, records: Sequence[Record]) -> None:
    axes.set_title("f16 m16n8k16, registers to registers, one thread")
    points = [
        (int(r.label.split()[0].replace(",", "")), r.speed)
        for r in records
        if r.section == "scaling" and r.label.endswith(", f16 m16n8k16")
    ]
    if not points:
        _nothing(axes)
        return
    axes.plot(*zip(*sorted(points), strict=True), "o-", color=COLOURS[0])
    for x, y in points:
        axes.annotate(_rate(y), (x, y), xytext=(4, 8), textcoords="offset points", ha="right", fontsize=8)
    axes.set(xscale="log", yscale="log", xlabel="warps in one call", ylabel="instructions a second")
    axes.set_xlim(min(x for x, _ in points) / 3, max(x for x, _ in points) * 3)
    axes.set_ylim(min(y for _, y in points) / 2, max(y for _, y in points) * 2.5)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.yaxis.set_major_formatter(lambda y, _: _rate(y))
    axes.grid(alpha=0.3)


def _nothing(axes: Any) -> None:
    axes.axis("off")
    axes.text(0, 0.9, "not measured in this run", color=GREY)


def _short(name: str) -> str:
    """Name of what was computed, in lines of few letters."""
    return name.split(" ", 1)[1].replace(" m16n8k16", "").replace(",", "").replace(" ", "\n")


def _rate(x: float) -> str:
    for prefix, scale in (("M", 1e6), ("k", 1e3)):
        if x >= scale:
            return f"{x / scale:.3g} {prefix}/s"
    return f"{x:.0f} /s"
