"""The rules of asynchronous order: mistakes planted in small kernels, and the same kernels without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.machine import HazardError
from warpmma.machine.report.asynchronous_rules import RULES
from warpmma.machine.sync import FAULTS

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) {
.reg .pred %p, %q, %l; .reg .b32 %t, %a, %b, %s, %m, %f, %v, %w; .reg .b64 %x, %y, %z, %o;
.shared .align 128 .b8 tile[1024]; .shared .align 128 .b8 other[1024];
.shared .align 8 .b64 full; .shared .align 8 .b64 empty;
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; setp.eq.u32 %l, %t, 32;
mov.u32 %s, tile; mov.u32 %b, other; mov.u32 %m, full; mov.u32 %f, empty;
mad.lo.u32 %a, %t, 4, %s; mad.lo.u32 %b, %t, 4, %b; mad.wide.u32 %z, %t, 4, %x; mad.wide.u32 %o, %t, 4, %y;
@%p mbarrier.init.shared.b64 [%m], 1; @%p mbarrier.init.shared.b64 [%f], 64; bar.sync 0;
"""
LOAD = "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%x], 256, [%m];"
EXPECT = "@%p mbarrier.arrive.expect_tx.shared.b64 _, [%m], 256;"
SPIN = "W: mbarrier.try_wait.parity.shared.b64 %q, [%m], 0; @!%q bra W;"
READ = "ld.shared.u32 %v, [%a]; st.global.u32 [%o], %v;"
FILL = "ld.global.u32 %v, [%z]; st.shared.u32 [%a], %v;"
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%y], [%s], 256; cp.async.bulk.commit_group;"
DONE = "cp.async.bulk.wait_group 0;"


def kinds(body: str, *, hazards: Any = "error", seeds: int = 4, expected: Any = None) -> set[str]:
    """Return the kinds of hazards that launches with several seeds report, and "" for none."""
    found = set()
    kernel = wm.ptx.load(f"{HEAD}{body}\nret; }}")["k"]
    for seed in range(seeds):
        x, y = np.arange(64, dtype=np.uint32) + 5, np.zeros(64, np.uint32)
        try:
            kernel.launch(wm.Device("sm_90"), 1, 64, [x, y], seed=seed, hazards=hazards)
            found.add("")
            if expected is not None:
                assert y.tolist() == (x if expected is True else expected).tolist()
        except HazardError as error:
            found.add(error.hazard.kind)
    return found


@pytest.mark.parametrize("hazards", ["error", "strict", "off"])
def test_correct_kernels_are_silent(hazards: Any) -> None:
    for body in (
        f"{EXPECT} {LOAD} {SPIN} {READ}",
        f"{LOAD} {EXPECT} {SPIN} {READ}",  # bytes may come first
        f"{FILL} fence.proxy.async; bar.sync 0; @%p {STORE.replace('; ', '; @%p ')} @%p {DONE}",
        f"{FILL} bar.sync 0; fence.proxy.async.shared::cta; @%p {STORE.replace('; ', '; @%p ')} @%p {DONE}",
    ):
        assert kinds(body, hazards=hazards, expected=True) == {""}


# Completion (A6, A7, A8)


def test_who_looks_once_and_goes_on_finds_a_pending_copy() -> None:
    once = "mbarrier.try_wait.parity.shared.b64 %q, [%m], 0;"
    assert kinds(f"{EXPECT} {LOAD} {once} {READ}", seeds=1) == {"pending"}
    assert kinds(f"{EXPECT} {LOAD} bar.sync 0; {READ}") <= {"pending", "race"}


def test_a_copy_that_nobody_observed_is_a_race() -> None:
    """Thread 0 has seen the phase complete, the others have not, and nothing orders them behind it."""
    found = kinds(f"{EXPECT} {LOAD} @!%p bra R; {SPIN} R: {READ}")
    assert found <= {"pending", "race"} and found
    assert kinds(f"{EXPECT} {LOAD} @!%p bra R; {SPIN} R: bar.sync 0; {READ}", expected=True) == {""}


