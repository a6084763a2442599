"""The native engine's memory does what NumPy's does; and without hazards kernels give the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.kernel import HazardError, Output, launch
from warpmma.machine.base import grain_engine, memory_engine
from warpmma.machine.base.grain_engine import PAGE, GrainRuns, GrainTable
from warpmma.machine.base.memory_engine import get, put, spread

NATIVE, GRAINS = memory_engine.NATIVE, grain_engine.GRAINS
needs_native = pytest.mark.skipif(NATIVE is None, reason="the native engine is not built")
THREAD, WARP, BLOCK, TIME, LAST = 24, 29, 34, 2, (1 << 22) - 1
FEW = np.zeros(4, np.uint64), np.zeros(1, np.uint64)  # a table


def both(monkeypatch: pytest.MonkeyPatch, ask: Any) -> tuple[Any, Any]:
    """Ask the native engine, and then NumPy."""
    first = ask()
    with monkeypatch.context() as patch:
        patch.setattr(memory_engine, "NATIVE", None)
        patch.setattr(grain_engine, "GRAINS", None)
        return first, ask()


def words(rng: np.random.Generator, n: int) -> Any:
    """Accesses of few threads of few blocks, at few times."""
    block, thread, time = rng.integers(1, 3, n), rng.integers(0, 40, n), rng.integers(1, 6, n)
    strong = rng.integers(0, 3, n)
    made = block << BLOCK | thread << THREAD | time << TIME | strong
    return np.where(rng.random(n) < 0.2, 0, made).astype(np.uint64)


@needs_native
@pytest.mark.parametrize("dtype", [np.uint64, np.uint32])
@pytest.mark.parametrize("alignment", [1, 4, 12])
def test_locate(dtype: Any, alignment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, answers = np.random.default_rng(alignment), set()
    starts, ends = np.array([96, 240, 1200], np.uint64), np.array([200, 1200, 1203], np.uint64)
    for _ in range(300):
        first = rng.choice([0, 60, 96, 120, 204, 240, 1188, 1200, 4000])
        address = (first + 12 * rng.integers(0, rng.choice([1, 3, 8]), 7)).astype(dtype)
        lanes = rng.random(7) < rng.choice([0, 0.5, 1, 1])
        mine, other = both(
            monkeypatch, lambda a=address, x=lanes: memory_engine.locate(a, x, (starts, ends), 4, alignment)
        )
        assert (mine is None) == (other is None)
        answers.add(None if mine is None else mine[0])
        if mine is not None and other is not None:
            inside = address[lanes].astype(np.int64) - int(starts[mine[0]])
            assert mine[0] == other[0] and (mine[1] == other[1]).all() and (mine[1] == inside).all()
            assert (inside >= 0).all() and (inside + 4 <= int(ends[mine[0]] - starts[mine[0]])).all()
    assert answers == {None, 0, 1}
    assert memory_engine.locate(np.zeros(2, dtype), np.ones(2, bool), (starts[:0], ends[:0]), 4, 4) is None


@needs_native
@pytest.mark.parametrize("dtype", [np.uint64, np.uint32])
@pytest.mark.parametrize("last", [1196, 1200, 1198])
def test_locate_few_of_many_lanes(dtype: Any, last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last lane that acts is inside, out of bounds, or misaligned; those that do not act do not matter."""
    bounds = np.array([96, 240], np.uint64), np.array([200, 1200], np.uint64)
    address = np.full(300, 7, dtype)
    acting = np.array([0, 31, 32, 298, 299])
    address[acting] = [240, 1000, 244, 240, last]
    lanes = np.isin(np.arange(300), acting)
    mine, other = both(monkeypatch, lambda: memory_engine.locate(address, lanes, bounds, 4, 4))
    assert (mine is None) == (other is None) == (last != 1196)
    if mine is not None and other is not None:
        assert mine[0] == other[0] == 1 and mine[1].tolist() == other[1].tolist() == [0, 760, 4, 0, 956]


