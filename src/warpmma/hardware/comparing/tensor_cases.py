"""Copies of boxes of tensors on a GPU beside the simulator: `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`.

1. Each block has its own tensor, tensor map and region of shared memory, all drawn: types, sizes, strides, boxes,
   steps, swizzle, interleave and fill, of the form's number of dimensions and mode. Coordinates of loads may be outside
   of the tensor. A reduction has the types that it takes.
2. One thread copies. Tensors and regions are compared, and whether the wait for a load ended; it gives up after some
   tries. With `.multicast::cluster` each of two blocks of a cluster copies the other's box, with a map of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._arrays import Array
from ...operations import REDUCED, TensorCopy, rows
from ...registers import LANES
from ..generators import copy_case, im2col_case, map_of, tensor_bytes
from .kernel_parts import POLICY, barrier_made, barrier_waited, dumped, entry, expected, filled, loaded, pointed
from .launched_cases import LaunchedWork, Place, RowForm

__all__ = ["TensorForm", "tensor_forms"]

_REGION, _ROOM = 16 << 10, 64 << 10  # bytes of a block in shared memory, and of its tensor
_MAP = 128
_FENCED = 8, 3
_INTERLEAVED = 0.25  # of the maps
_OFFSETS = 3


def tensor_forms(target: str) -> Iterator[TensorCopy]:
    """List the forms of a target."""
    return (x for x in rows(target) if isinstance(x, TensorCopy))


class TensorForm(RowForm[TensorCopy]):
    """One of them, for `LaunchComparison`."""

    @property
    def ptx(self) -> tuple[int, int]:
        """Return the version that has it, and the fence that maps from the host need."""
        return max(self.row.ptx, _FENCED)

    def work(self, target: str, blocks: int, number: int, rng: np.random.Generator, place: Place) -> LaunchedWork:
        """Make the kernel and the arrays of a piece of work."""
        made, cases = self.row, [_case(self.row, rng) for _ in range(blocks)]
        base = place("tensors", blocks * _ROOM)
        maps = [map_of({**x, "address": base + i * _ROOM + x["address"]}) for i, x in enumerate(cases)]
        shape = (blocks, 1, LANES)
        arrays: dict[str, Array] = {
            "tensors": np.resize(tensor_bytes(int(rng.integers(1 << 40)), 1 << 20), (blocks, _ROOM)),
            "region": np.resize(tensor_bytes(int(rng.integers(1 << 40)), 1 << 18), (blocks, _REGION)),
            "maps": np.array([np.frombuffer(x.encoded, np.uint8) for x in maps]),
        }  # fmt: skip
        orders = [[*x["start"], *x["offsets"], x["at"]] for x in cases]
        arrays["orders"] = np.repeat(np.array(orders, np.int64).astype(np.uint32)[:, :, None], LANES, axis=-1)
        compared = ["tensors"]
        if made.direction == "load":
            total = np.array([x.copied_bytes for x in maps], np.uint32).reshape(-1, 1, 1)
            total = total[np.arange(blocks) ^ 1] if made.multicast else total
            arrays |= {"total": np.broadcast_to(total, shape).astype(np.uint32), "waited": np.zeros(shape, np.uint32)}
            compared = ["region", "waited"]
        copied = sum(x.copied_bytes for x in maps)
        return LaunchedWork(text=_kernel(made, arrays), arrays=arrays, compared=tuple(compared), outputs=copied)


def _case(made: TensorCopy, rng: np.random.Generator) -> dict[str, Any]:
    """Draw a map and a copy (rule 1)."""
    while True:
        interleave, store = bool(rng.random() < _INTERLEAVED), made.direction == "store"
        if made.im2col:
            case = im2col_case(rng, _REGION, rank=made.rank, store=store, interleave=interleave)
        else:
            case = copy_case(rng, _REGION, store=store, interleave=interleave and made.rank >= 3)
        length = sum(s * d for s, d in zip(case["strides"], case["dims"][1:], strict=True))
        if len(case["dims"]) != made.rank or case["address"] + length + case["dims"][0] * 32 >= _ROOM:
            continue
        if made.operation and map_of(case).type not in REDUCED[made.operation]:
            continue
        return case


def _kernel(made: TensorCopy, arrays: dict[str, Array]) -> str:
    """Write a kernel whose region is filled before the copy, and written back after a load."""
    coordinates = [f"%c{i}" for i in range(made.rank)]
    offsets = [f"%w{i}" for i in range(made.offsets)]
    names = {"p": "%to", "q": "%map", "m": "%bar", **{f"offset{i}": f"%h{i}" for i in range(made.offsets)}}
    lines = [
        "mov.u32 %here, room; mad.lo.u32 %mine, %lane, 16, %here;", *filled("region", "%mine", _REGION),
        *loaded("orders", [*coordinates, *offsets, "%to"], 32), "add.u32 %to, %to, %here;",
        *(f"cvt.u16.u32 %h{i}, {x};" for i, x in enumerate(offsets)), pointed("maps", _MAP),
        f"mov.b64 %map, %at; fence.proxy.tensormap::generic.acquire.sys [%map], {_MAP};",
        *[POLICY] * made.hint, *barrier_made(pairs=made.multicast),
    ]  # fmt: skip
    if made.multicast:
        lines.append(
            "mov.u32 %n, %cluster_ctarank; xor.b32 %n, %n, 1; shl.b32 %n, 1, %n; cvt.u16.u32 %mask, %n;"
        )  # fmt: skip
    copy = f"@%first {made.statement(lambda name: names.get(name, f'%{name}'))}"
    if made.direction == "load":
        lines += [*expected("total", pairs=made.multicast), copy]
        lines += [*barrier_waited("waited", pairs=made.multicast), *dumped("region", "%mine", _REGION)]
    else:
        lines += [copy, "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"]
    declared = [
        f".shared .align 1024 .b8 room[{_REGION}]; .reg .b32 %here, %mine, %to, %n, %c<{made.rank}>, %w<{_OFFSETS}>;",
        f".reg .b16 %mask, %h<{_OFFSETS}>; .reg .b64 %map, %policy;",
    ]
    return entry(arrays, declared, lines, pairs=made.multicast)
