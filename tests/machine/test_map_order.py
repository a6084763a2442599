"""Tensor maps that a launch changes: fences and waits around copies, and where they miss (A19 to A21, A24, A29)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.layouts import TensorMap
from warpmma.machine import HazardError

KERNEL = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 maps, .param .u64 x, .param .u64 y, .param .u64 flag) {
.reg .pred %p, %q, %b; .reg .b32 %t, %c, %v, %a, %s; .reg .b64 %k, %m, %n, %x, %y, %o, %f, %w, %g;
.shared .align 1024 .b8 box[128]; .shared .align 128 .b8 near[128]; .shared .align 8 .b64 full;
ld.param.u64 %m, [maps]; ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u64 %f, [flag];
mov.b64 %k, map; cvta.param.u64 %k, %k; mov.b64 %n, near; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x;
setp.eq.u32 %p, %t, 0; setp.eq.u32 %b, %c, 0; add.u64 %g, %m, 256; mad.wide.u32 %o, %t, 4, %y; mov.u32 %s, box;
mad.lo.u32 %a, %t, 4, %s;
@%p mbarrier.init.shared.b64 [full], 1; bar.sync 0;
"""
COPY = (
    "@%p mbarrier.arrive.expect_tx.shared.b64 _, [full], 128; @%p cp.async.bulk.tensor.2d.shared::cluster.global"
    ".mbarrier::complete_tx::bytes [box], [{}, {{0, 0}}], [full];"
    "W: mbarrier.try_wait.parity.shared.b64 %q, [full], 0; @!%q bra W; ld.shared.u32 %v, [%a]; st.global.u32 [%o], %v;"
)
LOAD, HOST = COPY.format("%m"), COPY.format("%k")
NEW = "tensormap.replace.tile.global_address.global.b1024.b64 [%m], %x;"
NEAR = (
    "mad.wide.u32 %w, %t, 4, %k; ld.u32 %v, [%w]; mad.wide.u32 %w, %t, 4, %n; st.shared.u32 [%w], %v; bar.warp.sync -1;"
    "@%p tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%n], %x; bar.warp.sync -1;"
)
PUBLISH = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%m], [%n], 128; "
RELEASE = "fence.proxy.tensormap::generic.release.gpu;"
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%m], 128;"
OWN = "mad.wide.u32 %m, %c, 128, %m; mad.wide.u32 %o, %c, 128, %o;"


def hazard(body: str, hazards: Any = "error", grid: int = 1) -> Any:
    """Return the hazard of a launch, or None where it loads the 32 words of x."""
    device = wm.Device("sm_90a")
    old, x = (device.array(np.arange(32, dtype=np.uint32).reshape(2, 16) + i) for i in (500, 7))
    made = np.frombuffer(TensorMap(old, (2, 16)).encoded, np.uint8)
    maps, y, flag = device.array(np.tile(made, 4)), device.zeros(32 * grid, np.uint32), device.zeros(1, np.uint32)
    kernel = wm.ptx.load(f"{KERNEL}{body}\nret; }}")["k"]
    try:
        kernel.launch(device, grid, 32, [made.tobytes(), maps, x, y, flag], hazards=hazards)
    except HazardError as error:
        return error.hazard
    first = 500 if body in (HOST, LOAD) else 7
    assert y.numpy().reshape(grid, 32).tolist() == [list(range(first, first + 32))] * grid
    return None


CORRECT = {
    "one thread": f"@%p {NEW} @%p {RELEASE} @%p {ACQUIRE} {LOAD}",
    "all lanes acquire": f"@%p {NEW} bar.warp.sync -1; {RELEASE} {ACQUIRE} {LOAD}",
    "another lane acquires": f"@%p {NEW} @%p {RELEASE} bar.warp.sync -1; setp.eq.u32 %q, %t, 5; @%q {ACQUIRE} "
    f"bar.warp.sync -1; {LOAD}",
    "from shared memory": f"{NEAR} {PUBLISH} {ACQUIRE} {LOAD}",
    "from shared memory, lane 0 acquires, another one copies": f"{NEAR} {PUBLISH} @%p {ACQUIRE} bar.warp.sync -1; "
    f"setp.eq.u32 %p, %t, 9; {LOAD}",
    "from shared memory, all acquire, another one copies": f"{NEAR} {PUBLISH} {ACQUIRE} setp.eq.u32 %p, %t, 9; {LOAD}",
    "a map of each block": f"{OWN} {NEAR} {PUBLISH} {ACQUIRE} {LOAD}",
    "parameter": HOST,
    "map that the host wrote": LOAD,
}


