"""Kernels in Python: launches and batches of blocks, registers and their operators, memory, and what is refused."""

from __future__ import annotations

import importlib
import operator
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import warpmma as wm
from warpmma.errors import MnemonicError, OperandError, TargetError, UnsupportedError, WarpmmaError
from warpmma.kernel.launching import Launch, Output, launch
from warpmma.kernel.values import Register
from warpmma.machine.hazards import HazardError
from warpmma.operations import matrix_moves, operations

module = importlib.import_module("warpmma.kernel.launching")  # `kernel.launch` is the function
Array = npt.NDArray[Any]
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
LDSM = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
COPY = "cp.async.cg.shared.global"
TARGET = "sm_90"
same = partial(np.testing.assert_array_equal, strict=True)


def run(kernel: Callable[..., object], *args: Any, grid: Any = 1, block: Any = 32, **options: Any) -> Launch:
    return launch(kernel, grid, block, args, **{"target": TARGET, "shared": 4096, **options})


def outcome(compute: Callable[[Any], Any], *, block: int = 32, **options: Any) -> Array:
    """Bits of the register that a function of the threads makes, `[thread]`."""
    found: list[Array] = []

    def kernel(t: Any) -> None:
        found.append(compute(t).bits.reshape(-1)[:block].copy())

    run(kernel, block=block, **options)
    return found[0]


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
            kernel, x, grid=10, block=64, progress=lambda *n: done.append(n), hazards=dict.fromkeys(["race"], "warn")
        )
        return x, got.json(), done

    with pytest.warns(UserWarning, match="race"):
        x, report, done = once()
    assert done == [(10, 10)]
    monkeypatch.setattr(module, "_THREADS", threads)
    with pytest.warns(UserWarning, match="race"):
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
    assert len(done) == 4 and done[-1] == 300


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


# Registers.

BINARY: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda x, y, w: x + y, "sub": lambda x, y, w: x - y, "mul": lambda x, y, w: x * y,
    "floordiv": lambda x, y, w: x // y if y else -1, "mod": lambda x, y, w: x % y if y else -1,
    "and_": lambda x, y, w: x & y, "or_": lambda x, y, w: x | y, "xor": lambda x, y, w: x ^ y,
    "lshift": lambda x, y, w: x << min(y, w), "rshift": lambda x, y, w: x >> min(y, w),
}  # fmt: skip
COMPARE = ("lt", "le", "gt", "ge", "eq", "ne")
integers = st.one_of(
    st.integers(0, 70), st.sampled_from([2**n + d for n in (15, 16, 31, 32, 63) for d in (-1, 0, 1)]),
    st.integers(0, 2**64 - 1),
)  # fmt: skip


def of_lanes(t: Any, values: list[int], width: int) -> Register:
    return t.register(np.array(values, np.uint64), f"u{width // 8}")  # type: ignore[no-any-return]


@settings(deadline=None)
@given(st.lists(st.tuples(integers, integers), min_size=32, max_size=32), *[st.sampled_from([16, 32, 64])] * 2)
@example([(1, 64), (5, 0), (1, 32), (2**64 - 1, 2**64 - 1)] * 8, 64, 64)
@example([(1, 2**32), (5, 0), (1, 31), (2**32 - 1, 2**32 - 1)] * 8, 32, 64)
def test_operators(pairs: list[tuple[int, int]], left: int, right: int) -> None:
    """As Python's integers, modulo 2 to the width; all ones where Python refuses to divide."""
    xs, ys = [x % 2**left for x, _ in pairs], [y % 2**right for _, y in pairs]
    width = max(left, right)

    def kernel(t: Any) -> None:
        x, y = of_lanes(t, xs, left), of_lanes(t, ys, right)
        for name, function in BINARY.items():
            got = getattr(operator, name)(x, y)
            assert got.kind == f"b{width}"
            assert got.bits[0, 0].tolist() == [function(a, b, width) % 2**width for a, b in zip(xs, ys, strict=True)], (
                name
            )
        for name in COMPARE:
            got, function = getattr(operator, name)(x, y), getattr(operator, name)
            assert got.kind == "pred" and got.bits[0, 0].tolist() == [
                function(a, b) for a, b in zip(xs, ys, strict=True)
            ]
        assert (~x).bits[0, 0].tolist() == [2**left - 1 - a for a in xs]

    run(kernel)


