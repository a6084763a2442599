"""Order through memory: fences, releases and acquires in their scopes, against vector clocks of single threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernels import run

from warpmma.kernel import HazardError
from warpmma.machine import Batch, Costs, GlobalMemory, History, Reporter, Site, WarpRegister, execute
from warpmma.machine import HazardError as MachineHazard
from warpmma.operations import row

BLOCKS, WARPS, LANES = 2, 2, (0, 7)
Thread = tuple[int, int, int]
THREADS: list[Thread] = [(b, w, x) for b in range(BLOCKS) for w in range(WARPS) for x in LANES]
NEAR = ("cta", "cluster")
Clock = dict[Thread, int]


def join(*clocks: Clock) -> Clock:
    return {x: max(c.get(x, 0) for c in clocks) for x in THREADS}


@dataclass
class Reference:
    """Vector clocks of threads; of each word who wrote and read it; of each flag what was released there."""

    time: int = 0
    knows: dict[Thread, Clock] = field(default_factory=lambda: {x: join({}) for x in THREADS})
    fences: dict[Thread, list[tuple[Clock, bool]]] = field(default_factory=lambda: {x: [] for x in THREADS})
    heard: dict[Thread, list[tuple[Clock, bool]]] = field(default_factory=lambda: {x: [] for x in THREADS})
    words: dict[int, list[tuple[Thread, int, bool]]] = field(default_factory=dict)
    flags: dict[int, list[tuple[Clock, bool, int]]] = field(default_factory=dict)

    def access(self, thread: Thread, word: int, store: bool) -> bool:
        self.time += 1
        before = self.words.setdefault(word, [])
        bad = any(
            other != thread and (store or stored) and time > self.knows[thread][other] for other, time, stored in before
        )
        before.append((thread, self.time, store))
        return bad

    def now(self, thread: Thread) -> Clock:
        return {**self.knows[thread], thread: self.time}

    def fence(self, thread: Thread, scope: str) -> None:
        self.time += 1
        for clock, near in list(self.heard[thread]):
            if near or scope not in NEAR:
                self.knows[thread] = join(self.knows[thread], clock)
        self.fences[thread].append((self.now(thread), scope not in NEAR))

    def atomic(self, thread: Thread, flag: int, order: str, scope: str) -> None:
        self.time += 1
        there = self.flags.setdefault(flag, [])
        found = [
            (clock, block == thread[0])
            for clock, far, block in there
            if block == thread[0] or (far and scope not in NEAR)
        ]
        released = [(clock, far and scope not in NEAR, thread[0]) for clock, far in self.fences[thread]]
        if order in ("release", "acq_rel"):
            released.append((self.now(thread), scope not in NEAR, thread[0]))
        if order in ("acquire", "acq_rel"):
            self.knows[thread] = join(self.knows[thread], *(clock for clock, _ in found))
        else:
            self.heard[thread] += found
        there += released

    def barrier(self, block: int) -> None:
        self.time += 1
        together = [x for x in THREADS if x[0] == block]
        everything = join(*(self.now(x) for x in together))
        for thread in together:
            self.knows[thread] = everything


class Simulated:
    """The machine, with the threads of the reference alone."""

    def __init__(self) -> None:
        reporter = Reporter()
        memory = GlobalMemory(reporter)
        self.words = memory.add(np.zeros(4, np.uint32), "words")
        self.flags = memory.add(np.zeros(4, np.uint32), "flags")
        self.batch = Batch(
            blocks=range(3, 3 + BLOCKS), threads=32 * WARPS, target="sm_90", memory=memory, shared=0,
            reporter=reporter, costs=Costs(), history=History(),
        )  # fmt: skip
        self.step = 0

    def do(self, mnemonic: str, operands: list[Any], threads: list[Thread]) -> bool:
        lanes = np.zeros(self.batch.shape, bool)
        for thread in threads:
            lanes[thread] = True
        self.step += 1
        try:
            execute(self.batch, Site("k.py", self.step, mnemonic), row(mnemonic), operands, lanes)
        except MachineHazard as error:
            assert error.hazard.kind == "race"
            return True
        return False

    def at(self, address: int) -> WarpRegister:
        return WarpRegister(np.full(self.batch.shape, address, np.uint64))


def play(story: list[tuple[Any, ...]]) -> tuple[list[bool], list[bool]]:
    """What is a race, event by event up to the first of the machine, by the reference and by the machine."""
    reference, simulated = Reference(), Simulated()
    expected: list[bool] = []
    found: list[bool] = []
    for kind, who, *rest in story:
        bad = raced = False
        if kind in ("ld", "st"):
            (word,) = rest
            bad = reference.access(who, word, kind == "st")
            value = [simulated.step + 1] if kind == "st" else []
            raced = simulated.do(f"{kind}.global.b32", [simulated.at(simulated.words + 4 * word), *value], [who])
        elif kind == "fence":
            reference.fence(who, *rest)
            simulated.do(f"fence.acq_rel.{rest[0]}", [], [who])
        elif kind == "atom":
            flag, order, scope = rest
            reference.atomic(who, flag, order, scope)
            name = f"atom.{order}.{scope}.global.add.u32"
            simulated.do(name, [simulated.at(simulated.flags + 4 * flag), 1], [who])
        else:
            reference.barrier(who)
            everybody = [(who, warp, lane) for warp in range(WARPS) for lane in range(32)]
            simulated.do("bar.sync", [0], everybody)
        expected.append(bad)
        found.append(raced)
        if raced or bad:
            break
    return expected, found


SCOPES = st.sampled_from(["gpu", "gpu", "sys", "cta"])
WHO = st.sampled_from(THREADS)


def events(*kinds: str) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.tuples(st.sampled_from(kinds), WHO, st.integers(0, 1)),
        st.tuples(st.just("fence"), WHO, SCOPES),
        st.tuples(
            st.just("atom"),
            WHO,
            st.integers(0, 1),
            st.sampled_from(["relaxed", "acquire", "release", "acq_rel"]),
            SCOPES,
        ),
        st.tuples(st.just("bar"), st.integers(0, BLOCKS - 1)),
    )


# Flags of `cta` and other scopes of two blocks would race with each other: each block has its own.
def legal(story: list[Any]) -> list[Any]:
    return [("atom", e[1], 2 + e[1][0] if e[4] == "cta" else e[2], e[3], e[4]) if e[0] == "atom" else e for e in story]


A, B = (0, 0, 0), (1, 1, 7)
PASS = [("st", A, 0), ("atom", A, 0, "release", "gpu"), ("atom", B, 0, "acquire", "gpu"), ("st", B, 0)]


@settings(max_examples=400, deadline=None)
@given(st.lists(events("st"), max_size=16).map(legal))
@example(PASS)
@example([("st", A, 0), ("fence", A, "gpu"), ("atom", A, 0, "relaxed", "gpu"), ("atom", B, 0, "relaxed", "gpu"),
          ("fence", B, "gpu"), ("st", B, 0)])  # fmt: skip
@example([("st", A, 0), ("atom", A, 0, "relaxed", "gpu"), ("fence", A, "gpu"), ("atom", B, 0, "acquire", "gpu"),
          ("st", B, 0)])  # fmt: skip
@example([("st", (0, 1, 0), 0), ("bar", 0), ("atom", A, 0, "release", "gpu"), ("atom", (0, 1, 7), 0, "relaxed", "gpu"),
          ("atom", B, 0, "acquire", "gpu"), ("bar", 1), ("st", (1, 0, 0), 0)])  # fmt: skip
def test_stores_that_nothing_orders_are_races_and_no_others(story: list[Any]) -> None:
    expected, found = play(story)
    assert found == expected


@settings(max_examples=300, deadline=None)
@given(st.lists(events("ld", "st"), max_size=16).map(legal))
def test_no_race_is_made_up(story: list[Any]) -> None:
    expected, found = play(story)
    assert all(e for e, f in zip(expected, found, strict=True) if f)


# Whole kernels


def _handover(release: list[Any], acquire: list[Any], *, barrier: bool = True) -> Any:
    """Block 0 writes 64 words, its thread 0 sets a flag; block 1's thread 0 sees it, and all of it read."""

    def kernel(t: Any, data: Any, flag: Any, out: Any) -> None:
        at = t.tid[0] * 4
        first, zero = t.ctaid[0] == 0, t.tid[0] == 0
        with t.where(first):
            t("st.global.b32", data + at, t.tid[0] + 1)
            if barrier:
                t("bar.sync", 0)
            with t.where(zero):
                for name, *operands in release:
                    t(name, *(flag if x == "flag" else x for x in operands))
        with t.where(~first):
            with t.where(zero):
                for name, *operands in acquire:
                    t(name, *(flag if x == "flag" else x for x in operands))
            if barrier:
                t("bar.sync", 0)
            t("st.global.b32", out + at, t("ld.global.b32", data + at))

    return kernel