@pytest.mark.parametrize("hazards", ["error", "strict", "off"])
@pytest.mark.parametrize("name", CORRECT)
def test_correct_kernels_are_silent(name: str, hazards: Any) -> None:
    assert hazard(CORRECT[name], hazards, 3 if "each" in name else 1) is None


STALE = {
    "none": (f"@%p {NEW} {LOAD}", "A19"),
    "threadfence": (f"@%p {NEW} @%p fence.acq_rel.gpu; {LOAD}", "A19"),
    "proxy async": (f"@%p {NEW} @%p fence.proxy.async; {LOAD}", "A19"),
    "release alone": (f"@%p {NEW} @%p {RELEASE} {LOAD}", "A19"),
    "generic store": (f"@%p st.global.u64 [%m], %x; {LOAD}", "A19"),
    "published, not acquired": (f"{NEAR} {PUBLISH} {LOAD}", "A19"),
    "acquired before the change": (f"@%p {ACQUIRE} @%p {NEW} @%p {RELEASE} {LOAD}", "A19"),
    "another map acquired": (f"@%p {NEW} @%p {RELEASE} @%p {ACQUIRE.replace('%m', '%g')} {LOAD}", "A19"),
    "changed again": (f"@%p {NEW} @%p {RELEASE} @%p {ACQUIRE} @%p {NEW} {LOAD}", "A19"),
}


@pytest.mark.parametrize("name", STALE)
def test_a_map_that_is_not_acquired_is_reported(name: str) -> None:
    body, rule = STALE[name]
    found = hazard(body)
    assert (found.kind, found.rule, found.lane) == ("proxy", rule, 0)
    assert found.other is not None and found.other != found.site
    assert "changed the tensor map" in found.detail and "tensormap::generic.acquire" in found.detail
    assert hazard(body, "off") is None


def test_an_acquire_without_a_release_is_reported() -> None:
    for body in (f"@%p {NEW} @%p {ACQUIRE} {LOAD}", f"@%p {RELEASE} @%p {NEW} @%p {ACQUIRE} {LOAD}"):
        found = hazard(body)
        assert (found.kind, found.rule) == ("proxy", "A20") and "no release of tensor maps" in found.detail


GENERIC = "fence.acq_rel.gpu;"
ACROSS = f"""@!%b bra R; @%p {NEW} @%p {{release}} @%p st.relaxed.gpu.global.u32 [%f], 1;
R: @!%p bra C; S: ld.relaxed.gpu.global.u32 %v, [%f]; setp.eq.u32 %q, %v, 0; @%q bra S; {{acquire}}
C: mad.wide.u32 %o, %c, 128, %o; """


@pytest.mark.parametrize("hazards", ["error", "strict"])
def test_blocks_pass_on_a_map_by_its_fences(hazards: Any) -> None:
    """The fences of the proxy are also fences of their scope."""
    assert hazard(f"{ACROSS.format(release=RELEASE, acquire=ACQUIRE)} {LOAD}", hazards, 2) is None


def test_blocks_that_acquire_no_map_are_reported() -> None:
    found = hazard(f"{ACROSS.format(release=GENERIC, acquire=GENERIC)} {LOAD}", grid=2)
    assert (found.kind, found.rule) == ("proxy", "A19")


