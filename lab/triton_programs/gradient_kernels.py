"""Triton kernels of attention's gradients: row sums, then those of K and V, and of Q."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
# ruff: noqa: D401
from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def row_products(out, of_out, sums, rows, BM: tl.constexpr, D: tl.constexpr):
    """Sums over each row of the output times its gradient."""
    i, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    places = i[:, None] * D + d[None, :]
    x = tl.load(out + places, mask=i[:, None] < rows, other=0.0).to(tl.float32)
    y = tl.load(of_out + places, mask=i[:, None] < rows, other=0.0).to(tl.float32)
    tl.store(sums + i, tl.sum(x * y, axis=1), mask=i < rows)


@triton.jit
def of_keys_and_values(
    q, k, v, of_out, logs, sums, of_k, of_v, length, scale, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    D: tl.constexpr,
):  # fmt: skip
    """A block of keys a program, over all queries; scores are transposed, so that they are A in registers."""
    head = tl.program_id(1) * length
    first = tl.program_id(0) * BN
    j, d = first + tl.arange(0, BN), tl.arange(0, D)
    inside = j[:, None] < length
    places = (head + j)[:, None] * D + d[None, :]
    keys, values = tl.load(k + places, mask=inside, other=0.0), tl.load(v + places, mask=inside, other=0.0)
    key_slopes, value_slopes = tl.zeros((BN, D), tl.float32), tl.zeros((BN, D), tl.float32)
    begin = first // BM * BM if CAUSAL else 0
    for start in range(begin, length, BM):
        i = start + tl.arange(0, BM)
        rows = (head + i)[:, None] * D + d[None, :]
        queries = tl.load(q + rows, mask=i[:, None] < length, other=0.0)
        slopes = tl.load(of_out + rows, mask=i[:, None] < length, other=0.0)
        log = tl.load(logs + head + i, mask=i < length, other=float("inf"))
        powers = tl.exp2(tl.dot(keys, queries.T) * (scale * 1.4426950408889634) - log[None, :])
        if CAUSAL:
            powers = tl.where(j[:, None] <= i[None, :], powers, 0.0)
        value_slopes = tl.dot(powers.to(slopes.dtype), slopes, value_slopes)
        of_powers = tl.dot(values, slopes.T) - tl.load(sums + head + i, mask=i < length, other=0.0)[None, :]
        key_slopes = tl.dot((powers * of_powers).to(queries.dtype), queries, key_slopes)
    tl.store(of_k + places, key_slopes * scale, mask=inside)
    tl.store(of_v + places, value_slopes, mask=inside)


@triton.jit
def of_queries(
    q, k, v, of_out, logs, sums, of_q, length, scale, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    D: tl.constexpr,
):  # fmt: skip
    """A block of queries a program, over the keys."""
    head = tl.program_id(1) * length
    first = tl.program_id(0) * BM
    i, d = first + tl.arange(0, BM), tl.arange(0, D)
    inside = i[:, None] < length
    places = (head + i)[:, None] * D + d[None, :]
    queries, slopes = tl.load(q + places, mask=inside, other=0.0), tl.load(of_out + places, mask=inside, other=0.0)
    log = tl.load(logs + head + i, mask=i < length, other=float("inf"))
    row_sums = tl.load(sums + head + i, mask=i < length, other=0.0)
    query_slopes = tl.zeros((BM, D), tl.float32)
    end = tl.minimum(first + BM, length) if CAUSAL else length
    for start in range(0, end, BN):
        j = start + tl.arange(0, BN)
        rows = (head + j)[:, None] * D + d[None, :]
        keys = tl.load(k + rows, mask=j[:, None] < length, other=0.0)
        values = tl.load(v + rows, mask=j[:, None] < length, other=0.0)
        powers = tl.exp2(tl.dot(queries, keys.T) * (scale * 1.4426950408889634) - log[:, None])
        if CAUSAL:
            powers = tl.where(j[None, :] <= i[:, None], powers, 0.0)
        of_powers = tl.dot(slopes, values.T) - row_sums[:, None]
        query_slopes = tl.dot((powers * of_powers).to(keys.dtype), keys, query_slopes)
    tl.store(of_q + places, query_slopes * scale, mask=inside)
