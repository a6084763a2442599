"""Clusters: addresses of other blocks, the barrier, remote mbarriers, multicast, and what is wrong with each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.kernel import HazardError

HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) {
.reg .pred %p, %q, %z; .reg .b16 %h; .reg .b32 %r<30>; .reg .b64 %d<9>;
.shared .align 16 .b8 tile[1024];
.shared .align 8 .b64 full;
.shared .align 8 .b64 empty;
ld.param.u64 %d1, [x]; ld.param.u64 %d2, [y];
mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %cluster_nctarank;
setp.eq.u32 %p, %r1, 0; setp.eq.u32 %z, %r2, 0;
add.u32 %r4, %r2, 1; rem.u32 %r4, %r4, %r3;  // the next rank
mov.u32 %r5, tile; shl.b32 %r6, %r1, 2; add.u32 %r5, %r5, %r6;  // an own word
mapa.shared::cluster.u32 %r7, %r5, %r4;  // and the next block's
mov.u32 %r8, tile; mov.u32 %r9, full; mov.u32 %r10, empty;
mapa.shared::cluster.u32 %r11, %r9, %r4; mapa.shared::cluster.u32 %r12, %r10, 0;
shl.b32 %r13, %r2, 8; add.u32 %r13, %r13, %r1;
mov.u32 %r14, %ctaid.x; shl.b32 %r14, %r14, 7; add.u32 %r14, %r14, %r6;
cvt.u64.u32 %d3, %r14; add.u64 %d3, %d2, %d3;
"""
MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
RELAXED = MEET.replace("arrive", "arrive.relaxed")
OUT = "ld.shared.u32 %r20, [%r5]; st.global.u32 [%d3], %r20;"
PUT = "st.shared::cluster.u32 [%r7], %r13;"
INIT = f"""@%p mbarrier.init.shared.b64 [full], 1; @%p mbarrier.init.shared.b64 [empty], 2;
@%p fence.mbarrier_init.release.cluster; {RELAXED}"""
WAIT = "L{0}: mbarrier.try_wait.parity{1}.shared::cta.b64 %q, [{2}], {3}; @!%q bra L{0};"
FULL = WAIT.format(0, "", "full", 0)
BYTES = "mbarrier::complete_tx::bytes"
CAST = f"cp.async.bulk.shared::cluster.global.{BYTES}.multicast::cluster [%r8], [%d1{{}}], 1024, [%r9], %h;"
NEAR = f"cp.async.bulk.shared::cluster.shared::cta.{BYTES}"
EXPECT = "@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {};"
COUNTED = f"async.shared::cluster.{BYTES}"
SIGNAL = "@%p mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11];"
FREE = "mbarrier.arrive{}.shared::cluster.b64 _, [%r12];"


def launched(body: str, cluster: Any = 2, blocks: int = 4, **options: Any) -> np.ndarray:
    """Return the words that blocks write."""
    x, y = np.arange(4096, dtype=np.uint32), np.zeros((blocks, 32), np.uint32)
    module = wm.ptx.load(f"{HEAD}{body}\nret; }}", "k.ptx")
    module["k"].launch(wm.Device("sm_90"), blocks, 32, [x, y], cluster=cluster, **options)
    return y


def ranks(cluster: int = 2, blocks: int = 4) -> list[int]:
    """The rank of the block before each, whose words it finds."""
    return [(block - 1) % cluster * 256 for block in range(blocks)]


def stages(release: str, *, waits: bool = True, mask: int = 3) -> str:
    """Rank 0 multicasts three stages through one buffer; all blocks release it at rank 0's mbarrier."""
    body = INIT + f"mov.b16 %h, {mask};"
    for n in range(3):
        body += f"{EXPECT.format(1024)} @!%z bra S{n}; @!%p bra S{n};"
        body += WAIT.format(f"e{n}", "", "empty", (n - 1) & 1) if n and waits else ""
        body += f"{CAST.format(f'+{1024 * n}')} S{n}: {WAIT.format(f'f{n}', '', 'full', n & 1)} {OUT} bar.warp.sync -1;"
        body += f"@%p {release}"
    return body + MEET


