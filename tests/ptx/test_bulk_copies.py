"""Copies in bulk, stores that an mbarrier counts, and the barrier of a cluster of one block."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import OperandError, PtxError
from warpmma.machine import HazardError, Launch

pytestmark = pytest.mark.quick

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n) {
.reg .pred %p<9>; .reg .b16 %h<3>; .reg .b32 %r<19>; .reg .b64 %d<9>;
.shared .align 128 .b8 s[4096]; .shared .align 128 .b8 t[4096]; .shared .align 8 .b64 m;
ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y]; ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x; setp.eq.u32 %p1, %r2, 0; mov.u32 %r3, s; mov.u32 %r4, t; mov.u32 %r5, m;
mov.u32 %r6, %ctaid.x; mul.wide.u32 %d3, %r6, %r1; add.u64 %d1, %d1, %d3; add.u64 %d2, %d2, %d3;
mad.lo.u32 %r7, %r2, 4, %r3; mad.lo.u32 %r8, %r2, 4, %r4; mad.wide.u32 %d4, %r2, 4, %d2; mad.wide.u32 %d5, %r2, 4, %d1;
@%p1 mbarrier.init.shared.b64 [%r5], 1; bar.sync 0;
"""
CTA = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
NEAR = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
FAR = "cp.async.bulk.global.shared::cta.bulk_group"
ARRIVE = "@%p1 mbarrier.arrive.expect_tx.shared.b64 %d8, [%r5], %r1;"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0; @!%p2 bra W;"
FILL = "ld.global.u32 %r9, [%d5]; st.shared.u32 [%r7], %r9; fence.proxy.async.shared::cta; bar.sync 0;"
OUT = "ld.shared.u32 %r9, [%r7]; st.global.u32 [%d4], %r9;"


def launched(body: str, x: Any, y: Any, *, grid: int = 2, **more: Any) -> Launch:
    """Launch blocks of 64 threads, each of which has its part of x and y."""
    n = x.nbytes // grid
    return wm.ptx.load(HEAD + body + "\nret; }")["k"].launch(wm.Device("sm_90"), grid, 64, [x, y, n], **more)


def words(grid: int = 2) -> tuple[Any, Any]:
    return np.arange(64 * grid, dtype=np.uint32) + 5, np.zeros(64 * grid, np.uint32)


@pytest.mark.parametrize("hazards", ["error", "off"])
@pytest.mark.parametrize(
    "copy",
    [f"{CTA} [%r3], [%d1], %r1, [%r5]", f"{CTA}.L2::cache_hint [%r3], [%d1], %r1, [%r5], %d1",
     f"{CTA.replace('cluster', 'cta')} [s], [%d1], %r1, [m]",
     f"mov.b16 %h1, 1; @%p1 {CTA}.multicast::cluster [%r3], [%d1], %r1, [%r5], %h1"],
)  # fmt: skip
def test_from_global_to_shared_memory(copy: str, hazards: Any) -> None:
    x, y = words()
    launched(f"{ARRIVE} @%p1 {copy}; {WAIT} {OUT}", x, y, hazards=hazards)
    assert (y == x).all()


def test_bytes_may_come_before_they_are_expected() -> None:
    x, y = words()
    launched(f"@%p1 {CTA} [%r3], [%d1], %r1, [%r5]; {ARRIVE} {WAIT} {OUT}", x, y)
    assert (y == x).all()


def test_each_thread_copies_its_part() -> None:
    x, y = words(1)
    body = f"""{ARRIVE} and.b32 %r10, %r2, 3; setp.eq.u32 %p3, %r10, 0; mov.u32 %r11, 16;
    @%p3 {CTA} [%r7], [%d5], %r11, [%r5]; {WAIT} {OUT}"""
    launched(body, x, y, grid=1)
    assert (y == x).all()


def test_from_shared_to_shared_memory() -> None:
    x, y = words()
    body = f"{FILL} {ARRIVE} @%p1 {NEAR} [%r4], [%r3], %r1, [%r5]; {WAIT} ld.shared.u32 %r9, [%r8]; "
    launched(f"{body} st.global.u32 [%d4], %r9;", x, y, cluster=1)
    assert (y == x).all()
    with pytest.raises(HazardError, match="without clusters"):
        launched(f"{body} st.global.u32 [%d4], %r9;", x, y)


@pytest.mark.parametrize("wait", ["wait_group 0", "wait_group.read 0"])
def test_from_shared_to_global_memory(wait: str) -> None:
    x, y = words()
    body = f"{FILL} @%p1 {FAR} [%d2], [%r3], %r1; @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.{wait};"
    launched(f"{body} bar.sync 0; st.shared.u32 [%r7], 0;", x, y)
    assert (y == x).all()


