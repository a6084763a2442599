"""Mistakes that mutants of PTX texts (`lab.mutate.texts`) have shown, each beside its correct twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.machine import HazardError

HEAD = """.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 rounds) {
.reg .pred %p, %q, %w; .reg .b32 %t, %a, %s, %v, %i, %n, %r, %far; .reg .b64 %x, %y, %o;
.shared .align 128 .b8 tile[512]; .shared .align 8 .b64 full[2]; .shared .align 8 .b64 empty[2];
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u32 %n, [rounds]; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0;
mov.u32 %s, tile; mad.lo.u32 %a, %t, 4, %s; mad.wide.u32 %o, %t, 4, %y;
"""
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"


def hazard(body: str, *, blocks: int = 1, **options: Any) -> Any:
    """Return the hazard of a launch of 64 threads, or None."""
    x, y = np.arange(64, dtype=np.uint32), np.zeros(64 * blocks, np.uint32)
    try:
        wm.ptx.load(f"{HEAD}{body}\nret; }}")["k"].launch(wm.Device("sm_90"), blocks, 64, [x, y, 0], **options)
    except HazardError as error:
        return error.hazard
    return None


BEGUN = f"""@%p mbarrier.init.shared.b64 [full], 1;
{{}}
@%p mbarrier.arrive.expect_tx.shared.b64 _, [full], 256;
@%p {COPY} [tile], [%x], 256, [full];
W: mbarrier.try_wait.parity.shared.b64 %q, [full], 0; @!%q bra W;
ld.shared.u32 %v, [%a]; st.global.u32 [%o], %v;"""


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_barrier_publishes_an_mbarrier(seed: int) -> None:
    assert hazard(BEGUN.format("bar.sync 0;"), seed=seed) is None


@pytest.mark.parametrize("fence", ["", "fence.mbarrier_init.release.cluster;"])
def test_an_mbarrier_that_nothing_publishes(fence: str) -> None:
    """Warp 1 may look before there is an mbarrier: it knows nothing of the init, whenever it looks first."""
    assert hazard(BEGUN.format(fence)).kind in ("race", "barrier")


FAR = """@%p mbarrier.init.shared.b64 [full], 1; @%p fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.relaxed; barrier.cluster.wait; mov.u32 %r, %cluster_ctarank; xor.b32 %r, %r, 1; mov.u32 %s, full;
mapa.shared::cluster.u32 %far, %s, %r;
@%p mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%far];"""
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %q, [full], 0; @!%q bra W;"


@pytest.mark.parametrize("end", ["barrier.cluster.arrive; barrier.cluster.wait;", WAIT])
@pytest.mark.parametrize("hazards", ["error", "strict"])
def test_a_block_ends_after_the_arrivals_of_others(end: str, hazards: str) -> None:
    assert hazard(f"{FAR} {end}", blocks=2, cluster=2, hazards=hazards) is None


@pytest.mark.parametrize("end", ["", "barrier.cluster.arrive.relaxed; barrier.cluster.wait;"])
def test_a_block_that_ends_before_an_arrival_of_another(end: str) -> None:
    """A GPU fails the launch if the block has gone (measured); here both end together, under each seed."""
    found = hazard(f"{FAR} {end}", blocks=2, cluster=2)
    assert found is not None and found.rule == "A18"


def test_an_mbarrier_that_is_invalidated_again() -> None:
    """PTX ISA 9.1, 9.7.13.15: every operation but init needs an mbarrier."""
    body = "@%p mbarrier.init.shared.b64 [full], 1; @%p mbarrier.inval.shared.b64 [full]; {}"
    assert hazard(body.format(""), hazards="strict") is None
    found = hazard(body.format("@%p mbarrier.inval.shared.b64 [full];"), hazards="strict")
    assert found is not None and found.kind == "barrier"


ALL_AT_ONCE = {
    "init": "mbarrier.init.shared.b64 [full], 1;",
    "inval": "@%p mbarrier.init.shared.b64 [full], 1; bar.sync 0; mbarrier.inval.shared.b64 [full];",
}


@pytest.mark.parametrize("what", ALL_AT_ONCE)
def test_an_mbarrier_that_all_threads_make_or_end(what: str) -> None:
    assert hazard(ALL_AT_ONCE[what]) is None
    found = hazard(ALL_AT_ONCE[what], hazards="strict")
    assert (found.kind, found.rule) == ("barrier", "A11") and "another lane does the same" in found.detail
    one = ALL_AT_ONCE[what].replace("@%p ", "").replace("mbarrier", "@%p mbarrier")
    assert hazard(one, hazards="strict") is None


SENT = """@%p mbarrier.init.shared.b64 [full], 1; @%p fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.relaxed; barrier.cluster.wait; mov.u32 %r, %cluster_ctarank; xor.b32 %r, %r, 1; mov.u32 %s, full;
mapa.shared::cluster.u32 %far, %s, %r; mov.u32 %v, tile; mapa.shared::cluster.u32 %a, %v, %r;
@%p mbarrier.arrive.expect_tx.shared.b64 _, [full], {};"""
SENDS = {
    "st.async": f"{SENT.format(4)} @%p st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%a], %t, [%far];",
    "copy": f"{SENT.format(256)} @%p {COPY} [%a], [%x], 256, [%far];",
}
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("sent", SENDS)
def test_bytes_that_come_to_a_block_that_ends(sent: str, seed: int) -> None:
    """The barrier of the cluster waits for no operation: a thread of the block that gets the bytes does (A18)."""
    found = hazard(f"{SENDS[sent]} {MEET}", blocks=2, cluster=2, seed=seed)
    assert (found.kind, found.rule) == ("race", "A18") and found.site.mnemonic.startswith(("st.async", "cp.async.bulk"))
    one = WAIT.replace("W:", "@!%p bra E; W:") + " E:"
    for end in (WAIT, one, f"{WAIT} {MEET}"):
        assert hazard(f"{SENDS[sent]} {end}", blocks=2, cluster=2, seed=seed) is None


FILL = "st.shared.u32 [%a], %t; fence.proxy.async.shared::cta; bar.sync 0;"
STORE = "@%p cp.async.bulk.global.shared::cta.bulk_group [%y], [tile], 256; @%p cp.async.bulk.commit_group; bar.sync 0;"
SUM = STORE.replace(
    "cp.async.bulk.global.shared::cta.bulk_group", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"
)
AGAIN = "add.u32 %v, %t, 7; st.shared.u32 [%a], %v; @%p cp.async.bulk.wait_group 0;"
READ = "@%p cp.async.bulk.wait_group.read 0;"


@pytest.mark.parametrize("hazards", ["error", "strict"])
@pytest.mark.parametrize("copy", [STORE, SUM])
def test_a_buffer_is_filled_again_after_the_wait_and_a_barrier(copy: str, hazards: str) -> None:
    assert hazard(f"{FILL} {copy} {READ} bar.sync 0; {AGAIN}", hazards=hazards) is None


@pytest.mark.parametrize("hazards", ["error", "strict"])
@pytest.mark.parametrize("wait", [READ, READ.replace(".read", "")])
@pytest.mark.parametrize("copy", [STORE, SUM])
def test_threads_that_do_not_know_of_a_wait_fill_the_buffer(copy: str, wait: str, hazards: str) -> None:
    """The wait of thread 0, for the reading too, orders nothing for the others (A7)."""
    found = hazard(f"{FILL} {copy} {wait} {AGAIN}", hazards=hazards)
    assert found.kind == "race" and (found.rule == "A7" or hazards == "strict")


def test_a_buffer_is_filled_again_while_a_reduction_reads_it() -> None:
    assert hazard(f"{FILL} {STORE} {AGAIN}").kind == "pending"
    assert hazard(f"{FILL} {SUM} {AGAIN}", hazards="strict").kind == "pending"
    assert hazard(f"{FILL} {SUM} {AGAIN}") is not None


RING = f"""@%p mbarrier.init.shared.b64 [full], 1; @%p mbarrier.init.shared.b64 [full+8], 1;
@%p mbarrier.init.shared.b64 [empty], 32; @%p mbarrier.init.shared.b64 [empty+8], 32; bar.sync 0;
mov.u32 %i, 0; setp.gt.u32 %w, %t, 31; @%w bra CONSUME; @!%p bra END;
PRODUCE: and.b32 %s, %i, 1; shl.b32 %a, %s, 8; mov.u32 %v, tile; add.u32 %a, %a, %v; shl.b32 %s, %s, 3;
mov.u32 %v, empty; add.u32 %far, %v, %s; mov.u32 %v, full; add.u32 %s, %v, %s; shr.u32 %v, %i, 1; not.b32 %v, %v;
and.b32 %v, %v, 1;
FREE: mbarrier.try_wait.parity.shared.b64 %q, [%far], %v; {{}}
mbarrier.arrive.expect_tx.shared.b64 _, [%s], 256; {COPY} [%a], [%x], 256, [%s];
add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 60; @%q bra PRODUCE; bra END;
CONSUME: and.b32 %s, %i, 1; shl.b32 %a, %s, 8; mov.u32 %v, tile; add.u32 %a, %a, %v; shl.b32 %s, %s, 3;
mov.u32 %v, empty; add.u32 %far, %v, %s; mov.u32 %v, full; add.u32 %s, %v, %s; shr.u32 %v, %i, 1; and.b32 %v, %v, 1;
FULL: mbarrier.try_wait.parity.shared.b64 %q, [%s], %v; @!%q bra FULL;
mad.lo.u32 %a, %t, 4, %a; ld.shared.u32 %v, [%a+-128]; st.global.u32 [%o], %v; mbarrier.arrive.shared.b64 _, [%far];
add.u32 %i, %i, 1; setp.lt.u32 %q, %i, 60; @%q bra CONSUME;
END:"""


@pytest.mark.parametrize("seed", [1, 2])
def test_a_producer_that_looks_once_runs_ahead_under_seeds(seed: int) -> None:
    """It never waits, so a stage is still in use sooner or later (rule 5 of `scheduling`)."""
    assert hazard(RING.format("@!%q bra FREE;"), seed=seed) is None
    found = hazard(RING.format(""), seed=seed)
    assert found is not None and found.kind in ("barrier", "pending", "race")
