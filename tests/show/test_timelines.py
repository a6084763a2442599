"""Timelines of asynchronous work: what is recorded, and how it is shown."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import cluster_pipeline as ring_of_two
import numpy as np
import pytest
from warpgroup_kernels import F16, WORDS, codes, launched, text

import warpmma as wm
from warpmma.kernel import launch
from warpmma.machine import Launch, Timeline

pytestmark = pytest.mark.quick

COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
RING = """.version 8.6
.target sm_90
.address_size 64
.visible .entry ring(.param .u64 x, .param .u64 y) {{
.reg .b64 %x, %y, %at; .reg .b32 %t, %i, %s, %a, %f, %e, %par, %v, %sum, %w; .reg .pred %p, %q;
.shared .align 128 .b8 tile[2048]; .shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2];
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; shr.u32 %w, %t, 5;
setp.eq.u32 %p, %t, 0; @!%p bra MADE;
mbarrier.init.shared.b64 [full], 1; mbarrier.init.shared.b64 [full+8], 1;
mbarrier.init.shared.b64 [empty], 1; mbarrier.init.shared.b64 [empty+8], 1;
MADE: bar.sync 0; mov.u32 %i, 0; mov.u32 %sum, 0;
setp.eq.u32 %p, %w, 0; @%p bra PRODUCE;
CONSUME: and.b32 %s, %i, 1; shr.u32 %par, %i, 1; and.b32 %par, %par, 1;
mov.u32 %f, full; mad.lo.u32 %f, %s, 8, %f; mov.u32 %e, empty; mad.lo.u32 %e, %s, 8, %e;
FULL: mbarrier.try_wait.parity.shared::cta.b64 %q, [%f], %par; @!%q bra FULL;
mov.u32 %a, tile; mad.lo.u32 %a, %s, 1024, %a; and.b32 %v, %t, 31; mad.lo.u32 %a, %v, 4, %a;
ld.shared.u32 %v, [%a]; add.u32 %sum, %sum, %v; bar.warp.sync -1;
and.b32 %v, %t, 31; setp.eq.u32 %q, %v, 0; @%q mbarrier.arrive.shared::cta.b64 _, [%e];
add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 4; @%q bra CONSUME;
and.b32 %v, %t, 31; mul.wide.u32 %at, %v, 4; add.u64 %at, %at, %y; st.global.u32 [%at], %sum; ret;
PRODUCE: setp.ne.u32 %q, %t, 0; @%q bra END;
NEXT: and.b32 %s, %i, 1; shr.u32 %par, %i, 1; and.b32 %par, %par, 1; xor.b32 %par, %par, 1;
mov.u32 %f, full; mad.lo.u32 %f, %s, 8, %f; mov.u32 %e, empty; mad.lo.u32 %e, %s, 8, %e;
EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %q, [%e], %par; @!%q bra EMPTY;
mov.u32 %a, tile; mad.lo.u32 %a, %s, 1024, %a;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%f], 1024;
{copy} [%a], [%x], 1024, [%f];
add.u64 %x, %x, 1024; add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 4; @%q bra NEXT;
END: ret; }}
"""


def ring(blocks: int = 1, **options: Any) -> tuple[Any, Launch]:
    """Copy four tiles through two stages."""
    x, y = np.arange(4 * 256, dtype=np.uint32), np.zeros(32, np.uint32)
    entry = wm.ptx.load(RING.format(copy=COPY))["ring"]
    report = entry.launch(wm.Device("sm_90"), blocks, 64, [x, y], hazards={"race": "count"}, **options)
    return y, report


def recorded(**options: Any) -> Timeline:
    found = ring(timeline=True, **options)[1].timeline
    assert found is not None
    return found


def test_nothing_is_recorded_unless_it_is_asked_for() -> None:
    plain, report = ring()
    assert report.timeline is None
    same, report = ring(timeline=True)
    np.testing.assert_array_equal(plain, same)
    again, report = ring()  # steps that recorded are not used for a launch that does not
    assert report.timeline is None and (again == plain).all()


def test_copies_arrivals_waits_and_phases() -> None:
    timeline = recorded()
    assert timeline.blocks == (0,)
    assert [(x.agent, x.warps, x.bytes) for x in timeline.operations] == [
        (f"mbarrier full[{i % 2}]", (0,), 1024) for i in range(4)
    ]
    phases = [(x.step, x.agent) for x in timeline.events if x.kind == "phase"]
    for x in timeline.operations:
        assert x.completed is not None and x.issued < x.completed and x.read is None
        assert (x.completed, x.agent) in phases
    kinds: dict[str, int] = {}
    for event in timeline.events:
        kinds[event.kind] = kinds.get(event.kind, 0) + 1
    assert (kinds["init"], kinds["arrive"], kinds["phase"], kinds["barrier"]) == (4, 8, 8, 1)
    assert kinds["pass"] >= 8 and kinds["wait"] >= 1
    steps = [x.step for x in timeline.events]
    assert steps == sorted(steps)


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_every_wait_that_begins_ends(seed: int) -> None:
    timeline = recorded(seed=seed)
    waiting: set[tuple[int, str]] = set()
    for x in timeline.events:
        for warp in x.warps:
            if x.kind == "wait":
                assert (warp, x.agent) not in waiting
                waiting.add((warp, x.agent))
            elif x.kind == "pass":
                waiting.discard((warp, x.agent))
    assert not waiting


def test_products_of_warpgroups_and_their_groups() -> None:
    given = codes(F16, np.random.default_rng(2), registers=False)
    _, report = launched(text(F16, registers=False, more=", 1, 1, 0, 0", times=2), given, WORDS, timeline=True)
    timeline = report.timeline
    assert timeline is not None
    one, two = timeline.operations
    assert one.agent == two.agent == "wgmma of warps 0-3" and one.text == "wgmma.m64n64k16.f32.f16.f16"
    assert one.issued < two.issued < one.completed == two.completed  # type: ignore[operator]
    assert {x.kind for x in timeline.events} == {"fence", "barrier", "commit", "pass"}


def test_groups_of_threads_and_their_reading() -> None:
    body = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 y) { .reg .b64 %y; .reg .b32 %t, %a; .reg .pred %p; .shared .align 128 .b8 tile[256];
ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; mov.u32 %a, tile; mad.lo.u32 %a, %t, 4, %a; st.shared.u32 [%a], %t;
fence.proxy.async.shared::cta; bar.sync 0; setp.ne.u32 %p, %t, 0; @%p bra END;
cp.async.bulk.global.shared::cta.bulk_group [%y], [tile], 256; cp.async.bulk.commit_group;
cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0; END: ret; }"""
    report = wm.ptx.load(body)["k"].launch(wm.Device("sm_90"), 1, 64, [np.zeros(64, np.uint32)], timeline=True)
    assert report.timeline is not None
    (store,) = report.timeline.operations
    assert (store.agent, store.bytes) == ("cp.async.bulk of warp 0", 256)
    assert store.issued < store.read < store.completed  # type: ignore[operator]
    assert [x.kind for x in report.timeline.events] == ["fence", "barrier", "commit", "pass", "pass"]