def test_groups_are_waited_for_in_their_order() -> None:
    x, y = words(1)
    body = f"""{FILL} mov.u32 %r10, 128;
    @%p1 {FAR} [%d2], [%r3], %r10; @%p1 cp.async.bulk.commit_group;
    @%p1 {FAR} [%d2+128], [%r3+128], %r10; @%p1 cp.async.bulk.commit_group;
    @%p1 cp.async.bulk.wait_group.read 1; @%p1 st.shared.u32 [%r3{{}}], 0;
    @%p1 cp.async.bulk.wait_group 0;"""
    launched(body.format(""), x, y, grid=1)
    assert (y == x).all()
    with pytest.raises(HazardError, match=r"pending: .* may still read it"):
        launched(body.format("+128"), x, y, grid=1)


@pytest.mark.parametrize(
    ("what", "dtype", "combine"),
    [
        ("add.u32", np.uint32, np.add), ("min.s32", np.int32, np.minimum), ("max.u64", np.uint64, np.maximum),
        ("xor.b64", np.uint64, np.bitwise_xor), ("add.f32", np.float32, np.add), ("add.f64", np.float64, np.add),
        ("add.noftz.f16", np.float16, np.add), ("add.noftz.bf16", ml_dtypes.bfloat16, np.add),
        ("min.f16", np.float16, np.minimum), ("max.bf16", ml_dtypes.bfloat16, np.maximum),
    ],
)  # fmt: skip
def test_reductions_into_global_memory(what: str, dtype: Any, combine: Any) -> None:
    rng = np.random.default_rng(3)
    count = 256 // np.dtype(dtype).itemsize
    x, y = (np.asarray(rng.integers(-40, 40, (2, count)), np.int64).astype(dtype) for _ in range(2))
    expected = combine(x, y)
    copy = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{what} [%d2], [%r3], %r1"
    body = f"{FILL} @%p1 {copy}; @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;"
    a, b = x.reshape(-1).view(np.uint32), y.reshape(-1).view(np.uint32).copy()
    launched(body, a, b)
    assert (b == expected.reshape(-1).view(np.uint32)).all()


def test_sums_keep_subnormals() -> None:
    """As on an H200 (warpgroup facts, 3.1), though `red.global.add.f32` flushes them."""
    x, y = (np.full(64, bits, np.uint32) for bits in (3, 5))
    copy = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%d2], [%r3], %r1"
    launched(f"{FILL} @%p1 {copy}; @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;", x, y, grid=1)
    assert (y == 8).all()


def test_reduction_into_shared_memory() -> None:
    x, y = words(1)
    body = f"""{FILL} st.shared.u32 [%r8], %r2; fence.proxy.async; bar.sync 0; {ARRIVE}
    @%p1 {NEAR.replace("cp.", "cp.reduce.")}.add.u32 [%r3], [%r4], %r1, [%r5]; {WAIT} {OUT}"""
    launched(body, x, y, grid=1)
    assert (y == x + np.arange(64)).all()


def test_stores_that_a_barrier_counts() -> None:
    x, y = words(1)
    counted = "async.shared::cluster.mbarrier::complete_tx::bytes"
    body = f"""ld.global.u32 %r9, [%d5]; {ARRIVE} st.{counted}.b32 [%r7], %r9, [%r5]; {WAIT} {OUT}"""
    launched(body, x, y, grid=1)
    assert (y == x).all()
    body = f"""@%p1 st.shared.u32 [%r3], 100; ld.global.u32 %r9, [%d5]; bar.sync 0; {ARRIVE}
    red.{counted.replace("async.", "async.relaxed.cluster.")}.add.u32 [%r3], %r9, [%r5]; {WAIT}
    ld.shared.u32 %r9, [%r3]; st.global.u32 [%d4], %r9;"""
    launched(body, x, y, grid=1)
    assert (y == 100 + x.sum()).all()


