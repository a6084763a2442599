"""The experiments of asynchronous order: a kernel that fails on a GPU is reported, its correct twin is not.

Each pair is small PTX of one experiment. The recording (`python -m lab.measure.order`) has how often such
kernels failed: the cells of the kernel that is reported have failures, those of its twin have none.
"""

from __future__ import annotations

import pytest
from measured_order import (
    AGAIN,
    BOTH_TILES,
    BULK,
    DONE,
    EMPTY,
    FULL,
    LOAD,
    MEET,
    PRODUCT,
    TWO_BLOCKS,
    USE,
    WAIT,
    WRITE,
    Case,
    check,
    failures,
    recorded,
    reported,
)

# Experiment 5: the proxy fence

FENCES = {
    "NONE": "bar.sync 0;", "WRONG_SPACE": "fence.proxy.async.global; bar.sync 0;",
    "BY_UNORDERED_THIRD": "bar.sync 0; @%w1 fence.proxy.async;", "BY_WRITER": "fence.proxy.async; bar.sync 0;",
    "BY_WRITER_CTA": "fence.proxy.async.shared::cta; bar.sync 0;", "BY_ISSUER": "bar.sync 0; fence.proxy.async;",
    "BY_THIRD": "bar.sync 0; @%w1 fence.proxy.async; bar.sync 0;",
}  # fmt: skip
MISSING = ("NONE", "WRONG_SPACE", "BY_UNORDERED_THIRD")


@pytest.mark.alike(2)
@pytest.mark.parametrize("fence", FENCES)
@pytest.mark.parametrize("reader", ["BULK_STORE", "WGMMA_B", "WGMMA_A"])
@pytest.mark.parametrize("writer", WRITE)
def test_whose_fence_counts(writer: str, reader: str, fence: str) -> None:
    """cp.async never failed, with any stress: PTX asks for the fence there, too, and "strict" does (A23)."""
    write, read = WRITE[writer], f"{BULK} {DONE.format('')}"
    if reader != "BULK_STORE":
        write = BOTH_TILES + (write.replace("[%a]", "[%a+2048]") if reader == "WGMMA_B" else write)
        read = f"{PRODUCT.format('')} {WAIT} {USE}"
    times = failures("5", WRITER=writer, READER=reader, FENCE=fence, STRESS="STORES_16")
    kind, case = "proxy" if fence in MISSING else "", Case(f"{write} {FENCES[fence]} {read}")
    if writer == "CP_ASYNC":
        assert not any(times) and reported(case) == ("", "")
        assert reported(case, hazards="strict") == (kind, "A23" * bool(kind))
    else:
        assert reported(case)[0] == kind
        assert all(times) if kind else not any(times)


@pytest.mark.parametrize("stress", ["NO_STRESS", "STORES_16", "STORES_64", "COPIES_16", "LOADS_OF_OTHERS"])
def test_copies_of_lanes_never_needed_the_fence(stress: str) -> None:
    for writer in ("CP_ASYNC", "CP_ASYNC_4", "CP_ASYNC_MBARRIER"):
        assert not any(failures("5", WRITER=writer, STRESS=stress))


def test_copies_of_lanes_that_are_not_waited_for() -> None:
    """A proxy fence is no wait, though the full one takes so long that none failed."""
    unwaited = WRITE["CP_ASYNC"].replace("cp.async.wait_all;", "")
    for fence in ("NONE", "BY_WRITER_CTA"):
        body = f"{unwaited} {FENCES[fence]} {BULK} {DONE.format('')}"
        check(Case(body, ("5", {"WRITER": "CP_ASYNC_UNWAITED", "FENCE": fence}), "pending"))


# Experiment 6: loads in flight

