"""Launches: a whole kernel, grids and blocks, batches of blocks, and arguments."""

from __future__ import annotations

from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array, same
from kernels import COPY, LDSM, MMA, TARGET, module, outcome, run

import warpmma as wm
from warpmma.kernel.launching import Output

pytestmark = pytest.mark.quick

# A whole kernel: D = A B^T + C, in tiles of 128 x 128 x 32, two buffers. Rows of 64 bytes, swizzled.


def gemm(t: Any, a: Any, b: Any, c: Any, *, n: int, k: int) -> None:
    warp_m, warp_n, lane = t.warpid >> 1, t.warpid & 1, t.laneid

    def place(row: Any, piece: Any) -> Any:
        return row * 64 + ((piece ^ ((row >> 1) & 3)) << 4)

    def stage(i: int) -> None:
        for start, x, first in ((0, a, t.ctaid[1] * 128), (8192, b, t.ctaid[0] * 128)):
            for part in range(4):
                row, piece = (t.tid[0] >> 2) + part * 32, t.tid[0] & 3
                t(
                    COPY,
                    place(row, piece) + (start + i % 2 * 16384),
                    x + ((first + row) * k + i * 32 + piece * 8) * 2,
                    16,
                )
        t("cp.async.commit_group")

    d = [[[t.constant(0)] * 4 for _ in range(8)] for _ in range(4)]
    stage(0)
    for i in range(k // 32):
        if i + 1 < k // 32:
            stage(i + 1)
        t("cp.async.wait_group", int(i + 1 < k // 32))
        t("bar.sync")
        for half in range(2):
            base, row = i % 2 * 16384, lane & 15
            rows = [warp_m * 64 + part * 16 + row for part in range(4)]
            of_a = [t(LDSM, place(row, (lane >> 4) + half * 2) + base) for row in rows]
            rows = [warp_n * 64 + part * 16 + (lane & 7) + ((lane >> 4) << 3) for part in range(4)]
            fours = [t(LDSM, place(row, ((lane >> 3) & 1) + half * 2) + (base + 8192)) for row in rows]
            of_b = [pair for four in fours for pair in (four[:2], four[2:])]
            for x in range(4):
                for y in range(8):
                    d[x][y] = t(MMA, of_a[x], of_b[y], d[x][y])
        t("bar.sync")
    for x in range(4):
        for y in range(8):
            row = t.ctaid[1] * 128 + warp_m * 64 + x * 16 + (lane >> 2)
            at = c + (row * n + t.ctaid[0] * 128 + warp_n * 64 + y * 8 + (lane & 3) * 2) * 4
            t("st.global.v2.f32", at, d[x][y][:2])
            t("st.global.v2.f32", at + n * 32, d[x][y][2:])


@pytest.mark.parametrize("engine", wm.engines())
def test_gemm(engine: Any) -> None:
    """The bits of `matmul`; no hazards, no conflicts."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((256, 96)).astype(np.float16) for _ in range(2))
    c = np.zeros((256, 256), np.float32)
    kernel = partial(gemm, n=256, k=96)
    result = run(kernel, a, b, Output(c), grid=(2, 2), block=128, shared=32768, engine=engine)
    same(c, wm.matmul(a, b.T, instruction=MMA, target=TARGET))
    assert not any(entry.conflicts for entry in result.costs.sites.values())
    assert result.costs.barriers == 4 * 3 * 2


# Grids and blocks.


def numbered(t: Any, out: Any, sizes: Any) -> None:
    thread = t.tid[0] + (t.tid[1] + t.tid[2] * t.ntid[1]) * t.ntid[0]
    block = t.ctaid[0] + (t.ctaid[1] + t.ctaid[2] * t.nctaid[1]) * t.nctaid[0]
    threads = t.ntid[0] * t.ntid[1] * t.ntid[2]
    t("st.global.v2.b32", out + (block * threads + thread) * 8, thread, block)
    t("st.global.v2.b32", sizes, threads, t.nctaid[0] * t.nctaid[1] * t.nctaid[2])
    t("st.shared.b32", thread * 4, thread)
    t("bar.sync")


@pytest.mark.parametrize(
    ("grid", "block"),
    [(1, 1), (3, 31), (2, 33), (5, 100), (2, 1024), ((3, 2), (8, 4)), ((2, 3, 4), (3, 5, 7)), ((1, 1, 2), (1, 2, 3)),
     ([4], [64])],
)  # fmt: skip
def test_extents(grid: Any, block: Any) -> None:
    """Every thread of every block runs once, and knows where it is."""
    blocks, threads = (int(np.prod(n)) for n in (grid, block))
    out, sizes = np.zeros((blocks, threads, 2), np.uint32), np.zeros(2, np.uint32)
    result = run(numbered, Output(out), Output(sizes), grid=grid, block=block)
    same(out[..., 0], np.broadcast_to(np.arange(threads, dtype=np.uint32), (blocks, threads)))
    same(out[..., 1], np.broadcast_to(np.arange(blocks, dtype=np.uint32)[:, None], (blocks, threads)))
    assert sizes.tolist() == [threads, blocks]
    assert result.costs.barriers == blocks
    moved = sum(n for (_, space), n in result.costs.bytes.items() if space == "shared")
    assert moved == blocks * threads * 4


def test_coordinates() -> None:
    """Threads of a warp differ in x first."""
    x, y, z = (outcome(lambda t, i=i: t.tid[i], block=30, shared=0) for i in range(3))  # type: ignore[misc]
    assert x.tolist() == list(range(30)) and not y.any() and not z.any()
    found: list[Any] = []
    run(lambda t: found.append([c.bits[0, 0, :12].tolist() for c in t.tid]), block=(3, 2, 2))
    assert found == [[[0, 1, 2] * 4, [0, 0, 0, 1, 1, 1] * 2, [0] * 6 + [1] * 6]]


@pytest.mark.parametrize("threads", [1, 64, 128, 200, 640])
def test_batches(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many blocks go together, results, costs and their order are the same."""

    def once() -> tuple[Array, str, list[tuple[int, int]]]:
        x, done = np.arange(640, dtype=np.uint32), []

        def kernel(t: Any, x: Any) -> None:
            at = x + (t.ctaid[0] * 64 + t.tid[0]) * 4
            t("st.shared.b32", (t.tid[0] * (t.ctaid[0] + 1) & 63) * 4 + 256 * (t.warpid & 1), t("ld.global.b32", at))
            t("bar.sync")
            with t.where((t.ctaid[0] & 1) == 1):
                t("st.global.b32", at, t("ld.shared.b32", t.laneid * 0) + t.tid[0])
                t("bar.sync")

        got = run(
            kernel,
            x,
            grid=10,
            block=64,
            progress=lambda *n: done.append(n),
            hazards=dict.fromkeys(["race", "lane order"], "warn"),
        )
        return x, got.json(), done

    with pytest.warns(UserWarning, match="lane order"):
        x, report, done = once()
    assert done == [(10, 10)]
    monkeypatch.setattr(module, "_THREADS", threads)
    with pytest.warns(UserWarning, match="lane order"):
        y, again, steps = once()
    same(x, y)
    at = report.index('"hazards"')
    assert again[: again.index('"hazards"')] == report[:at]
    size = max(1, threads // 64)
    assert steps == [(min(n + size, 10), 10) for n in range(0, 10, size)]


def test_shared_memory_limits_batches() -> None:
    """Blocks with much shared memory are fewer at once."""
    done: list[int] = []
    run(lambda t: None, grid=300, shared=200 * 1024, progress=lambda n, total: done.append(n))
    assert done == [150, 300]


def test_arguments() -> None:
    got: list[Any] = []
    sentinel = object()
    run(lambda t, *args: got.extend(args), np.zeros(3), -1, 2.5, True, "text", sentinel, np.uint8(7), np.float32(0.1))
    assert [x.kind for x in got[:3]] == ["b64", "b32", "b32"] and got[3:6] == [True, "text", sentinel]
    values = [x.bits[0, 0, 0] for x in (*got[1:3], *got[6:])]
    assert values == [0xFFFFFFFF, 0x40200000, 7, np.float32(0.1).view(np.uint32)]


@pytest.mark.parametrize(
    "array",
    [np.arange(64, dtype=np.uint8), np.arange(64, dtype="<i4"), np.zeros((4, 4), ml_dtypes.bfloat16),
     np.arange(8.0).reshape(2, 4), np.ones((3, 3), bool), np.array(5, np.uint64)],
    ids=lambda x: str(x.dtype),
)  # fmt: skip
def test_arrays(array: Array) -> None:
    """Memory holds the bytes of an array, whatever they mean, and is written in place."""
    before = array.tobytes()
    out = np.zeros(array.nbytes, np.uint8)

    def kernel(t: Any, x: Any, y: Any) -> None:
        for start in range(0, array.nbytes, 32):
            with t.where(t.laneid + start < array.nbytes):
                byte = t("ld.global.u8", x + t.laneid + start)
                t("st.global.u8", y + t.laneid + start, byte)
                t("st.global.u8", x + t.laneid + start, byte ^ 255)

    run(kernel, array, Output(out))
    assert out.tobytes() == before and array.tobytes() == bytes(x ^ 255 for x in before)