ADD, READ = ("red.global.add.u32", "flag", 1), ("atom.global.or.b32", "flag", 0)


@pytest.mark.parametrize(
    ("release", "acquire", "race"),
    [
        ([("fence.acq_rel.gpu",), ADD], [READ, ("fence.acq_rel.gpu",)], False),
        ([("membar.gl",), ADD], [READ, ("membar.gl",)], False),
        ([("membar.sys",), ADD], [("atom.acquire.gpu.global.or.b32", "flag", 0)], False),
        ([("red.release.gpu.global.add.u32", "flag", 1)], [READ, ("fence.sc.gpu",)], False),
        ([("fence.release.gpu",), ADD], [READ, ("fence.acquire.gpu",)], False),
        ([ADD], [READ, ("fence.acq_rel.gpu",)], True),
        ([("fence.acq_rel.gpu",), ADD], [READ], True),
        ([ADD, ("fence.acq_rel.gpu",)], [READ, ("fence.acq_rel.gpu",)], True),
        ([("fence.acq_rel.gpu",), ADD], [("fence.acq_rel.gpu",), READ], True),
        ([("fence.acq_rel.cta",), ADD], [READ, ("fence.acq_rel.gpu",)], True),
        ([("fence.acq_rel.gpu",), ADD], [READ, ("membar.cta",)], True),
        ([("fence.acquire.gpu",), ADD], [READ, ("fence.acq_rel.gpu",)], True),
        ([("fence.acq_rel.gpu",), ADD], [READ, ("fence.release.gpu",)], True),
        ([("fence.proxy.async",), ADD], [READ, ("fence.proxy.async",)], True),
        ([("st.release.gpu.global.b32", "flag", 1)], [("ld.acquire.gpu.global.b32", "flag")], False),
        ([("st.release.sys.b32", "flag", 1)], [("ld.acquire.sys.b32", "flag")], False),
        (
            [("membar.gl",), ("st.volatile.global.b32", "flag", 1)],
            [("ld.volatile.global.b32", "flag"), ("membar.gl",)],
            False,
        ),
        (
            [("membar.gl",), ("st.relaxed.gpu.global.b32", "flag", 1)],
            [("ld.relaxed.gpu.global.b32", "flag"), ("fence.acq_rel.gpu",)],
            False,
        ),
        ([("st.volatile.global.b32", "flag", 1)], [("ld.volatile.global.b32", "flag")], True),
        (
            [("st.release.gpu.global.b32", "flag", 1), ("st.relaxed.gpu.global.b32", "flag", 2)],
            [("ld.acquire.gpu.global.b32", "flag")],
            True,
        ),
        ([("st.release.gpu.global.b32", "flag", 1), ADD], [("ld.acquire.gpu.global.b32", "flag")], False),
        ([("red.release.gpu.global.add.u32", "flag", 1), ADD], [("atom.acquire.gpu.global.or.b32", "flag", 0)], False),
    ],
)
def test_a_flag_between_blocks(release: list[Any], acquire: list[Any], race: bool) -> None:
    arrays = np.zeros(64, np.uint32), np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    kernel = _handover(release, acquire)
    if race:
        with pytest.raises(HazardError, match=r"race.*of block 0 wrote it"):
            run(kernel, *arrays, grid=2, block=64)
    else:
        run(kernel, *arrays, grid=2, block=64)
        assert arrays[2].tolist() == list(range(1, 65))


