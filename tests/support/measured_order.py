"""Kernels of the experiments of asynchronous order, what was recorded of them, and what is reported here."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import warpmma as wm
from warpmma.machine import HazardError

DATA = Path(__file__).parents[1] / "data"
ONE_BLOCK = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 z) {
.reg .pred %p, %q, %w1, %all; .reg .b32 %t, %a, %s, %m, %f, %v, %n, %w; .reg .b64 %x, %y, %z, %o, %da, %db;
.reg .f32 %d<4>;
.shared .align 1024 .b8 tile[4096]; .shared .align 8 .b64 full; .shared .align 8 .b64 empty;
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u64 %z, [z];
mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; setp.eq.u32 %p, %t, 0; setp.eq.u32 %w1, %w, 1; setp.eq.u32 %all, %t, %t;
mov.u32 %s, tile; mov.u32 %m, full; mov.u32 %f, empty;
mad.lo.u32 %a, %t, 16, %s; mad.wide.u32 %o, %t, 16, %y;
@%p mbarrier.init.shared.b64 [%m], 1; @%p mbarrier.init.shared.b64 [%f], 128; bar.sync 0;
"""
TWO_BLOCKS = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 z) {
.reg .pred %p, %q, %first; .reg .b32 %t, %a, %m, %r, %v; .reg .b64 %y, %o;
.shared .align 16 .b8 words[512]; .shared .align 8 .b64 full;
ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; mov.u32 %r, %cluster_ctarank;
setp.eq.u32 %first, %r, 0; mov.u32 %a, words; mad.lo.u32 %a, %t, 4, %a; mad.wide.u32 %o, %t, 4, %y; mov.u32 %m, full;
@%p mbarrier.init.shared.b64 [%m], 128; fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
"""
# What kernels are made of. Threads write 16 bytes each; thread 0 stores 2 KB in bulk, or the warpgroup reads them.
WRITE = {
    "ST_V4": "st.shared.v4.u32 [%a], {%t, %t, %t, %t};",
    "STMATRIX": "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%a], {%t, %t, %t, %t};",
    "CP_ASYNC": "mad.wide.u32 %o, %t, 16, %x; cp.async.cg.shared.global [%a], [%o], 16; cp.async.wait_all;",
}
BULK = """@%p cp.async.bulk.global.shared::cta.bulk_group [%y], [%s], 2048; @%p cp.async.bulk.commit_group;"""
DONE = "@%p cp.async.bulk.wait_group{} 0;"
BOTH_TILES = """st.shared.v4.u32 [%a], {%f, %f, %f, %f}; st.shared.v4.u32 [%a+2048], {%f, %f, %f, %f};
fence.proxy.async; bar.sync 0;"""
PRODUCT = """cvt.u64.u32 %da, %s; shr.u64 %da, %da, 4; or.b64 %da, %da, 0x800400000; add.u64 %db, %da, 128;
mov.f32 %d0, 0f00000000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0; {0}
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%d0, %d1, %d2, %d3}}, %da, %db, 1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;"""
WAIT = "wgmma.wait_group.sync.aligned 0;"
USE = "mad.wide.u32 %o, %t, 16, %y; st.global.f32 [%o], %d0;"  # a product whose D is not used is no product
LOAD = """mbarrier.arrive.expect_tx.shared.b64 _, [%m], 2048;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%x], 2048, [%m];"""
FULL = "FULL: mbarrier.try_wait.parity.shared.b64 %q, [%m], 0; @!%q bra FULL;"
AGAIN = "AGAIN: mbarrier.try_wait.parity.shared.b64 %q, [%m], 1; @!%q bra AGAIN;"
EMPTY = "EMPTY: mbarrier.try_wait.parity.shared.b64 %q, [%f], 0; @!%q bra EMPTY;"
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"


@dataclass(frozen=True)
class Case:
    """A kernel, its experiment and choices of cells, and what is reported: a kind and a rule, or "" for nothing."""

    body: str
    cells: tuple[str, dict[str, Any]] = ("", {})
    kind: str = ""
    rule: str = ""
    head: str = ONE_BLOCK


@cache
def recorded() -> Any:
    """Experiments 3, 4 and the products of 6 ran on an H100."""
    h100, h200 = (json.loads((DATA / f"{gpu}_order.json").read_text())["found"] for gpu in ("h100", "h200"))
    return {key: {**h100.get(key, {}), **h200.get(key, {})} for key in {**h100, **h200}}


def failures(experiment: str, **choices: Any) -> list[int]:
    """Return how often the cells of an experiment with these choices failed."""
    chosen = {f"{key}={value}" for key, value in choices.items()}
    some = [x["failed"] for name, x in recorded()[experiment].items() if chosen <= set(name.split(" "))]
    assert some, f"no cell of experiment {experiment} has {choices}"
    return some


def reported(case: Case, **options: Any) -> tuple[str, str]:
    """Return the kind and the rule of the first hazard of a launch."""
    kernel = wm.ptx.load(f"{case.head}{case.body}\nEND: ret; }}")["k"]
    device, two = wm.Device("sm_90a"), case.head == TWO_BLOCKS
    x, y = device.array(np.arange(1024, dtype=np.uint32)), device.array(np.zeros(1024, np.uint32))
    map_ = device.array(np.frombuffer(wm.TensorMap(x, (64,)).encoded, np.uint32))
    try:
        kernel.launch(device, 1 + two, 128, [x, y, map_], **{"cluster": 2 if two else None, **options})
    except HazardError as error:
        rule = re.search(r"\(?rule (A\d+)", str(error))
        return error.hazard.kind, rule[1] if rule else ""
    return "", ""


def check(faulty: Case, sound: Case | None = None) -> None:
    """Assert that a kernel failed and is reported, and that its twin did not and is not."""
    experiment, cells = faulty.cells
    assert all(failures(experiment, **cells)), faulty
    kind, rule = reported(faulty)
    assert kind == faulty.kind and (not faulty.rule or rule == faulty.rule), (kind, rule)
    if sound is not None:
        assert not any(failures(sound.cells[0], **sound.cells[1]))
        assert reported(sound) == ("", ""), sound