GOOD = {
    "barrier": f"{PUT} {MEET} {OUT}",
    "barrier, by name": f"{PUT} {MEET.replace('arrive', 'arrive.release').replace('wait', 'wait.acquire')} {OUT}",
    "a fence before a relaxed arrival": f"{PUT} fence.acq_rel.cluster; {RELAXED} {OUT}",
    "generic addresses": f"""cvta.shared.u64 %d4, tile; cvt.u64.u32 %d5, %r6; add.u64 %d4, %d4, %d5;
        mapa.u64 %d4, %d4, %r4; st.u32 [%d4], %r13; {MEET} {OUT}""",
    "a read": f"""st.shared.u32 [%r5], %r13; {MEET}
        ld.shared::cluster.u32 %r20, [%r7]; st.global.u32 [%d3], %r20; {MEET}""",
    "atomics": f"""mov.u32 %r20, 0; st.shared.u32 [%r5], %r20; {MEET}
        red.relaxed.cluster.shared::cluster.add.u32 [%r7], %r13;
        atom.relaxed.cluster.shared::cluster.add.u32 %r21, [%r7], 0; {MEET} {OUT}""",
    "a remote arrival": f"""{INIT} {PUT} bar.warp.sync -1; fence.acq_rel.cluster;
        @%p mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11];
        {FULL.replace('parity', 'parity.acquire.cluster')} {OUT} {MEET}""",
    "stores that are counted": f"{INIT} {EXPECT.format(128)} st.{COUNTED}.u32 [%r7], %r13, [%r11]; {FULL} {OUT} {MEET}",
    "a copy from block to block": f"""st.shared.u32 [%r5+512], %r13; fence.proxy.async.shared::cta; bar.warp.sync -1;
        {INIT} {EXPECT.format(128)} add.u32 %r21, %r8, 512; mapa.shared::cluster.u32 %r22, %r8, %r4;
        @%p {NEAR} [%r22], [%r21], 128, [%r11]; {FULL} {OUT} {MEET}""",
}  # fmt: skip


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("hazards", ["error", "strict"])
@pytest.mark.parametrize("name", GOOD)
def test_words_of_the_block_before(name: str, hazards: str, seed: int) -> None:
    wanted = np.array(ranks())
    if name == "a read":
        wanted = np.array([256, 0, 256, 0])
    assert (launched(GOOD[name], hazards=hazards, seed=seed) == wanted[:, None] + np.arange(32)).all()


