"""Memory of kernels, and instructions of whole warps: what is written is what is read."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from arrays import same
from kernels import run

import warpmma as wm
from warpmma.kernel.launching import Output
from warpmma.operations import matrix_moves

pytestmark = pytest.mark.quick


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
            t("bar.warp.sync", 0xFFFFFFFF)
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


def test_of_a_wider_register_the_low_bits_are_converted() -> None:
    def kernel(t: Any, y: Any) -> None:
        wide = t("or.b64", t("cvt.u64.u32", t.laneid), 7 << 40 | 0x40400000)  # 3.0 in the low half
        t("st.global.b32", y + t.laneid * 4, t("cvt.rni.s32.f32", wide))

    y = np.zeros(32, np.int32)
    run(kernel, Output(y))
    assert (y == 3).all()