READING = f"@%p {LOAD.replace('; ', '; @%p ').replace(chr(10), chr(10) + '@%p ')} {FULL} ld.shared.u32 %v, [%a];"
OVER = f"@!%p bra USED; {{}} {LOAD} {AGAIN} USED: add.u32 %v, %v, 1; st.global.u32 [%o], %v;"
SIGNALS = {
    "ARRIVE": "mbarrier.arrive.shared.b64 _, [%f];",
    "FENCE_ARRIVE": "fence.acq_rel.cta; mbarrier.arrive.shared.b64 _, [%f];",
    "NAMED_BARRIER": "bar.sync 1, 128;",
    "USED_ARRIVE": "add.u32 %v, %v, 1; mbarrier.arrive.shared.b64 _, [%f];",
    "PROXY_FENCE_ARRIVE": "fence.proxy.async; mbarrier.arrive.shared.b64 _, [%f];",
}


@pytest.mark.parametrize(
    ("signal", "kind"),
    [
        ("ARRIVE", "proxy"), ("FENCE_ARRIVE", "proxy"), ("NAMED_BARRIER", "proxy"), ("USED_ARRIVE", ""),
        ("PROXY_FENCE_ARRIVE", ""),
    ],
)  # fmt: skip
def test_loads_that_are_in_flight_when_their_thread_signals(signal: str, kind: str) -> None:
    times = failures("6", SIGNAL=signal, CONFLICTS=1, OVERWRITE="COPY")
    assert all(times) if kind else not any(times)
    body = READING + SIGNALS[signal] + OVER.format("" if signal == "NAMED_BARRIER" else EMPTY)
    assert reported(Case(body))[0] == kind


def test_the_issuer_of_a_copy_may_fence_for_loads_in_flight() -> None:
    """It waits behind them: where it takes 1,118 clocks on average, a delay of 1,544 still fails."""
    for fence, name in (("fence.proxy.async;", "ISSUER_FENCE"), ("fence.proxy.async.shared::cta;", "ISSUER_FENCE_CTA")):
        assert not any(failures("6", SIGNAL=name))
        assert reported(Case(f"{READING} {SIGNALS['ARRIVE']} {OVER.format(EMPTY + fence)}")) == ("", "")


# Experiment 13: loads in flight behind products


FENCE, STEP, COMMIT = PRODUCT.format("").splitlines()[-3:]
INITIAL = PRODUCT.format("").partition(FENCE)[0]


def behind(loads: int, stride: int, begin: str, end: str) -> str:
    """Return the kind of hazard of loads of a warp, a stride of bytes apart, between products, or "" for none."""
    head = f".reg .b32 %u<40>, %c; and.b32 %c, %t, 31; mad.lo.u32 %c, %c, {stride}, %s; {BOTH_TILES} {INITIAL}"
    read = " ".join(f"ld.shared.u32 %u{k}, [%c+{k % 16 * 4}];" for k in range(loads))
    use = " ".join(f"add.u32 %v, %v, %u{k};" for k in range(loads))
    body = f"{head} {READING.partition('ld.shared')[0]} {begin} {read} {end} {SIGNALS['ARRIVE']}"
    return reported(Case(f"{body} {OVER.format(EMPTY).replace('USED:', f'USED: {use}')} {WAIT} {USE}"))[0]


def product_of(steps: int) -> str:
    """Return a product of some m64n8k16, whose tiles no copy overwrites."""
    return f"{FENCE} {STEP.replace('%da', '%db') * steps} {COMMIT}"


@pytest.mark.parametrize(
    ("loads", "stride", "steps", "kind"),
    [
        (8, 4, 1, ""), (9, 4, 1, "proxy"), (1, 128, 1, "proxy"), (17, 128, 1, "proxy"), (1, 64, 16, ""),
        (1, 64, 15, "proxy"), (32, 4, 32, ""), (1, 128, 32, ""), (1, 128, 31, "proxy"), (33, 4, 64, "proxy"),
    ],
)  # fmt: skip
def test_a_product_that_is_waited_for_is_no_more_than_a_delay(loads: int, stride: int, steps: int, kind: str) -> None:
    """It counts as a use of a wavefront for each 8 columns: 8 at least, 32 at most. A stride of 64 has 16."""
    assert behind(loads, stride, "", f"{product_of(steps)} {WAIT}") == kind


