"""A small network trained in fp8, with and without promotion: `python examples/mlp_fp8.py --steps 80`.

It needs PyTorch, and Matplotlib for the picture. Operands are rounded to e4m3 forward and gradients to e5m2 backward,
with one scale for each tensor; products are `torch._scaled_mm`. The same training runs with

* the fp8 sums of sm_100a's `mma`, which keep all of f32's bits,
* those of an H100's `wgmma`, which keep 13, promoted to f32 every 128 of k,
* the same without promotion,
* float32, without fp8.

The data are made to need long sums that cancel: each batch has a few samples twice, once with labels that are far too
large, once far too small, in its first rows and in its last. Their gradients cancel, but between them the sum along the
batch (k is its length, in a weight's gradient) is large, and an accumulator of 13 bits loses what the others add. With
promotion only the first and the last 128 rows lose it. On ordinary data the difference is much smaller than what fp8
itself rounds: set --far 0.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import warpmma as wm

INPUTS, HIDDEN, OUTPUTS, BATCH, TWICE = 64, 128, 4, 2048, 16
E4M3, E5M2 = (torch.float8_e4m3fn, 448.0), (torch.float8_e5m2, 57344.0)
H100 = {"target": "sm_90a", "instruction": "wgmma"}
ARITHMETICS: dict[str, dict[str, Any] | None] = {
    "float32": None,
    "fp8, mma of sm_100a": {"target": "sm_100a"},
    "fp8, wgmma, promoted every 128": {**H100, "promote_every": 128},
    "fp8, wgmma": {**H100, "promote_every": 0},
}


def rounded(x: Any, to: tuple[Any, float]) -> tuple[Any, Any]:
    """Round a tensor to 8 bits, so that its largest number is the type's; return its scale too."""
    dtype, largest = to
    scale = x.abs().amax().clamp(min=1e-30) / largest
    return (x / scale).to(dtype), scale


def product(a: Any, b: Any) -> Any:
    """Multiply pairs of a tensor of 8 bits and its scale."""
    columns = b[0].t().contiguous().t()  # as libraries want B
    return torch._scaled_mm(a[0], columns, a[1], b[1], out_dtype=torch.float32, use_fast_accum=True)


