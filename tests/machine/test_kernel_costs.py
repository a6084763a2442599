"""Costs: bank conflicts counted by hand and by a model, swizzles that are advised and then applied, and reports."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warpmma.errors import OperandError
from warpmma.kernel.launching import Launch, launch
from warpmma.machine import costs as module
from warpmma.machine.costs import CANDIDATES, Costs, SharedSite, Swizzle, wavefronts
from warpmma.machine.hazards import HazardWarning, Site
from warpmma.show.launches import schedule

Array = np.ndarray[Any, Any]
LANES = np.arange(32)
LDSM = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
BANKS = 32


def model(address: Sequence[int], size: int, load: bool = False) -> tuple[int, int]:
    """Count phases and wavefronts as the module says it, a lane at a time; -1 is no lane."""
    lanes = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[size]
    if load and size > 4:
        for bit in (1, 2):
            pairs = [(address[lane], address[lane ^ bit]) for lane in range(32)]
            if all(a == b or min(a, b) < 0 for a, b in pairs):
                lanes = 32 if size == 8 else 16
    phases = waves = 0
    for start in range(0, 32, lanes):
        wanted: dict[int, set[int]] = {}
        for at in address[start : start + lanes]:
            if at >= 0:
                for byte in range(at, at + size):
                    wanted.setdefault(byte // 4 % BANKS, set()).add(byte // 4)
        if wanted:
            phases += 1
            waves += max(map(len, wanted.values()))
    return phases, waves


# Counted by hand. A stride is from lane to lane, in bytes; a pitch from row to row of a matrix.
BY_HAND: list[tuple[str, Array, int, int, int]] = [
    ("words in a row", LANES * 4, 4, 1, 1),
    ("bytes in a row: 8 banks", LANES, 1, 1, 1),
    ("halves in a row: 16 banks", LANES * 2, 2, 1, 1),
    ("a stride of 2 words: 16 banks, twice", LANES * 8, 4, 1, 2),
    ("a stride of 4 words", LANES * 16, 4, 1, 4),
    ("a stride of 3 words: coprime to 32", LANES * 12, 4, 1, 1),
    ("a stride of 32 words: a column of a square", LANES * 128, 4, 1, 32),
    ("a stride of 33 words: padded", LANES * 132, 4, 1, 1),
    ("a stride of 32 words, halves", LANES * 128, 2, 1, 32),
    ("one word for all", LANES * 0 + 40, 4, 1, 1),
    ("two words of one bank", LANES // 16 * 128, 4, 1, 2),
    ("two words of two banks", LANES // 16 * 132, 4, 1, 1),
    ("two halves of each word", LANES // 2 * 4 + LANES % 2 * 2, 2, 1, 1),
    ("reversed", (31 - LANES) * 4, 4, 1, 1),
    ("8 bytes in a row: half a warp a phase", LANES * 8, 8, 2, 2),
    ("8 bytes, a stride of 16", LANES * 16, 8, 2, 4),
    ("8 bytes, a stride of 128", LANES * 128, 8, 2, 32),
    ("8 bytes, one for all", LANES * 0, 8, 2, 2),
    ("8 bytes, halves of a warp the same", LANES % 16 * 8, 8, 2, 2),
    ("16 bytes in a row: a quarter a phase", LANES * 16, 16, 4, 4),
    ("16 bytes, a stride of 32", LANES * 32, 16, 4, 8),
    ("16 bytes, one for all", LANES * 0, 16, 4, 4),
    ("rows of a matrix, pitch 16", LANES * 16, 16, 4, 4),
    ("rows of a matrix, pitch 64", LANES * 64, 16, 4, 16),
    ("rows of a matrix, pitch 80: padded", LANES * 80, 16, 4, 4),
    ("rows of a matrix, pitch 128", LANES * 128, 16, 4, 32),
    ("rows of a matrix, pitch 144: padded", LANES * 144, 16, 4, 4),
    ("rows of a matrix, pitch 128, swizzled", LANES * 128 + LANES % 8 * 16, 16, 4, 4),
    ("one matrix, pitch 128", np.where(LANES < 8, LANES * 128, -1), 16, 1, 8),
    ("the last lane alone", np.where(LANES < 31, -1, 128), 16, 1, 1),
    ("nobody", LANES * 0 - 1, 4, 0, 0),
]  # fmt: skip


@pytest.mark.parametrize(("_name", "address", "size", "phases", "waves"), BY_HAND, ids=[x[0] for x in BY_HAND])
def test_by_hand(_name: str, address: Array, size: int, phases: int, waves: int) -> None:
    assert model(address.tolist(), size) == (phases, waves)
    found = wavefronts(address, size)
    assert (int(found[0]), int(found[1])) == (phases, waves)


@pytest.mark.parametrize(
    ("_name", "address", "size", "phases", "waves"),
    [
        ("pairs", LANES // 2, 16, 2, 2),
        ("pairs, every second", LANES & ~2, 16, 2, 4),
        ("pairs of two kinds", np.where(LANES < 16, LANES & ~1, LANES & ~2), 16, 4, 4),
        ("pairs four lanes apart", LANES & ~4, 16, 4, 4),
        ("one for all", LANES * 0, 16, 2, 2),
        ("one for all, 8 bytes", LANES * 0, 8, 1, 1),
        ("odd lanes", np.where(LANES % 2, LANES, -1), 16, 2, 4),
        ("one lane of four", np.where(LANES % 4, -1, LANES // 4), 8, 1, 1),
        ("4 bytes", LANES // 2, 4, 1, 1),
    ],
)
def test_loads_by_hand(_name: str, address: Array, size: int, phases: int, waves: int) -> None:
    """Phases of an `ld` are joined where neighbours want the same."""
    at = np.where(address < 0, -1, address * size)
    assert tuple(map(int, wavefronts(at, size, load=True))) == model(at.tolist(), size, load=True) == (phases, waves)


RECORDED = np.load(Path(__file__).parents[1] / "data" / "h200_banks.npz")


@pytest.mark.parametrize("kind", RECORDED["kinds"].tolist())
def test_as_on_an_h200(kind: str) -> None:
    """Wavefronts and conflicts, as Nsight Compute counts them on an H200."""
    index = RECORDED["kinds"].tolist().index(kind)
    taken = RECORDED["counts"][index, :, 0] >= 0  # some kinds were measured on a part of the patterns
    elements, size = RECORDED["elements"][taken].astype(np.int64), int(RECORDED["sizes"][index])
    if "matrix" in kind:  # all lanes take part, and some of them have addresses
        elements = np.where(RECORDED["lanes"][index] > LANES, np.maximum(elements, 0), -1)
    address = np.where(elements < 0, -1, elements * size)
    phases, waves = wavefronts(address, size, load=kind.startswith("ld "))
    found, wanted = np.stack([waves, waves - phases], axis=-1), RECORDED["counts"][index, taken]
    if "cp.async" in kind:  # if lanes write the same word, a race, each takes a wavefront
        ranked = np.sort(elements, axis=-1)
        distinct = ((np.diff(ranked, axis=-1) > 0) | (ranked[:, 1:] < 0)).all(axis=-1)
        assert (found[~distinct] <= wanted[~distinct]).all()
        found, wanted = found[distinct], wanted[distinct]
    assert len(wanted) > 20
    np.testing.assert_array_equal(found, wanted)


sizes = st.sampled_from([1, 2, 4, 8, 16])


@st.composite
def accesses(draw: st.DrawFn) -> tuple[int, list[int]]:
    """Any aligned addresses, and lanes that take no part."""
    size = draw(sizes)
    unit = draw(st.sampled_from([1, 2, 8, 32]))
    lane = st.one_of(st.just(-1), st.integers(0, 40).map(lambda i: i * size * unit))
    return size, draw(st.lists(lane, min_size=32, max_size=32))


@given(accesses(), accesses(), st.booleans())
def test_as_the_model(first: tuple[int, list[int]], second: tuple[int, list[int]], load: bool) -> None:
    size = first[0]
    lists = [first[1], [at // size * size if at >= 0 else -1 for at in second[1]]]
    phases, waves = wavefronts(np.array(lists), size, load)
    assert list(zip(phases.tolist(), waves.tolist(), strict=True)) == [model(x, size, load) for x in lists]


@given(accesses())
def test_schedules(access: tuple[int, list[int]]) -> None:
    """A picture shows as many wavefronts as are counted; every word that a lane wants is served once."""
    size, address = access
    entry = SharedSite(Site("k.py", 1, "ld"))
    entry.add(np.array([address]), size)
    (pattern,) = entry.patterns.values()
    phases = schedule(pattern)
    assert (len(phases), sum(map(len, phases))) == model(address, size)
    served = Counter(
        (lane, bank) for phase in phases for wave in phase for bank, lanes in wave.items() for lane in lanes
    )
    wanted = {(lane, byte // 4 % BANKS) for lane, at in enumerate(address) if at >= 0 for byte in range(at, at + size)}
    assert set(served) == wanted and set(served.values()) <= {1}


# Advice, on kernels of a few lines.

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

    with warnings.catch_warnings():  # of memory that nobody wrote, and lanes that write one byte
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
            load = entry.site.mnemonic.startswith("ld.")
            phases, waves = model(np.where(pattern.address >= 0, moved, -1).tolist(), size, load)
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


def tiles(t: Any, x: Any, pitch: int, swizzle: Callable[[Any], Any]) -> None:
    """Rows of 64 bytes come by `cp.async`, and fragments go by `ldmatrix`: the classic."""
    for i in range(4):
        row, piece = (t.tid[0] >> 2) + i * 8, t.tid[0] & 3
        t("cp.async.cg.shared.global", swizzle(row * pitch + piece * 16), x + (row * 64 + piece * 16), 16)
    t("cp.async.wait_all")
    for k in range(2):
        t(LDSM, swizzle((t.laneid & 15) * pitch + (t.laneid >> 4) * 16 + k * 32))
        t("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", swizzle((t.laneid & 15) * pitch + k * 32))


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
    monkeypatch.setattr(module, "_PATTERNS", 8)
    part = counted()
    (a,), (b,) = whole.sites.values(), part.sites.values()
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


# What else is counted, and reports.


def counted(t: Any, x: Any) -> None:
    at = t.tid[0] * 4
    with t.where(t.laneid < 20):
        v = t("ld.global.b32", x + at)
        t("st.shared.b32", at, v)
    t("bar.sync")
    with t.where(t.warpid == 1):
        t("ld.shared.b8", t.laneid * 0)
        t("cp.async.ca.shared.global", at * 2 + 1024, x, 8, 5)


def report(grid: int = 3) -> Launch:
    return launch(counted, grid, 64, [np.zeros(64, np.uint32)], target="sm_90", shared=2048)


def test_counts() -> None:
    got = report().costs
    by_name: Counter[str] = Counter()
    for site, n in got.instructions.items():
        by_name[site.mnemonic] += n
    assert by_name["bar.sync"] == by_name["ld.global.b32"] == 6 and by_name["ld.shared.b8"] == 3
    moved = {(site.mnemonic, space): n for (site, space), n in got.bytes.items()}
    assert moved == {
        ("ld.global.b32", "global"): 3 * 2 * 20 * 4, ("st.shared.b32", "shared"): 3 * 2 * 20 * 4,
        ("ld.shared.b8", "shared"): 3 * 32, ("cp.async.ca.shared.global", "global"): 3 * 32 * 5,
        ("cp.async.ca.shared.global", "shared"): 3 * 32 * 8,
    }  # fmt: skip
    assert got.barriers == 3


def test_json() -> None:
    result = report()
    found = json.loads(result.json())
    assert found["barriers"] == 3 and found["hazards"] == []
    assert sum(site["instructions"] for site in found["sites"]) == sum(result.costs.instructions.values())
    by_name = {site["mnemonic"]: site for site in found["sites"]}
    copy = by_name["cp.async.ca.shared.global"]
    assert copy["bytes"] == {"global": 480, "shared": 768} and copy["file"] == __file__
    assert copy["shared"] == {"accesses": 3, "phases": 6, "wavefronts": 6, "conflicts": 0, "swizzle": None}
    assert by_name["bar.sync"]["shared"] is None


def conflicts() -> Launch:
    return launch(lambda t, x: tiles(t, x, 64, lambda at: at), 1, 32, [np.zeros(2048, np.uint8)], target="sm_90",
                  shared=2048)  # fmt: skip


def test_json_of_swizzles() -> None:
    found = {site["mnemonic"]: site for site in json.loads(conflicts().json())["sites"]}
    assert found[LDSM]["shared"]["swizzle"] == {"bits": 2, "base": 4, "shift": 3}


def test_text() -> None:
    text = conflicts().text()
    number = tiles.__code__.co_firstlineno + 7
    wanted = f"         2       8          32         24  test_kernel_costs.py:{number}  {LDSM} "
    assert any(wanted in line and line.endswith("Swizzle<2, 4, 3>: address ^ (address >> 3 & 0x30)")
               for line in text.splitlines())  # fmt: skip
    assert "  2,048  global  cp.async.cg.shared.global\n" in text
    assert f"      2  {LDSM}\n" in text
    assert "Hazards" not in text and not any(line != line.rstrip() for line in text.splitlines())
    assert launch(lambda t: None, 1, 1, [], target="sm_90").text() == "\n"


def boxes(svg: str) -> list[tuple[str, str]]:
    """Fill and note of every box that serves lanes."""
    root = ElementTree.fromstring(svg)
    name = "{http://www.w3.org/2000/svg}"
    return [
        (box.attrib["fill"], note.text or "") for box in root.iter(f"{name}rect") for note in box.iter(f"{name}title")
    ]


def test_svg() -> None:
    result = conflicts()
    site = next(site for site in result.costs.sites if site.mnemonic == LDSM)
    drawn = boxes(result.svg(site))
    assert result.svg(site.line) == result.svg(site)
    fills = Counter(fill for fill, _ in drawn)
    # 32 lanes as it is, of which 8 are served at once; and all 32 with the swizzle.
    assert fills == {"#cfe8cf": 8 + 32, "#f4b6a6": 24}
    assert drawn[0] == ("#cfe8cf", "banks 0 to 3: lane 0") and drawn[2] == ("#f4b6a6", "banks 0 to 3: lane 2")
    assert "Swizzle&lt;2, 4, 3&gt;: address ^ (address &gt;&gt; 3 &amp; 0x30)" in result.svg(site)


def test_svg_without_swizzle() -> None:
    def kernel(t: Any) -> None:
        for start in range(0, 2048, 512):
            t("st.shared.v2.b64", t.laneid * 16 + start, 0, 0)
        t("ld.shared.b32", (t.laneid & 15) * 128)  # of 16 pieces of 16 bytes, 8 are in banks of their own at most

    result = launch(kernel, 1, 32, [], target="sm_90", shared=2048)
    svg = result.svg(kernel.__code__.co_firstlineno + 3)
    assert "No XOR swizzle is known" in svg
    assert boxes(svg)[0] == ("#cfe8cf", "bank 0: lanes 0,16")


@pytest.mark.parametrize("site", [0, None, "ld.shared.b32", Site("k.py", 1, "ld")])
def test_svg_of_no_access(site: Any) -> None:
    with pytest.raises(
        OperandError, match=r"0 accesses to shared memory; give a Site of `costs\.sites`:\n  .*cp\.async"
    ):
        conflicts().svg(site)


def test_svg_of_two_accesses() -> None:
    result = launch(lambda t: (t("st.shared.b32", 0, 0), t("ld.shared.b32", 0)), 1, 1, [], target="sm_90", shared=4)
    with pytest.raises(OperandError, match="2 accesses"):
        result.svg(next(iter(result.costs.sites)).line)