def test_which_products_few_loads_were_faster_than() -> None:
    one = {"SIGNAL": "PRODUCT_ARRIVE", "LOADS": 1}
    assert all(failures("6", SIGNAL="PRODUCT_ARRIVE"))
    for ways in (1, 2, 4, 8):
        assert not any(failures("13", WAYS=ways, N=8, STRESS=0, **one))
    assert all(failures("13", WAYS=17, READERS=512, STRESS=0, **one))
    assert all(failures("13", WAYS=32, OVERWRITE="COPY", STRESS=0, **one))
    many = {"SIGNAL": "PRODUCT_ARRIVE", "LOADS": 4, "WAYS": 32, "N": 256}
    assert not any(failures("13", STEPS=4, **many)) and all(failures("13", STEPS=2, **many))
    assert all(failures("13", STRESS=1))  # loads of other warps hold up each of them


def test_which_products_count() -> None:
    """Those that were issued behind the loads, and are complete."""
    product = product_of(32)
    assert behind(32, 4, "", f"{product} {WAIT}") == ""
    assert behind(32, 4, product, WAIT) == "proxy"
    assert behind(32, 4, "", f"{product} {WAIT.replace(' 0', ' 1')}") == "proxy"
    assert behind(32, 4, product, f"{product} {WAIT}") == ""
    assert behind(32, 4, "", f"{product} {product_of(31)} {WAIT.replace(' 0', ' 1')}") == ""
    assert behind(32, 4, "", f"{product_of(31)} {product} {WAIT.replace(' 0', ' 1')}") == "proxy"


def test_stores_do_not_overtake_loads() -> None:
    assert not any(failures("6", OVERWRITE="STORES"))
    body = f"{READING} {SIGNALS['ARRIVE']} {EMPTY} xor.b32 %n, %a, 16; st.shared.u32 [%n], %t; st.global.u32 [%o], %v;"
    assert reported(Case(body)) == ("", "")


# Experiment 12: scopes of arrivals in another block

PUT = "mapa.shared::cluster.u32 %a, %a, 0; st.shared::cluster.u32 [%a], %t; mapa.shared::cluster.u32 %m, %m, 0;"
REMOTE = f"""@%first bra HERE; {PUT} mbarrier.arrive{{}}.shared::cluster.b64 _, [%m]; bra MET;
HERE: mbarrier.try_wait.parity{{}}.shared::cta.b64 %q, [%m], 0; @!%q bra HERE;
ld.shared.u32 %v, [%a]; st.global.u32 [%o], %v; MET: {MEET}"""


IN_GLOBAL = REMOTE.replace(PUT, "st.global.u32 [%o+2048], %t; mapa.shared::cluster.u32 %m, %m, 0;").replace(
    "ld.shared.u32 %v, [%a]", "ld.global.u32 %v, [%o+2048]"
)


@pytest.mark.parametrize(
    ("body", "data", "arrival", "waiting"),
    [
        (REMOTE, "IN_CONSUMER", ".release.cta", ".acquire.cluster"),
        (REMOTE, "IN_CONSUMER", ".relaxed.cluster", ".acquire.cluster"),
        (IN_GLOBAL, "IN_GLOBAL", ".release.cluster", ".acquire.cta"),  # old words are in the L1 cache
        (IN_GLOBAL, "IN_GLOBAL", ".release.cluster", ".relaxed.cluster"),
    ],
)
def test_a_remote_arrival_orders_as_far_as_scopes_say(body: str, data: str, arrival: str, waiting: str) -> None:
    sound = (".release.cluster", ".acquire.cluster")
    cells = [{"DATA": data, "ARRIVAL": f'"{x}"', "WAITING": f'"{y}"'} for x, y in ((arrival, waiting), sound)]
    faulty = Case(body.format(arrival, waiting), ("12", cells[0]), "race", head=TWO_BLOCKS)
    check(faulty, Case(body.format(*sound), ("12", cells[1]), head=TWO_BLOCKS))