@pytest.mark.parametrize("where", [f"{EXPECT} {LOAD} {{}}", f"{EXPECT} {{}} {LOAD}"])
def test_completion_publishes_nothing_else_that_the_thread_did(where: str) -> None:
    """The issuer's store is behind its arrival: the phase does not order it."""
    store, read = "@%p st.shared.u32 [%b], 7;", "@%l ld.shared.u32 %v, [%b+-128]; @%l st.global.u32 [%o], %v;"
    assert kinds(f"{where.format(store)} {SPIN} {read}") == {"race"}
    assert kinds(f"{store} {EXPECT} {LOAD} {SPIN} {read}") == {""}


def test_a_stage_is_used_again_only_after_its_readers_have_released_it() -> None:
    again = "@%p mbarrier.arrive.expect_tx.shared.b64 _, [%m], 256;"
    second = SPIN.replace("W", "V").replace(", 0;", ", 1;")
    free = "mbarrier.arrive.shared.b64 _, [%f]; E: mbarrier.try_wait.parity.shared.b64 %q, [%f], 0; @!%q bra E;"
    read = "ld.shared.u32 %w, [%a]; add.u32 %w, %w, 0;"
    body = (
        f"{EXPECT} {LOAD} {SPIN} {read} {{}} {again} {LOAD} {second} {READ} add.u32 %v, %v, %w; st.global.u32 [%o], %v;"
    )
    twice = 2 * (np.arange(64) + 5)
    assert kinds(body.format(free), expected=twice) == {""}
    assert kinds(body.format("bar.sync 0;"), expected=twice) == {""}
    assert kinds(body.format("")) == {"race"}


def test_reads_of_a_stage_that_is_used_again() -> None:
    """The manual asks for a proxy fence; an H200 shows nothing wrong where the values were used before the signal."""
    free = "add.u32 %w, %w, 1; {} mbarrier.arrive.shared.b64 _, [%f];"
    wait = f"E: mbarrier.try_wait.parity.shared.b64 %q, [%f], 0; @!%q bra E; {EXPECT}"
    body = f"{EXPECT} {LOAD} {SPIN} ld.shared.u32 %w, [%a]; {free} {wait} {LOAD}"
    assert kinds(body.format("")) == {""} and kinds(body.format(""), hazards="strict") == {"proxy"}
    assert kinds(body.format("fence.proxy.async;"), hazards="strict") == {""}


def test_a_relaxed_wait_acquires_nothing() -> None:
    relaxed = SPIN.replace("parity", "parity.relaxed.cta")
    assert kinds(f"{EXPECT} {LOAD} {relaxed} {READ}") == {"race"}
    assert kinds(f"{EXPECT} {LOAD} {relaxed} fence.acq_rel.cta; {READ}", expected=True) == {""}


@pytest.mark.parametrize(("fence", "clean"), [("fence.acq_rel.cta;", True), ("", False)])
def test_a_fence_before_a_relaxed_arrival_releases(fence: str, clean: bool) -> None:
    """Warp 1 reads what thread 0 has written."""
    body = f"""@%p st.shared.u32 [%s], 7; {fence} @%p mbarrier.arrive.relaxed.cta.shared.b64 _, [%m];
    {SPIN} ld.shared.u32 %v, [%s]; st.global.u32 [%o], %v;"""
    assert kinds(body) == ({""} if clean else {"race"})


# Proxies (A3, A4, A5)

STORES = f"@%p {STORE.replace('; ', '; @%p ')} @%p {DONE}"


@pytest.mark.parametrize(
    ("fence", "clean"),
    [
        ("fence.proxy.async; bar.sync 0;", True),
        ("fence.proxy.async.shared::cta; bar.sync 0;", True),
        ("bar.sync 0; fence.proxy.async.shared::cluster;", True),
        ("bar.sync 0; @%l fence.proxy.async; bar.sync 0;", True),  # a third thread on the way
        ("bar.sync 0;", False),
        ("bar.sync 0; membar.gl;", False),
        ("fence.proxy.async.global; bar.sync 0;", False),
        ("bar.sync 0; @%l fence.proxy.async;", False),  # a third thread that is not on the way
        ("@%l fence.proxy.async; bar.sync 0;", False),  # only warp 1's own writes have crossed
    ],
)
def test_generic_writes_have_to_cross_to_the_async_proxy(fence: str, clean: bool) -> None:
    assert kinds(f"{FILL} {fence} {STORES}", expected=True) == ({""} if clean else {"proxy"})
    assert kinds(f"{FILL} {fence} {STORES}", hazards="strict") == ({""} if clean else {"proxy"})