START, _, FINISH = COPY.partition("W:")
START, FINISH = START.format("%m"), f"W:{FINISH}"
STORE = "@%p cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m, {0, 0}], [box];"
COMMIT, WAIT = "@%p cp.async.bulk.commit_group;", "@%p cp.async.bulk.wait_group{} {};"
READ, WHOLE = WAIT.format(".read", 0), WAIT.format("", 0)
OTHER = "setp.eq.u32 %b, %t, 9; @%b tensormap.replace.tile.global_address.global.b1024.b64 [%m], %x;"
SAME = "@%p ld.global.u64 %w, [%m+64]; @%p st.global.u64 [%m+64], %w;"
FILL = "st.shared.u32 [%a], %t; fence.proxy.async; bar.sync 0;"
MAP = "mad.wide.u32 %w, %t, 4, %k; ld.u32 %v, [%w]; mad.wide.u32 %w, %t, 4, %n; st.shared.u32 [%w], %v;"
BULK = "@%p cp.async.bulk.global.shared::cta.bulk_group [%m], [near], 128; @%p cp.async.bulk.commit_group;"

WAITED = {
    "group of reads": f"{START} {COMMIT} {READ} @%p {NEW} {FINISH}",
    "group": f"{START} {COMMIT} {WHOLE} @%p {NEW} {FINISH}",
    "mbarrier": f"{START} {FINISH} @%p {NEW}",
    "last group but one": f"{START} {COMMIT} {COMMIT} {WAIT.format('.read', 1)} @%p {NEW} {FINISH}",
    "by another lane": f"{START} {COMMIT} {READ} bar.warp.sync -1; {OTHER} {FINISH}",
    "by another lane that waits itself": f"{START} {FINISH} {OTHER}",
    "a store, group of reads": f"{FILL} {STORE} {COMMIT} {READ} @%p {NEW} {WHOLE}",
    "another map": f"{START} @%p {NEW.replace('[%m]', '[%m+128]')} {FINISH}",
    "other bytes": f"{START} @%p st.global.u64 [%m+128], %x; {FINISH}",
}
UNWAITED = {
    "nothing": f"{START} @%p {NEW} {FINISH}",
    "a group that is not committed": f"{START} {READ} @%p {NEW} {FINISH}",
    "the group before": f"{COMMIT} {START} {COMMIT} {WAIT.format('.read', 1)} @%p {NEW} {FINISH}",
    "the wait of another lane": f"{START} bar.warp.sync -1; {COMMIT.replace('%p', '%b')} setp.eq.u32 %b, %t, 9; "
    f"@%b cp.async.bulk.wait_group.read 0; {OTHER} {FINISH}",
    "another lane, without order": f"{START} {COMMIT} {READ} {OTHER} {FINISH}",
    "a store": f"{FILL} {STORE} {COMMIT} @%p {NEW} {WHOLE}",
    "a published map": f"{NEAR} {START} {PUBLISH} {FINISH}",
    "a copy in bulk": f"{MAP} fence.proxy.async; bar.warp.sync -1; @%p tensormap.replace.tile.rank.shared::cta.b1024"
    f".b32 [%n], 2; @%p fence.proxy.async; {START} {BULK} {WHOLE} {FINISH}",
}


def rewritten(body: str, hazards: Any = "error", seed: int = 0) -> Any:
    """Return the hazard of a launch that copies with a map and then rewrites it, or None."""
    device = wm.Device("sm_90a")
    old, x = (device.array(np.arange(32, dtype=np.uint32).reshape(2, 16) + i) for i in (500, 7))
    made = np.frombuffer(TensorMap(old, (2, 16)).encoded, np.uint8)
    maps, y, flag = device.array(np.tile(made, 4)), device.zeros(32, np.uint32), device.zeros(1, np.uint32)
    kernel = wm.ptx.load(f"{KERNEL}{body}\nret; }}")["k"]
    try:
        kernel.launch(device, 1, 32, [made.tobytes(), maps, x, y, flag], hazards=hazards, seed=seed)
    except HazardError as error:
        return error.hazard
    return None


@pytest.mark.parametrize("hazards", ["error", "strict", "off"])
@pytest.mark.parametrize("name", WAITED)
def test_a_map_may_change_after_a_wait(name: str, hazards: Any) -> None:
    assert [rewritten(WAITED[name], hazards, seed) for seed in (0, 1, 2)] == [None] * 3