# Experiment 3: tensor maps that are rewritten

BOX = """mbarrier.arrive.expect_tx.shared.b64 _, [%m], 256;
cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%s], [%z, {0}], [%m];"""
GROUP = "cp.async.bulk.commit_group; cp.async.bulk.wait_group{} 0;"
REWRITE = "add.u64 %x, %x, 256; st.global.u64 [%z], %x;"
RELEASE = "fence.proxy.tensormap::generic.release.gpu;"
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%z], 128;"
BEFORE = {
    "WAIT_MBARRIER": FULL, "WAIT_GROUP": f"{GROUP.format('')} {FULL}",
    "WAIT_READ_SYNC": f"{GROUP.format('.read')} fence.acq_rel.cta; {FULL}",
}  # fmt: skip


def rewritten(before: str, after: str) -> str:
    second = BOX.replace("[%s]", "[%s+256]")
    return f"setp.ne.u32 %q, %t, 0; @%q bra END; {BOX} {before} {REWRITE} {after} {second} {AGAIN}"


@pytest.mark.parametrize("before", BEFORE)
def test_a_rewritten_map_has_to_be_acquired(before: str) -> None:
    cells = {"OPERATION": "LOADS", "BEFORE": before}
    for after, name in (("", "NONE"), ("fence.acq_rel.gpu;", "THREADFENCE"), ("fence.proxy.async;", "PROXY"),
                        (RELEASE, "RELEASE")):  # fmt: skip
        check(
            Case(rewritten(BEFORE[before], after), ("3", {**cells, "AFTER": name}), "proxy", "A19"),
            Case(rewritten(BEFORE[before], RELEASE + ACQUIRE), ("3", {**cells, "AFTER": "RELEASE_ACQUIRE"})),
        )


def test_a_map_that_changes_under_a_copy() -> None:
    body = rewritten("", f"{RELEASE} {ACQUIRE} {FULL}")
    check(Case(body, ("3", {"OPERATION": "LOADS", "BEFORE": "NOTHING"}), "pending", "A21"))


def test_an_acquire_without_a_release_is_not_enough() -> None:
    cells = {"BEFORE": "WAIT_READ_SYNC", "AFTER": "ACQUIRE"}
    check(Case(rewritten(BEFORE["WAIT_READ_SYNC"], ACQUIRE), ("3", cells), "proxy", "A20"))


def test_a_wait_for_reading_directly_before_a_map_is_rewritten() -> None:
    """ptxas moves the store before it; the mbarrier is waited for later."""
    after, sound = f"{RELEASE} {ACQUIRE} {FULL}", {"BEFORE": "WAIT_READ_SYNC", "AFTER": "RELEASE_ACQUIRE"}
    faulty = Case(rewritten(GROUP.format(".read"), after), ("3", {"BEFORE": "WAIT_READ"}), "pending", "A29")
    for between in ("fence.acq_rel.cta;", "bar.warp.sync 1;"):
        check(faulty, Case(rewritten(f"{GROUP.format('.read')} {between}", after), ("3", sound)))
    assert reported(Case(rewritten(GROUP.format(""), after))) == ("", "")


# Experiments 1, 2, 10 and 11: products


def test_a_late_warp_fences_what_it_writes() -> None:
    """It writes its rows of A. The experiment has rows of B, for which PTX asks for a barrier besides: a race."""
    late = """@!%w1 bra ISSUE; nanosleep.u32 100; and.b32 %v, %t, 15; mad.lo.u32 %a, %v, 16, %s; and.b32 %v, %t, 16;
    mad.lo.u32 %a, %v, 64, %a; st.shared.v4.u32 [%a+256], {{%t, %t, %t, %t}}; {0} bar.warp.sync -1; ISSUE:"""
    faulty, sound = (BOTH_TILES + PRODUCT.format(late.format(x)) + WAIT + USE for x in ("", "fence.proxy.async;"))
    cells = {"LATE": 3, "DELAY": 90000}
    check(Case(faulty, ("1", {**cells, "FENCE": "NO_FENCE"}), "proxy"), Case(sound, ("1", {**cells, "FENCE": "FULL"})))


