"""Products that a GPU's own instructions compute, of odd sizes and with operands that are hard to compute with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from arrays import Array

from lab.generators import operands, styles
from warpmma.arithmetic import recipe
from warpmma.isa import MatrixInstruction, instructions, warpgroup_instructions
from warpmma.sparsity import sparse_a

Given = dict[str, Any]


def on_hopper(columns: Iterable[int] = (8, 24, 256)) -> Iterator[tuple[str, MatrixInstruction]]:
    """Yield every `mma` of sm_90 and every `wgmma` with these n, each with its target."""
    yield from (("sm_90", i) for i in instructions("sm_90"))
    yield from (("sm_90a", i) for i in warpgroup_instructions("sm_90a") if i.n in columns)


def layouts(found: Iterable[tuple[str, MatrixInstruction]]) -> list[tuple[str, MatrixInstruction]]:
    """Leave one instruction for each way in which operands lie in registers and shared memory, and its registers."""
    kinds: dict[object, tuple[str, MatrixInstruction]] = {}
    for target, i in found:
        bits = tuple(i.format(x).bits for x in "ABCD")  # type: ignore[arg-type]
        turned = getattr(i, "a_layout", ""), getattr(i, "b_layout", "")
        of_floats = i.type("D") in ("f16", "f32", "f64")
        kinds.setdefault((target, bits, i.m, i.k, i.sparse, turned, of_floats), (target, i))
    return list(kinds.values())


def drawn(instruction: MatrixInstruction, target: str, m: int, n: int, seed: int) -> Given:
    """Draw arguments of `matmul`: codes, k of a few instructions and a part of one, each in another style."""
    i, how, rng = instruction, recipe(instruction, target), np.random.default_rng([seed, m, n])
    stored = i.k // 2 if i.sparse else i.k
    count = 3 if i.c_type == i.d_type else 1
    parts = [operands(how, stored, max(m, n), str(rng.choice(styles(how))), rng) for _ in range(count)]
    a, b = (np.concatenate([part[x] for part in parts]) for x in "ab")
    width = sparse_a(i).pattern.width if i.sparse else 1
    k = (i.k * (count - 1) + int(rng.integers(1, i.k // width + 1)) * width) // (2 if i.sparse else 1)
    given: Given = {"a": np.ascontiguousarray(a[:k, :m].T), "b": b[:k, :n], "instruction": i, "target": target}
    column, row = np.arange(n), np.arange(m)[:, None]
    given["c"] = parts[0]["c"][(2 * column - row) % max(m, n)]
    if i.sparse:
        given["b"] = np.repeat(given["b"], 2, axis=0)
        given["indices"] = indices(i, target, m, 2 * k, rng)
    return given


def indices(instruction: MatrixInstruction, target: str, m: int, k: int, rng: np.random.Generator) -> Array:
    """Draw any legal indices of a sparse A."""
    sparse = sparse_a(instruction)
    codes = np.array(sorted(sparse.legal_codes(target)), np.uint8)
    nibbles = rng.choice(codes, (m, k // sparse.pattern.width))
    return np.stack([nibbles & 3, nibbles >> 2], axis=-1)


def codes(x: Array) -> Array:
    """View a result as codes."""
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")
