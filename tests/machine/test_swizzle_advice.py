"""Advice on swizzles, on kernels of a few lines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from bank_conflicts import model, tiles
from hazard_kernels.case import LDSM
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warpmma.kernel.launching import launch
from warpmma.machine import CANDIDATES, Costs, HazardWarning, Site, Swizzle
from warpmma.machine.report import banks as module

LANES = np.arange(32)


SHARED = 8192
NAMES = {2: "b16", 4: "b32", 8: "b64", 16: "v2.b64"}
# Code objects that say that they are lines 1, 2, ... of a file, as costs are counted by line.
CODE = [compile("\n" * i + "t(mnemonic, at, *values)", "lines.py", "exec") for i in range(3)]


@dataclass(frozen=True)
class Line:
    """A line of a kernel, in which lane i accesses `size` bytes at `start + i * stride`; or they are rows."""

    size: int
    start: int
    stride: int
    does: str = "ld"

    def run(self, t: Any, code: Any, swizzle: Swizzle | None) -> None:
        at = (t.laneid * self.stride + self.start) % SHARED
        at = swizzle(at) if swizzle else at
        mnemonic = LDSM if self.does == "ldmatrix" else f"{self.does}.shared.{NAMES[self.size]}"
        values = [0] * (1 + self.size // 16) if self.does == "st" else []
        exec(code, {"t": t, "at": at, "mnemonic": mnemonic, "values": values})


def run_lines(lines: Sequence[Line], group: Sequence[int] = (), swizzle: Swizzle | None = None) -> Costs:
    """Run a kernel of lines, of which some are swizzled."""

    def kernel(t: Any) -> None:
        for index, line in enumerate(lines):
            line.run(t, CODE[index], swizzle if index in group else None)

    with warnings.catch_warnings():  # of memory that was never written, and lanes that write one byte
        warnings.simplefilter("ignore", HazardWarning)
        return launch(kernel, 1, 32, [], target="sm_90", shared=SHARED, hazards="warn").costs


@st.composite
def lines(draw: st.DrawFn) -> Line:
    size = draw(st.sampled_from([2, 4, 8, 16, 16]))
    does = draw(st.sampled_from(["ld", "st", "ldmatrix"] if size == 16 else ["ld", "st"]))
    stride = draw(
        st.one_of(st.sampled_from([16, 32, 64, 80, 128, 144, 256, 512]), st.integers(0, 40).map(size.__mul__))
    )
    return Line(size, draw(st.integers(0, 63)) * size, stride, does)


def conflicts_with(costs: Costs, group: Sequence[int], swizzle: Swizzle) -> list[int]:
    """Conflicts by line with a swizzle, as the model counts them; 999 where it tears an access."""
    lost = []
    for index, entry in enumerate(costs.sites.values()):
        lost.append(0)
        for (size, _), pattern in entry.patterns.items():
            moved = swizzle(pattern.address) if index in group else pattern.address
            phases, waves = model(np.where(pattern.address >= 0, moved, -1).tolist(), size, entry.load)
            lost[-1] += (waves - phases) * pattern.times if size <= 1 << swizzle.base or index not in group else 999
    return lost


@settings(deadline=None, max_examples=80)
@given(st.lists(lines(), min_size=1, max_size=3))
@example([Line(16, 0, 16, "st"), Line(16, 0, 64, "ldmatrix")])
@example([Line(4, 0, 4, "st"), Line(4, 0, 128)])
@example([Line(16, 0, 16, "st"), Line(4, 0, 128)])  # in pieces of 16 bytes, nothing helps
@example([Line(16, 0, 64, "ldmatrix"), Line(16, 4096, 80)])
@example([Line(16, 0, 64, "ldmatrix"), Line(4, 0, 128)])
def test_advice(lines: list[Line]) -> None:
    """What is advised removes every conflict of its line and adds none elsewhere; and None means that nothing would."""
    before = run_lines(lines)
    lost = [entry.conflicts for entry in before.sites.values()]
    advice = before.advice()
    assert [site.line - 1 for site in advice] == [i for i, n in enumerate(lost) if n]
    for site, swizzle in advice.items():
        index, group = site.line - 1, [each.line - 1 for each in before.together(site)]
        assert index in group
        if swizzle is not None:
            after = [entry.conflicts for entry in run_lines(lines, group, swizzle).sites.values()]
            assert after[index] == 0 and all(x <= y for x, y in zip(after, lost, strict=True))
            assert after == conflicts_with(before, group, swizzle)
            continue
        for each in CANDIDATES:
            after = conflicts_with(before, group, each)
            assert after[index] or any(x > y for x, y in zip(after, lost, strict=True))


@pytest.mark.parametrize(
    ("pitch", "lost"), [(64, [0, 24, 12]), (80, [16, 0, 0]), (128, [16, 56, 28]), (144, [16, 0, 0])]
)
def test_tiles(pitch: int, lost: list[int]) -> None:
    """Counted by hand: 16 phases of copies, 8 of loads of four matrices, 4 of those of two."""

    def counted(swizzle: Callable[[Any], Any]) -> tuple[Costs, list[int]]:
        x = np.zeros(2048, np.uint8)
        costs = launch(lambda t, x: tiles(t, x, pitch, swizzle), 1, 32, [x], target="sm_90", shared=8192).costs
        return costs, [entry.conflicts for entry in costs.sites.values()]

    costs, found = counted(lambda at: at)
    assert found == lost
    for index, (site, entry) in enumerate(costs.sites.items()):
        if entry.conflicts and (swizzle := costs.advice()[site]):
            after = counted(swizzle)[1]
            assert after[index] == 0 and all(x <= y for x, y in zip(after, lost, strict=True))
    advised = list(costs.advice().values())
    if pitch == 64:
        assert advised == [Swizzle(2, 4, 3)] * 2  # CUTLASS takes it for such rows
    if pitch == 128:  # and this one; the copies of half rows would need another
        assert advised == [Swizzle(1, 6, 1), Swizzle(3, 4, 3), Swizzle(3, 4, 3)]


def test_lines_together() -> None:
    """Lines are advised together if they share pieces of 128 bytes, be it through others."""

    def kernel(t: Any) -> None:
        for start in (0, 256, 512, 1152):  # 256 bytes each
            t("st.shared.b64", t.laneid * 8 + start, 0)
        t("bar.warp.sync", 0xFFFFFFFF)
        t("ld.shared.b8", (t.laneid >> 4) * 32 + 224)
        t("ld.shared.b8", t.laneid + 1152)

    costs = launch(kernel, 1, 32, [], target="sm_90", shared=2048).costs
    stores, first, second = costs.sites
    assert costs.together(first) == costs.together(second) == [stores, first, second]

    def apart(t: Any) -> None:
        t("st.shared.b64", t.laneid * 8, 0)
        t("st.shared.b32", t.laneid * 4 + 256, 0)
        t("ld.shared.b32", t.laneid * 4 + 256)

    costs = launch(apart, 1, 32, [], target="sm_90", shared=2048).costs
    first, second, third = costs.sites
    assert costs.together(first) == [first] and costs.together(third) == [second, third]


def test_too_many_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts are exact all the same; there is no advice, as not all is known."""
    rows = np.stack([LANES * 128 + i * 4 for i in range(20)])

    def counted() -> Costs:
        made = Costs()
        for part in (rows[:7], rows[:10], rows):
            made.shared(Site("k.py", 1, "ld"), part, 4, np.ones(part.shape, bool))
        return made

    whole = counted()
    (a,) = whole.sites.values()
    monkeypatch.setattr(module, "_PATTERNS", 8)
    part = counted()
    (b,) = part.sites.values()
    assert (a.accesses, a.phases, a.wavefronts) == (b.accesses, b.phases, b.wavefronts) == (37, 37, 37 * 32)
    assert (a.complete, len(a.patterns), b.complete, len(b.patterns)) == (True, 20, False, 8)
    assert sum(pattern.times for pattern in a.patterns.values()) == 37
    assert list(whole.advice().values()) == [Swizzle(5, 2, 5)] and list(part.advice().values()) == [None]


def test_swizzles_are_bijections() -> None:
    every = np.arange(1 << 16)
    for swizzle in CANDIDATES:
        moved = swizzle(every)
        np.testing.assert_array_equal(np.sort(moved), every)
        np.testing.assert_array_equal(moved >> 7, every >> 7)  # inside of pieces of 128 bytes
        np.testing.assert_array_equal(moved % (1 << swizzle.base), every % (1 << swizzle.base))
        np.testing.assert_array_equal(swizzle(moved), every)
    assert len(set(CANDIDATES)) == len(CANDIDATES)