@pytest.mark.parametrize(("reader", "at"), [("A_OF_TILES", 0), ("B_OF_TILES", 2048)])
@pytest.mark.parametrize("signal", ["SAME_WARP", "NAMED_BARRIER", "MBARRIER"])
def test_one_warp_waits_and_a_tile_is_overwritten(reader: str, at: int, signal: str) -> None:
    """Warp 1 waits; thread 0 overwrites, and waits afterwards."""
    cells = {"READER": reader, "OVERWRITE": "STORES", "SIGNAL": signal}
    over = f"@%p st.shared.u32 [%s+{at}], %t;"
    joined = {"SAME_WARP": "", "NAMED_BARRIER": "bar.sync 1, 128;", "MBARRIER": EMPTY}[signal]
    freed = "mbarrier.arrive.shared.b64 _, [%f], 4;" if signal == "MBARRIER" else joined
    others = f"@%w1 bra FIRST; {joined} {over} {WAIT} bra LAST; FIRST: {WAIT} {freed} LAST:"
    if signal == "SAME_WARP":
        others = f"{WAIT} {over}"
    start = BOTH_TILES + PRODUCT.format("")
    check(
        Case(f"{start} {over} {WAIT} {USE}", ("2", {**cells, "WAITED": 0}), "pending"),
        Case(f"{start} {others} {USE}", ("2", {**cells, "WAITED": 1})),
    )


def test_the_source_of_a_bulk_store_is_overwritten() -> None:
    """wait_group.read suffices, and no fence: generic writes follow what the async proxy has read."""
    over = "bar.sync 0; @%p st.shared.u32 [%s], %f;"
    start = f"{WRITE['ST_V4']} fence.proxy.async; bar.sync 0; {BULK}"
    cells = {"READER": "BULK_STORE", "OVERWRITE": "STORES"}
    check(
        Case(f"{start} {over} {DONE.format('')}", ("2", {**cells, "WAITED": 0}), "pending"),
        Case(f"{start} {DONE.format('.read')} {over} {DONE.format('')}", ("2", {**cells, "WAITED": 1})),
    )


def test_what_differs_inside_a_warpgroup() -> None:
    """The GPU takes what one warp or lane says, or never ends; each is a report."""
    cases = {
        "B_OF_WARP_0": "@%w1 add.u64 %db, %db, 8;", "A_OF_WARP_0": "@%w1 add.u64 %da, %da, 8;",
        "B_OF_LANE_0": "@!%p add.u64 %db, %db, 8;",
    }  # fmt: skip
    for case, before in cases.items():
        assert not any(failures("10", CASE=case))
        assert reported(Case(BOTH_TILES + PRODUCT.format(before) + WAIT + USE))[0] == "divergent"
    skipped = (BOTH_TILES + PRODUCT.format("") + WAIT + USE).replace("wgmma.mma", "@!%w1 wgmma.mma")
    left = BOTH_TILES + PRODUCT.format("@%w1 bra END;") + WAIT + USE
    for case, body, fault in (("SKIPPED_BY_WARP_3", skipped, "not ended"), ("WARP_3_EXITED", left, "illegal instr")):
        assert fault in recorded()["10"][f"CASE={case}"]["fault"]
        assert reported(Case(body))[0] == "divergent"


def test_a_missing_wgmma_fence_fails_nothing() -> None:
    """ptxas puts in what is missing: nothing is reported."""
    assert not any(failures("11"))
    body = (BOTH_TILES + PRODUCT.format("") + WAIT + USE).replace("wgmma.fence.sync.aligned;", "")
    assert reported(Case(body)) == ("", "")