def test_kernels_in_python_are_recorded() -> None:
    def kernel(t: Any, x: Any) -> None:
        with t.where(t.tid[0] == 0):
            t("mbarrier.init.shared::cta.b64", 1024, 1)
        t("bar.sync")
        with t.where(t.tid[0] == 0):
            t("mbarrier.arrive.expect_tx.shared::cta.b64", 1024, 256)
            t(COPY, 0, x, 256, 1024)
        t("mbarrier.try_wait.parity.shared::cta.b64", 1024, 0)

    args = [np.arange(64, dtype=np.uint32)]
    found = launch(kernel, 1, 64, args, target="sm_90", shared=1032, timeline=True).timeline
    assert found is not None
    (copy,) = found.operations
    assert copy.agent == "mbarrier address 0x400" and copy.issued < copy.completed  # type: ignore[operator]
    assert [x.kind for x in found.events] == ["init", "barrier", "arrive", "phase", "pass"]


@pytest.mark.parametrize(("asked", "blocks"), [(True, (0,)), ([2], (2,)), ((2, 0, 2), (2, 0))])
def test_blocks_are_chosen(asked: Any, blocks: tuple[int, ...]) -> None:
    timeline = ring(3, timeline=asked)[1].timeline
    assert timeline is not None and timeline.blocks == blocks
    assert {x.block for x in timeline.operations} == set(blocks) and len(timeline.operations) == 4 * len(blocks)
    for block in blocks:
        assert f"block {block}" in timeline.svg(block)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ([3], r"timeline has block 3; the grid has 3, 0 to 2"), ([], r"timeline is \[\]; expected True, or numbers"),
        ("x", r"timeline is 'x'; expected True, or numbers of blocks"), ([-1], "expected True, or numbers of blocks"),
    ],
)  # fmt: skip
def test_wrong_requests(asked: Any, says: str) -> None:
    with pytest.raises(wm.OperandError, match=says):
        ring(3, timeline=asked)


