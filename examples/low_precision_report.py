"""The report of `train_low_precision.py`: progress, tables, numbers and a picture.

`python examples/low_precision_report.py study` draws a folder's results.json again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

OFTEN, SELDOM = 0.5, 10.0  # seconds between lines of progress, on a terminal and elsewhere
COLOURS = {"f32": "black", "bf16": "C0", "fp8": "C1", "NVFP4": "C2"}
STYLES = ["-", "--", ":", "-."]  # of the runs of one colour
ERRORS = {  # at the weights of f32
    "all": "Gradient, relative to f32's: format and sums",
    "sums": "Gradient, relative to exact sums in its format",
    "own": "Weights' gradients, each product by itself",
}


class Report:
    """Shows progress; writes files into a folder now and then, and at the end."""

    def __init__(self, folder: Path | None, steps: int) -> None:
        self.folder, self.steps = folder, steps
        self.began = self.shown = self.written = time.monotonic()

    def step(self, results: dict[str, Any]) -> None:
        """Show how far the trainings are."""
        now, done, terminal = time.monotonic(), results["steps"], sys.stderr.isatty()
        results["seconds"] = round(now - self.began, 1)
        if now - self.shown > (OFTEN if terminal else SELDOM) or done == self.steps:
            self.shown, left = now, (now - self.began) * (self.steps - done) / done
            loss = results["losses"]["f32"][-1]
            line = f"step {done} of {self.steps}, about {left:.0f} s left; loss of f32 {loss:.3f}"
            print(
                f"\r{line}  " if terminal else line, end="" if terminal and left else "\n", file=sys.stderr, flush=True
            )
        if now - self.written > 30:
            self.write(results, picture=False)
            self.written = time.monotonic()

    def write(self, results: dict[str, Any], *, picture: bool = True) -> None:
        """Write files, each in one move, so that none is ever half written."""
        if self.folder is None or not results["steps"]:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        strict = json.loads(json.dumps(results), parse_constant=lambda _: None)  # JSON has no NaN
        replaced(self.folder / "results.json", json.dumps(strict, indent=1).encode())
        replaced(self.folder / "tables.md", (tables(results) + "\n").encode())
        if picture:
            draw(results, self.folder)


def replaced(path: Path, content: bytes) -> None:
    """Write a file aside, then put it in its place."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_bytes(content)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def last(losses: list[float]) -> float:
    """Return the mean loss of the last tenth of the steps."""
    return float(np.mean(losses[-max(1, len(losses) // 10) :]))


def tables(results: dict[str, Any]) -> str:
    """Return what came of each run, and where pairs first differ, in Markdown."""
    size, losses = results["sizes"], results["losses"]
    tokens = size["batch"] * size["context"]
    lines = [
        f"{results['parameters']:,} parameters, {tokens} tokens a step, {results['steps']} steps, {results['device']}. "
        "Losses are means of the last tenth of the steps; errors are relative, at the last weights compared.",
        "",
        f"| run | loss | less f32's | gradient: format, sums | sums alone | one product's sums, k = {tokens} |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, mine in losses.items():
        errors = results["errors"][name][-1:]
        cells = [f"{errors[0][kind]:.1e}" if errors else "" for kind in ERRORS]
        cells = [f"{last(mine):.4f}", f"{last(mine) - last(losses['f32']):+.4f}", *cells]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "| pair | first product with other bits | first loss that differs |", "| --- | --- | --- |"]
    for pair in results["pairs"]:
        both = zip(*(losses[name] for name in pair["runs"]), strict=True)
        step = next((f"step {i}" for i, (x, y) in enumerate(both, 1) if x != y), "none")
        first = f"step {pair['first']['step']}, {pair['first']['where']}" if pair["first"] else "none"
        lines.append(f"| {', '.join(pair['runs'])} | {first} | {step} |")
    return "\n".join(lines)


def draw(results: dict[str, Any], folder: Path) -> None:
    """Draw losses, their differences from those of f32, and errors of gradients."""
    try:
        import matplotlib as mpl
    except ImportError:
        print("no picture: Matplotlib is not installed", file=sys.stderr)
        return
    mpl.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 3, figsize=(15, 8), layout="constrained")
    (left, middle, right), below = axes
    losses = {name: np.array(x, dtype=float) for name, x in results["losses"].items()}
    steps, look = np.arange(1, results["steps"] + 1), looks()
    for name, mine in losses.items():
        style = {**look(name), "label": name}
        left.plot(steps, mine, **style)
        middle.plot(steps, running(mine - losses["f32"]), **style)
        errors = results["errors"][name]
        for axis, kind in zip(below, ERRORS, strict=True):
            axis.plot([x["step"] for x in errors], [x[kind] or np.nan for x in errors], marker=".", **style)
    look = looks()
    for one, other in (pair["runs"] for pair in results["pairs"]):
        apart = running(np.abs(losses[one] - losses[other]))
        label = f"{one}, {other}" + ("" if apart.any() else ": equal")
        right.plot(steps, np.where(apart, apart, np.nan), label=label, **look(one))
    left.set(title="Training loss", ylabel="nats per byte")
    middle.set(title="Loss less that of f32, mean of a tenth of the steps", ylabel="nats per byte")
    right.set(title="Difference of two losses, mean of a tenth of the steps", ylabel="nats per byte", yscale="log")
    for axis, title in zip(below, ERRORS.values(), strict=True):
        axis.set(title=title, ylabel="relative error", yscale="log")
    for axis in axes.flat:
        axis.set_xlabel("step")
        axis.title.set_fontsize(10)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    left.legend(frameon=False, fontsize=8, handlelength=4)
    low, high = right.get_ylim()
    right.set_ylim(low * low / high, high)  # its lower half is the legend's
    right.legend(frameon=False, fontsize=8, handlelength=4, loc="lower left")
    for kind in ("svg", "png"):
        drawn = BytesIO()
        figure.savefig(drawn, dpi=110, format=kind)
        replaced(folder / f"losses.{kind}", drawn.getvalue())
    pyplot.close(figure)


def looks() -> Callable[[str], dict[str, Any]]:
    """Return what gives names their looks: a format's colour, and its next style."""
    styles = {form: iter(STYLES) for form in COLOURS}

    def look(name: str) -> dict[str, Any]:
        form = name.split()[0]
        return {"color": COLOURS[form], "linestyle": next(styles[form])}

    return look


def running(x: Any) -> Any:
    """Return running means over a tenth of the steps, over fewer at the start."""
    width = max(1, len(x) // 10)
    sums = np.cumsum(np.concatenate([[0.0], x]))
    begin = np.maximum(np.arange(1, len(x) + 1) - width, 0)
    return (sums[1:] - sums[begin]) / (np.arange(1, len(x) + 1) - begin)


if __name__ == "__main__":
    there = Path(sys.argv[1])
    draw(json.loads((there / "results.json").read_text()), there)
