"""Batch invariance: what about a product changes its bits, and what does not.

A server multiplies a token's activations alone, or with those of others. The sum of each output has the same addends,
but a library may choose another kernel for another shape: more slices of k, another instruction, sums in f16. This runs
one layer in each of these ways and counts the outputs of the first token that differ. Shapes and batches alone change
no bit. `python examples/batch_invariance.py --target sm_90`
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np

import warpmma as wm

WIDTH, OUTPUTS = 1024, 512
F16 = "mma.sync.aligned.m16n8k{}.row.col.{}.f16.f16.{}"
WAYS: dict[str, dict[str, Any]] = {
    "one chain along k": {},
    "k in 2 slices": {"split_k": 2},
    "k in 4 slices": {"split_k": 4},
    "k in 8 slices": {"split_k": 8},
    "instructions of 8 products": {"instruction": F16.format(8, "f32", "f32")},
    "sums in f16": {"instruction": F16.format(16, "f16", "f16")},
}


class Row(NamedTuple):
    """How much of the first token's output differs from that of one chain, as sums and as f16, in %; largest error."""

    sums: float
    rounded: float
    error: float


def operands(tokens: int) -> tuple[Any, Any]:
    """Return activations `[tokens, WIDTH]`, whose first token is always the same, and weights."""
    rng = np.random.default_rng(0)
    first, weights = rng.standard_normal((1, WIDTH)), rng.standard_normal((WIDTH, OUTPUTS)) / np.sqrt(WIDTH)
    others = np.random.default_rng(tokens).standard_normal((tokens - 1, WIDTH))
    return np.concatenate([first, others]).astype(np.float16), weights.astype(np.float16)


def first_token(tokens: int, target: str, way: dict[str, Any]) -> Any:
    """Multiply, and return the outputs of the first token."""
    return wm.matmul(*operands(tokens), target=target, **way)[0].astype(np.float32)


def compared(target: str) -> dict[str, Row]:
    """Compare every way with one chain."""
    a, b = operands(1)
    exact = (a.astype(np.float64) @ b.astype(np.float64))[0]
    plain = first_token(1, target, {})
    rows = {}
    for name, way in WAYS.items():
        d = first_token(1, target, way)
        half = np.float16
        rows[name] = Row(
            100 * float((d != plain).mean()), 100 * float((d.astype(half) != plain.astype(half)).mean()),
            float(np.abs(d - exact).max()),
        )  # fmt: skip
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="sm_90")
    target = parser.parse_args(arguments).target
    plain = first_token(1, target, {})
    print(f"{target}, {WIDTH} products for each of {OUTPUTS} outputs; the first token among others:")
    for tokens in (1, 2, 8, 37, 64):
        print(f"  {tokens:3d} tokens: {int((first_token(tokens, target, {}) != plain).sum())} outputs differ")
    print(f"{'':28s}{'sums differ':>12s}{'as f16':>9s}{'largest error':>15s}")
    for name, row in compared(target).items():
        print(f"  {name:26s}{row.sums:11.1f}%{row.rounded:8.1f}%{row.error:15.2e}")


if __name__ == "__main__":
    main()
