"""Other counts of kernels, and their reports."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from bank_conflicts import tiles
from hazard_kernels.case import LDSM

from warpmma.errors import OperandError
from warpmma.kernel import Launch, launch
from warpmma.machine import Costs, Site
from warpmma.machine.report import costs


def counted(t: Any, x: Any) -> None:
    at = t.tid[0] * 4
    with t.where(t.laneid < 20):
        v = t("ld.global.b32", x + at)
        t("st.shared.b32", at, v)
    t("bar.sync")
    with t.where(t.warpid == 1):
        t("ld.shared.b8", t.laneid * 0)
        t("cp.async.ca.shared.global", at * 2 + 1024, x, 8, 5)
        t("cp.async.wait_all")


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
    number = tiles.__code__.co_firstlineno + 8
    wanted = f"         2       8          32         24  bank_conflicts.py:{number}  {LDSM} "
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
        t("bar.warp.sync", 0xFFFFFFFF)
        t("ld.shared.b32", (t.laneid & 15) * 128)  # of 16 pieces of 16 bytes, 8 are in banks of their own at most

    result = launch(kernel, 1, 32, [], target="sm_90", shared=2048)
    svg = result.svg(kernel.__code__.co_firstlineno + 4)
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


def test_accesses_that_are_counted_late_are_those_that_are_counted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def sites() -> list[Any]:
        rng, made = np.random.default_rng(0), Costs()
        for i in range(60):
            address = rng.integers(0, 64, (2, 3, 32)) * 4 if i % 3 else np.full((2, 3, 32), i // 9 * 128)
            kind = np.uint32 if i % 2 else np.int64
            made.shared(Site("k.py", i % 4, "ld"), address.astype(kind), 4, rng.random((2, 3, 32)) < i % 5, load=i > 9)
        return [
            (site, x.accesses, x.phases, x.wavefronts, [(*key, p.times) for key, p in x.patterns.items()])
            for site, x in made.sites.items()
        ]

    late = sites()
    monkeypatch.setattr(costs, "_MOST_HELD", 0)
    assert sites() == late and sum(accesses for _, accesses, *_ in late) > 200