def test_the_text_and_the_document_have_everything() -> None:
    timeline = recorded()
    said = timeline.text()
    assert said.startswith("Block 0, by steps of the simulator: time is not simulated\n")
    for x in timeline.operations:
        assert re.search(
            rf"^ *{x.issued:,}  warp 0 +issues cp.async.bulk, 1,024 bytes, for {re.escape(x.agent)}; complete at "
            rf"{x.completed}\b", said, re.M,
        )  # fmt: skip
    assert said.count("complete at ") == 4 and said.count(": phase ") == 8
    document = json.loads(timeline.json())
    assert len(document["events"]) == len(timeline.events) and len(document["operations"]) == 4
    assert document["operations"][0]["completed"] == timeline.operations[0].completed
    assert ElementTree.fromstring(timeline.svg()) is not None


def test_pictures_have_a_bar_for_each_operation_and_wait() -> None:
    timeline = recorded()
    drawn = ElementTree.fromstring(timeline.svg(theme="light"))
    groups = [x.attrib for x in drawn.iter("{http://www.w3.org/2000/svg}g")]
    assert sorted(int(x["data-issued"]) for x in groups if "data-issued" in x) == [
        x.issued for x in timeline.operations
    ]
    assert any("data-wait" in x for x in groups)
    labels = [x.text for x in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"warp 0", "warp 1", "mbarrier full[0]", "mbarrier full[1]", "mbarrier empty[0]"} <= set(labels)
    early = timeline.svg(steps=(0, timeline.operations[1].issued))
    assert early.count("data-issued") == 2
    for bad in ((3, 3), (5,), "x", (-1, 4)):
        with pytest.raises(wm.OperandError, match=r"steps is .*expected the first and the last"):
            timeline.svg(steps=bad)  # type: ignore[arg-type]
    with pytest.raises(wm.OperandError, match="block is 7; recorded are 0"):
        timeline.svg(7)


def test_a_multicast_has_an_operation_for_each_mbarrier() -> None:
    device, count = wm.Device("sm_90a"), 2 * ring_of_two.CLUSTER
    x, w = np.ones((ring_of_two.TILES * ring_of_two.ROWS, 64), np.float32), np.ones((count, ring_of_two.TILES))
    box = wm.TensorMap(device.array(x), (ring_of_two.ROWS // ring_of_two.CLUSTER, ring_of_two.COLUMNS))
    y = device.empty((count, ring_of_two.ROWS, ring_of_two.COLUMNS), np.float32)
    timeline = launch(
        ring_of_two.pipeline, count, ring_of_two.THREADS, [box, device.array(w.astype(np.float32)), y],
        shared=ring_of_two.EMPTY + 8 * ring_of_two.STAGES, cluster=ring_of_two.CLUSTER, timeline=True,
    ).timeline  # fmt: skip
    assert timeline is not None and timeline.blocks == (0, 1)
    copies = timeline.operations
    assert len(copies) == 2 * 2 * ring_of_two.TILES  # of each block, to both
    assert all(x.bytes == ring_of_two.BYTES // 2 and x.completed is not None for x in copies)
    own = f"mbarrier address {ring_of_two.FULL:#x} of block "
    assert {(x.block, x.agent[-1]) for x in copies if x.agent.startswith(own)} == {
        (0, "0"), (0, "1"), (1, "0"), (1, "1")
    }  # fmt: skip
    for block in (0, 1):
        drawn = timeline.svg(block)
        assert drawn.count("data-issued") == 2 * ring_of_two.TILES
        assert f"of block {block}" in drawn and f">mbarrier address {ring_of_two.FULL:#x}<" in drawn
