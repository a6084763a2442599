"""Bank conflicts: counted by hand, as on an H200, and as a slow model counts them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from arrays import Array
from bank_conflicts import BANKS, model
from hypothesis import given
from hypothesis import strategies as st

from warpmma.machine import SharedSite, Site, wavefronts
from warpmma.show import schedule

LANES = np.arange(32)


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


def test_blocks_that_access_alike_count_as_often_as_there_are() -> None:
    rows = np.stack([LANES * 8, LANES * 4]).astype(np.uint32)
    alike, apart = (SharedSite(Site("k", 1, "ld.shared.b32"), load=True) for _ in range(2))
    for _ in range(3):
        alike.add(rows, 4, 5)
        for _ in range(5):
            apart.add(rows.astype(np.int64), 4)
    assert [x.times for x in alike.patterns.values()] == [x.times for x in apart.patterns.values()] == [15, 15]
    assert (alike.accesses, alike.phases, alike.wavefronts) == (30, 30, 45)