def test_a_later_write_has_to_cross_again() -> None:
    assert kinds(f"{FILL} fence.proxy.async; {FILL} bar.sync 0; {STORES}") == {"proxy"}


def test_what_was_written_but_is_not_read_need_not_cross() -> None:
    body = f"{FILL} fence.proxy.async; bar.sync 0; @%p st.shared.u32 [%b], 1; {STORES}"
    assert kinds(body, expected=True) == {""}


def test_a_load_over_generic_writes() -> None:
    assert kinds(f"{FILL} bar.sync 0; {EXPECT} {LOAD} {SPIN} {READ}") == {"proxy"}
    assert kinds(f"{FILL} fence.proxy.async; bar.sync 0; {EXPECT} {LOAD} {SPIN} {READ}", expected=True) == {""}


def test_a_load_of_what_the_launch_has_written_to_global_memory() -> None:
    written = "st.global.u32 [%z], %t; {} bar.sync 0;"
    rest = f"{EXPECT} {LOAD} {SPIN} {READ}"
    assert kinds(f"{written.format('')} {rest}") == {"proxy"}
    assert kinds(f"{written.format('fence.proxy.async.shared::cta;')} {rest}") == {"proxy"}
    assert kinds(f"{written.format('fence.proxy.async.global;')} {rest}", expected=np.arange(64)) == {""}


# Groups (A7, A8, A16)


def test_exit_with_copies_in_flight() -> None:
    body = f"{FILL} fence.proxy.async; bar.sync 0; {STORES.replace('@%p ' + DONE, '')}"
    assert kinds(body, expected=True) == {""}
    assert kinds(body, hazards="strict") == {"pending"}


def test_what_a_store_writes_is_pending_until_its_thread_waits() -> None:
    body = f"{FILL} fence.proxy.async; bar.sync 0; {STORES} {{}} ld.global.u32 %v, [%o]; st.shared.u32 [%a], %v;"
    check = " setp.eq.u32 %q, %v, 99; @%q trap;"
    assert kinds(body.format("bar.sync 0;") + check, expected=True) == {""}
    assert kinds(body.format("") + check) <= {"pending", "race", ""} - {""}
    unwaited = body.replace("@%p " + DONE, "").format("bar.sync 0;") + check
    assert kinds(unwaited) <= {"pending", "race"} and kinds(unwaited)


def test_a_thread_may_poll_what_a_copy_writes() -> None:
    """Nobody waits for the group before the value has come."""
    body = f"""{FILL} fence.proxy.async; bar.sync 0; {STORES.replace("@%p " + DONE, "")}
    P: ld.volatile.global.u32 %v, [%y]; setp.eq.u32 %q, %v, 0; @%q bra P; @%p {DONE}"""
    found = kinds(body, hazards="off", expected=True)
    assert found == {""}


