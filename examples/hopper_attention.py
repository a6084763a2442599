"""Attention of one head with `wgmma` for both products, for Hopper: `python examples/hopper_attention.py`.

O = softmax(Q K^T scale) V; Q, K, V and O are [length, 64 or 128] in f16. A block takes 128 queries: one thread copies
them, and then tiles of 64 keys and values into a ring of two stages; two warpgroups attend, each for 64 queries. The
order of operations is that of `attention.py`, but that the scale comes with the exponent:

1. S = Q K^T in f32, by `wgmma` from shared memory; -inf where there is no key.
2. The row's maximum so far is the new m: over a lane's 16 values, then over the four lanes of a quad.
3. p = 2^(s scale - m scale), by `fma` and `ex2.approx.ftz.f32`. A lane's part of the row's sum l becomes
   l 2^((old m - m) scale), plus one p after the other.
4. O is multiplied by 2^((old m - m) scale), and P V is added to it by `wgmma`, with P in registers, rounded to f16: the
   accumulators of S have just the layout that A has there.

At last the four parts of each l are added, and O is multiplied by 1 / l, by `rcp.approx.ftz.f32`.

The twin in CUDA C++ is `cuda/hopper_attention.cu`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import hopper as h
import numpy as np
from twins import Array, halves, spread, words

QUERIES, KEYS, STAGES = 128, 64, 2
ROWS = QUERIES // h.CONSUMERS  # of a consumer
PANEL = 64  # elements of a row of 128 bytes
Q_PANEL, KEY_PANEL = QUERIES * h.ROW, KEYS * h.ROW  # bytes of 64 columns
EX2, RCP = "ex2.approx.ftz.f32", "rcp.approx.ftz.f32"


@dataclass(frozen=True)
class Case:
    """Attention over a length; `seed` makes its inputs."""

    length: int
    head: int
    seed: int = 1

    @property
    def name(self) -> str:
        """As it is called in recordings and tests."""
        return f"{self.length}x{self.head} {self.seed}"


CASES = [Case(128, 64), Case(300, 64, 2), Case(1024, 64, 3), Case(128, 128, 4), Case(200, 128, 5), Case(640, 128, 6)]


class _Room:
    """Where everything is in shared memory."""

    def __init__(self, head: int) -> None:
        self.panels = head // PANEL
        self.stage = self.panels * KEY_PANEL  # bytes of the keys of a stage, and of its values
        self.q, self.k = 0, self.panels * Q_PANEL  # O takes the place of Q in the end
        self.v = self.k + STAGES * self.stage
        self.q_full = self.v + STAGES * self.stage
        self.full, self.empty = self.q_full + 8, self.q_full + 8 + 8 * STAGES
        self.size = self.empty + 8 * STAGES


def attention(t: Any, q: Any, k: Any, v: Any, o: Any, *, length: int, scale: float, head: int) -> None:
    """Attend; the grid is tiles of queries."""
    room, tiles, lag = _Room(head), -(-length // KEYS), STAGES - 1
    first, consumes = t.tid[0] == 0, t.warpid >= 4
    with t.where(first):
        h.barrier_init(t, room.q_full, 1)
        for stage in range(STAGES):
            h.barrier_init(t, room.full + 8 * stage, 1)
            h.barrier_init(t, room.empty + 8 * stage, h.CONSUMING_WARPS)
        t("fence.mbarrier_init.release.cluster")
    t("bar.sync")
    h.limit_registers(t)
    with t.where(first):
        h.arrive_expecting(t, room.q_full, room.panels * Q_PANEL)
        for p in range(room.panels):
            h.load_box(t, room.q + p * Q_PANEL, q, p * PANEL, t.ctaid[0] * QUERIES, room.q_full)
    state = _State(t, head, scale)
    for step in range(tiles + lag):
        if step < tiles:
            with t.where(first):
                copy(t, room, k, v, step)
        if (tile := step - lag) >= 0:
            with t.where(consumes):
                if tile == 0:
                    h.wait(t, room.q_full, 0)
                h.wait(t, room.full + 8 * (tile % STAGES), tile // STAGES % 2)
                scores = multiply_keys(t, room, tile % STAGES, head)
                if tile == tiles - 1:
                    scores = visible(t, scores, tile, length)
                weights = state.soften(scores)
                state.out = multiply_values(t, room, tile % STAGES, head, state.out, weights)
                with t.where(t.laneid == 0):
                    h.arrive(t, room.empty + 8 * (tile % STAGES))
    with t.where(consumes):
        store(t, room, o, state.finished())


def copy(t: Any, room: _Room, k: Any, v: Any, tile: int) -> None:
    """Fill a stage with keys and values; its tiles have to be read."""
    stage, turn = tile % STAGES, tile // STAGES
    if turn:
        h.wait(t, room.empty + 8 * stage, (turn - 1) % 2)
    full = room.full + 8 * stage
    h.arrive_expecting(t, full, 2 * room.stage)
    for p in range(room.panels):
        h.load_box(t, room.k + stage * room.stage + p * KEY_PANEL, k, p * PANEL, tile * KEYS, full)
        h.load_box(t, room.v + stage * room.stage + p * KEY_PANEL, v, p * PANEL, tile * KEYS, full)


def multiply_keys(t: Any, room: _Room, stage: int, head: int) -> Any:
    """Return the scores of 64 queries and the keys of a stage."""
    own = (t.warpid // 4 - 1) * (ROWS * h.ROW)
    scores: Any = [0] * (KEYS // 2)
    t("wgmma.fence.sync.aligned")
    for i in range(0, head, 16):
        panel, at = i // PANEL, i % PANEL * 2
        of_q = h.descriptor(t, own + (room.q + panel * Q_PANEL + at))
        of_k = h.descriptor(t, t.constant(room.k + stage * room.stage + panel * KEY_PANEL + at))
        scores = t("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", scores, of_q, of_k, int(i > 0), 1, 1, 0, 0)
    t("wgmma.commit_group.sync.aligned")
    t("wgmma.wait_group.sync.aligned", 0)
    return scores


def visible(t: Any, scores: Any, tile: int, length: int) -> list[Any]:
    """Return scores, -inf beyond the last key."""
    found = []
    for i, score in enumerate(scores):
        seen = t.laneid % 4 * 2 + (tile * KEYS + i // 4 * 8 + i % 2) < length
        found.append(t("selp.b32", score, t.constant(-math.inf), seen))
    return found


def multiply_values(t: Any, room: _Room, stage: int, head: int, out: Any, weights: Any) -> Any:
    """Add the values of a stage, weighed."""
    packed = [h.pack(t, *weights[i : i + 2]) for i in range(0, KEYS // 2, 2)]
    t("wgmma.fence.sync.aligned")
    for i in range(0, KEYS, 16):
        of_v = h.descriptor(t, t.constant(room.v + stage * room.stage + i * h.ROW), KEY_PANEL)
        name = f"wgmma.mma_async.sync.aligned.m64n{head}k16.f32.f16.f16"
        out = t(name, out, packed[i // 4 : i // 4 + 4], of_v, 1, 1, 1, 1)
    t("wgmma.commit_group.sync.aligned")
    t("wgmma.wait_group.sync.aligned", 0)
    return out


class _State:
    """The output of 64 queries so far; of a lane's two rows, 8 apart, the maximum and its part of the sum."""

    def __init__(self, t: Any, head: int, scale: float) -> None:
        self.t, self.scale = t, scale
        self.out: Any = [t.constant(0)] * (head // 2)
        self.maximum = [t.constant(-math.inf)] * 2
        self.sum = [t.constant(0)] * 2

    def soften(self, scores: Any) -> list[Any]:
        """Return the weights of scores; scale the output to the new maximum."""
        t, scale = self.t, self.scale
        weights, self.out = [*scores], [*self.out]
        for half in range(2):  # of four registers, two
            highest = self.maximum[half]
            for i in of_half(half, len(scores)):
                highest = t("max.f32", highest, scores[i])
            for distance in (1, 2):
                other, _ = t("shfl.sync.bfly.b32", highest, distance, 31, 0xFFFFFFFF)
                highest = t("max.f32", highest, other)
            shrink = t(EX2, t("mul.rn.f32", t("sub.rn.f32", self.maximum[half], highest), scale))
            lowered = t("mul.rn.f32", highest, -scale)
            self.maximum[half] = highest
            total = t("mul.rn.f32", self.sum[half], shrink)
            for i in of_half(half, len(scores)):
                weights[i] = t(EX2, t("fma.rn.f32", scores[i], scale, lowered))
                total = t("add.rn.f32", total, weights[i])
            self.sum[half] = total
            for i in of_half(half, len(self.out)):
                self.out[i] = t("mul.rn.f32", self.out[i], shrink)
        return weights

    def finished(self) -> list[Any]:
        """Return the output, divided by the sums."""
        t, out = self.t, [*self.out]
        for half in range(2):
            total = self.sum[half]
            for distance in (1, 2):
                other, _ = t("shfl.sync.bfly.b32", total, distance, 31, 0xFFFFFFFF)
                total = t("add.rn.f32", total, other)
            inverse = t(RCP, total)
            for i in of_half(half, len(out)):
                out[i] = t("mul.rn.f32", out[i], inverse)
        return out


def of_half(half: int, count: int) -> list[int]:
    """Return the registers of a lane's first row, or of its second: of each four, two."""
    return [i for i in range(count) if i // 2 % 2 == half]


def store(t: Any, room: _Room, o: Any, out: Any) -> None:
    """Round the output to f16 and store it; a warp has read its rows of Q itself, so O may take their place."""
    consumer, size = t.warpid // 4 - 1, ROWS * h.ROW
    panels = [consumer * size + (room.q + p * Q_PANEL) for p in range(room.panels)]
    h.store_matrices(t, panels, out)
    t("fence.proxy.async.shared::cta")
    h.consumers_sync(t)
    with t.where(t.tid[0] % h.WARPGROUP == 0):
        for p, panel in enumerate(panels):
            h.store_box(t, o, p * PANEL, t.ctaid[0] * QUERIES + consumer * ROWS, panel)
        h.store_wait(t)


def call(case: Case) -> h.Call:
    """Return the launch of a case."""
    q, k = (spread(words(case.seed + 1000 * i, case.length, case.head), "f16", -9) for i in range(2))
    v = halves(case.seed + 2000, case.length, case.head)
    scale = float(np.float32(math.log2(math.e) / math.sqrt(case.head)))
    return h.Call(
        kernel=partial(attention, head=case.head), source="hopper_attention", twin=f"hopper_attention_{case.head}",
        grid=(-(-case.length // QUERIES),), shared=_Room(case.head).size,
        arrays=(q, k, v, np.empty((case.length, case.head), np.float16)),
        boxes=((QUERIES, PANEL), (KEYS, PANEL), (KEYS, PANEL), (ROWS, PANEL)),
        numbers={"length": case.length, "scale": scale},
    )  # fmt: skip


def exact(case: Case) -> Array:
    """Return the attention in f64."""
    q, k, v = (x.astype(np.float64) for x in call(case).arrays[:3])
    scores = q @ k.T / math.sqrt(case.head)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True) @ v)


def main(twin: bool = True) -> None:
    """Run a case in Python and in CUDA C++."""
    found = h.compare(call(CASES[1]), twin=twin)
    print(f"equal; largest difference from f64: {abs(found - exact(CASES[1])).max():.2g}")


if __name__ == "__main__":
    main()
