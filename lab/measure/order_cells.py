"""The cells of the experiments: a program, what is chosen in it, and how often it runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

__all__ = ["CELLS", "Cell", "failed", "source"]

_PROGRAMS = Path(__file__).parent / "order_programs"
_NOT_DEFINED = ("CLUSTER",)  # choices of the launch

Choices = tuple[tuple[str, str | int], ...]


@dataclass(frozen=True)
class Cell:
    """One kernel: what is defined when its program is compiled, its launch, and what it counts.

    `threads` of a block, of which `checkers` look at results in each of `trials`. A cell whose `alone` is set may fail
    the launch or never end, so that it needs a process of its own.
    """

    experiment: str
    program: str
    choices: Choices
    counts: tuple[str, ...]
    blocks: int
    threads: int
    trials: int
    checkers: int
    shared: int = 0
    cluster: int | None = None
    launches: int = 1
    alone: bool = False

    @property
    def name(self) -> str:
        """What is chosen."""
        return " ".join(f"{key}={value}" for key, value in self.choices)


def _of(**choices: str | int) -> Choices:
    return tuple(choices.items())


_READERS = ("BULK_STORE", "WGMMA_B", "WGMMA_A")
_FENCES = ("NONE", "BY_WRITER", "BY_WRITER_CTA", "BY_ISSUER", "BY_THIRD", "BY_UNORDERED_THIRD", "WRONG_SPACE",
           "SELF_NONE", "SELF_FENCE", "SELF_WRONG_SPACE")  # fmt: skip
_STRESSES = ("NO_STRESS", "STORES_16", "STORES_64", "COPIES_16", "LOADS_OF_OTHERS")


def _fences() -> Iterator[Cell]:
    chosen = dict.fromkeys(product(("ST_V4", "STMATRIX", "CP_ASYNC"), _READERS, _FENCES, ("STORES_16",)))
    chosen |= dict.fromkeys(product(("ST_V4", "STMATRIX", "CP_ASYNC"), _READERS, ("NONE",), ("NO_STRESS",)))
    chosen |= dict.fromkeys(
        product(("CP_ASYNC_UNWAITED",), _READERS, ("NONE", "BY_WRITER", "BY_WRITER_CTA", "SELF_NONE"), ("STORES_16",))
    )
    chosen |= dict.fromkeys(product(("CP_ASYNC", "CP_ASYNC_4"), _READERS, ("NONE", "SELF_NONE"), _STRESSES))
    chosen |= dict.fromkeys(product(("CP_ASYNC_MBARRIER",), _READERS, ("NONE", "BY_ISSUER"), _STRESSES))
    for writer, reader, fence, stress in chosen:
        choices = _of(WRITER=writer, READER=reader, FENCE=fence, STRESS=stress)
        yield Cell("5", "fences", choices, ("old",), 264, 288, 4000, 128)


def _loads() -> Iterator[Cell]:
    signals = ("ARRIVE", "ARRIVE_RELAXED", "ONE_ARRIVES", "NAMED_BARRIER", "FENCE_ARRIVE", "PROXY_FENCE_ARRIVE",
               "ISSUER_FENCE", "ISSUER_FENCE_CTA", "USED_ARRIVE")  # fmt: skip
    chosen = [(signal, conflicts, "COPY", 17, 128, 0) for signal, conflicts in product(signals, (1, 0))]
    chosen += [("ARRIVE", 1, "STORES", 17, 128, 0)]
    chosen += [("PRODUCT_ARRIVE", 1, "COPY", loads, 128, 0) for loads in (17, 32)]
    for loads, readers in product((17, 32), (128, 512)):
        chosen += [(signal, 1, "COPY", loads, readers, 0) for signal in ("ARRIVE", "PROXY_FENCE_ARRIVE", "USED_ARRIVE")]
        chosen += [(signal, 1, "COPY", loads, readers, 0) for signal in ("ISSUER_FENCE", "ISSUER_FENCE_CTA")]
        chosen += [("ISSUER_DELAY", 1, "COPY", loads, readers, delay) for delay in (250, 1000, 1500, 2000, 4000, 16000)]
    for signal, conflicts, overwrite, loads, readers, delay in dict.fromkeys(chosen):
        choices = _of(
            SIGNAL=signal, CONFLICTS=conflicts, OVERWRITE=overwrite, LOADS=loads, READERS=readers, DELAY=delay
        )
        counts = ("new", "clocks of the issuer", "turns")
        blocks = 132 * (6 if readers == 128 else 3)
        yield Cell("6", "loads", choices, counts, blocks, readers + 32, 2000, readers)


def _waits() -> Iterator[Cell]:
    """Yield loads of few wavefronts behind a product; without one, how few are in flight when the copy comes."""
    loads = ((1, 1), (1, 2), (1, 4), (1, 8), (1, 17), (1, 32), (17, 1), (17, 2), (32, 1), (2, 32), (3, 32), (4, 32),
             (8, 32), (17, 32))  # fmt: skip
    near = ("COPY_SHARED", "COPY")
    chosen = [("PRODUCT_ARRIVE", *x) for x in product(loads, near, (128, 512), (8,), (1,), (0, 1))]
    sizes = [(n, steps) for n, steps in product((8, 64, 128, 256), (1, 2, 4)) if (n, steps) != (8, 1)]
    some = ((1, 32), (4, 32), (17, 32))
    chosen += [("PRODUCT_ARRIVE", x, "COPY_SHARED", 128, *size, 0) for x, size in product(some, sizes)]
    chosen += [("ARRIVE", *x) for x in product(loads, ("COPY_SHARED",), (128,), (8,), (1,), (0, 1))]
    for signal, (count, ways), overwrite, readers, n, steps, stress in chosen:
        choices = _of(SIGNAL=signal, CONFLICTS=1, OVERWRITE=overwrite, LOADS=count, READERS=readers, DELAY=0)
        choices += _of(WAYS=ways, N=n, STEPS=steps, STRESS=stress)
        counts = ("new", "clocks of the issuer", "turns")
        blocks, threads = 132 * (6 if readers == 128 else 3), readers + 32 + 128 * stress
        cluster = 1 if overwrite == "COPY_SHARED" else None
        yield Cell("13", "loads", choices, counts, blocks, threads, 2000, readers, cluster=cluster)


def _maps_of_warps() -> Iterator[Cell]:
    writers = ("LANE_0", "LANE_31", "EACH_LANE", "LATE_LANE", "REPLACE_31")
    for writer, synced, stress in product(writers, (0, 1), (0, 1)):
        choices = _of(WRITER=writer, SYNCED=synced, STRESS=stress)
        yield Cell("14", "maps_of_warps", choices, ("old", "odd"), 1056, 32, 1000, 1)


def _scopes() -> Iterator[Cell]:
    orders = ((".release.cluster", ".acquire.cluster"), (".release.cta", ".acquire.cta"),
              (".release.cta", ".acquire.cluster"), (".release.cluster", ".acquire.cta"),
              (".relaxed.cluster", ".relaxed.cluster"), (".relaxed.cluster", ".acquire.cluster"),
              (".release.cluster", ".relaxed.cluster"))  # fmt: skip
    stresses = ("NO_STRESS", "OWN_STORES", "REMOTE_STORES")
    for (arrival, waiting), data, stress in product(orders, ("IN_CONSUMER", "IN_GLOBAL", "IN_PRODUCER"), stresses):
        choices = _of(ARRIVAL=f'"{arrival}"', WAITING=f'"{waiting}"', DATA=data, STRESS=stress)
        yield Cell("12", "scopes", choices, ("old",), 264, 128, 3000, 64, cluster=2)  # half of the threads look


def _maps() -> Iterator[Cell]:
    before = ("NOTHING", "WAIT_READ", "WAIT_READ_SYNC", "WAIT_GROUP")
    after = ("NONE", "THREADFENCE", "PROXY", "RELEASE", "ACQUIRE", "RELEASE_ACQUIRE")
    chosen = list(product(("LOADS",), (*before, "WAIT_MBARRIER"), after, (1, 16)))
    chosen += list(product(("BOX_STORES",), before, ("NONE", "ACQUIRE", "RELEASE_ACQUIRE"), (1,)))
    for operation, first, second, words in chosen:
        choices = _of(OPERATION=operation, BEFORE=first, AFTER=second, WORDS=words)
        yield Cell("3", "maps", choices, ("first new", "second old", "odd"), 1056, 32, 200, 1)


def _late() -> Iterator[Cell]:
    delays = ((90000, 0, 60), (3600, 0, 2000), (2000, 1, 3000), (200, 1, 3000))
    chosen = list(product((0, 3), delays, ("BEFORE_FENCE", "AFTER_FENCE"), ("NO_FENCE", "FULL", "CTA")))
    places = ("AFTER_FENCE_STRAIGHT", "AFTER_PRODUCT", "AFTER_COMMIT")
    chosen += list(product((0, 3), ((3600, 0, 2000),), places, ("FULL",)))
    counts = ("old", "fence over", "product over", "commit over", "wait over", "threads of others")
    for late, (delay, random, trials), place, fence in chosen:
        choices = _of(LATE=late, DELAY=delay, RANDOM=random, PLACE=place, FENCE=fence)
        yield Cell("1", "late", choices, counts, 1584, 128, trials, 128)


def _reuse() -> Iterator[Cell]:
    products = ("B_OF_REGISTERS", "B_OF_TILES", "A_OF_TILES")
    chosen = list(product(products, ("SAME_WARP",), ("STORES", "COPY"), (1, 0), (0, 200, 3000)))
    chosen += list(product(products, ("NAMED_BARRIER", "MBARRIER"), ("STORES", "COPY"), (1, 0), (200,)))
    every = ("SAME_WARP", "NAMED_BARRIER", "MBARRIER")
    chosen += list(product(("BULK_STORE",), every, ("STORES", "COPY"), (1, 0), (0,)))
    for reader, signal, overwrite, waited, skew in chosen:
        choices = _of(READER=reader, SIGNAL=signal, OVERWRITE=overwrite, WAITED=waited, SKEW=skew)
        checkers = 256 if reader == "BULK_STORE" else 128
        yield Cell("2", "reuse", choices, ("new", "threads"), 528, 256, 1250, checkers, shared=34816)


def _products() -> Iterator[Cell]:
    differs = ("B_OF_WARP_0", "A_OF_WARP_0", "B_OF_LANE_0", "TRUE_IN_WARP_0", "FALSE_IN_WARP_0", "TRUE_IN_LANE_5",
               "FALSE_IN_LANE_5")  # fmt: skip
    for case in differs:
        counts = ("as the first", "as the others", "neither")
        yield Cell("10", "products", _of(CASE=case), counts, 396, 128, 1000, 128)
    for case in ("SKIPPED_BY_WARP_3", "SKIPPED_BY_LANE_5", "WARP_3_EXITED"):
        counts = ("as the first", "as the others", "neither")
        yield Cell("10", "products", _of(CASE=case), counts, 1, 128, 1, 128, alone=True)
    for case in ("NO_FENCE", "FENCE_BEFORE_WRITES", "D_CHANGED", "A_OVERWRITTEN"):
        yield Cell("11", "products", _of(CASE=case), ("wrong",), 528, 128, 1000, 128)


def _exits() -> Iterator[Cell]:
    for case in ("STORE_NOTHING", "STORE_COMMIT", "STORE_WAIT_READ", "STORE_WAIT", "LOAD"):
        yield Cell("4", "exits", _of(CASE=case), ("wrong", "blocks"), 5280, 128, 1, 1, shared=48128, launches=20)


def _ranks() -> Iterator[Cell]:
    counts = {"LOAD_THERE_CTA": ("words there", "words here", "phase there", "phase here"), "SHARED_TO_SHARED":
              ("words", "phase"), "MAPA_5": ("address",)}  # fmt: skip
    counts |= dict.fromkeys(("LOAD_THERE_CLUSTER", "MBARRIER_THERE"), counts["LOAD_THERE_CTA"])
    cases = ("LD_OWN_SPACE", "ST_OWN_SPACE", "LOAD_THERE_CTA", "LOAD_THERE_CLUSTER", "MBARRIER_THERE", "MAPA_5",
             "MAPA_5_LD", "MAPA_5_ST", "EXITED_LD", "EXITED_ST", "EXITED_ATOM", "EXITED_ARRIVE", "EXITED_ST_ASYNC",
             "EXITED_LOAD", "BARRIER_THREADS_EXITED", "BARRIER_BLOCK_EXITED", "SHARED_TO_SHARED")  # fmt: skip
    for case in cases:
        names = counts.get(case, ("went on",))
        yield Cell("9", "ranks", _of(CASE=case), names, 2, 128, 1, 1, cluster=2, alone=True)
    for cluster in (None, 1):
        choices = _of(CASE="SHARED_TO_SHARED", CLUSTER=cluster or 0)
        yield Cell("9", "ranks", choices, counts["SHARED_TO_SHARED"], 1, 128, 1, 1, cluster=cluster, alone=True)


_EXPERIMENTS = (_fences, _loads, _waits, _scopes, _maps, _maps_of_warps, _reuse, _late, _products, _exits, _ranks)
CELLS: tuple[Cell, ...] = tuple(cell for experiment in _EXPERIMENTS for cell in experiment())
"""All of them, in the order in which they run."""

_FAILURES = {"1": ("old",), "2": ("new",), "3": ("first new", "second old"), "4": ("wrong",), "5": ("old",),
            "6": ("new",), "10": ("as the others", "neither"), "11": ("wrong",), "12": ("old",),
            "13": ("new",), "14": ("old",)}  # fmt: skip
"""Which counts of an experiment say that a kernel failed. Experiment 9 has none; there faults are."""


def source(cell: Cell) -> str:
    """Return the text that is compiled for a cell."""
    defined = [f"#define {name} {value}\n" for name, value in cell.choices if name not in _NOT_DEFINED]
    return "".join([*defined, (_PROGRAMS / "common.cuh").read_text(), (_PROGRAMS / f"{cell.program}.cu").read_text()])


def failed(cell: Cell, result: dict[str, Any]) -> int:
    """Return how often a cell failed: what its experiment counts as a failure, or 1 for a fault."""
    if "fault" in result:
        return 1
    return sum(result["counts"][name] for name in _FAILURES.get(cell.experiment, ()))
