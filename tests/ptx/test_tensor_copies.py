"""Tensor copies in PTX: recorded loads of an H200, and random copies against loops over coordinates.

The oracles are `tests/data/h200_tensor_copies.npz` and `tensor_map_reference`, which does not use `BoxCopy`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensor_map_reference as reference

import warpmma as wm
from lab.generators.tensor_program_cases import ROOM, in_warpmma, random_cases, written
from lab.gpu.tensor_copy_kernels import PATTERN
from lab.gpu.tensor_copy_kernels import REGION as SIZE
from warpmma.hardware import map_of, tensor_bytes
from warpmma.layouts import TensorMap
from warpmma.machine import HazardError

BASE = 0x7F0000000000
DATA = Path(__file__).parents[1] / "data" / "h200_tensor_copies.npz"
DTYPES = {
    "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "f16": np.float16, "f32": np.float32,
    "bf16": ml_dtypes.bfloat16, "f64": np.float64, "tf32": np.float32,
}  # fmt: skip


def ran(cases: list[Any], rooms: Any, regions: Any, base: int = BASE, **options: Any) -> tuple[Any, Any, Any, Any]:
    """Run cases; return tensors, regions, whether waits ended, and maps."""
    maps, orders = written(cases, base)
    places = [BASE + (1 << 30) + (i << 26) for i in range(4)]
    given = [maps, orders, regions, np.zeros((len(cases), 2), np.uint32)]
    found = in_warpmma({BASE: rooms, **dict(zip(places, given, strict=True))}, len(cases), places, **options)
    return found[BASE], found[places[2]], found[places[3]][:, 0], found[places[0]]


@cache
def recorded(name: str) -> Any:
    with np.load(DATA) as archive:
        found = archive[name]
    return json.loads(found.tobytes()) if name.endswith("cases") else found


@pytest.mark.parametrize("name", ["tiled", "im2col3", "im2col4", "im2col5", "interleave", "interleave_im2col"])
def test_loads_are_those_of_an_h200(name: str) -> None:
    """Each block has a tensor of its own only in name: all are in one array, and a room has no bytes."""
    memory, dumps, end = tensor_bytes(int(recorded(f"{name} seed"))), recorded(f"{name} dumps"), 0
    region = (np.arange(SIZE // 4, dtype=np.uint32) * np.uint32(PATTERN)).view(np.uint8)
    cases = [{**x, "way": "load", "replaced": None, "address": x["address"]} for x in recorded(f"{name} cases")]
    some = [{**x, "address": x["address"] - i * ROOM} for i, x in enumerate(cases)]  # `written` adds rooms
    assert all(x["region"] % 1024 == 0 for x in cases)
    _, after, ended, _ = ran(some, memory, np.tile(region, (len(cases), 1)))
    assert ended.all() and len(cases) >= 100
    for i, case in enumerate(cases):
        copy = map_of(case).box_copy(case["start"][::-1], case["at"], offsets=case["offsets"][::-1])
        begin, end = end, end + copy.span
        expected = region.copy()
        expected[case["at"] : case["at"] + copy.span] = dumps[begin:end]
        np.testing.assert_array_equal(after[i], expected)


@pytest.mark.parametrize("hazards", ["error", "off"])
def test_random_copies_are_those_of_a_loop_over_coordinates(hazards: Any) -> None:
    cases = random_cases(np.random.default_rng(27), 90)
    rooms = np.resize(tensor_bytes(4, 1 << 20), len(cases) * ROOM)
    regions = np.resize(tensor_bytes(5, 1 << 20), (len(cases), SIZE))
    tensors, after, ended, maps = ran(cases, rooms, regions, hazards=hazards)
    assert ended.all()
    for i, case in enumerate(cases):
        made = map_of(case)
        room = rooms[i * ROOM : (i + 1) * ROOM].tobytes()
        own = tensors[i * ROOM : (i + 1) * ROOM]
        start, at, offsets = case["start"][::-1], case["at"], case["offsets"][::-1]
        shared = bytearray(regions[i].tobytes())
        if case["way"] == "load":
            reference.read(made, room[case["address"] :], start, at, offsets, shared)
            assert own.tobytes() == room
        else:
            expected = stored(case, made, room, start, bytes(shared))
            np.testing.assert_array_equal(own, expected, err_msg=str(case))
        np.testing.assert_array_equal(after[i], np.frombuffer(shared, np.uint8), err_msg=str(case))
        assert maps[i, :64].tobytes() == map_of({**case, "address": BASE + i * ROOM + case["address"]}).encoded[:64]
    assert len({x["way"] for x in cases}) > 8 and sum(x["replaced"] is not None for x in cases) > 15


def stored(case: Any, made: TensorMap, room: bytes, start: Any, shared: bytes) -> Any:
    """Return a room after a store or a reduction."""
    written_, other = (bytearray(room[case["address"] :]) for _ in range(2))
    reference.write(made, written_, start, case["at"], shared)
    reference.write(made, other, start, case["at"], bytes(255 - x for x in shared))
    new, old = np.frombuffer(written_, np.uint8), np.frombuffer(room[case["address"] :], np.uint8)
    changed = new != np.frombuffer(other, np.uint8)
    result = np.frombuffer(room, np.uint8).copy()
    if case["way"] != "store":
        whole = len(new) // made.itemsize * made.itemsize
        new = combined(case["way"], made.type, *(np.frombuffer(x[:whole].tobytes(), np.uint8) for x in (old, new)))
        changed, old = changed[:whole], old[:whole]
    result[case["address"] : case["address"] + len(new)] = np.where(changed, new, old)
    return result


def combined(way: str, type_: str, old: Any, new: Any) -> Any:
    """Combine elements as an H200 does."""
    ftz, dtype = type_.endswith(".ftz"), DTYPES[type_.removesuffix(".ftz")]
    a, b = old.view(dtype), new.view(dtype)
    with np.errstate(all="ignore"):
        if way == "inc":
            out = np.where(a >= b, 0, a + 1)
        elif way == "dec":
            out = np.where((a == 0) | (a > b), b, a - 1)
        elif way in ("and", "or", "xor"):
            out = {"and": a & b, "or": a | b, "xor": a ^ b}[way]
        elif way == "add" and "f" in type_:
            return added(a, b, ftz)
        elif way == "add":
            out = a + b
        elif "f" in type_:
            return extreme(way, a, b)
        else:
            out = np.minimum(a, b) if way == "min" else np.maximum(a, b)
    return np.ascontiguousarray(out.astype(dtype)).view(np.uint8)


def added(a: Any, b: Any, ftz: bool) -> Any:
    def flushed(x: Any) -> Any:
        tiny = np.finfo(np.float32).tiny
        return np.where(np.abs(x) < tiny, np.copysign(np.float32(0), x), x) if ftz else x

    if a.dtype == np.float64:
        return np.where(np.isnan(a + b), np.nan, a + b).view(np.uint8)
    total = flushed(flushed(a.astype(np.float32)) + flushed(b.astype(np.float32))).astype(a.dtype)
    bits = np.ascontiguousarray(total).view(f"u{a.dtype.itemsize}").copy()
    bits[np.isnan(total.astype(np.float32))] = 0x7FFFFFFF if a.dtype.itemsize == 4 else 0x7FFF
    return bits.view(np.uint8)


def extreme(way: str, a: Any, b: Any) -> Any:
    """Order by sign and magnitude: -0 < +0; one NaN gives the other operand, two give 0x7FFF."""
    x, y = a.view(np.uint16), b.view(np.uint16)
    first, second = (np.where(z >> 15, 0x7FFF - z.astype(np.int32), z.astype(np.int32)) for z in (x, y))
    takes = first <= second if way == "min" else first >= second
    nan_a, nan_b = np.isnan(a.astype(np.float32)), np.isnan(b.astype(np.float32))
    out = np.where(nan_a, np.where(nan_b, 0x7FFF, y), np.where(nan_b, x, np.where(takes, x, y)))
    return out.astype(np.uint16).view(np.uint8)


LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"


def tile_kernel(t: Any, x: Any, m: Any, y: Any) -> None:
    """Load a tile, read it, store it elsewhere: in Python."""
    first = t.tid[0] == 0
    with t.where(first):
        t("mbarrier.init.shared.b64", 4096, 1)
    t("bar.sync")
    with t.where(first):
        t("mbarrier.arrive.expect_tx.shared.b64", 4096, 1024)
        t(LOAD, 1024, m, [16, 8], 4096)
    assert t("mbarrier.try_wait.parity.shared.b64", 4096, 0).bits.all()
    value = t("ld.shared.b32", t.tid[0] * 4 + 1024)
    t("st.global.b32", y + t.tid[0] * 4, value)
    with t.where(first):
        t(STORE, m, [0, 0], 1024)
        t("cp.async.bulk.commit_group")
        t("cp.async.bulk.wait_group", 0)


def test_a_kernel_in_python() -> None:
    device = wm.Device("sm_90a")
    x = np.arange(64 * 64, dtype=np.float16).reshape(64, 64)
    held, out = device.array(x), device.zeros((16, 32), np.float16)
    made = TensorMap(held, (16, 32), swizzle=64)
    for m in (made, device.array(np.frombuffer(bytes(made), np.uint8))):
        held.set(x)
        wm.kernel.launch(tile_kernel, 1, 256, [held, m, out], target=device, shared=8192)
        box = made.read(x, (8, 16))
        np.testing.assert_array_equal(out.numpy().view(np.uint8).reshape(-1), box)
        expected = x.copy()
        made.write(expected, box, (0, 0))
        np.testing.assert_array_equal(held.numpy(), expected)


def test_a_map_is_an_argument() -> None:
    text = f""".version 9.0\n.target sm_90a\n.address_size 64
