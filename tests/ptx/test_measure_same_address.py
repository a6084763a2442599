"""Which lane's data remain if lanes of a warp store to one address: an H200 (`lab.measure.same_address`), and here."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from lab.measure.same_address import FORMS, IDLE, ROOM, expected, kernels
from warpmma.machine import HazardWarning
from warpmma.machine.base import memory_engine

RECORDED = Path(__file__).parents[1] / "data/h200_same_address.npz"
WELFORD = RECORDED.parent / "programs" / "welford.ptx.xz"
BLOCKS = 64


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    with np.load(RECORDED) as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.parametrize("engine", ["native", "numpy"])
@pytest.mark.parametrize("hazards", ["warn", "off"])
@pytest.mark.parametrize("name", kernels())
def test_a_store_gives_the_bytes_of_an_h200(
    name: str, hazards: Any, engine: str, recorded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "numpy":
        monkeypatch.setattr(memory_engine, "NATIVE", None)
    given, y = recorded["cells"], np.full((BLOCKS, ROOM), 0xFF, np.uint8)
    entry = wm.ptx.load(kernels()[name])["store"]
    if hazards == "off":
        entry.launch(wm.Device("sm_90"), BLOCKS, 32, [given, y], hazards=hazards)
    else:
        with pytest.warns(HazardWarning, match="lane order: .*another lane of the warp stores something else"):
            entry.launch(wm.Device("sm_90"), BLOCKS, 32, [given, y], hazards=hazards)
    assert (y == recorded[name]).all()
    assert (y == expected(name, given)).all()


def test_the_recording_tells_the_rule_from_others(recorded: dict[str, Any]) -> None:
    """The lowest or the highest lane of a warp, or the highest of the last part, would be seen."""
    given = recorded["cells"]
    assert (given == IDLE).any()
    for name, size in FORMS.items():
        found = recorded[f"shared {name}"]
        for lanes in (range(32), range(31, -1, -1), np.arange(32).reshape(max(1, size // 4), -1).reshape(-1)):
            made = np.full_like(found, 0xFF)
            for lane in lanes:
                at = np.flatnonzero(given[:, lane] != IDLE)
                made[at[:, None], given[at, lane, None] * size + np.arange(size)] = lane
            same = bool((made == found).all())
            assert same == (size <= 4 and list(lanes) == list(range(31, -1, -1)))


def test_a_reduction_whose_lanes_differ_gives_the_words_of_an_h200(recorded: dict[str, Any]) -> None:
    """Welford's reduction of 8 rows of 8, as Triton 3.6 compiles it: a combination of two lanes is not commutative.

    After the exchange of partial results by `shfl.bfly` the lanes that hold one row differ in the last bits, and all of
    them store to one address.
    """
    entry = wm.ptx.load(lzma.decompress(WELFORD.read_bytes()).decode())["k"]
    x = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)
    y = np.zeros(128, np.float32)
    with pytest.warns(HazardWarning, match="lane order"):
        entry.launch(wm.Device("sm_90a"), 8, 128, [x, y, 8, 0, 0], shared=512, hazards="warn")
    assert (y.view(np.uint32) == recorded["welford"]).all()