@settings(deadline=None)
@given(st.lists(integers, min_size=32, max_size=32), st.integers(-(2**63), 2**64 - 1), st.sampled_from([16, 32, 64]))
def test_operators_with_numbers(values: list[int], number: int, width: int) -> None:
    """A Python integer on either side, signed or not; one that does not fit is refused."""
    values = [x % 2**width for x in values]
    fits = -(2 ** (width - 1)) <= number < 2**width

    def kernel(t: Any) -> None:
        x = of_lanes(t, values, width)
        for name, function in BINARY.items():
            for swap in (False, True):
                if not fits:
                    with pytest.raises(OperandError, match=f"is no value of b{width}"):
                        getattr(operator, name)(*((number, x) if swap else (x, number)))
                    continue
                got = getattr(operator, name)(*((number, x) if swap else (x, number)))
                wrapped = number % 2**width
                pairs = [(wrapped, v) if swap else (v, wrapped) for v in values]
                assert got.bits[0, 0].tolist() == [function(a, b, width) % 2**width for a, b in pairs]

    run(kernel)


def test_numpy_numbers_on_the_left() -> None:
    assert outcome(lambda t: np.uint32(5) - t.laneid)[:6].tolist() == [5, 4, 3, 2, 1, 0]
    assert outcome(lambda t: np.int64(1) << t.laneid).tolist() == [1 << i for i in range(32)]


def test_predicates() -> None:
    def p(t: Any) -> tuple[Register, Register]:
        return t.laneid < 16, t.laneid % 2 == 0

    first, second = np.arange(32) < 16, np.arange(32) % 2 == 0
    same(outcome(lambda t: p(t)[0] & p(t)[1]), first & second)
    same(outcome(lambda t: p(t)[0] | p(t)[1]), first | second)
    same(outcome(lambda t: p(t)[0] ^ p(t)[1]), first ^ second)
    same(outcome(lambda t: ~p(t)[0]), ~first)
    for wrong in (lambda t: p(t)[0] + p(t)[1], lambda t: p(t)[0] & 1, lambda t: p(t)[0] < p(t)[1],
                  lambda t: p(t)[0] & t.laneid, lambda t: t.laneid + p(t)[0]):  # fmt: skip
        with pytest.raises(OperandError):
            outcome(wrong)


def test_constants() -> None:
    def bits(value: Any, kind: str = "b32") -> tuple[Any, str]:
        x = outcome(lambda t: t.constant(value, kind))
        assert (x == x[0]).all()
        return x[0], str(x.dtype)

    assert bits(-1) == (0xFFFFFFFF, "uint32") and bits(-1, "b16") == (0xFFFF, "uint16")
    assert bits(2**64 - 1, "b64") == (2**64 - 1, "uint64") and bits(-(2**31)) == (2**31, "uint32")
    assert bits(1.5) == (0x3FC00000, "uint32") and bits(np.float64(1.5), "b64") == (0x3FF8 << 48, "uint64")
    assert bits(1e300) == (0x7F800000, "uint32") and bits(1e-300) == (0, "uint32")
    assert bits(True, "pred") == (True, "bool")
    for value, kind in ((2**32, "b32"), (-(2**31) - 1, "b32"), (2**16, "b16"), (1.5, "b16"), (1, "pred"), (True, "b32"),
                        (1, "f32"), ("1", "b32"), (None, "b64")):  # fmt: skip
        with pytest.raises(OperandError):
            bits(value, kind)