@pytest.mark.parametrize(("load", "store"), [("ld.global.b32", "st.volatile.global.b32"),
                                             ("ld.relaxed.cta.global.b32", "st.relaxed.gpu.global.b32")])  # fmt: skip
def test_what_is_not_strong_enough_races(load: str, store: str) -> None:
    def kernel(t: Any, flag: Any) -> None:
        with t.where((t.ctaid[0] == 0) & (t.tid[0] == 0)):
            t(store, flag, 1)
        with t.where((t.ctaid[0] == 1) & (t.tid[0] == 0)):
            t(load, flag)

    with pytest.raises(HazardError, match="race"):
        run(kernel, np.zeros(1, "u4"), grid=2)


def test_threads_of_a_block_pass_a_flag_in_shared_memory() -> None:
    def kernel(t: Any, release: str, acquire: str) -> None:
        with t.where(t.tid[0] == 0):
            t("st.shared.b32", 0, 0)
        t("bar.sync", 0)
        with t.where(t.tid[0] == 3):
            t("st.shared.b32", 64, 5)
            t(release, 0, 1)
        with t.where(t.tid[0] == 40):
            t(acquire, 0)
            t("ld.shared.b32", 64)

    run(lambda t: kernel(t, "st.release.cta.shared.b32", "ld.acquire.cta.shared.b32"), block=64)
    with pytest.raises(HazardError, match=r"race.*only with __threadfence_block\(\) \(fence.acq_rel.cta\) on both"):
        run(lambda t: kernel(t, "st.relaxed.cta.shared.b32", "ld.acquire.cta.shared.b32"), block=64)


