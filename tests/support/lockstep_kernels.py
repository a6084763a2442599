"""Random kernels in PTX whose blocks do the same, or not, and mostly wrongly; and how to run them without lockstep."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal
from unittest.mock import patch

import numpy as np

import warpmma as wm
from warpmma.machine import HazardError

Hazards = Literal["error", "strict", "warn"]
BLOCKS, THREADS = 3, 128

HEAD = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) {
.reg .pred %p, %q, %even, %half, %one, %sc; .reg .b64 %x, %y, %z, %o, %c, %da, %db; .reg .f32 %f<4>;
.reg .b32 %t, %i, %a, %b, %w, %s, %m, %v, %u, %n, %e, %odd;
.shared .align 1024 .b8 tile[4096]; .shared .align 8 .b64 full;
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mov.u32 %s, tile;
mov.u32 %m, full;
and.b32 %odd, %i, 1; setp.eq.u32 %even, %odd, 0; setp.lt.u32 %half, %t, 64; setp.eq.u32 %one, %t, 0;
mad.lo.u32 %a, %t, 16, %s; xor.b32 %n, %t, 1; mad.lo.u32 %b, %n, 16, %s; and.b32 %n, %t, 15;
mad.lo.u32 %w, %n, 32, %s; mad.lo.u32 %e, %i, 128, %t; mad.wide.u32 %z, %e, 16, %x; mad.wide.u32 %o, %e, 4, %y;
mad.wide.u32 %c, %i, 2048, %x; mov.u32 %v, %t; setp.ne.u32 %sc, %t, 1000;
mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;
shr.u32 %u, %s, 4; cvt.u64.u32 %da, %u; and.b64 %da, %da, 16383; or.b64 %da, %da, 0x0000000800080000;
mov.b64 %db, %da; @%one mbarrier.init.shared.b64 [%m], 1; {begin}
"""
_PRODUCT = (
    "wgmma.fence.sync.aligned;"
    " wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %da, %db, %sc, 1, 1, 0, 0;"
    " wgmma.commit_group.sync.aligned;"
)  # fmt: skip
GUARDED = (
    "st.shared.u32 [%a], %v;", "st.shared.u32 [%b], %v;", "st.shared.v4.u32 [%a], {%v, %v, %t, %t};",
    "ld.shared.u32 %v, [%a];", "ld.shared.u32 %v, [%b];", "ld.shared.u32 %v, [%s];", "ld.shared.u32 %v, [%w];",
    "ld.shared.v2.u32 {%v, %u}, [%b];", "st.shared.u32 [%w], %v;", "st.shared.u32 [%s], 7;", "st.shared.u8 [%a], %t;",
    "cp.async.ca.shared.global [%a], [%z], 16;", "cp.async.cg.shared.global [%b], [%z], 16;",
    "cp.async.ca.shared.global [%a], [%z], 4;", "cp.async.commit_group;", "cp.async.wait_group 0;",
    "cp.async.wait_group 1;", "cp.async.wait_all;", "fence.proxy.async;", "atom.shared.add.u32 %v, [%w], 1;",
    "st.global.u32 [%o], %v;", "ld.volatile.shared.u32 %v, [%a];", "membar.cta;", "st.volatile.shared.u32 [%b], %v;",
)  # fmt: skip
WHOLE = (
    "bar.sync 0;", "bar.sync 0;", "bar.sync 0;", "bar.warp.sync -1;", "@%half bar.sync 1, 64;", "fence.proxy.async;",
    "cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;", _PRODUCT, "wgmma.wait_group.sync.aligned 0;",
    "wgmma.wait_group.sync.aligned 1;", f"fence.proxy.async; bar.sync 0; {_PRODUCT}",
    "@%one cp.async.bulk.global.shared::cta.bulk_group [%c], [%s], 2048; @%one cp.async.bulk.commit_group;",
    "@%one cp.async.bulk.wait_group 0;", "@%one cp.async.bulk.wait_group.read 0;",
    "@%one mbarrier.arrive.expect_tx.shared.b64 _, [%m], 2048; "
    "@%one cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%c], 2048, [%m];",
    "mbarrier.test_wait.parity.shared.b64 %q, [%m], 0;",
)  # fmt: skip
_READY = "cp.async.wait_all; fence.proxy.async; wgmma.wait_group.sync.aligned 0; bar.sync 0;"
_SAID = "hazards", "counts", "order", "harmless", "joined", "unpredicted", "undecided", "notes"
_GUARDS = ("", "", "", "", "@%half ", "@%one ", "@%even ")
_LOCKSTEP = (
    "memory.shared_memory", "memory.lockstep_touch", "order.acquired_clocks", "order.moments", "order.causality",
    "order.happens_before",
)  # fmt: skip


def random_kernel(rng: np.random.Generator) -> str:
    """Return a kernel of a few statements, of which some depend on the block."""
    begin = str(
        rng.choice(
            ["bar.sync 0;", "fence.proxy.async; bar.sync 0;", "st.shared.v4.u32 [%a], {%v, %v, %t, %t}; bar.sync 0;"]
        )
    )
    guards = _GUARDS[: int(rng.choice([4, 6, 7]))]
    lines, order = [HEAD.replace("{begin}", begin)], float(rng.choice([0, 0.5, 0.9]))
    for _ in range(int(rng.integers(3, 14))):
        if rng.random() < order:  # a barrier orders what may be right then
            lines.append(str(rng.choice(["bar.sync 0;", "bar.sync 0;", "cp.async.wait_all; bar.sync 0;", _READY])))
        if rng.random() < 0.6:
            lines.append(str(rng.choice(guards)) + str(rng.choice(GUARDED)))
        else:
            lines.append(str(rng.choice(WHOLE)))
    end = "wgmma.wait_group.sync.aligned 0; add.f32 %f0, %f0, %f1; mov.b32 %u, %f0; add.u32 %v, %v, %u;"
    return "\n".join([*lines, end, "st.global.u32 [%o], %v; ret; }"])


@contextmanager
def without_lockstep() -> Iterator[None]:
    """Let each block be looked at on its own."""
    with ExitStack() as stack:
        for name in _LOCKSTEP:
            stack.enter_context(patch(f"warpmma.machine.{name}.alike_in_blocks", lambda x: False))
        each = patch(
            "warpmma.machine.memory.allocation.LockstepShadow", lambda reporter, n, size, make: make(reporter, n)
        )
        stack.enter_context(each)
        yield


def outcome(text: str, hazards: Hazards) -> tuple[list[str], object]:
    """Return what a launch of a kernel says, and what it leaves."""
    x = np.arange(BLOCKS * THREADS * 4, dtype=np.uint32)
    y = np.zeros(BLOCKS * THREADS, np.uint32)
    kernel = wm.ptx.load(text)["k"]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            report = kernel.launch(wm.Device("sm_90a"), BLOCKS, THREADS, [x, y], hazards=hazards)
            said = {name: repr(getattr(report, name)) for name in _SAID}
            left: object = zlib.crc32(x.tobytes()), zlib.crc32(y.tobytes()), said
        except HazardError as error:
            left = str(error)
    return [str(each.message) for each in told], left