@pytest.mark.parametrize(
    ("body", "match"),
    [
        (f"{ARRIVE} @%p1 {CTA} [%r3], [%d1], %r1, [%r5]; bar.sync 0; {OUT}", "pending"),
        (f"{ARRIVE} add.u32 %r10, %r1, 4; @%p1 {CTA} [%r3], [%d1], %r10, [%r5];", "multiple of 16"),
        (f"{ARRIVE} @%p1 {CTA} [%r3+4], [%d1], %r1, [%r5];", "multiple of 16"),
        (
            f"mov.b16 %h1, 2; {ARRIVE} @%p1 {CTA}.multicast::cluster [%r3], [%d1], %r1, [%r5], %h1;",
            "ranks beyond the cluster, which has 1",
        ),
        (f"{ARRIVE} @%p1 {CTA} [%r3], [%d1+1024], %r1, [%r5];", "bounds"),
        (f"{ARRIVE} @%p1 {CTA} [%r3], [%d1], %r1, [%r4]; {WAIT.replace('r5', 'r4')}", "unwritten"),
    ],
)
def test_what_is_wrong_is_a_hazard(body: str, match: str) -> None:
    with pytest.raises(HazardError, match=match):
        launched(body, *words())


def test_operands_that_are_missing() -> None:
    for text in (f"{CTA} [%r3], [%d1], %r1;", f"{FAR} [%d2], [%r3], %r1, [%r5];"):
        with pytest.raises((PtxError, OperandError), match=r"expected \[p\], \[q\], size"):
            launched(text, *words())


@pytest.mark.parametrize("aligned", ["", ".aligned"])
def test_a_cluster_of_one_block_synchronizes(aligned: str) -> None:
    x, y = words()
    arrive, wait = f"barrier.cluster.arrive.release{aligned};", f"barrier.cluster.wait.acquire{aligned};"
    reverse = "sub.u32 %r10, 63, %r2; mad.lo.u32 %r10, %r10, 4, %r3; ld.shared.u32 %r9, [%r10];"
    body = f"ld.global.u32 %r9, [%d5]; st.shared.u32 [%r7], %r9; {arrive} {wait} {reverse} st.global.u32 [%d4], %r9;"
    launched(f"{body} {arrive} {wait} {arrive} {wait}", x, y)
    assert (y.reshape(2, 64) == x.reshape(2, 64)[:, ::-1]).all()
    with pytest.raises(HazardError, match="race"):
        launched(body.replace(arrive, "").replace(wait, ""), x, y)


def test_who_exits_has_come() -> None:
    launched("@%p1 exit; barrier.cluster.arrive; barrier.cluster.wait;", *words())


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("barrier.cluster.arrive; barrier.cluster.arrive;", "arrived and not waited"),
        ("barrier.cluster.wait;", "waits without having arrived"),
        ("@%p1 barrier.cluster.arrive; @%p1 barrier.cluster.wait; bar.sync 0;", "barrier"),
    ],
)
def test_arrivals_and_waits_by_turns(body: str, match: str) -> None:
    with pytest.raises(HazardError, match=match):
        launched(body, *words())


def test_a_batch_ends_without_a_wait() -> None:
    """Neither are the bytes counted, nor is it a hazard: the block's memory ends with it."""
    x, y = words()
    launched(f"{ARRIVE} @%p1 {CTA} [%r3], [%d1], %r1, [%r5]; ld.global.u32 %r9, [%d5]; st.global.u32 [%d4], %r9;", x, y)
    assert (y == x).all()


OVER, SAME = "@%p1 st.shared.u32 [%r3], 99;", "@%p1 ld.shared.u32 %r10, [%r3]; @%p1 st.shared.u32 [%r3], %r10;"
TO_GLOBAL = f"{FILL} @%p1 {FAR} [%d2], [%r3], 16; @%p1 cp.async.bulk.commit_group;"
TO_SHARED = f"{ARRIVE} @%p1 {CTA} [%r3], [%d1], %r1, [%r5]; @%p1 st.global.u32 [%d1], 99; {WAIT}"
READ, DONE = "@%p1 cp.async.bulk.wait_group.read 0;", "@%p1 cp.async.bulk.wait_group 0;"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{TO_GLOBAL} {OVER} {DONE}", ["pending", "pending", ""]),
        (f"{TO_GLOBAL} {SAME} {DONE}", ["", "pending", ""]),
        (f"{TO_GLOBAL} {OVER.replace('%r3', '%r3+16')} {DONE}", ["", "", ""]),
        (f"{TO_GLOBAL} {READ} {OVER} {DONE}", ["", "", ""]),
        (f"{TO_SHARED} {OUT}", ["pending", "pending", ""]),
        (TO_SHARED, ["", "pending", ""]),
    ],
)
def test_what_a_copy_writes_of_a_changed_source_is_poison(body: str, expected: list[str]) -> None:
    """By policy: "error", "strict" and "off"."""
    found = []
    policies: list[Any] = ["error", "strict", "off"]
    for hazards in policies:
        try:
            launched(body, *words(), hazards=hazards)
            found.append("")
        except HazardError as error:
            found.append(error.hazard.kind)
    assert found == expected