# Experiments 4 and 9: exits and ranks


LEAVES = {"STORE_NOTHING": BULK.split("; ")[0] + ";", "STORE_COMMIT": BULK, "STORE_WAIT_READ": f"{BULK} {DONE}"}


@pytest.mark.parametrize("case", LEAVES)
def test_a_block_may_leave_its_copies_behind(case: str) -> None:
    assert not any(failures("4", CASE=case)) and recorded()["4"][f"CASE={case}"]["counts"]["blocks"]
    body = f"{WRITE['ST_V4']} fence.proxy.async; bar.sync 0; {LEAVES[case].format('.read')}"
    assert reported(Case(body)) == ("", "")
    assert reported(Case(body), hazards="strict") == (("", "") if "WAIT" in case else ("pending", "A16"))


LEFT = f"""st.shared.u32 [%a], %t; {MEET} @!%first ret;
mov.u32 %v, 200; SPIN: sub.u32 %v, %v, 1; setp.ne.u32 %q, %v, 0; @%q bra SPIN;
mapa.shared::cluster.u32 %a, %a, 1; mapa.shared::cluster.u32 %m, %m, 1;"""
GONE = {
    "EXITED_LD": "ld.shared::cluster.u32 %v, [%a]; st.global.u32 [%o], %v;",
    "EXITED_ST": "st.shared::cluster.u32 [%a], %t;",
    "EXITED_ATOM": "atom.shared::cluster.add.u32 %v, [%a], 1;",
    "EXITED_ARRIVE": "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%m];",
    "EXITED_ST_ASYNC": "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%a], %t, [%m];",
    "EXITED_LOAD": """@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%y], 256, [%m];""",
}


@pytest.mark.parametrize("case", GONE)
def test_what_reaches_a_block_that_has_exited(case: str) -> None:
    """The twin meets at a barrier of the cluster before it ends; in the experiment that is every other cell."""
    assert "launch failure" in recorded()["9"][f"CASE={case}"]["fault"]
    assert reported(Case(LEFT + GONE[case], head=TWO_BLOCKS))[0] == "bounds"
    if case in ("EXITED_LD", "EXITED_ST", "EXITED_ATOM", "EXITED_ARRIVE"):
        stays = LEFT.replace("@!%first ret;", "@!%first bra STAY;")
        assert reported(Case(f"{stays} {GONE[case]} STAY: {MEET}", head=TWO_BLOCKS)) == ("", "")


@pytest.mark.parametrize("case", ["LD_OWN_SPACE", "ST_OWN_SPACE"])
def test_the_own_space_at_another_block(case: str) -> None:
    assert "illegal instruction" in recorded()["9"][f"CASE={case}"]["fault"]
    access = GONE[case.replace("_OWN_SPACE", "").join(("EXITED_", ""))].replace("::cluster", "::cta")
    body = f"mapa.shared::cluster.u32 %a, %a, 1; @!%first bra MET; {access} MET: {MEET}"
    assert reported(Case(body, head=TWO_BLOCKS))[0] == "bounds"


def test_a_copy_inside_of_shared_memory_needs_a_cluster() -> None:
    assert "illegal instruction" in recorded()["9"]["CASE=SHARED_TO_SHARED CLUSTER=0"]["fault"]
    assert recorded()["9"]["CASE=SHARED_TO_SHARED CLUSTER=1"]["counts"] == {"words": 64, "phase": 1}
    copy = "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%s+2048], [%s], 256, [%m];"
    expect = "@%p mbarrier.arrive.expect_tx.shared.b64 _, [%m], 256;"
    case = Case(f"{WRITE['ST_V4']} fence.proxy.async; bar.sync 0; {expect} @%p {copy} {FULL}")
    assert reported(case)[0] == "bounds" and reported(case, hazards="off")[0] == "bounds"
    assert reported(case, cluster=1) == ("", "")