.visible .entry k(.param .align 64 .b8 map[128]) {{
.reg .pred %p<9>; .reg .b64 %d<9>; .shared .align 1024 .b8 s[2048]; .shared .align 8 .b64 m;
mov.b64 %d1, map; cvta.param.u64 %d1, %d1;
mbarrier.init.shared.b64 [m], 1; mbarrier.arrive.expect_tx.shared.b64 %d2, [m], 1024;
prefetch.tensormap [%d1]; cp.async.bulk.prefetch.tensor.2d.L2.global [%d1, {{0, 8}}];
{LOAD} [s], [%d1, {{0, 8}}], [m];
W: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra W;
{STORE} [%d1, {{32, 0}}], [s]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret; }}"""
    for give in (lambda made: made, bytes):
        device = wm.Device("sm_90a")
        x = np.arange(64 * 64, dtype=np.uint16).reshape(64, 64)
        held = device.array(x)
        entry = wm.ptx.load(text)["k"]
        entry.launch(device, 1, 1, [give(TensorMap(held, (16, 32), swizzle=64))])
        x[:16, 32:] = x[8:24, :32]
        np.testing.assert_array_equal(held.numpy(), x)
        with pytest.raises(wm.OperandError, match="expected 128 bytes"):
            entry.launch(device, 1, 1, [3])


def test_a_race_with_what_a_copy_reads() -> None:
    """What a load still reads is overwritten: reported where the bytes are used."""
    device = wm.Device("sm_90a")
    held = device.array(np.zeros((64, 64), np.float16))
    text = f""".version 9.0\n.target sm_90a\n.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 x) {{
.reg .pred %p<3>; .reg .b32 %r<3>; .reg .b64 %d<9>;
.shared .align 1024 .b8 s[2048]; .shared .align 8 .b64 m; ld.param.u64 %d3, [x];
mov.b64 %d1, map; cvta.param.u64 %d1, %d1; mbarrier.init.shared.b64 [m], 1;
mbarrier.arrive.expect_tx.shared.b64 %d2, [m], 1024; {LOAD} [s], [%d1, {{0, 8}}], [m];
st.global.u32 [%d3+1028], 5;
W: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra W;
ld.shared.u32 %r1, [s+4]; st.global.u32 [%d3], %r1; ret; }}"""
    made = TensorMap(held, (16, 32), swizzle=64)
    with pytest.raises(HazardError):
        wm.ptx.load(text)["k"].launch(device, 1, 1, [made, held])
    wm.ptx.load(text.replace("1028", "1088"))["k"].launch(device, 1, 1, [made, held])  # beside the box
    held.set(np.zeros((64, 64), np.float16))
    with pytest.warns(UserWarning):
        wm.ptx.load(text)["k"].launch(device, 1, 1, [made, held], hazards="warn")
