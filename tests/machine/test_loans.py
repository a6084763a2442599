"""Copies that leave their bytes at the source until they complete, spare memory, and what undoes a launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.machine.base import grain_engine, memory_engine, move, new_pages, spare
from warpmma.machine.base.spare import Spare
from warpmma.machine.memory import Loan, undoing
from warpmma.machine.memory.address_space import Region

_SIZE = 1024
_TEXT = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) {{
.reg .b32 %t, %a; .reg .b64 %x, %y; .reg .pred %p;
.shared .align 128 .b8 tile[{size}];
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0;
mov.u32 %a, tile; mad.lo.u32 %a, %t, 4, %a;
st.shared.u32 [%a], %t; st.shared.u32 [%a + {half}], %t;
fence.proxy.async.shared::cta; bar.sync 0;
@%p cp.async.bulk.global.shared::cta.bulk_group [%y], [tile], {size};
@%p cp.async.bulk.commit_group;
@%p cp.async.bulk.wait_group.read 0;
bar.sync 0;
{then}
bar.sync 0;
@%p cp.async.bulk.wait_group 0;
ret; }}"""
_ONES = "st.shared.u32 [%a], 0xffffffff; st.shared.u32 [%a + {half}], 0xffffffff;"


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("hazards", ["error", "off"])
def test_a_source_that_is_overwritten_was_read_before(
    hazards: Any, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reading is over and the writing is not: what the threads store then is not copied."""
    if not native:
        monkeypatch.setattr(memory_engine, "NATIVE", None)
        monkeypatch.setattr(grain_engine, "GRAINS", None)
    half = _SIZE // 2
    text = _TEXT.format(size=_SIZE, half=half, then=_ONES.format(half=half))
    y = np.zeros(_SIZE // 4, np.uint32)
    wm.ptx.load(text)["k"].launch(wm.Device("sm_90"), 1, half // 4, [y, y], hazards=hazards)
    assert y.tolist() == [*range(half // 4)] * 2


def test_a_loan_keeps_what_was_lent() -> None:
    memory, to = np.arange(64, dtype=np.uint8), np.zeros(32, np.uint8)
    offset = np.array([0, 16], np.int64)
    loan = Loan(memory, offset, 8, 0, 32)
    assert loan.shape == (2, 8)
    assert loan.nbytes == 16
    assert loan.open
    assert [loan.meets(x) for x in ((0, 1), (8, 16), (23, 24), (24, 32))] == [True, True, True, False]
    loan.write(to, np.array([8], np.int64), np.array([False, True]), 0)
    assert to[8:16].tolist() == [*range(16, 24)]
    loan.bytes()
    memory[:] = 0
    assert not loan.open
    loan.write(to, np.array([0, 24], np.int64), None, 0)
    assert to[:8].tolist() == [*range(8)]
    assert to[24:].tolist() == [*range(16, 24)]
    loan.end()
    with pytest.raises(AssertionError, match="ended"):
        loan.bytes()


def test_a_loan_that_moves_within_its_memory_reads_first() -> None:
    memory = np.arange(32, dtype=np.uint8)
    Loan(memory, np.array([0, 8], np.int64), 8, 0, 0).write(memory, np.array([8, 16], np.int64), None, 0)
    assert memory.tolist() == [*range(8), *range(16), *range(24, 32)]


@pytest.mark.parametrize("native", [True, False])
def test_pages_are_kept_once_and_restored(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large ones, and the last one, which is not a whole page."""
    if not native:
        monkeypatch.setattr(memory_engine, "NATIVE", None)
    rng = np.random.default_rng(0)
    before = rng.integers(0, 256, 40_000).astype(np.uint8)
    region = Region(name="x", start=0, data=before.copy())
    budget = undoing.Budget(Any)  # type: ignore[arg-type]
    pages = undoing.KeptPages(budget, region)
    for offset, size in (([4090], 12), ([8192, 24_000], 5000), ([39_990], 10), ([4090], 12)):
        pages.keep(np.array(offset, np.int64), size)
        for at in offset:
            region.data[at : at + size] = rng.integers(0, 256, size)
    kept = {0, 1, 2, 3, 5, 6, 7, 9}
    assert undoing.MOST_KEPT - budget.left == 7 * 4096 + 40_000 - 9 * 4096
    assert {int(x) >> 12 for of, _ in pages._pages for x in of} | {9} == kept
    pages.restore(region)
    assert np.array_equal(region.data, before)


@pytest.mark.parametrize("native", [True, False])
def test_moves_and_pages(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr(memory_engine, "NATIVE", None)
    origin, target = np.arange(16, dtype=np.uint8), np.zeros(16, np.uint8)
    move(origin, np.array([0, 8], np.int64), target, np.array([12, 4], np.int64), 4)
    assert target.tolist() == [0, 0, 0, 0, 8, 9, 10, 11, 0, 0, 0, 0, 0, 1, 2, 3]
    flags = np.zeros(4, bool)
    assert sorted(new_pages(flags, np.array([6, 25], np.int64), 4, 3).tolist()) == [0, 8, 24]
    assert not len(new_pages(flags, np.array([0], np.int64), 16, 3))
    assert memory_engine.bounds(np.array([40, 70], np.int64), 4, 32) == (6, 12)
    assert memory_engine.bounds(np.array([40, 70], np.int64), 4, 0) == (40, 74)


@pytest.mark.parametrize("size", [4096, 4111])
def test_much_moves_as_little_does(size: int) -> None:
    """Beyond 4 MiB the engine writes past the caches, where the target is aligned."""
    lanes = 1100
    assert lanes * size > 1 << 22
    rng = np.random.default_rng(size)
    source, target = rng.integers(0, 256, lanes * size, np.uint8), np.zeros(lanes * size + 64, np.uint8)
    order = rng.permutation(lanes) * size
    move(source, order, target, np.arange(lanes) * size + 3, size)
    assert np.array_equal(target[3:][: lanes * size].reshape(lanes, size), source.reshape(lanes, size)[order // size])
    assert not target[:3].any() and not target[3 + lanes * size :].any()
    aligned = -target.ctypes.data % 16
    move(source, order, target, np.arange(lanes) * size + aligned, size)
    assert np.array_equal(target[aligned:][: lanes * size], source.reshape(lanes, size)[order // size].reshape(-1))


def test_spare_memory_is_used_again_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare, "MOST", 5 << 20)
    of = Spare()
    small, middle, large = (np.empty(x << 20, np.uint8) for x in (1, 2, 3))
    of.give_back([large, small, np.empty(100, np.uint8)])
    assert of.take(1 << 20) is small
    assert of.take(2 << 20) is large
    of.give_back([small, middle, large])  # more than are kept: the smallest goes
    assert of.take(1 << 20) is middle
    assert len(of.take(100)) == 100
