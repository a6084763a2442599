"""Where do two GPUs part first? A model's forward pass with the arithmetic of two targets, layer by layer.

Runs a small transformer in bf16 twice, finds the first layer and element whose bits differ, and takes that element's
sum apart: the step in which the two GPUs add differently, and what each cut off. Needs PyTorch; on the CPU it takes a
second, with `--device cuda` the products run on your GPU. `python examples/where_gpus_part.py sm_80 sm_90`
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import torch

import warpmma as wm

WIDTH, HEADS, LAYERS, TOKENS = 64, 4, 3, 24


class Block(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """Attention and a perceptron, each added to what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        """Compute `[batch, tokens, WIDTH]`."""
        heads = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1))
        mixed = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm2(x))))


@dataclass
class Layer:
    """What a linear layer got, and what it gave."""

    name: str
    module: Any
    given: Any
    made: Any


def layers(model: Any, x: Any, target: str) -> list[Layer]:
    """Run a model with the arithmetic of a target; list its linear layers as they ran."""
    found: list[Layer] = []

    def note(name: str) -> Any:
        return lambda module, given, made: found.append(Layer(name, module, given[0].detach(), made.detach()))

    hooks = [
        module.register_forward_hook(note(name))
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
    ]
    with torch.no_grad(), wm.torch.arithmetic(target):
        model(x)
    for hook in hooks:
        hook.remove()
    return found


def first_difference(one: list[Layer], other: list[Layer]) -> tuple[Layer, tuple[int, int] | None] | None:
    """Return the first layer that differs, and the row and column of the first element of its results that does.

    Without these if what the layer gets differs already: by attention, whose products are before it.
    """
    for mine, theirs in zip(one, other, strict=True):
        if _places(mine.given, theirs.given):
            return mine, None
        if places := _places(mine.made, theirs.made):
            return mine, places[0]
    return None


def _places(x: Any, y: Any) -> list[tuple[int, int]]:
    rows, others = x.flatten(0, -2), y.flatten(0, -2)
    differs = (rows != others) & ~(rows.isnan() & others.isnan())
    return [(row, column) for row, column in differs.nonzero()[:1].tolist()]


def explained(layer: Layer, place: tuple[int, int], targets: tuple[str, str]) -> str:
    """Say in which step of an element's sum two targets part, and what each cut off until then."""
    a, b = layer.given.flatten(0, -2).cpu(), layer.module.weight.detach().mT.cpu()
    row, column = place
    told = [wm.explain(a, b, row=row, column=column, target=target) for target in targets]
    lines = []
    for target, x in zip(targets, told, strict=True):
        code = x.steps[-1].result
        lines.append(f"  {target}: sum {code:#010x} after {len(x.steps)} steps, error {float(x.error or 0):.3g}")
    sums = [dict(_sums(x)) for x in told]
    for k in sorted(sums[0].keys() & sums[1].keys()):
        if sums[0][k] != sums[1][k]:
            lines.append(f"  the sums part with product {k - 1}: {sums[0][k]:#010x} and {sums[1][k]:#010x}")
            break
    return "\n".join(lines)


def _sums(told: Any) -> list[tuple[int, int]]:
    """Return the accumulator after each step, by how many products are in it."""
    found, count = [], 0
    for step in told.steps:
        count += sum(len(addend.products) for addend in step.addends)
        found.append((count, step.result))
    return found


def main(arguments: list[str] | None = None) -> None:
    """Compare two targets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", default=["sm_80", "sm_90"])
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args(arguments)
    if len(options.targets) != 2:
        parser.error(f"{len(options.targets)} targets; expected two")
    one, other = options.targets
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(Block() for _ in range(LAYERS))).bfloat16().to(options.device)
    x = torch.randn(2, TOKENS, WIDTH, dtype=torch.bfloat16).to(options.device)
    ran = [layers(model, x, target) for target in (one, other)]
    for mine, theirs in zip(*ran, strict=True):
        print(f"{mine.name:8s} {(mine.made != theirs.made).float().mean():7.2%} of elements differ")
    found = first_difference(*ran)
    if found is None:
        print(f"{one} and {other}: no bit differs")
        return
    layer, place = found
    if place is None:
        print(f"first in the attention before layer {layer.name}: what it gets differs")
        return
    print(f"first in layer {layer.name}, row {place[0]}, column {place[1]}:")
    print(explained(layer, place, (one, other)))


if __name__ == "__main__":
    main()
