"""Attention, O = softmax(Q K^T / 8) V, in one pass over the keys: `python examples/attention.py`.

Q, K, V and O are [heads, length, 64] in f16 or bf16; with `causal`, a query sees no key after it. A block of four
warps takes 64 queries of a head, 16 rows a warp, and goes through the keys in tiles of 64. `cp.async` fills one of two
buffers with the next tile of K and V while the warps work on the other; `ldmatrix` takes fragments out of them (of V
with `.trans`); shared memory is swizzled, so that there are no bank conflicts. For each tile:

1. S = Q K^T in f32; each s is multiplied by log2(e) / 8, and becomes -inf where no key is to be seen.
2. The row's maximum so far is the new m: over a lane's 16 values, then over the four lanes of a quad.
3. p = 2^(s - m), by `ex2.approx.ftz.f32`. A lane's part of the row's sum l becomes l 2^(old m - m), plus one p after
   the other.
4. O is multiplied by 2^(old m - m), and P V is added to it, P rounded to f16 or bf16: the accumulators of S have just
   the layout that a fragment of A needs.

At last the four parts of each l are added, and O is multiplied by 1 / l, by `rcp.approx.ftz.f32`. Both functions are
those of the special-function unit, as in FlashAttention; everything else but the matrix unit is IEEE arithmetic in a
fixed order.

The twin, with the same instructions in the same order, is `cuda/attention.cu`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from twins import Array, Call, copied, report, simulate, spread, words

from warpmma.machine import Swizzle

DIMENSION = 64  # of a head
THREADS = 128
QUERIES, KEYS = 64, 64  # of a block; of a tile
WARP = 16  # queries of a warp
PIECE = 16  # bytes that one thread copies at once
ROW = DIMENSION * 2  # bytes of a row in shared memory
TILE = KEYS * ROW  # bytes of a tile of Q, of K and of V
SHARED = TILE + 2 * (2 * TILE)  # Q, and two buffers of K and V
SWIZZLE = Swizzle(3, 4, 3)  # the 8 pieces of a row, by the row: those of 8 rows lie in different banks
LOAD, LOAD_TRANSPOSED = (f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16" for trans in ("", ".trans"))
EX2, RCP = "ex2.approx.ftz.f32", "rcp.approx.ftz.f32"

SCALE = float.fromhex("0x1.715476p-3")  # log2(e) / sqrt(64), in f32


def attention(t: Any, q: Any, k: Any, v: Any, o: Any, *, length: int, causal: bool, kind: str) -> None:
    """Attend; the grid is tiles of queries by heads. Length and flags are the same for all threads: plain Python."""
    mma, pack = f"mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32", f"cvt.rn.{kind}x2.f32"
    tile_of_block, lane, row_of_warp = t.ctaid[0], t.laneid, t.warpid * WARP
    head = t.ctaid[1] * length  # its first row in global memory

    def copy(to: Any, source: Any, row0: Any) -> None:
        """Copy 64 rows of a head; those beyond its end become 0."""
        for first in range(0, TILE // PIECE, THREADS):
            row, piece = (first + t.tid[0]) // (ROW // PIECE), (first + t.tid[0]) % (ROW // PIECE)
            at = source + (head + row0 + row) * ROW + piece * PIECE
            size = copied(t, PIECE, row0 + row < length)
            t("cp.async.cg.shared.global", to + SWIZZLE(row * ROW + piece * PIECE), at, PIECE, size)

    def copy_keys(tile: int) -> None:
        buffer = TILE + tile % 2 * (2 * TILE)
        copy(buffer, k, tile * KEYS)
        copy(buffer + TILE, v, tile * KEYS)
        t("cp.async.commit_group")

    # Where a lane's row of 8x8 matrices is. Q: queries 0-7 and 8-15, then the next 8 columns. K: keys 0-7, then the
    # next 8 columns; keys 8-15 likewise. V, transposed: keys 0-7 and 8-15, then the next 8 columns.
    of_q = [SWIZZLE((row_of_warp + lane % 16) * ROW + d * 2 + lane // 16 * PIECE) for d in range(0, DIMENSION, 16)]
    of_k = [[SWIZZLE((key + lane // 16 * 8 + lane % 8) * ROW + d * 2 + lane // 8 % 2 * PIECE)
             for key in range(0, KEYS, 16)] for d in range(0, DIMENSION, 16)]  # fmt: skip
    of_v = [[SWIZZLE((key + lane % 16) * ROW + d * 2 + lane // 16 * PIECE)
             for d in range(0, DIMENSION, 16)] for key in range(0, KEYS, 16)]  # fmt: skip

    # Of a lane's two rows: which query, the maximum, the lane's part of the sum; and of its columns the output.
    query = [tile_of_block * QUERIES + row_of_warp + half * 8 + lane // 4 for half in range(2)]
    zero, nothing = t.constant(0.0), t.constant(-math.inf)
    top, total = [nothing] * 2, [zero] * 2
    output = [[zero] * 4 for _ in range(0, DIMENSION, 8)]
    queries: list[Any] = []

    copy(0, q, tile_of_block * QUERIES)
    copy_keys(0)
    tiles = -(-length // KEYS)
    for tile in range(tiles):
        # Blocks whose queries are all before these keys have ended.
        with t.where(tile_of_block >= tile) if causal else nullcontext():
            t("cp.async.wait_group", 0)
            t("bar.sync")  # this tile's buffer is full for all, and nobody reads the other any more
            if tile + 1 < tiles:
                with t.where(tile_of_block > tile) if causal else nullcontext():
                    copy_keys(tile + 1)
            keys = TILE + tile % 2 * (2 * TILE)
            values = keys + TILE
            if tile == 0:
                queries = [t(LOAD, at) for at in of_q]

            scores: list[Any] = [[zero] * 4 for _ in range(0, KEYS, 8)]
            for fragment, places in zip(queries, of_k, strict=True):
                for j, at in enumerate(places):
                    x = t(LOAD, at + keys)
                    scores[2 * j] = t(mma, fragment, x[:2], scores[2 * j])
                    scores[2 * j + 1] = t(mma, fragment, x[2:], scores[2 * j + 1])

            scores = [list(x) for x in scores]
            for j, score in enumerate(scores):
                for i in range(4):
                    score[i] = t("mul.rn.f32", score[i], SCALE)
                    if causal or tile == tiles - 1:
                        key = tile * KEYS + j * 8 + lane % 4 * 2 + i % 2
                        seen = key < length
                        if causal:
                            seen = seen & (key <= query[i // 2])
                        score[i] = _select(t, seen, score[i], nothing)

            new_top, new_total, factors = [], [], []
            for half in range(2):
                most = top[half]
                for score in scores:
                    most = t("max.f32", t("max.f32", most, score[2 * half]), score[2 * half + 1])
                most = _over_quad(t, "max.f32", most)
                factor = t(EX2, t("sub.rn.f32", top[half], most))
                sum_ = t("mul.rn.f32", total[half], factor)
                for score in scores:
                    for i in (2 * half, 2 * half + 1):
                        score[i] = t(EX2, t("sub.rn.f32", score[i], most))
                        sum_ = t("add.rn.f32", sum_, score[i])
                new_top.append(most)
                new_total.append(sum_)
                factors.append(factor)

            new = [[t("mul.rn.f32", x, factors[i // 2]) for i, x in enumerate(row)] for row in output]
            for n, places in enumerate(of_v):
                # A fragment of A: rows 0-7 and 8-15 of the first 8 keys, and of the second.
                fragment = [t(pack, x[i + 1], x[i]) for x in scores[2 * n : 2 * n + 2] for i in (0, 2)]
                for j, at in enumerate(places):
                    x = t(LOAD_TRANSPOSED, at + values)
                    new[2 * j] = t(mma, fragment, x[:2], new[2 * j])
                    new[2 * j + 1] = t(mma, fragment, x[2:], new[2 * j + 1])

            top, total = _update(t, top, new_top), _update(t, total, new_total)
            output = [_update(t, old, now) for old, now in zip(output, new, strict=True)]

    # Through shared memory, where Q was, to whole pieces; a warp uses its own rows alone.
    t("bar.warp.sync", 0xFFFFFFFF)
    factors = [t(RCP, _over_quad(t, "add.rn.f32", x)) for x in total]
    for half in range(2):
        row = row_of_warp + half * 8 + lane // 4
        for j, x in enumerate(output):
            low, high = (t("mul.rn.f32", x[2 * half + i], factors[half]) for i in range(2))
            t("st.shared.b32", SWIZZLE(row * ROW + j * PIECE + lane % 4 * 4), t(pack, high, low))
    t("bar.warp.sync", 0xFFFFFFFF)
    for first in range(0, WARP, 32 * PIECE // ROW):
        row, piece = row_of_warp + first + lane // (ROW // PIECE), lane % (ROW // PIECE)
        x = t("ld.shared.v4.b32", SWIZZLE(row * ROW + piece * PIECE))
        to = tile_of_block * QUERIES + row
        with t.where(to < length):
            t("st.global.v4.b32", o + (head + to) * ROW + piece * PIECE, *x)


def _over_quad(t: Any, operation: str, x: Any) -> Any:
    """Combine the values of the four lanes that share a row: neighbours, then pairs."""
    for distance in (1, 2):
        other, _ = t("shfl.sync.bfly.b32", x, distance, 0x1F, 0xFFFFFFFF)
        x = t(operation, x, other)
    return x


def _select(t: Any, predicate: Any, yes: Any, no: Any) -> Any:
    with t.where(predicate):
        return t.update(no, yes)


def _update(t: Any, old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """Keep what blocks that have ended had."""
    return [t.update(x, y) for x, y in zip(old, new, strict=True)]


@dataclass(frozen=True)
class Case:
    """Some heads of a length; numbers of Q, K and V are multiplied by 2^shift, and `seed` makes them."""

    heads: int
    length: int
    kind: str = "f16"
    causal: bool = False
    shift: int = 0
    seed: int = 1

    @property
    def name(self) -> str:
        """As it is called in recordings and tests."""
        shift = f" x{2**self.shift}" if self.shift else ""
        return f"{self.heads}x{self.length} {self.kind}{' causal' * self.causal}{shift} {self.seed}"


CASES = (
    Case(1, 64),
    Case(1, 256),
    Case(1, 256, causal=True),
    Case(1, 200, causal=True, seed=2),
    Case(2, 77, "bf16", seed=3),
    Case(1, 192, "bf16", causal=True, seed=4),
    Case(1, 1),
    Case(1, 130, shift=3, seed=5),  # some rows see one key alone, and most of p is 0
    Case(1, 1000, seed=6),
    Case(1, 2048, causal=True, seed=7),
    Case(2, 1000, "bf16", seed=8),
)


def numbers(case: Case, which: int) -> Array:
    """Return Q, K or V (0, 1, 2): either sign, magnitudes from 2^-8 to 2^2, so that scores have a deviation of 1.2."""
    return spread(words(3 * case.seed + which, case.heads, case.length, DIMENSION), case.kind, case.shift - 8)


def call(case: Case) -> Call:
    """Make the launch of a case."""
    q, k, v = (numbers(case, i) for i in range(3))
    return Call(
        kernel=partial(attention, causal=case.causal, kind=case.kind),
        twin=f"attention_{case.kind}{'_causal' * case.causal}",
        grid=(-(-case.length // QUERIES), case.heads), block=THREADS, shared=SHARED,
        arrays=(q, k, v, np.empty_like(q)), sizes={"length": case.length},
    )  # fmt: skip


def exact(case: Case) -> Array:
    """Attention in float64."""
    q, k, v = (numbers(case, i).astype(np.float64) for i in range(3))
    s = q @ k.swapaxes(-1, -2) / math.sqrt(DIMENSION)
    if case.causal:
        s = np.where(np.tri(case.length, dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return np.asarray(p / p.sum(axis=-1, keepdims=True) @ v)


def main() -> None:
    """Run two cases, and print how far they are from exact attention, and what they cost."""
    for case in CASES[1:3]:
        of = call(case)
        result = simulate(of)
        error = np.abs(of.output.astype(np.float64) - exact(case)).max()
        print(f"{case.name}: within {error:.1e} of attention in float64\n{report(result)}\n")


if __name__ == "__main__":
    main()