class Linear8(torch.autograd.Function):  # type: ignore[misc]
    """x w^T in fp8, and its gradients; `kept` gets the operands and the result of a weight's gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, kept: list[Any]) -> Any:
        """Round x and w to e4m3 and multiply."""
        ctx.given, ctx.kept = (rounded(x, E4M3), rounded(w, E4M3)), kept
        (x8, of_x), (w8, of_w) = ctx.given
        return product((x8, of_x), (w8.t(), of_w))

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[Any, Any, None]:
        """Round the gradient to e5m2 and multiply."""
        (x, w), (g8, of_g) = ctx.given, rounded(gradient, E5M2)
        turned = (g8.t().contiguous(), of_g)
        of_w = product(turned, x)
        ctx.kept[:] = [turned, x, of_w]
        return product((g8, of_g), w) if ctx.needs_input_grad[0] else None, of_w, None


class Network(torch.nn.Module):  # type: ignore[misc]
    """Two layers, of the same weights whenever it is made."""

    def __init__(self, *, fp8: bool) -> None:
        super().__init__()
        seed = torch.Generator().manual_seed(1)
        shapes = ((HIDDEN, INPUTS), (OUTPUTS, HIDDEN))
        weights = [torch.randn(*shape, generator=seed) * (2 / shape[1]) ** 0.5 for shape in shapes]
        self.w1, self.w2 = (torch.nn.Parameter(w) for w in weights)
        self.b1, self.b2 = (torch.nn.Parameter(torch.zeros(len(w))) for w in weights)
        self.fp8 = fp8
        self.kept: tuple[list[Any], list[Any]] = [], []

    def forward(self, x: Any) -> Any:
        """Return outputs, `[batch, OUTPUTS]`."""
        return self.layer(self.layer(x, self.w1, 0).relu(), self.w2, 1)

    def layer(self, x: Any, w: Any, number: int) -> Any:
        """Multiply by weights, and add the bias."""
        bias = (self.b1, self.b2)[number]
        return (Linear8.apply(x, w, self.kept[number]) if self.fp8 else x @ w.t()) + bias


def batches(count: int, far: float) -> list[tuple[Any, Any]]:
    """Make inputs and labels, which a fixed network of 32 hidden units gives."""
    seed = torch.Generator().manual_seed(0)
    first, last = (torch.randn(*shape, generator=seed) for shape in ((32, INPUTS), (OUTPUTS, 32)))
    made = []
    for _ in range(count):
        x = torch.rand(BATCH, INPUTS, generator=seed)
        x[-TWICE:] = x[:TWICE]
        labels = torch.tanh((x - 0.5) @ first.t() * 0.75) @ last.t() * 32**-0.5
        wrong = far * torch.randn(TWICE, OUTPUTS, generator=seed).sign()
        labels[:TWICE] += wrong
        labels[-TWICE:] -= wrong
        made.append((x, labels))
    return made


@dataclass
class Training:
    """What came of one training.

    Attributes
    ----------
    losses : list of float
        On labels that are right, after each step.
    errors : list of float
        Of the first weights' gradient at each step, relative to that of the same 8-bit operands in float64.
    instructions : dict
        How many products each instruction computed.
    """

    losses: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    instructions: dict[str, int] = field(default_factory=dict)


def train(arithmetic: dict[str, Any] | None, steps: int, far: float, rate: float = 0.01) -> Training:
    """Train with an arithmetic; None for float32 without fp8."""
    [(x, y)], data = batches(1, 0.0), batches(steps + 1, far)[1:]
    network, result = Network(fp8=arithmetic is not None), Training()
    kept: list[list[Any]] = []
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    with wm.torch.arithmetic(**arithmetic) if arithmetic else nullcontext() as report:
        for step, (inputs, labels) in enumerate(data):
            for group in optimizer.param_groups:
                group["lr"] = rate * (1 - step / steps)
            optimizer.zero_grad()
            (0.5 * (network(inputs) - labels).square().sum(1).mean()).backward()
            kept.append(list(network.kept[0]))
            optimizer.step()
            with torch.no_grad():
                result.losses.append(float(0.5 * (network(x) - y).square().sum(1).mean()))
    if report is not None:
        result.instructions = report.instructions
        result.errors = [relative_error(*operands) for operands in kept]
    return result


def relative_error(a: Any, b: Any, d: Any) -> float:
    """Return the error of a product, root mean square, relative to the exact one."""
    exact = a[0].double() @ b[0].double() * a[1].double() * b[1].double()
    return float((d - exact).norm() / exact.norm())


def draw(results: dict[str, Training], path: Path) -> None:
    """Draw losses, and errors of the gradient."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for number, (name, result) in enumerate(results.items()):
        style = {"color": f"C{number}", "label": name, "linestyle": "--" if not result.errors else "-"}
        left.plot(range(1, len(result.losses) + 1), result.losses, **style)
        if result.errors:
            right.plot(range(1, len(result.errors) + 1), result.errors, **style)
    left.set(xlabel="step", ylabel="loss on right labels", yscale="log", title="Training")
    right.set(xlabel="step", ylabel="relative error", yscale="log", title="Gradient of the first weights, k = 2048")
    left.legend(frameon=False, fontsize=9)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def main(arguments: list[str] | None = None) -> dict[str, Training]:
    """Train with every arithmetic, print the last losses and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--far", type=float, default=40000.0, help="how far off the labels of doubled samples are")
    parser.add_argument("--picture", type=Path, help="file to draw to, such as mlp_fp8.png")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # of tensors this small more threads wait for each other
    results = {}
    for name, arithmetic in ARITHMETICS.items():
        results[name] = result = train(arithmetic, options.steps, options.far)
        error = f"; gradient off by {result.errors[-1]:.1e}" if result.errors else ""
        print(f"{name}: loss {result.losses[-1]:.4f}{error}", *result.instructions, sep="\n  ", flush=True)
    if options.picture:
        draw(results, options.picture)
    return results


if __name__ == "__main__":
    main()