@pytest.mark.parametrize("name", UNWAITED)
def test_a_map_that_changes_while_a_copy_reads_it_is_reported(name: str) -> None:
    """However early the copy happens to be complete: nobody has observed it."""
    for seed in (0, 1, 2, 3):
        found = rewritten(UNWAITED[name], seed=seed)
        assert (found.kind, found.rule) == ("pending", "A21"), found
        assert "cp.async.bulk.tensor.2d" in found.detail and found.other.mnemonic.startswith("cp.async.bulk.tensor")
    assert rewritten(UNWAITED[name], "off") is None


def test_only_strict_reports_the_same_bytes() -> None:
    body = f"{START} {SAME} {FINISH}"
    assert rewritten(body) is None
    assert (found := rewritten(body, "strict")).rule == "A21" and found.kind == "pending"


def test_a_map_that_a_copy_in_bulk_writes_has_to_be_acquired() -> None:
    start = f"{MAP} fence.proxy.async; bar.warp.sync -1; {BULK}"
    assert rewritten(f"{start} {WHOLE} @%p {ACQUIRE} {LOAD}") is None
    for body in (f"{start} {WHOLE} {LOAD}", f"{start} @%p {ACQUIRE} {WHOLE} {LOAD}"):
        found = rewritten(body)
        assert (found.kind, found.rule) == ("proxy", "A19") and "a copy in bulk changed the tensor map" in found.detail
    assert rewritten(f"{start} @%p {ACQUIRE} {LOAD}").kind == "pending"


def test_every_lane_publishes_what_another_lane_has_written() -> None:
    """PTX executes the copy for each lane: lanes that do not know of the change race with it (A24)."""
    body = f"{NEAR.removesuffix(' bar.warp.sync -1;')} {PUBLISH} {ACQUIRE} {LOAD}"
    late = body.replace("@%p tensormap.replace", "setp.eq.u32 %b, %t, 31; @%b tensormap.replace")
    assert late != body
    for text in (body, late):
        assert hazard(text) is None
        found = hazard(text, "strict")
        assert (found.kind, found.rule) == ("race", "A24") and found.site.mnemonic.startswith("tensormap.cp_fenceproxy")


READING = "@%p cp.async.bulk.commit_group; @%p cp.async.bulk.wait_group{} 0;"
PLAIN = "@%p st.global.u64 [%m], %x;"
FRESH = f"@%p {RELEASE} @%p {ACQUIRE} mov.u32 %v, 0;"


@pytest.mark.parametrize(
    ("between", "rule"),
    [
        ("", "A29"), ("add.u64 %x, %x, 0; @%p st.global.u32 [%f], 1;", "A29"), ("bar.warp.sync -1;", ""),
        ("fence.acq_rel.cta;", ""), ("bar.sync 0;", ""),
    ],
)  # fmt: skip
def test_a_plain_store_directly_behind_a_wait_for_reading(between: str, rule: str) -> None:
    """ptxas moves it in front of the wait (A29): the copy of the old map may still read it."""
    first = LOAD.partition("W:")[0]
    rest = f"{FRESH} W: mbarrier.try_wait.parity.shared.b64 %q, [full], 0; @!%q bra W;"
    for wait, wanted in ((READING.format(".read"), rule), (READING.format(""), "")):
        try:
            _launched(f"{first} {wait} {between} {PLAIN} {rest}")
            assert not wanted
        except HazardError as error:
            assert error.hazard.rule == wanted


def _launched(body: str) -> None:
    device = wm.Device("sm_90a")
    old, x = (device.array(np.arange(32, dtype=np.uint32).reshape(2, 16) + i) for i in (500, 7))
    made = np.frombuffer(TensorMap(old, (2, 16)).encoded, np.uint8)
    given = [made.tobytes(), device.array(np.tile(made, 4)), x, device.zeros(32, np.uint32), device.zeros(1, np.uint32)]
    wm.ptx.load(f"{KERNEL}{body}\nret; }}")["k"].launch(device, 1, 32, given)
