"""Attention in Triton, as FlashAttention computes it: a kernel and what calls it, as they would run on a GPU.

Nothing here knows of warpmma. `test_triton_attention.py` tests it on a computer without a GPU.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def attention_kernel(q, k, v, out, length, scale, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                     D: tl.constexpr):  # fmt: skip
    """Rows `BM * program_id(0)` onward of one head: f16 `[head, length, D]`."""
    head = tl.program_id(1) * length * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    queries = tl.load(q + head + rows[:, None] * D + d[None, :], mask=rows[:, None] < length, other=0.0)
    highest = tl.full((BM,), -float("inf"), tl.float32)
    weight = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    end = tl.minimum((tl.program_id(0) + 1) * BM, length) if CAUSAL else length
    for start in range(0, end, BN):
        at = start + tl.arange(0, BN)
        inside = at < length
        keys = tl.load(k + head + at[None, :] * D + d[:, None], mask=inside[None, :], other=0.0)
        scores = tl.dot(queries, keys) * (scale * LOG2_E)
        seen = inside[None, :] & (at[None, :] <= rows[:, None]) if CAUSAL else inside[None, :]
        scores = tl.where(seen, scores, -float("inf"))
        new = tl.maximum(highest, tl.max(scores, axis=1))
        powers = tl.exp2(scores - new[:, None])
        before = tl.exp2(highest - new)
        weight = weight * before + tl.sum(powers, axis=1)
        values = tl.load(v + head + at[:, None] * D + d[None, :], mask=inside[:, None], other=0.0)
        total = tl.dot(powers.to(values.dtype), values, total * before[:, None])
        highest = new
    tl.store(out + head + rows[:, None] * D + d[None, :], total / weight[:, None], mask=rows[:, None] < length)


def attention(q: Any, k: Any, v: Any, out: Any, *, causal: bool, BM: int = 32, BN: int = 32) -> None:
    """Attend, f16 `[head, length, D]`: tensors of PyTorch, or what else Triton is given."""
    heads, length, depth = q.shape
    attention_kernel[triton.cdiv(length, BM), heads](
        q, k, v, out, length, depth**-0.5, CAUSAL=causal, BM=BM, BN=BN, D=depth
    )
