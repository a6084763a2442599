"""Atomics: their order against a loop over the lanes, the order that CUDA leaves open, and races with them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import run

from warpmma.errors import OperandError
from warpmma.kernel import HazardError, HazardWarning
from warpmma.machine import Batch, Costs, GlobalMemory, History, Reporter, Site, WarpRegister, execute
from warpmma.machine.base.atomic_order import in_turns, one_by_one
from warpmma.operations import Atomic, row, rows

pytestmark = pytest.mark.quick

TURNS = [x for x in rows("sm_90", "atom") if isinstance(x, Atomic) and x.space != "shared" and x.count == 1]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_turns_are_those_of_a_loop(data: st.DataObject) -> None:
    found = data.draw(st.sampled_from(TURNS))
    lanes, elements = data.draw(st.sampled_from([1, 5, 40, 150])), data.draw(st.integers(1, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    dtype, more = f"u{min(found.bits, 64) // 8}", (2,) * (found.bits == 128)
    # Values that are equal to each other now and then; any; floats that are no NaN.
    kind = data.draw(st.sampled_from(["few", "any", "small"]))
    small = np.array([0xBFFFBFFFBFFFBFFF], np.uint64).view(dtype)[0]

    def words(*shape: int) -> Any:
        most = 4 if kind == "few" else np.iinfo(dtype).max
        values = rng.integers(0, most, (*shape, *more), dtype, endpoint=True)
        return values & small if kind == "small" else values

    place, start = rng.integers(0, elements, lanes), words(elements)
    operands = [words(lanes) for _ in range(found.values)]
    for space in ("global", "shared"):
        expected, got = (f(found, space, place, start, operands) for f in (one_by_one, in_turns))
        assert all(np.array_equal(x, y) for x, y in zip(expected, got, strict=True))


def _ticket(t: Any, counter: Any, out: Any) -> None:
    t("st.global.b32", out + (t.ctaid[0] * 64 + t.tid[0]) * 4, t("atom.global.add.u32", counter, 1))


def test_tickets_are_each_given_once_and_the_report_says_that_their_order_is_open() -> None:
    counter, out = np.zeros(1, np.uint32), np.zeros(128, np.uint32)
    report = run(_ticket, counter, out, grid=2, block=64)
    assert counter[0] == 128 and out.tolist() == list(range(128))
    assert report.counts == {"order": 128}
    ((site, number),) = report.order.items()
    assert site.mnemonic == "atom.global.add.u32" and number == 128
    assert f"128  {site.place}  atom.global.add.u32" in report.text()
    (told,) = json.loads(report.json())["order"]
    assert told["lanes"] == 128 and told["line"] == site.line


def test_the_order_can_be_asked_to_be_a_hazard() -> None:
    counter, out = np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    with pytest.warns(HazardWarning, match=r"atom.global.add.u32: order: block 0, warp 0, lane 0"):
        run(_ticket, counter, out, block=64, hazards={"order": "warn"})


@pytest.mark.parametrize(
    ("mnemonic", "values", "open_"),
    [
        ("red.global.add.u32", [1, 2, 3], False),
        ("red.global.inc.u32", [5, 5, 5], False),
        ("red.global.inc.u32", [0, 5, 7], True),
        ("red.global.add.f32", [1.0, 2.0, 4.0], False),
        ("red.global.add.f32", [1e8, 1.0, -1e8], True),
        ("atom.global.or.b32", [0, 0, 0], False),
        ("atom.global.or.b32", [1, 2, 4], True),
        ("atom.global.exch.b32", [1, 2, 4], True),
    ],
)
def test_where_order_matters(mnemonic: str, values: list[Any], open_: bool) -> None:
    def kernel(t: Any, x: Any, y: Any) -> None:
        at = y + t.tid[0] * 4
        with t.where(t.tid[0] < 3):
            t(mnemonic, x, t("ld.global.b32", at))

    dtype = np.float32 if isinstance(values[0], float) else np.uint32
    report = run(kernel, np.zeros(1, np.uint32), np.array(values, dtype))
    assert bool(report.order) == open_


def test_atomics_of_two_warps_that_a_barrier_orders_are_in_order() -> None:
    def kernel(t: Any, x: Any, barrier: bool) -> None:
        for warp in range(2):
            with t.where(t.tid[0] == 32 * warp):
                t("atom.global.add.u32", x, 1)
            if barrier:
                t("bar.sync", 0)

    assert not run(lambda t, x: kernel(t, x, True), np.zeros(1, np.uint32), block=64).order
    assert run(lambda t, x: kernel(t, x, False), np.zeros(1, np.uint32), block=64).order


def _then(first: str, second: str, *, grid: int = 1) -> Any:
    """Two threads, of two blocks where there are, touch one word."""

    def kernel(t: Any, x: Any) -> None:
        one = (t.ctaid[0] == 0) if grid == 2 else (t.tid[0] < 32)
        first_lane = t.laneid == 0
        for name, who in ((first, one), (second, ~one)):
            with t.where(who & first_lane):
                t(name, x, *([] if name.startswith("ld") else [5 if name.startswith("st") else 1]))

    return kernel


@pytest.mark.parametrize(
    ("first", "second", "grid", "race"),
    [
        ("atom.global.add.u32", "red.global.add.u32", 1, False),
        ("atom.global.add.u32", "red.global.add.u32", 2, False),
        ("atom.cta.global.add.u32", "red.global.add.u32", 1, False),
        ("atom.cta.global.add.u32", "red.global.add.u32", 2, True),
        ("red.cluster.global.add.u32", "red.sys.global.add.u32", 2, True),
        ("red.sys.global.add.u32", "red.gpu.global.add.u32", 2, False),
        ("atom.global.add.u32", "ld.global.b32", 1, True),
        ("atom.global.add.u32", "st.global.b32", 2, True),
        ("ld.global.b32", "atom.global.add.u32", 2, True),
        ("st.global.b32", "red.global.add.u32", 1, True),
    ],
)
def test_atomics_race_with_what_is_none(first: str, second: str, grid: int, race: bool) -> None:
    kernel, block = _then(first, second, grid=grid), 32 if grid == 2 else 64
    if race:
        with pytest.raises(HazardError, match="race"):
            run(kernel, np.zeros(1, np.uint32), grid=grid, block=block)
    else:
        run(kernel, np.zeros(1, np.uint32), grid=grid, block=block)


def test_an_atomic_of_one_block_that_two_execute_at_once_is_a_race() -> None:
    with pytest.raises(HazardError, match="block 1 writes it in this very access"):
        run(lambda t, x: t("red.cta.global.add.u32", x, 1), np.zeros(1, np.uint32), grid=2)


def test_an_atomic_reads_what_nobody_wrote() -> None:
    with pytest.raises(HazardError, match="unwritten"):
        run(lambda t: t("red.shared.add.u32", 0, 1))


def test_an_array_that_is_read_only_is_not_changed() -> None:
    x = np.zeros(1, np.uint32)
    x.flags.writeable = False
    with pytest.raises(HazardError, match=r"bounds.*read-only"):
        run(lambda t, x: t("red.global.add.u32", x, 1), x)


def test_shared_memory_has_atomics_too() -> None:
    def kernel(t: Any, out: Any) -> None:
        t("st.shared.b32", t.tid[0] * 4, 0)
        t("bar.sync", 0)
        t("red.shared.add.u32", (t.tid[0] % 8) * 4, t.tid[0])
        t("bar.sync", 0)
        t("st.global.b32", out + t.tid[0] * 4, t("ld.shared.b32", t.tid[0] * 4))

    out = np.zeros(64, np.uint32)
    assert not run(kernel, out, block=64).counts
    assert out[:8].tolist() == [sum(range(i, 64, 8)) for i in range(8)] and not out[8:].any()


def _batch(seed: int) -> tuple[Batch, int, Any]:
    reporter = Reporter()
    memory, counter = GlobalMemory(reporter), np.zeros(1, np.uint32)
    address = memory.add(counter, "counter")
    batch = Batch(
        blocks=range(2), threads=64, target="sm_90", memory=memory, shared=0, reporter=reporter, costs=Costs(),
        history=History(), seed=seed,
    )  # fmt: skip
    return batch, address, counter


def test_a_seed_changes_the_order_and_nothing_else() -> None:
    found = []
    for seed in (0, 1, 2, 1):
        batch, address, counter = _batch(seed)
        at = WarpRegister(np.full(batch.shape, address, np.uint64))
        (old,) = execute(batch, Site("k.py", 1, "atom"), row("atom.global.add.u32"), [at, 1], batch.lanes.alive)
        assert counter[0] == 128 and sorted(old.bits.reshape(-1)) == list(range(128))
        found.append(old.bits.reshape(-1).tolist())
    assert found[0] == list(range(128)) and found[1] != found[0] != found[2] != found[1] == found[3]


def test_operands_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OperandError, match=r"takes \[p\], a0, b0; got 2 operands"):
        run(lambda t, x: t("atom.global.cas.b32", x, 1), np.zeros(1, np.uint32))
    with pytest.raises(OperandError, match="expected b64"):
        run(lambda t, x: t("red.global.add.u64", x, t.tid[0]), np.zeros(1, np.uint64))


@pytest.mark.parametrize("count", [2, 4])
def test_a_vector_at_a_generic_address_of_shared_memory(count: int) -> None:
    """An H200 changes nothing there: vectors are in global memory."""

    def kernel(t: Any) -> None:
        address = t("cvta.shared.u64", t.constant(0, "b64"))
        t(f"red.add.v{count}.f32", address, *[t("mov.f32", 1.0)] * count)

    with pytest.raises(HazardError, match=r"an address in the window of generic addresses of \.shared, not of global"):
        run(kernel, block=1, target="sm_90")