def test_masks() -> None:
    """Masks nest; `update` merges; leaving one by an exception restores the one outside."""

    def kernel(t: Any) -> None:
        x = t.laneid * 0
        with t.where(t.laneid < 16):
            with t.where(t.laneid % 2 == 0):
                x = t.update(x, t.constant(1))
                assert t.any(t.laneid == 4) and not t.any(t.laneid == 5) and not t.any(t.laneid == 20)
            x = t.update(x, x + 1)
        with pytest.raises(KeyError), t.where(t.laneid < 3):
            raise KeyError
        x = t.update(x, x + 10)
        t("st.shared.b32", t.laneid * 4, x)
        expected = [10 + (i < 16) + (i < 16 and i % 2 == 0) for i in range(32)]
        assert t("ld.shared.b32", t.laneid * 4).bits[0, 0].tolist() == expected

    run(kernel)


def test_loops_with_masks() -> None:
    """Collatz: lanes leave the loop when they are done, whatever other blocks do."""

    def kernel(t: Any, out: Any) -> None:
        thread = t.ctaid[0] * 32 + t.laneid
        n, steps = thread + 1, t.constant(0)
        while t.any(n != 1):
            with t.where(n != 1):
                odd = (n & 1) == 1
                with t.where(~odd):
                    n = t.update(n, n >> 1)
                with t.where(odd):
                    n = t.update(n, n * 3 + 1)
                steps = t.update(steps, steps + 1)
        t("st.global.b32", out + thread * 4, steps)

    out = np.zeros(128, np.uint32)
    run(kernel, Output(out), grid=4)

    def length(n: int) -> int:
        return 0 if n == 1 else 1 + length(n // 2 if n % 2 == 0 else 3 * n + 1)

    assert out.tolist() == [length(n + 1) for n in range(128)]


# Memory.


@pytest.mark.parametrize("space", ["shared", "shared::cta", "global"])
@pytest.mark.parametrize(
    ("type_", "count"),
    [
        ("b8", 1),
        ("u8", 4),
        ("s8", 2),
        ("u16", 1),
        ("s16", 4),
        ("b32", 1),
        ("f32", 4),
        ("s32", 2),
        ("b64", 1),
        ("f64", 2),
    ],
)
def test_loads_and_stores(space: str, type_: str, count: int) -> None:
    """Little-endian; bytes make registers of 16 bits, extended with their sign if they have one."""
    width = int(type_[1:])
    rng = np.random.default_rng(width)
    data = rng.integers(0, 256, 32 * count * width // 8, np.uint8)
    if space == "global" and type_ == "b8":
        space = "global.nc"

    def kernel(t: Any, x: Any, y: Any) -> None:
        vector = f".v{count}" if count > 1 else ""
        at = t.laneid * (count * width // 8)
        if space.startswith("shared"):
            byte = t("ld.global.b8", x + t.laneid)
            for start in range(0, len(data), 32):
                byte = t("ld.global.b8", x + (t.laneid + start))
                t(f"st.{space}.b8", t.laneid + start, byte)
        got = t(f"ld.{space}{vector}.{type_}", at if space.startswith("shared") else x + at)
        got = got if count > 1 else (got,)
        signed = {"s": "i", "f": "u", "b": "u", "u": "u"}[type_[0]]
        expected = data.view(f"{signed}{width // 8}").reshape(32, count).astype(f"u{max(width, 16) // 8}")
        for i in range(count):
            same(got[i].bits[0, 0], expected[:, i])
        t(f"st.global{vector}.{type_}", y + at, *got)
        if width < 64:  # a store takes the low bits of a wider register
            t(f"st.global{vector}.{type_}", y + at, [x.__or__(t.constant(7 << 61, "b64")) for x in got])

    out = np.zeros_like(data)
    run(kernel, data, Output(out))
    same(out, data)


def test_copies() -> None:
    """What a copy brings is there after its wait; what its source lacks is 0."""
    x = np.arange(1, 257, dtype=np.uint16)

    def kernel(t: Any, x: Any, y: Any) -> None:
        t("cp.async.ca.shared.global.L2::128B", t.laneid * 8, x + t.laneid * 16, 8, t.laneid & 7)
        t("cp.async.wait_all")
        t("st.global.b64", y + t.laneid * 8, t("ld.shared.b64", t.laneid * 8))

    y = np.zeros(256, np.uint8)
    run(kernel, x, Output(y))
    expected = x.view(np.uint8).reshape(32, 16)[:, :8].copy()
    for lane in range(32):
        expected[lane, lane & 7 :] = 0
    same(y, expected.reshape(-1))


def test_matrices() -> None:
    """Every `ldmatrix` and `stmatrix` that a target has, as the rows compute it."""
    rng = np.random.default_rng(3)
    for target in ("sm_90", "sm_100a"):
        for move in matrix_moves(target):
            data = rng.integers(0, 256, (move.address_lanes, 16), np.uint8)
            words = rng.integers(0, 2**32, (move.registers, 32), np.uint32)

            def kernel(t: Any, x: Any, move: Any = move, data: Any = data, words: Any = words) -> None:
                at = (t.laneid * 7 % 32) * 16
                if move.direction == "load":
                    for i in range(4):
                        t("st.shared.b32", at + i * 4, t("ld.global.b32", x + ((t.laneid % len(data)) * 16 + i * 4)))
                    got = t(move.mnemonic, at)
                    got = got if move.registers > 1 else (got,)
                    rows = data.reshape(move.matrices, move.rows_per_matrix, 16)
                    same(np.stack([x.bits[0, 0] for x in got]), move.distribute(rows))
                    return
                t(move.mnemonic, at, *(t.register(x) for x in words))
                with t.where(t.laneid < len(data)):
                    got = t("ld.shared.v4.b32", at)
                found = np.stack([x.bits[0, 0, : len(data)] for x in got], axis=-1)
                same(np.ascontiguousarray(found).view(np.uint8), move.collect(words).reshape(-1, 16))

            run(kernel, data, target=target)


def test_rows() -> None:
    """Rows of `operations` run as they are, masks included."""

    def kernel(t: Any) -> None:
        same(t("prmt.b32", t.laneid, 0, 0x4440).bits[0, 0], np.arange(32, dtype=np.uint32))
        got, inside = t("shfl.sync.down.b32", t.laneid, 1, 31, 0xFFFFFFFF)
        assert got.bits[0, 0].tolist() == [*range(1, 32), 31] and not inside.bits[0, 0, 31]
        with t.where(t.laneid >= 30):
            assert t("activemask.b32").bits[0, 0, 31] == 3 << 30
        assert t("add.f32", t.constant(1.5), 2.25).bits[0, 0, 0] == struct.unpack("<I", struct.pack("<f", 3.75))[0]

    run(kernel)


def test_instructions_of_whole_launches() -> None:
    """Block-scaled and sparse instructions take what PTX writes after C."""
    sparse = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    scaled = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e5m2.f32.ue8m0"
    rng = np.random.default_rng(5)
    a, b, c = (rng.integers(0, 1 << 14, (n, 32), np.uint32) for n in (4, 4, 4))

    def kernel(t: Any, mnemonic: str, extra: Any, named: Any) -> None:
        operands = [[t.register(x) for x in fragment] for fragment in (a, b[: 4 if ".sp" in mnemonic else 2], c)]
        got = t(mnemonic, *operands, *(extra(t)))
        d = wm.execute(mnemonic, a, b[: len(operands[1])], c, target=t.target, **named)
        same(np.stack([x.bits[0, 0] for x in got]), d)

    metadata = np.full(32, 0x44444444, np.uint32)
    run(kernel, sparse, lambda t: [0x44444444, 1], {"metadata": metadata, "selector": 1})
    scales = np.full(32, 0x7F7E7D7C, np.uint32)
    named = {"scale_a": scales, "scale_b": scales, "byte_id_a": 1, "thread_id_a": 1, "byte_id_b": 2, "thread_id_b": 3}
    run(kernel, scaled, lambda t: [0x7F7E7D7C, (1, 1), 0x7F7E7D7C, (2, 3)], named, target="sm_120a")


# What is refused.


@pytest.mark.parametrize(
    "options",
    [
        {"grid": 0}, {"grid": (1, 2, 3, 4)}, {"grid": ()}, {"grid": -1}, {"grid": 1.0}, {"grid": "32"}, {"grid": "1"},
        {"grid": True}, {"block": 1025}, {"block": (32, 33)}, {"block": None}, {"block": [0]}, {"shared": -1},
        {"shared": 1 << 20}, {"shared": "4096"}, {"target": "sm_91"}, {"target": None}, {"engine": "gpu"},
        {"threads": 0}, {"threads": "two"}, {"progress": 3}, {"hazards": "no"},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_launches(options: dict[str, Any]) -> None:
    with pytest.raises(WarpmmaError):
        run(lambda t: t("bar.sync"), **options)


def test_wrong_arguments() -> None:
    wrong: list[Any] = [np.zeros(3), "abc", None, {}]
    for args in wrong:
        with pytest.raises(OperandError, match="args is"):
            launch(lambda t, *args: None, 1, 32, args, target=TARGET)
    with pytest.raises(OperandError, match="kernel is str"):
        launch("kernel", 1, 32, [], target=TARGET)  # type: ignore[arg-type]


WRONG: dict[str, tuple[Callable[[Any], object], type[WarpmmaError], str]] = {
    "no string": (lambda t: t(5), MnemonicError, "a mnemonic is a string"),
    "no such": (lambda t: t("ad.u32", 1, 2), MnemonicError, "Nearest"),
    "no such load": (lambda t: t("ld.local.b32", 0), MnemonicError, "Expected ld.global or ld.shared"),
    "no such type": (lambda t: t("ld.shared.f16", 0), MnemonicError, "not simulated"),
    "too wide": (lambda t: t("ld.global.v4.b64", 0), MnemonicError, "16 bytes at most"),
    "nc store": (lambda t: t("st.global.nc.b32", 0, 0), MnemonicError, "not simulated"),
    "no address": (lambda t: t("ld.shared.b32"), OperandError, "takes an address; got 0 operands"),
    "values of a load": (lambda t: t("ld.shared.b32", 0, 1), OperandError, "takes an address; got 2 operands"),
    "too few values": (lambda t: t("st.shared.v2.b32", 0, 1), OperandError, "an address and 2 values; got 2 operands"),
    "float address": (lambda t: t("ld.shared.b32", t.laneid < 3), OperandError, "an address is a b32 or b64 register"),
    "a predicate stored": (lambda t: t("st.shared.b8", 0, t.laneid < 3), OperandError, "expected 16 bits or more"),
    "narrow value": (lambda t: t("st.shared.b32", 0, t.constant(0, "b16")), OperandError, "expected 32 bits or more"),
    "no register": (lambda t: t("st.shared.b32", 0, None), OperandError, "value 0 is NoneType; expected a register"),
    "ldmatrix": (lambda t: t("ldmatrix.sync.aligned.m8n8.x3.shared.b16", 0), MnemonicError, "Nearest"),
    "ldmatrix target": (lambda t: t("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", 0), TargetError, "not legal on"),
    "ldmatrix operands": (lambda t: t(LDSM, 0, 0), OperandError, "takes an address; got 2"),
    "stmatrix operands": (lambda t: t("stmatrix.sync.aligned.m8n8.x2.shared.b16", 0, 0), OperandError, "2 registers"),
    "cp.async size": (lambda t: t(COPY, 0, 0, 8), OperandError, "a copy of 8 bytes; expected 16"),
    "cp.async bulk": (lambda t: t("cp.async.bulk.shared.global", 0, 0, 8), MnemonicError, "expected cp.async.ca"),
    "cp.async alone": (lambda t: t(COPY, 0), MnemonicError, "with 1 operands"),
    "cp.async source": (
        lambda t: t(COPY, 0, 0, 16, t.laneid), OperandError, "a source of 31 bytes for a copy of 16",
    ),
    "wait for a register": (lambda t: t("cp.async.wait_group", t.laneid), OperandError, "a Python integer"),
    "wait for none": (lambda t: t("cp.async.wait_group"), OperandError, "takes a number of groups"),
    "wait for less": (lambda t: t("cp.async.wait_group", -1), OperandError, "a Python integer"),
    "commit": (lambda t: t("cp.async.commit_group", 1), OperandError, "takes no operands"),
    "another barrier": (lambda t: t("bar.sync", 1), UnsupportedError, "only barrier 0"),
    "no barrier": (lambda t: t("bar.arrive", 0, 32), MnemonicError, "expected bar.sync"),
    "mma operands": (lambda t: t(MMA, [0] * 4), OperandError, "fragments of A, B and C; got 1"),
    "mma fragment": (lambda t: t(MMA, [0] * 3, [0] * 2, [0] * 4), OperandError, "A is 3 registers .*; expected 4"),
    "mma kinds": (
        lambda t: t(MMA, [t.constant(0, "b64")] * 4, [0] * 2, [0] * 4), OperandError, r"\(b64, .*expected 4 of b32",
    ),
    "mma more": (lambda t: t(MMA, [0] * 4, [0] * 2, [0] * 4, 1), OperandError, "after C come no operands; got 1"),
    "mma target": (
        lambda t: t("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32", [0] * 4, [0] * 2, [0] * 4),
        TargetError, "sm_90",
    ),
    "mma.sp": (
        lambda t: t("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", [0] * 4, [0] * 4, [0] * 4, 0),
        OperandError, "after C come metadata, selector; got 1",
    ),
    "mma.sp metadata": (
        lambda t: t("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", [0] * 4, [0] * 4, [0] * 4, t.laneid < 3, 0),
        OperandError, "metadata is a pred register; expected b32",
    ),
    "float literal": (lambda t: t("add.u32", t.laneid, 1.5), OperandError, "1.5 is a float; .u32 takes integers"),
    "integer literal": (lambda t: t("add.f32", t.laneid, 2), OperandError, r"write 2\.0, or t\.constant\(2\)"),
    "operands": (lambda t: t("add.u32", 1), OperandError, "takes 2 operands"),
    "kind": (lambda t: t("add.u32", t.laneid, t.constant(1, "b64")), OperandError, "is b64; expected b32"),
    "immediate": (lambda t: t("lop3.b32", 1, 2, 3, t.laneid), OperandError, "immediate"),
    "where": (lambda t: t.where(t.laneid), OperandError, "where takes a predicate"),
    "where of a bool": (lambda t: t.where(True), OperandError, "where takes a predicate"),
    "any": (lambda t: t.any(None), OperandError, "any takes a predicate"),
    "update": (lambda t: t.update(t.laneid, t.laneid < 3), OperandError, "a b32 register with a pred"),
    "if": (lambda t: 1 if t.laneid < 3 else 2, OperandError, r"branch with `with t\.where"),
    "range": (lambda t: range(t.laneid), OperandError, "bind them"),
    "int": (lambda t: int(t.laneid), OperandError, "bind them"),
    "list": (lambda t: list(t.laneid), OperandError, "this is one register"),
    "float operator": (lambda t: t.laneid + 1.5, OperandError, "operators are of integers"),
    "text operator": (lambda t: t.laneid + "1", OperandError, "an operand is str"),
    "compared with None": (lambda t: t.laneid == None, OperandError, "an operand is NoneType"),  # noqa: E711
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str) -> None:
    kernel, error, says = WRONG[name]
    with pytest.raises(error, match=says):
        run(kernel)


def test_old_targets_lack_copies() -> None:
    with pytest.raises(TargetError, match="legal from sm_80 on"):
        run(lambda t: t("cp.async.wait_all"), target="sm_75")


def test_notes_name_the_line() -> None:
    def kernel(t: Any) -> None:
        t("add.u32", t.laneid)

    with pytest.raises(OperandError) as caught:
        run(kernel)
    line = kernel.__code__.co_firstlineno + 1
    assert caught.value.__notes__ == [f"executing add.u32 at test_kernel.py:{line} on sm_90"]


def test_registers_of_other_launches() -> None:
    kept: list[Any] = []
    run(lambda t: kept.append(t.laneid))
    for use in (lambda t: t.laneid + kept[0], lambda t: kept[0] + t.laneid, lambda t: t("st.shared.b32", 0, kept[0]),
                lambda t: t.where(kept[0] < 3), lambda t: t.update(t.laneid, kept[0])):  # fmt: skip
        with pytest.raises(OperandError, match="of another launch"):
            run(use)


MNEMONICS = [MMA, LDSM, COPY, "ld.shared.b32", "ld.global.v2.b64", "st.shared.v4.f32", "st.global.u8", "bar.sync",
             "cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all", "bar.warp.sync",
             "stmatrix.sync.aligned.m8n8.x1.shared.b16", "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
             "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "shfl.sync.idx.b32", "ld.", "st.x", "bar", "mma.",
             ""]  # fmt: skip


def operand(t: Any, x: Any) -> Any:
    """What a strategy names: registers by text, lists of them, or the thing itself."""
    if isinstance(x, list):
        return [operand(t, y) for y in x]
    named = {"lane": t.laneid, "pred": t.laneid < 7, "wide": t.constant(1 << 40, "b64"), "half": t.constant(3, "b16")}
    return named.get(x, x) if isinstance(x, str) else x


things: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(["lane", "pred", "wide", "half", None, True, 1.5, float("nan"), b"x", (1, 2), (), {}]),
    st.integers(-(2**65), 2**65), st.integers(0, 64),
)  # fmt: skip
calls = st.tuples(
    st.one_of(st.sampled_from(MNEMONICS), st.sampled_from(sorted(row.mnemonic for row in operations()))),
    st.lists(st.one_of(things, st.lists(things, max_size=5), st.just(["lane"] * 4), st.just([0] * 2)), max_size=6),
    st.booleans(),
)


@settings(deadline=None, max_examples=400)
@given(st.lists(calls, min_size=1, max_size=3), st.sampled_from(["error", "warn"]))
@example([("st.shared.v4.f32", [["lane"] * 4, "lane"], False)], "error")
@example([("mma.", [], True)], "error")
@example([("", [None], True)], "error")
@pytest.mark.filterwarnings("ignore::warpmma.machine.hazards.HazardWarning")
def test_errors_are_typed(calls: list[tuple[str, list[Any], bool]], policy: Any) -> None:
    """Whatever is called with whatever: an error of ours, or none."""

    def kernel(t: Any, x: Any) -> None:
        for mnemonic, operands, masked in calls:
            given = [operand(t, y) for y in operands]
            try:
                if masked:
                    with t.where(t.laneid < 9):
                        t(mnemonic, *given)
                else:
                    t(mnemonic, *given)
            except HazardError as error:
                assert policy == "error" and str(error)
            except WarpmmaError as error:
                assert str(error) and error.__notes__

    run(kernel, np.zeros(64, np.uint32), hazards=policy)


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from([*BINARY, *COMPARE]), things.filter(lambda x: not isinstance(x, bytes)),  # b"" % x is not ours
    st.sampled_from(["lane", "pred", "wide", "half"]), st.booleans(),
)  # fmt: skip
def test_errors_of_operators_are_typed(name: str, thing: Any, register: str, swap: bool) -> None:
    def kernel(t: Any) -> None:
        x, y = operand(t, register), operand(t, thing)
        try:
            got = getattr(operator, name)(*((y, x) if swap else (x, y)))
        except WarpmmaError as error:
            assert str(error)
        else:
            assert isinstance(got, Register)

    run(kernel)