def test_without_its_barrier_a_release_tells_of_its_own_thread_alone() -> None:
    arrays = np.zeros(64, np.uint32), np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    kernel = _handover([("fence.acq_rel.gpu",), ADD], [READ, ("fence.acq_rel.gpu",)], barrier=False)
    with pytest.raises(HazardError, match=r"race.*lane 1 .*of block 0 wrote it"):
        run(kernel, *arrays, grid=2, block=64)


def test_what_a_failed_cas_would_have_released_is_not_there() -> None:
    def kernel(t: Any, data: Any, flag: Any) -> None:
        one, two = t.ctaid[0] == 0, t.ctaid[0] == 1
        with t.where(one):
            t("st.global.b32", data, 1)
            t("atom.release.gpu.global.cas.b32", flag, 5, 6)
        with t.where(two):
            t("atom.acquire.gpu.global.cas.b32", flag, 0, 1)
            t("ld.global.b32", data)

    with pytest.raises(HazardError, match="race"):
        run(lambda t, x, y: kernel_of_one_thread(t, kernel, x, y), np.zeros(1, "u4"), np.zeros(1, "u4"), grid=2)


def kernel_of_one_thread(t: Any, kernel: Any, *args: Any) -> None:
    with t.where(t.tid[0] == 0):
        kernel(t, *args)


def test_blocks_learn_of_blocks_of_earlier_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpmma.machine.block.grid._THREADS", 64)

    def kernel(t: Any, data: Any, counter: Any, order: str) -> None:
        with t.where(t.tid[0] == 0):
            t(f"atom.{order}.gpu.global.add.u32", counter, 1)
            x = t("ld.global.b32", data)
            t("st.global.b32", data, x + 1)
            t(f"atom.{order}.gpu.global.add.u32", counter, 1)

    def launch(order: str) -> Any:
        def body(t: Any, data: Any, counter: Any) -> None:
            for block in range(4):  # one after another in a batch of two
                with t.where(t.ctaid[0] == block):
                    kernel(t, data, counter, order)

        data = np.zeros(1, np.uint32)
        run(body, data, np.zeros(1, np.uint32), grid=4)
        return data

    assert launch("acq_rel")[0] == 4
    with pytest.raises(HazardError, match="race"):
        launch("relaxed")