@pytest.mark.parametrize("end", [FULL, MEET, f"{FULL} {SIGNAL} {MEET}"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_arrivals_that_are_waited_for_or_ordered_otherwise(end: str, seed: int) -> None:
    """A block may end after it has found the phase complete, without a barrier, or at a barrier of the cluster."""
    launched(f"{INIT} st.global.u32 [%d3], %r13; {SIGNAL} {end}", seed=seed)


@pytest.mark.parametrize("cluster", [1, 3, 16])
def test_clusters_of_any_size(cluster: int) -> None:
    found = launched(GOOD["barrier"], cluster, 2 * cluster)
    assert (found == np.array(ranks(cluster, 2 * cluster))[:, None] + np.arange(32)).all()


@pytest.mark.parametrize("release", ["", ".release.cluster"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_stages_that_are_multicast(release: str, seed: int) -> None:
    assert (launched(stages(FREE.format(release)), seed=seed) == np.arange(512, 544)).all()


FAULTS: dict[str, tuple[str, str]] = {
    "no barrier": (f"{PUT} bar.sync 0; {OUT} {MEET}", "race: .*no barrier.cluster, and no mbarrier or fence"),
    "a relaxed barrier": (f"{PUT} {RELAXED} {OUT} {MEET}", "race: .*wrote it"),
    "a fence of one block": (f"{PUT} fence.acq_rel.cta; {RELAXED} {OUT} {MEET}", "race: .*wrote it"),
    "between arrival and wait": (
        f"barrier.cluster.arrive.aligned; {PUT} barrier.cluster.wait.aligned; {OUT} {MEET}", "race: .*wrote it",
    ),
    "a remote arrival for one block": (
        f"{INIT} {PUT} bar.warp.sync -1; @%p mbarrier.arrive.shared::cluster.b64 _, [%r11]; {FULL} {OUT} {MEET}",
        "race: .*wrote it",
    ),
    "a wait for one block": (
        f"{INIT} {PUT} bar.warp.sync -1; @%p mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11]; "
        f"{FULL} {OUT} {MEET}", "race: .*wrote it",
    ),
    "counted stores that are not waited for": (
        f"{INIT} {EXPECT.format(128)} st.{COUNTED}.u32 [%r7], %r13, [%r11]; {OUT} {MEET}", "pending|unwritten|rule A18",
    ),
    "too many bytes expected": (
        f"{INIT} {EXPECT.format(132)} st.{COUNTED}.u32 [%r7], %r13, [%r11]; {FULL} {OUT} {MEET}",
        "deadlock: .*4 bytes pending",
    ),
    "no proxy fence": (
        GOOD["a copy from block to block"].replace("fence.proxy.async.shared::cta;", ""), "proxy: .*rule A5",
    ),
    "a stage that was not released": (stages(FREE.format(""), waits=False), "pending: .*tile.0. of 1024 bytes of rank"),
    "a rank beyond the cluster": (stages(FREE.format(""), mask=5), "bounds: .*a mask with ranks beyond the cluster"),
    "a block that the mask leaves out": (stages(FREE.format(""), mask=1), "deadlock: .*1024 bytes pending"),
    ".shared of another block": (f"st.shared.u32 [%r7], %r13; {MEET}", "bounds: .*expected .shared::cluster"),
    "a rank that there is not": (
        f"mapa.shared::cluster.u32 %r7, %r5, 2; {PUT} {MEET}", "bounds: .*which has the ranks 0 to 1",
    ),
    "beyond the memory of another block": (
        f"add.u32 %r7, %r7, 4096; {PUT} {MEET}", "bounds: .*bytes that are not all in",
    ),
    "an address of 64 bits": (
        f"mov.u64 %d4, 0xffffffff00000000; st.shared::cluster.u32 [%d4], %r13; {MEET}",
        "bounds: .*no block of the cluster",
    ),
    "an mbarrier of another block is waited for": (
        f"{INIT} cvta.shared.u64 %d4, full; mapa.u64 %d4, %d4, %r4; mbarrier.test_wait.parity.b64 %q, [%d4], 0; {MEET}",
        "bounds: .*an mbarrier of another block",
    ),
    "a read that the end overtakes": (
        f"st.shared.u32 [%r5], %r13; {MEET} ld.shared::cluster.u32 %r20, [%r7]; st.global.u32 [%d3], %r20;",
        "before the last thread of block .* ends .rule A18",
    ),
    "an arrival that nobody waits for": (
        f"{INIT} st.shared.u32 [%r5], %r13; {OUT} {SIGNAL}", "at an mbarrier of block 0; no thread .* ends .rule A18",
    ),
    "the second of two arrivals": (f"{INIT} {SIGNAL} {FULL} {SIGNAL}", "at an mbarrier of block 0; no thread .* waits"),
    "a block that has exited": (f"setp.ne.u32 %q, %r2, 0; @%q exit; {MEET} {PUT}", "bounds: .*of rank 1 has exited"),
    "a block that does not come": (f"@!%z bra L; {MEET} exit; L: bra L;", "No thread of block 1, block 3 has come"),
    "a wait without an arrival": ("barrier.cluster.wait.aligned;", "barrier: .*waits without having arrived"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_is_reported(name: str) -> None:
    body, match = FAULTS[name]
    with pytest.raises((HazardError, wm.errors.LimitError), match=f"(?s){match}"):
        launched(body, limit=20_000)


def test_a_block_that_waits_elsewhere_is_named() -> None:
    body = f"{INIT} setp.ne.u32 %q, %r2, 0; @%q bra M; {MEET} exit; M: {FULL}"
    with pytest.raises(HazardError, match="No thread of block 1, block 3 has come to the barrier of its cluster"):
        launched(body)


def test_numbers_are_those_of_the_grid() -> None:
    """Clusters along y: a report and %ctaid number blocks as CUDA does, along x first."""
    text = f"""{HEAD} mov.u32 %r20, %ctaid.x; mov.u32 %r21, %ctaid.y; mad.lo.u32 %r21, %r21, 4, %r20;
    mov.u32 %r22, %clusterid.y; mad.lo.u32 %r22, %r22, 256, %r2; mad.wide.u32 %d3, %r21, 4, %d2;
    @%p st.global.u32 [%d3], %r22; setp.eq.u32 %q, %r21, {{0}}; @%q st.shared.u32 [%r8+4096], %r1; ret; }}"""
    y = np.zeros((4, 4), np.uint32)

    def run(block: int) -> None:
        module, x = wm.ptx.load(text.replace("{0}", str(block))), np.zeros(4, np.uint32)
        module["k"].launch(wm.Device("sm_90"), (4, 4), 32, [x, y], cluster=(1, 2))

    run(99)
    assert y.tolist() == [[0] * 4, [1] * 4, [256] * 4, [257] * 4]
    with pytest.raises(HazardError, match=r"block 6 = blockIdx \(2, 1, 0\), warp 0"):
        run(6)


def test_a_batch_has_whole_clusters() -> None:
    for resident in (1, 2, 3):
        assert (launched(GOOD["barrier"], resident=resident)[:, 0] == ranks()).all()


@pytest.mark.parametrize(
    ("target", "blocks", "cluster", "match"),
    [
        ("sm_90", 4, 3, "grid is 4 and cluster 3; expected a grid of whole clusters: the nearest larger one is 6"),
        ("sm_90", 34, 17, "cluster is 17: 17 blocks; on sm_90 expected 16 at most"),
        ("sm_90", 4, (1, 2), r"grid is 4 and cluster \(1, 2\)"),
        ("sm_90", 4, 0, "cluster is 0; expected one to three positive integers"),
    ],
)
def test_clusters_that_do_not_fit(target: str, blocks: int, cluster: Any, match: str) -> None:
    with pytest.raises(OperandError, match=match):
        launched("", cluster, blocks)


def test_kernels_in_python() -> None:
    def kernel(t: Any, y: Any) -> None:
        mine = t.shared + t.tid[0] * 4
        other = t("mapa.shared::cluster.u32", mine, 1 - t.cluster_ctarank)
        t("st.shared::cluster.u32", other, t.cluster_ctarank * 100 + t.tid[0])
        for part in ("arrive", "wait"):
            t(f"barrier.cluster.{part}.aligned")
        t("st.global.u32", y + (t.ctaid[0] * 32 + t.tid[0]) * 4, t("ld.shared.u32", mine))

    y = np.zeros((4, 32), np.uint32)
    wm.kernel.launch(kernel, 4, 32, [y], target="sm_90", shared=128, cluster=2)
    assert (y == np.array([100, 0, 100, 0])[:, None] + np.arange(32)).all()


# What an arrival with .relaxed at the end of a kernel says (A18)

_FETCH = f"st.shared.u32 [%r5], %r13; {MEET} ld.shared::cluster.u32 %r20, [%r7];"
_USE = "st.global.u32 [%d3], %r20;"
_GENERIC = _FETCH.replace("ld.shared::cluster.u32 %r20, [%r7]", "cvt.u64.u32 %d4, %r7; cvta.shared.u64 %d4, %d4; "
                          "ld.u32 %r20, [%d4]")  # fmt: skip


@pytest.mark.parametrize("hazards", ["error", "off"])
@pytest.mark.parametrize("body", [_FETCH, _GENERIC])
def test_a_read_whose_value_is_used_before_a_relaxed_arrival_is_over(body: str, hazards: Any) -> None:
    for seed in (0, 1, 2):
        assert (launched(f"{body} {_USE} {RELAXED}", hazards=hazards, seed=seed)[:, 0] == ranks()).all()
    after = f"{INIT} {body} {MEET} {_USE}"  # a release orders the load, wherever its value is used
    assert (launched(after, hazards=hazards)[:, 0] == ranks()).all()


@pytest.mark.parametrize(
    "body",
    [
        f"{_FETCH} {RELAXED} {_USE}",  # the load may be in flight
        f"{_GENERIC} {RELAXED} {_USE}",
        f"{_FETCH} mov.b32 %r21, %r20; {RELAXED} st.global.u32 [%d3], %r21;",
        f"{_FETCH} {_USE} st.shared::cluster.u32 [%r7], %r13; {RELAXED}",
        f"{_FETCH} {_USE} atom.shared::cluster.add.u32 %r21, [%r7], %r13; {RELAXED}",
        f"{_FETCH} barrier.cluster.arrive.relaxed.aligned; {_USE} barrier.cluster.wait.aligned;",
    ],
)
def test_what_a_relaxed_arrival_does_not_end(body: str) -> None:
    for seed in (0, 1, 2):
        with pytest.raises(HazardError) as error:
            launched(body, seed=seed)
        assert (error.value.hazard.kind, error.value.hazard.rule) == ("race", "A18")


def test_strict_takes_a_relaxed_arrival_by_the_letter() -> None:
    with pytest.raises(HazardError, match="rule A18"):
        launched(f"{_FETCH} {_USE} {RELAXED}", hazards="strict")
    assert (launched(f"{_FETCH} {_USE} {MEET}", hazards="strict")[:, 0] == ranks()).all()
