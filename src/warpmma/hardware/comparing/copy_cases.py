"""Asynchronous copies and stores of a GPU beside the simulator: `cp.async`, `cp.async.bulk`, `st.async`, `red.async`.

1. A block is one warp with its own global and shared memory, filled with random bytes; both are compared afterwards.
   Copies go to different places, and all are waited for: by groups, or by an mbarrier that counts their bytes. Whether
   that wait ended is compared as well; it gives up after some tries. Stores, copies between shared memories and
   `.multicast::cluster` go to the other block of a cluster of two.
2. `cp.async` copies from each lane: the sizes of the form by turns, with fewer bytes of source, or none, in some pieces
   of work. With a cache policy `shfl` returns its own lane's destination before: ptxas 13.0 makes an illegal
   instruction of such a copy if the destination is a sum of one number of the warp and one of the lane. In bulk four
   lanes copy up to 512 bytes.
3. Elements of reductions meet hard operands, those of the same atomic.
4. Forms that close groups, and that wait for them, run in one kernel: it has two groups, and waits for the first alone.
   What that wrote is read then (of `.read`: what it read is written), and after all that the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..._arrays import Array
from ...operations import AsyncStore, Atomic, BulkCopy, Copy, CopyGroup, InstructionRow, row, rows
from ...registers import LANES
from .atomic_cases import atomic_values
from .kernel_parts import POLICY, barrier_made, barrier_waited, dumped, entry, expected, filled, loaded, pointed, stored
from .launched_cases import LaunchedWork, Place, RowForm

__all__ = ["AsyncForm", "async_forms"]

_NEAR, _FAR = 4096, 2048  # bytes of a block in shared and global memory
_BULK, _COPIES = 512, 4  # bytes of a copy at most, and lanes that copy
_SLOT = _NEAR // LANES
_OFFSETS = ("to", "origin", "bytes")

_SHARED_ROOM = f".shared .align 128 .b8 room[{_NEAR}]; .reg .b32 %here, %mine, %to, %origin, %bytes, %p, %near;"
_REGISTERS = ".reg .b64 %policy, %far, %wide, %q; .reg .b16 %mask; .reg .pred %few, %none;"
_HERE = "mov.u32 %here, room; mad.lo.u32 %mine, %lane, 16, %here;"


def async_forms(target: str) -> Iterator[InstructionRow]:
    """List the forms of a target."""
    return (x for x in rows(target) if isinstance(x, Copy | CopyGroup | BulkCopy | AsyncStore))


class AsyncForm(RowForm[InstructionRow]):
    """One of them, for `LaunchComparison`."""

    def work(self, target: str, blocks: int, number: int, rng: np.random.Generator, place: Place) -> LaunchedWork:
        """Make the kernel and the arrays of a piece of work."""
        made = self.row
        if isinstance(made, Copy):
            return _copies(made, blocks, number, rng)
        if isinstance(made, BulkCopy):
            return _bulk(made, blocks, rng)
        if isinstance(made, AsyncStore):
            return _stores(made, blocks, rng)
        assert isinstance(made, CopyGroup)
        return _groups(made, blocks, rng)


def _memory(blocks: int, rng: np.random.Generator) -> dict[str, Array]:
    return {name: rng.integers(0, 256, (blocks, size), np.uint8) for name, size in (("near", _NEAR), ("far", _FAR))}


def _peer(to: str, mask: bool) -> list[str]:
    """Set what names the other block of the cluster: addresses in it, or its mask."""
    lines = [".reg .b32 %other, %theirs, %bit; mov.u32 %other, %cluster_ctarank; xor.b32 %other, %other, 1;"]
    if mask:
        return [*lines, "shl.b32 %bit, 1, %other; cvt.u16.u32 %mask, %bit;"]
    return [*lines, f"mapa.shared::cluster.u32 {to}, {to}, %other; mapa.shared::cluster.u32 %theirs, %bar, %other;"]


def _kernel(
    arrays: dict[str, Array], lines: Sequence[str], compared: Sequence[str], declared: str = "", *, pairs: bool = False,
    outputs: int,
) -> LaunchedWork:  # fmt: skip
    """Fill shared memory, do something, and write it back; `outputs` bytes are copied."""
    offsets = [line for x in _OFFSETS if x in arrays for line in loaded(x, [f"%{x}"], 32)]
    text = entry(
        arrays, [_SHARED_ROOM, _REGISTERS, declared],
        [_HERE, *filled("near", "%mine", _NEAR), *offsets, *lines, *dumped("near", "%mine", _NEAR)],
        pairs=pairs,
    )  # fmt: skip
    return LaunchedWork(text=text, arrays=arrays, compared=tuple(compared), outputs=outputs)


def _copies(made: Copy, blocks: int, number: int, rng: np.random.Generator) -> LaunchedWork:
    """Rule 2."""
    size, fewer = made.sizes[number % len(made.sizes)], ("", "%bytes", "%none")[number // len(made.sizes) % 3]
    shape, slots = (blocks, 1, LANES), np.argsort(rng.random((blocks, 1, LANES)), axis=-1)
    arrays = _memory(blocks, rng) | {
        "to": (slots * _SLOT + size * rng.integers(0, _SLOT // size, shape)).astype(np.uint32),
        "origin": (size * rng.integers(0, _FAR // size, shape)).astype(np.uint32),
        "bytes": rng.integers(0, size, shape, endpoint=True).astype(np.uint32),
    }  # fmt: skip
    operands = ["[%near], [%q]", f"{size}", *[fewer] * bool(fewer), *["%policy"] * made.hint]
    lines = [
        *[POLICY] * made.hint, "bar.sync 0;", "setp.eq.u32 %none, %bytes, 0; add.u32 %near, %here, %to;",
        pointed("far", _FAR), "cvt.u64.u32 %wide, %origin; add.u64 %q, %at, %wide;",
        *["shfl.sync.idx.b32 %near, %near, %lane, 31, -1;"] * made.hint,
        f"{made} {', '.join(operands)};", "cp.async.commit_group; cp.async.wait_group 0;", "bar.sync 0;",
    ]  # fmt: skip
    return _kernel(arrays, lines, ["near"], outputs=blocks * LANES * size)


def _places(blocks: int, rng: np.random.Generator, same: bool) -> dict[str, Array]:
    """Make where each lane copies to and from, and how much: lanes that do not copy have nothing."""
    lane = np.arange(LANES)
    begin = 16 * rng.integers(0, _BULK // 16, (blocks, 1, LANES))
    size = 16 * rng.integers(1, (_BULK - begin) // 16 + 1)
    to = _BULK * lane + begin
    origin = to if same else 16 * rng.integers(0, (_FAR - size) // 16 + 1)
    found = {"to": to, "origin": origin, "bytes": size}
    return {name: np.where(lane < _COPIES, x, 0).astype(np.uint32) for name, x in found.items()}


def _bulk(made: BulkCopy, blocks: int, rng: np.random.Generator) -> LaunchedWork:
    """Rules 2 and 3: destinations begin in the first half of shared memory, sources there in the second."""
    arrays, to_far, from_far = _memory(blocks, rng), made.to == "global", made.origin == "global"
    if made.operation:
        red = row(made.red)
        assert isinstance(red, Atomic)
        values = atomic_values(red, blocks * _FAR * 8 // red.bits, rng)
        old, given = (np.ascontiguousarray(x).view(np.uint8).reshape(blocks, _FAR) for x in values)
        arrays["near"][:, _FAR:] = given
        if to_far:
            arrays["far"] = old
        else:
            arrays["near"][np.arange(blocks) ^ 1, :_FAR] = old
    arrays |= _places(blocks, rng, bool(made.operation))
    pairs = made.multicast or not (to_far or from_far)  # the other block's, whose barrier counts the bytes
    names = {
        "size": "%bytes", "m": "%bar" if made.multicast or not pairs else "%theirs", "p": "%far" if to_far else "%p",
        "q": "%q" if from_far else "%near",
    }  # fmt: skip
    lines = [
        pointed("far", _FAR), f"cvt.u64.u32 %wide, {'%to' if to_far else '%origin'}; add.u64 %far, %at, %wide;",
        "mov.b64 %q, %far; add.u32 %p, %here, %to;", f"add.u32 %near, %here, %origin; add.u32 %near, %near, {_FAR};",
        *[POLICY] * made.hint, f"setp.lt.u32 %few, %lane, {_COPIES};",
    ]  # fmt: skip
    copy = f"@%few {made.statement(lambda name: names.get(name, f'%{name}'))}"
    if made.grouped:
        lines += ["fence.proxy.async; bar.sync 0;", copy]
        lines += ["cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;", "bar.sync 0;"]
        return _kernel(arrays, lines, ["near", "far"], outputs=int(arrays["bytes"].sum()))
    total = arrays["bytes"].sum(axis=-1, keepdims=True, dtype=np.uint32)
    arrays |= _counted(total[np.arange(blocks) ^ 1] if pairs else total, blocks)
    lines += [
        *barrier_made(pairs=pairs),
        *expected("total", pairs=pairs),
        *(_peer("%p", made.multicast) if pairs else ()),
        copy,
    ]
    return _kernel(
        arrays,
        [*lines, *barrier_waited("waited", pairs=pairs)],
        ["near", "waited"],
        pairs=pairs,
        outputs=int(total.sum()),
    )


def _counted(total: Array, blocks: int) -> dict[str, Array]:
    """Make the bytes that the mbarrier is told to expect, and whether the wait for them ended."""
    shape = (blocks, 1, LANES)
    return {"total": np.broadcast_to(total, shape).astype(np.uint32), "waited": np.zeros(shape, np.uint32)}


def _stores(made: AsyncStore, blocks: int, rng: np.random.Generator) -> LaunchedWork:
    """Store from all lanes, to slots of their own."""
    arrays = _memory(blocks, rng)
    shape, word = (blocks, made.count, LANES), np.dtype(f"u{made.bits // 8}")
    given = rng.integers(0, np.iinfo(word).max, shape, word, endpoint=True)
    slots = np.argsort(rng.random((blocks, 1, LANES)), axis=-1)
    to = slots * _SLOT + made.size * rng.integers(0, _SLOT // made.size, slots.shape)
    if made.operation:
        red = row(made.red)
        assert isinstance(red, Atomic)
        old, operands = (x.reshape(shape) for x in atomic_values(red, given.size, rng))
        given = operands.view(word)
        elements = arrays["near"].view(word)
        elements[np.arange(blocks)[:, None, None] ^ 1, to // word.itemsize] = old.view(word)
    arrays |= {"to": to.astype(np.uint32), "given": given}
    arrays |= _counted(np.array(LANES * made.size, np.uint32), blocks)
    registers = [f"%a{i}" for i in range(made.count)]
    names = {"p": "%p", "m": "%theirs"}
    lines = [
        *loaded("given", registers, made.bits), "add.u32 %p, %here, %to;", *barrier_made(pairs=True),
        *expected("total", pairs=True), *_peer("%p", False), made.statement(lambda name: names.get(name, f"%{name}")),
        *barrier_waited("waited", pairs=True),
    ]  # fmt: skip
    return _kernel(
        arrays, lines, ["near", "waited"], f".reg .b{made.bits} %a<{made.count}>;", pairs=True, outputs=given.nbytes
    )


def _groups(made: CopyGroup, blocks: int, rng: np.random.Generator) -> LaunchedWork:
    """Rule 4."""
    half, words = _NEAR // 2, [f"%w{i}" for i in range(4)]
    arrays = _memory(blocks, rng)
    declared = f".reg .b32 {', '.join(words)};"
    each, four = "mad.lo.u32 %near, %lane, 16, %here;", f"{{{', '.join(words)}}}"
    lines = [each, pointed("far", _FAR, 16)]
    if not made.bulk:
        arrays["early"] = np.zeros((blocks, 4, LANES), np.uint32)
        last = "cp.async.wait_all;" if made.action == "wait_all" else "cp.async.commit_group; cp.async.wait_group 0;"
        lines += [
            "bar.sync 0;", "cp.async.cg.shared.global [%near], [%at], 16; cp.async.commit_group;",
            f"cp.async.ca.shared.global [%near+{half}], [%at+512], 16; cp.async.commit_group;",
            f"cp.async.ca.shared.global [%near+{half + 512}], [%at+1024], 8;", "cp.async.wait_group 1;",
            f"ld.shared.v4.b32 {four}, [%near];", *stored("early", words, 32), last, "bar.sync 0;",
        ]  # fmt: skip
        return _kernel(arrays, lines, ["near", "early"], declared, outputs=blocks * 40 * LANES)
    read = ".read" * made.read
    again = [f"st.shared.v4.b32 [%near], {four};"] if read else [f"ld.global.v4.b32 {four}, [%at];"]
    lines += [
        f"ld.shared.v4.b32 {four}, [%near+{half}];", "fence.proxy.async; bar.sync 0;",
        "cp.async.bulk.global.shared::cta.bulk_group [%at], [%near], 16; cp.async.bulk.commit_group;",
        f"cp.async.bulk.global.shared::cta.bulk_group [%at+512], [%near+{half}], 16; cp.async.bulk.commit_group;",
        f"cp.async.bulk.wait_group{read} 1;", *again,
        f"st.shared.v4.b32 [%near+1024], {four};", f"cp.async.bulk.wait_group{read} 0; cp.async.bulk.wait_group 0;",
        "bar.sync 0;",
    ]  # fmt: skip
    return _kernel(arrays, lines, ["near", "far"], declared, outputs=blocks * 32 * LANES)