@needs_native
@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 12, 16, 32])
@pytest.mark.parametrize("phase", [0, 5, 8])
def test_bytes(size: int, phase: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies in bulk of 32 bytes are multiples of 16 alone."""
    rng = np.random.default_rng(size)
    memory = rng.integers(0, 256, 512, np.uint8)
    offset = rng.integers(1, 512 // 32 - 1, 40) * 32 - phase % 32 + 16 * (size == 32)
    mine, other = both(monkeypatch, lambda: get(memory, offset, size, phase))
    assert (mine == other).all() and (mine[3] == memory[offset[3] : offset[3] + size]).all()
    data = rng.integers(0, 256, (40, size), np.uint8)

    def written() -> Any:
        made = memory.copy()
        put(made, offset, data, phase)
        return made

    mine, other = both(monkeypatch, written)
    assert (mine == other).all() and (get(mine, offset[-1:], size, phase) == data[-1]).all()


def in_pages(rng: np.random.Generator, n: int) -> GrainTable:
    """Draw a table: some pages have one word, others mostly nothing."""
    table = GrainTable(words(rng, n))
    table.words[rng.random(n) < rng.choice([0, 0.99, 1])] = 0
    whole = rng.random(len(table.pages)) < rng.choice([0, 0.5, 1])
    table.pages[whole] = words(rng, int(whole.sum()))
    return table


def copied(table: GrainTable) -> GrainTable:
    made = GrainTable(table.words.copy())
    made.pages[:] = table.pages
    return made


@needs_native
@pytest.mark.parametrize("grains", [1, 4, PAGE // 2, PAGE * 3])
def test_what_is_known_of_grains(grains: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, answers = np.random.default_rng(grains), []
    for _ in range(400):
        count = int(rng.choice([2, 8, 40]))
        table, mine = in_pages(rng, count * grains), words(rng, 12) | np.uint64(1 << BLOCK)
        places = GrainRuns(rng.integers(0, count, 12) * grains, grains)
        if count > 12 and rng.random() < 0.5:  # each lane above the one before
            places = GrainRuns(np.sort(rng.permutation(count)[:12]) * grains, grains)
        floor = int(rng.integers(0, 7))
        bits: Any = {"thread": THREAD, "block": BLOCK, "time": TIME, "last": LAST}
        first = both(monkeypatch, lambda a=(table, places, mine, floor), b=bits: grain_engine.ordered(*a, **b))

        def noted(a: Any = (table, places, mine)) -> Any:
            made = copied(a[0])
            return grain_engine.note(made, a[1], a[2]), made.every().tolist()

        def counted(a: Any = (count * grains, places, mine), seed: int = int(rng.integers(1 << 30))) -> Any:
            tables = tuple(in_pages(np.random.default_rng(seed + i), a[0]) for i in range(3))
            grain_engine.count_readers(
                tables, a[1], a[2], thread=np.uint64(THREAD), warp=np.uint64(WARP), block=np.uint64(BLOCK)
            )
            return [x.every().tolist() for x in tables]

        flags = rng.random(count * grains) < 0.97
        assert first[0] == first[1]

        def filled(a: Any = (table, flags, places)) -> Any:
            of_words, of_flags = copied(a[0]), a[1].copy()
            grain_engine.fill(of_words, a[2], 7)
            grain_engine.set_flags(of_flags, a[2], True)
            return of_words.every().tolist(), of_flags.tolist()

        for ask in (
            noted, counted, filled, lambda a=(flags, places): grain_engine.all_set(*a),
            lambda a=(table, places): grain_engine.none(*a),
            lambda a=(table, places): grain_engine.words_at(*a).tolist(),
        ):  # fmt: skip
            one, other = both(monkeypatch, ask)
            assert one == other
        every, of_some = copied(table).every(), table.of(places.all)
        assert (of_some == every[places.all]).all() and (table.finer(3).every() == np.repeat(every, 3)).all()
        answers.append(first[0])
    assert {*answers} == {True, False}


@needs_native
def test_a_whole_page_is_written_at_once() -> None:
    table = GrainTable.empty(2 * PAGE + 5)
    table.words[:] = 0
    assert grain_engine.note(table, GrainRuns(np.array([0, PAGE]), PAGE), np.array([3, 4], np.uint64))
    assert table.pages.tolist() == [3, 4, 0] and not table.words.any()
    grain_engine.fill(table, GrainRuns(np.array([PAGE + 1]), 1), 9)
    assert table.pages.tolist() == [3, grain_engine.MIXED, 0]
    assert table.every()[PAGE - 1 : PAGE + 3].tolist() == [3, 4, 9, 4]


@needs_native
@pytest.mark.parametrize("size", [4, 16, 24])
def test_bytes_of_some_lanes(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(size)
    lanes = rng.random((3, 2, 32)) < 0.5
    data = rng.integers(0, 256, (int(lanes.sum()), size), np.uint8)
    one, other = both(monkeypatch, lambda: spread(data, lanes))
    assert (one == other).all() and (one[lanes] == data).all() and not one[~lanes].any()


@needs_native
def test_rows_that_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).integers(0, 2, (200, 6))
    mine, other = both(monkeypatch, lambda: memory_engine.alike(rows).tolist())
    assert (
        mine == other
        and (rows[mine] == rows).all()
        and mine[0] == 0
        and len(set(mine)) == len({row.tobytes() for row in rows})
    )


@needs_native
@pytest.mark.parametrize(
    "call",
    [
        lambda: NATIVE.gather(np.zeros(8, np.uint8), np.array([5]), 4, np.zeros(4, np.uint8)),
        lambda: NATIVE.gather(np.zeros(8, np.uint8), np.array([-1]), 4, np.zeros(4, np.uint8)),
        lambda: NATIVE.gather(np.zeros(8, np.uint8), np.array([0]), 4, np.zeros(3, np.uint8)),
        lambda: NATIVE.scatter(np.zeros(8, np.uint8), np.array([5]), 4, np.zeros(4, np.uint8)),
        lambda: GRAINS.note(*FEW, np.array([4]), 1, np.zeros(1, np.uint64)),
        lambda: GRAINS.note(*FEW, np.array([3]), 2, np.zeros(1, np.uint64)),
        lambda: GRAINS.note(*FEW, np.array([1, 2, 3]), 1, np.zeros(2, np.uint64)),
        lambda: GRAINS.note(FEW[0], np.zeros(2, np.uint64), np.array([1]), 1, np.zeros(1, np.uint64)),
        lambda: NATIVE.spread(np.zeros(8, np.uint8), 4, np.ones(3, bool), np.zeros(12, np.uint8)),
        lambda: GRAINS.ordered(*FEW, np.array([0, 1]), 1, np.zeros(1, np.uint64), THREAD, BLOCK, TIME, LAST, 0),
        lambda: GRAINS.all_set(np.zeros(4, bool), np.array([-1]), 1),
        lambda: GRAINS.none(*FEW, np.array([0]), 5),
        lambda: GRAINS.set(np.zeros(4, bool), np.array([4]), 1, True),
        lambda: GRAINS.fill(*FEW, np.array([4]), 1, 1),
        lambda: NATIVE.alike(np.zeros(5, np.int64), 3, np.zeros(2, np.int64)),
    ],
)
def test_memory_beyond_is_refused(call: Any) -> None:
    with pytest.raises(ValueError, match=r"beyond|bytes|room|grains|words|pages"):
        call()


# Without hazards


def busy(t: Any, x: Any, y: Any, counts: Any) -> None:
    """Something of everything, with a race, unwritten memory and poison if `t` looked."""
    n = t.ctaid[0] * t.ntid[0] + t.tid[0]
    t("st.shared.v2.b32", t.tid[0] * 8, n, n * 3)
    t("bar.sync", 0)
    other = t("ld.shared.b32", (t.tid[0] ^ 5) * 8 + 4)
    t("cp.async.ca.shared.global", t.tid[0] * 4 + 1024, x + n * 4, 4)
    t("cp.async.wait_all")
    t("bar.sync", 0)
    copied = t("ld.shared.b32", (t.tid[0] ^ 1) * 4 + 1024)
    t("red.global.add.u32", counts + (n & 3) * 4, other)
    t("st.local.b32", 8, copied)
    with t.where(n % 3 == 0):
        other = t.update(other, t("ld.local.b32", 8) + 1)
    value = t("ld.b32", x + (n ^ 7) * 4)
    t("st.global.v2.b32", y + n * 8, other, value + copied)


@pytest.mark.parametrize("block", [96, 48])
@pytest.mark.parametrize("native", [True, False])
def test_results_are_the_same_without_hazards(block: int, native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.setattr(memory_engine, "NATIVE", None)
        monkeypatch.setattr(grain_engine, "GRAINS", None)
    made = []
    for hazards in ("error", "off"):
        x, y, counts = np.arange(400, dtype=np.uint32) * 9, np.zeros(800, np.uint32), np.zeros(4, np.uint32)
        report = launch(busy, 4, block, [x, y, counts], target="sm_90", shared=2048, hazards=hazards)
        made.append((y.tolist(), counts.tolist(), report.costs.bytes, report.costs.instructions))
    assert made[0][:2] == made[1][:2]
    assert [sorted(x.values()) for x in made[0][2:]] == [sorted(x.values()) for x in made[1][2:]]


def test_without_hazards_only_what_is_tracked_is_left_out() -> None:
    def careless(t: Any, y: Any) -> None:
        t("st.global.b32", y, t.tid[0])  # a race
        with t.where(t.tid[0] < 3):
            z = t("ld.shared.b32", t.tid[0] * 4)  # unwritten
        t("st.global.b32", y + 4, z)  # poison
        t("cp.async.ca.shared.global", t.tid[0] * 4, y, 4)  # pending

    y = np.zeros(4, np.uint32)
    for _ in range(2):
        report = launch(careless, 2, 32, [Output(y)], target="sm_90", shared=256, hazards="off")
        assert y[0] == 0 and report.hazards == [] and not report.counts
    launch(lambda t, y: None, 1, 32, [Output(y)], target="sm_90", hazards="off")
    for wrong, kind in (
        (lambda t, y: t("ld.global.b32", y + t.tid[0] * 4), "bounds"),
        (lambda t, y: t("ld.shared.b32", t.tid[0] * 4 + 1), "misaligned"),
        (lambda t, y: t("st.shared.b32", t.tid[0] * 4 + 200, 0), "bounds"),
        (lambda t, y: t("st.local.b32", 1 << 30, 0), "stack"),
    ):
        with pytest.raises(HazardError) as caught:
            launch(wrong, 1, 32, [y], target="sm_90", shared=256, hazards="off")
        assert caught.value.hazard.kind == kind


def test_what_was_written_without_hazards_is_taken_for_written() -> None:
    device = wm.Device("sm_90")
    y = device.empty(64, np.uint32)
    launch(lambda t, y: t("st.global.b32", y + t.tid[0] * 4, 1), 1, 32, [y], hazards="off")
    launch(lambda t, y: t("ld.global.b32", y + t.tid[0] * 4), 1, 64, [y])
    z = device.empty(64, np.uint32)
    launch(lambda t, z: t("red.global.add.u32", z, 1), 1, 32, [z], hazards="off")
    assert z.numpy()[0] == 32
    launch(lambda t, z: t("ld.global.b32", z + t.tid[0] * 4), 1, 64, [z])


@pytest.mark.parametrize("hazards", ["of", "OFF", {"race": "off"}, None])
def test_other_policies_are_refused(hazards: Any) -> None:
    with pytest.raises(wm.OperandError, match="hazards: "):
        launch(lambda t: None, 1, 32, [], target="sm_90", hazards=hazards)


@needs_native
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 8])
def test_words_of_lanes_lie_together(count: int, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(count)
    registers = [rng.integers(0, 256, (2, 3, 32)).astype(dtype) for _ in range(count - 1)]
    registers.append(np.broadcast_to(dtype(7), (2, 3, 32)))
    native, slow = both(monkeypatch, lambda: memory_engine.joined(registers))
    assert native.shape == slow.shape == (2, 3, 32, count * np.dtype(dtype).itemsize)
    assert np.array_equal(native, slow)
    for apart in both(monkeypatch, lambda: memory_engine.split(slow, dtype)):
        assert all(np.array_equal(x, y) for x, y in zip(apart, registers, strict=True))
    if hasattr(NATIVE, "join"):
        with pytest.raises(ValueError, match="join"):
            NATIVE.join([np.zeros(4, np.uint8), np.zeros(8, np.uint8)], 4, np.zeros(12, np.uint8))