# Mbarriers (A9, A11)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("@%p mbarrier.arrive.shared.b64 _, [%m]; @%p mbarrier.arrive.expect_tx.shared.b64 _, [%m], 1048576;", "bytes"),
        ("mov.u32 %v, 2; @%p mbarrier.arrive.shared.b64 _, [%m], %v;", r"more arrivals .*phase 0: 1 of 1 arrivals"),
        ("@%p mbarrier.arrive.noComplete.shared.b64 %x, [%m], 1;", "noComplete"),
        ("@%p mbarrier.init.shared.b64 [%b], 0;", "expects 0 arrivals"),
        ("@%p mbarrier.inval.shared.b64 [%m]; bar.sync 0; @%p mbarrier.arrive.shared.b64 _, [%m];", "invalidated"),
    ],
)
def test_faults_of_mbarriers(body: str, says: str) -> None:
    with pytest.raises(HazardError, match=f"barrier.*{says}"):
        wm.ptx.load(f"{HEAD}{body}\nret; }}")["k"].launch(
            wm.Device("sm_90"), 1, 64, [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
        )


@pytest.mark.parametrize(
    "body", ["@%p mbarrier.init.shared.b64 [%m], 1;", "mov.u32 %v, 0; @%p mbarrier.arrive.shared.b64 _, [%m], %v;"]
)
def test_what_only_the_manual_forbids(body: str) -> None:
    assert kinds(body) == {""} and kinds(body, hazards="strict") == {"barrier"}


def test_a_deadlock_tells_what_mbarriers_wait_for() -> None:
    body = f"{EXPECT.replace('256', '512')} {LOAD} {SPIN} {READ}"
    with pytest.raises(HazardError, match="deadlock") as caught:
        wm.ptx.load(f"{HEAD}{body}\nret; }}")["k"].launch(
            wm.Device("sm_90"), 1, 64, [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
        )
    text = str(caught.value)
    assert "The mbarrier full[0] of block 0 is in phase 0: 0 of 1 arrivals pending, 256 bytes pending; " in text
    assert "1 arrival at <ptx>:12, expects 512 bytes at <ptx>:12, brings 256 bytes at <ptx>:12" in text


def test_the_page_lists_every_rule_and_fault() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs/asynchronous_order.md").read_text().split())
    for name, rule in RULES.items():
        assert f"**{name}** ({rule.level}). {rule.says} Source: {rule.source}." in page
    for fault, says in FAULTS.items():
        assert f"`{fault}`: {says}." in page


ONCE = "mbarrier.try_wait.parity.shared.b64 %q, [%m], 0;"
CROSS = STORE.replace("; ", "; @%p ")
FIELDS = {
    "a copy is pending": (f"{EXPECT} {LOAD} {ONCE} {READ}", "pending", "A8"),
    "its source changes": (f"{FILL} fence.proxy.async; bar.sync 0; @%p {CROSS} @%p st.shared.u32 [%a], 1; @%p {DONE}",
                           "pending", "A8"),
    "nobody has observed it": (f"{EXPECT} {LOAD} @!%p bra R; {SPIN} R: {READ}", "race", "A7"),
    "what threads wrote": (f"{FILL} bar.sync 0; @%p {CROSS} @%p {DONE}", "proxy", "A5"),
}  # fmt: skip


@pytest.mark.parametrize("hazards", ["error", "strict"])
@pytest.mark.parametrize("name", FIELDS)
def test_reports_have_their_rule_as_a_field(name: str, hazards: Any) -> None:
    """Whether they are made at the access, or where what it read matters."""
    body, kind, rule = FIELDS[name]
    kernel, found = wm.ptx.load(f"{HEAD}{body}\nret; }}")["k"], set()
    for seed in range(6):
        try:
            kernel.launch(wm.Device("sm_90"), 1, 64, [np.arange(64, dtype=np.uint32) + 5, np.zeros(64, np.uint32)],
                          seed=seed, hazards=hazards)  # fmt: skip
        except HazardError as error:  # seeds let copies complete before it is one
            text, hazard = str(error), error.hazard
            assert text.count("(rule ") == 1 and text.endswith(f"(rule {hazard.rule})")
            found.add((hazard.kind, hazard.rule))
    assert (kind, rule) in found and found <= {("pending", "A8"), ("race", "A7"), ("proxy", "A5")}


def test_copies_without_rules_have_none() -> None:
    body = "cp.async.ca.shared.global [%a], [%z], 4; ld.shared.u32 %v, [%a]; st.global.u32 [%o], %v;"
    with pytest.raises(HazardError) as error:
        wm.ptx.load(f"{HEAD}{body}\nret; }}")["k"].launch(
            wm.Device("sm_90"), 1, 64, [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]
        )
    assert (error.value.hazard.kind, error.value.hazard.rule) == ("pending", "")
