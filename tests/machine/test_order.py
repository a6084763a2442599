"""Order: vector clocks and granules against a slow reference that remembers every access of every thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warpmma.machine import Batch, Costs, GlobalMemory, HazardError, History, Reporter, Site, WarpRegister, execute
from warpmma.operations import row

WARPS, LANES, WORDS = 3, (0, 1, 5), 4
THREADS = [(warp, lane) for warp in range(WARPS) for lane in LANES]
EVERY = 0xFFFFFFFF
Thread = tuple[int, int]


@dataclass
class Reference:
    """Vector clocks of threads, and all accesses to each byte.

    Attributes
    ----------
    knows : dict
        For each thread, the time up to which each other thread's accesses happen before what it does now.
    touched : dict
        By byte: thread, time, and whether it was a store.
    """

    time: int = 0
    knows: dict[Thread, dict[Thread, int]] = field(
        default_factory=lambda: {x: dict.fromkeys(THREADS, 0) for x in THREADS}
    )
    touched: dict[int, list[tuple[Thread, int, bool]]] = field(default_factory=dict)

    def access(self, threads: dict[Thread, range], store: bool) -> bool:
        """Access bytes; return whether an access of another thread is unordered with it, and one of them stores."""
        self.time += 1
        bad = False
        for thread, where in threads.items():
            for byte in where:
                for other, time, stored in self.touched.get(byte, []):
                    bad |= other != thread and (store or stored) and time > self.knows[thread][other]
        for thread, where in threads.items():
            for byte in where:
                self.touched.setdefault(byte, []).append((thread, self.time, store))
        if store:  # of lanes that store at once too
            bytes_ = [byte for where in threads.values() for byte in where]
            bad |= len(bytes_) != len(set(bytes_))
        return bad

    def meet(self, waiting: list[Thread], arriving: list[Thread]) -> None:
        self.time += 1
        joined = {x: max(self.knows[y][x] for y in arriving) for x in THREADS}
        joined |= dict.fromkeys(arriving, self.time)
        for thread in waiting:
            self.knows[thread] = {x: max(n, joined[x]) for x, n in self.knows[thread].items()}


class Simulated:
    """The machine, with the threads of the reference alone."""

    def __init__(self) -> None:
        reporter = Reporter({"unwritten": "warn"})
        self.batch = Batch(
            blocks=range(1), threads=32 * WARPS, target="sm_90", memory=GlobalMemory(reporter), shared=4 * WORDS,
            reporter=reporter, costs=Costs(), history=History(),
        )  # fmt: skip
        self.step = 0
        everything = np.zeros(4 * WORDS, np.uint8)
        shadow: Any = self.batch.shared._all.shadow
        shadow.grains.written = None  # as if all had been written
        self.batch.shared._all.data[: len(everything)] = 0

    def do(self, mnemonic: str, operands: list[Any], threads: list[Thread]) -> bool:
        lanes = np.zeros(self.batch.shape, bool)
        for warp, lane in threads:
            lanes[0, warp, lane] = True
        self.step += 1
        try:
            execute(self.batch, Site("k.py", self.step, mnemonic), row(mnemonic), operands, lanes)
        except HazardError as error:
            assert error.hazard.kind in ("race", "lane order")
            return True
        return False

    def access(self, threads: dict[Thread, range], store: bool) -> bool:
        address = np.zeros(self.batch.shape, np.uint32)
        value = np.zeros(self.batch.shape, np.uint32)
        width = 8 * len(next(iter(threads.values())))
        for number, ((warp, lane), where) in enumerate(threads.items()):
            address[0, warp, lane] = where.start
            # Different at each step and thread in every byte, so that no two stores are of the same value.
            value[0, warp, lane] = (self.step * 16 + number + 1) % 251 * 0x01010101
        operands = [WarpRegister(address), *([WarpRegister(value)] if store else [])]
        return self.do(f"{'st' if store else 'ld'}.shared.b{width}", operands, list(threads))


@st.composite
def events(draw: st.DrawFn) -> tuple[Any, ...]:
    kind = draw(st.sampled_from(["ld", "st", "ld", "st", "all", "warp", "pair", "handover"]))
    if kind in ("ld", "st"):
        size = draw(st.sampled_from([1, 2, 4, 4]))
        who = draw(st.lists(st.sampled_from(THREADS), min_size=1, max_size=4, unique=True))
        return kind, tuple((x, draw(st.integers(0, 4 * WORDS // size - 1)) * size) for x in who), size
    if kind == "warp":
        mask = draw(st.sampled_from([LANES, LANES[:2], LANES[1:]]))
        return kind, draw(st.integers(0, WARPS - 1)), mask
    if kind == "all":
        return (kind,)
    return kind, *draw(st.permutations(range(WARPS)))[:2]


def play(story: list[tuple[Any, ...]]) -> tuple[list[bool], list[bool]]:
    """What is a race, event by event up to the first, by the reference and by the machine."""
    reference, simulated = Reference(), Simulated()
    everybody = [(warp, lane) for warp in range(WARPS) for lane in range(32)]
    expected: list[bool] = []
    found: list[bool] = []
    for number, event in enumerate(story):
        match event:
            case ("ld" | "st", touched, size):
                threads = {x: range(at, at + size) for x, at in touched}
                store = event[0] == "st"
                expected.append(reference.access(threads, store))
                found.append(simulated.access(threads, store))
            case ("all",):
                reference.meet(THREADS, THREADS)
                simulated.do("bar.sync", [0], everybody)
            case ("warp", warp, lanes):
                meeting = [(warp, lane) for lane in lanes]
                reference.meet(meeting, meeting)
                whole = lanes == LANES
                mask = EVERY if whole else sum(1 << lane for lane in lanes)
                coming = [(warp, lane) for lane in range(32)] if whole else meeting
                simulated.do("bar.warp.sync", [mask], coming)
            case ("pair", one, other):
                meeting = [x for x in THREADS if x[0] in (one, other)]
                reference.meet(meeting, meeting)
                simulated.do("bar.sync", [1 + number % 15, 64], [x for x in everybody if x[0] in (one, other)])
            case ("handover", one, other):  # `one` arrives, `other` waits
                arriving = [x for x in THREADS if x[0] in (one, other)]
                reference.meet([x for x in THREADS if x[0] == other], arriving)
                simulated.do("bar.arrive", [1 + number % 15, 64], [x for x in everybody if x[0] == one])
                simulated.do("bar.sync", [1 + number % 15, 64], [x for x in everybody if x[0] == other])
        if (expected and expected[-1]) or (found and found[-1]):
            break
    return expected, found


@settings(deadline=None, max_examples=600)
@given(st.lists(events(), min_size=2, max_size=14))
@example([("ld", (((0, 0), 0), ((0, 1), 0)), 4), ("st", (((0, 0), 0),), 4)])
@example([("ld", (((1, 0), 0),), 4), ("ld", (((0, 0), 0),), 4), ("ld", (((0, 1), 0),), 4), ("st", (((0, 1), 0),), 4)])
@example([("st", (((0, 0), 0),), 4), ("handover", 0, 1), ("handover", 1, 2), ("ld", (((2, 0), 0),), 4)])
@example([("st", (((0, 0), 0),), 1), ("st", (((0, 1), 1),), 1), ("ld", (((0, 0), 0),), 4)])
@example([
    ("ld", (((0, 5), 8), ((1, 0), 8)), 4), ("ld", (((2, 0), 8),), 4), ("ld", (((0, 0), 0),), 1), ("pair", 1, 2),
    ("st", (((1, 0), 8),), 4),
])  # fmt: skip
def test_the_first_race_is_found_and_nothing_else(story: list[tuple[Any, ...]]) -> None:
    expected, found = play(story)
    assert found == expected
