"""Triton kernels on rows and elements: norms, losses, scans, sorts, random numbers, histograms."""

# ruff: noqa: D103 - the names say it; what each must compute, `cases` says.
from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def softmax(x, y, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * stride + at, mask=inside, other=-float("inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * stride + at, powers / tl.sum(powers, axis=0), mask=inside)


@triton.jit
def layer_norm(
    x, weight, bias, y, means, scales, columns, eps,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    spread = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        away = tl.where(at < columns, values - mean, 0.0)
        spread += away * away
    scale = 1 / tl.sqrt(tl.sum(spread, axis=0) / columns + eps)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        values = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
        normal = (values - mean) * scale
        tl.store(y + row * columns + at, normal * tl.load(weight + at, mask=inside) + tl.load(bias + at, mask=inside),
                 mask=inside)  # fmt: skip


@triton.jit
def cross_entropy(logits, labels, losses, slopes, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = logits + row * columns
    label = tl.load(labels + row)
    highest = -float("inf")
    total = 0.0
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        values = tl.load(start + at, mask=at < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(highest, tl.max(values, axis=0))
        total = total * tl.exp(highest - new) + tl.sum(tl.exp(values - new), axis=0)
        highest = new
    given = tl.load(start + label).to(tl.float32)
    tl.store(losses + row, tl.log(total) + highest - given)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        values = tl.load(start + at, mask=at < columns, other=-float("inf")).to(tl.float32)
        slope = tl.exp(values - highest) / total
        tl.store(slopes + row * columns + at, tl.where(at == label, slope - 1, slope), mask=at < columns)


@triton.jit
def dropout(x, y, normals, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > p
    values = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(keep, values / (1 - p), 0.0), mask=at < n)
    tl.store(normals + at, tl.randn(seed, at), mask=at < n)


@triton.jit
def rotary(x, angles, y, heads, HALF: tl.constexpr):
    place, head = tl.program_id(0), tl.program_id(1)
    at = tl.arange(0, HALF)
    angle = tl.load(angles + at) * place
    cosine, sine = tl.cos(angle), tl.sin(angle)
    start = (place * heads + head) * 2 * HALF
    first = tl.load(x + start + at).to(tl.float32)
    second = tl.load(x + start + HALF + at).to(tl.float32)
    tl.store(y + start + at, first * cosine - second * sine)
    tl.store(y + start + HALF + at, second * cosine + first * sine)


@triton.jit
def _then(decay, value, next_decay, next_value):
    return decay * next_decay, value * next_decay + next_value


@triton.jit
def scans(x, decays, sums, states, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = row * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at)
    tl.store(sums + at, tl.cumsum(values, axis=0))
    _, state = tl.associative_scan((tl.load(decays + at), values), 0, _then)
    tl.store(states + at, state)


@triton.jit
def orders(x, ascending, places, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    at = (tl.program_id(0) * ROWS + rows[:, None]) * BLOCK + columns[None, :]
    values = tl.load(x + at)
    tl.store(ascending + at, tl.sort(values, dim=1))
    tl.store(places + tl.program_id(0) * ROWS + rows, tl.argmax(values, axis=1))


@triton.jit
def histogram(x, counts, touched, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(counts + tl.arange(0, BINS), tl.histogram(values, BINS, mask=at < n))
    tl.atomic_max(touched + values, at, mask=at < n)


@triton.jit
def pieces(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n, other=0.0)
    gelu = 0.5 * value * (1 + tl.erf(value * 0.7071067811865476))
    small = tl.where(value > -1, libdevice.tanh(value), tl.exp2(value) - 1.5)
    made = tl.where(value > 2, tl.log2(value), tl.where(value > 0, gelu, small))
    tl.store(y + at, tl.fma(made, tl.rsqrt(value * value + 1), tl.floor(value)), mask=at < n)


@triton.jit
def doubles(x, y, sums, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0)
    root = tl.sqrt(value * value + 1.0) / (value + 3.5)
    tl.store(y + row * n + at, tl.exp(-root) * value, mask=at < n)
    tl.store(sums + row, tl.sum(tl.where(at < n, root, 0.0), axis=0))


@triton.jit
def integers(x, z, quotients, remainders, high, n, BLOCK: tl.constexpr
             ):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + at, mask=at < n), tl.load(z + at, mask=at < n, other=1)
    tl.store(quotients + at, a // b, mask=at < n)
    tl.store(remainders + at, a % b, mask=at < n)
    tl.store(high + at, tl.umulhi(a.to(tl.uint32), b.to(tl.uint32)) ^ (a.to(tl.uint32) >> 5), mask=at < n)
