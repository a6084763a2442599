"""Steps are prepared once for a program and a shape, and keep nothing of a launch."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import Counter
from typing import Any

import numpy as np
import pytest
from assembler import batch_of

import warpmma as wm
from warpmma.errors import LimitError, OperandError
from warpmma.machine import Grid, HazardError, HazardWarning, Limit
from warpmma.machine.block import batch
from warpmma.machine.run import executor

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
BODY = """
.visible .entry k(.param .u64 from, .param .u64 to, .param .u32 factor, .param .u32 times)
{
    .shared .align 4 .b8 kept[4096];
    .reg .b64 %rd<6>;
    .reg .b32 %r<16>;
    .reg .pred %p<4>;
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [to];
    ld.param.u32 %r1, [factor];
    ld.param.u32 %r9, [times];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mad.lo.u32 %r5, %r3, %r4, %r2;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.u32 %r6, [%rd4];
    mov.u32 %r10, 0;
more:
    mul.lo.u32 %r6, %r6, %r1;
    add.u32 %r10, %r10, 1;
    setp.lt.u32 %p1, %r10, %r9;
    @%p1 bra more;
    shl.b32 %r7, %r2, 2;
    mov.u32 %r8, kept;
    add.u32 %r7, %r7, %r8;
    st.shared.u32 [%r7], %r6;
    bar.sync 0;
    ld.shared.u32 %r6, [%r7];
    shfl.sync.bfly.b32 %r6, %r6, 1, 31, -1;
    and.b32 %r11, %r2, 1;
    setp.eq.u32 %p2, %r11, 0;
    @%p2 add.u32 %r6, %r6, 1;
    st.global.u32 [%rd5], %r6;
    ret;
}
"""


def expected(x: np.ndarray, factor: int, times: int = 1) -> np.ndarray:
    pairs: np.ndarray = (x * np.uint32(factor) ** np.uint32(times)).reshape(-1, 2)[:, ::-1].reshape(-1)
    return np.asarray(pairs + (np.arange(len(x)) % 2 == 0).astype(np.uint32))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How often each place was prepared."""
    counts: Counter[int] = Counter()
    before = executor._Run._prepared

    def prepared(self: Any, place: int, step: Any) -> Any:
        counts[place] += 1
        return before(self, place, step)

    monkeypatch.setattr(executor._Run, "_prepared", prepared)
    return counts


class Case:
    """An entry on a device, with an array to read and one to write."""

    def __init__(self, entry: Any = None, target: str = "sm_80", count: int = 64) -> None:
        self.entry = wm.ptx.load(HEAD + BODY)["k"] if entry is None else entry
        self.device = wm.Device(target)
        self.values = np.arange(3, count + 3, dtype=np.uint32)
        self.x, self.y = self.device.array(self.values), self.device.zeros(count, np.uint32)

    def run(self, factor: int = 5, blocks: int = 1, times: int = 1, **more: Any) -> Any:
        self.y.set(np.zeros(len(self.values), np.uint32))
        args = [self.x, self.y, factor, times]
        report = self.entry.launch(self.device, blocks, len(self.values) // blocks, args, **more)
        assert (self.y.numpy() == expected(self.values, factor, times)).all()
        return report


def test_a_step_is_prepared_once_for_all_launches(made: Counter[int]) -> None:
    case = Case()
    reports = [case.run(factor, seed=seed) for factor, seed in ((5, 0), (7, 0), (9, 3))]
    assert len(made) > 20 and set(made.values()) == {1}
    assert reports[0].costs.instructions == reports[1].costs.instructions == reports[2].costs.instructions
    assert reports[0].costs.bytes == reports[1].costs.bytes


def test_a_step_is_prepared_once_for_all_batches_of_a_launch(made: Counter[int]) -> None:
    Case(count=384).run(blocks=6, resident=2)
    assert set(made.values()) == {1}


def test_each_width_and_each_engine_has_steps_of_its_own(made: Counter[int]) -> None:
    case = Case()
    for _ in range(2):
        for blocks in (1, 2, 1):
            case.run(blocks=blocks)
    assert set(made.values()) == {2}
    case.run(engine="numpy")
    case.run(engine="numpy")
    assert max(made.values()) == 2 + (len(wm.engines()) > 1)


def test_few_widths_are_kept() -> None:
    case = Case(count=1024)
    for blocks in (1, 2, 4, 8, 16, 32):
        case.run(blocks=blocks)
    program = case.entry.module.linked("k", case.device, "ptxas").launched
    assert len(program.kept) == executor._MOST_KEPT
    case.run(blocks=1)


def test_devices_have_steps_of_their_own(made: Counter[int]) -> None:
    entry = wm.ptx.load(HEAD + BODY)["k"]
    cases = [Case(entry, target) for target in ("sm_80", "sm_90")]
    for factor in (2, 3):
        for case in cases:
            case.run(factor)
    assert set(made.values()) == {2}


def test_hazards_are_of_each_launch() -> None:
    case, unwritten = Case(), wm.Device("sm_80")
    fresh, y = unwritten.empty(64, np.uint32), unwritten.zeros(64, np.uint32)
    for _ in range(2):
        case.run(hazards="off")
        case.run()
        policies: tuple[tuple[Any, int], ...] = (("off", 0), ("warn", 1), ("off", 0))
        for hazards, seen in policies:
            arguments = [fresh, y, 1, 1]
            if seen:
                with pytest.warns(HazardWarning):
                    report = case.entry.launch(unwritten, 1, 64, arguments, hazards=hazards)
            else:
                report = case.entry.launch(unwritten, 1, 64, arguments, hazards=hazards)
            assert len(report.hazards) >= seen
        with pytest.raises(HazardError, match="unwritten"):
            case.entry.launch(unwritten, 1, 64, [fresh, y, 1, 1])


def test_an_error_in_the_middle_of_a_launch_leaves_nothing_behind() -> None:
    case, beyond = Case(), 1 << 20
    for _ in range(2):
        first = case.run()
        with pytest.raises(HazardError, match="bounds"):
            case.entry.launch(case.device, 1, 64, [case.x.address + beyond, case.y, 5, 1])
        with pytest.raises(LimitError):
            case.entry.launch(case.device, 1, 64, [case.x, case.y, 5, 1000], limit=200)
        assert case.run().costs.instructions == first.costs.instructions
    with pytest.raises(LimitError, match="seconds"):
        case.entry.launch(case.device, 1, 64, [case.x, case.y, 5, 1 << 30], limit=Limit(seconds=0.05))
    case.run()


def test_threads_that_launch_one_entry_at_once() -> None:
    case, failed = Case(), []
    outs = [case.device.zeros(64, np.uint32) for _ in range(4)]

    def run(number: int) -> None:
        try:
            for turn in range(8):
                factor = 10 * number + turn + 1
                case.entry.launch(case.device, 1, 64, [case.x, outs[number], factor, 3])
                assert (outs[number].numpy() == expected(case.values, factor, 3)).all()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed


def test_nothing_of_a_launch_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[weakref.ref[Any]] = []
    before = batch.Batch.__init__

    def begin(self: Any, **given: Any) -> None:
        before(self, **given)
        alive.extend(weakref.ref(x) for x in (self, self.memory, self.reporter, self.clocks, self.lanes))

    monkeypatch.setattr(batch.Batch, "__init__", begin)
    case = Case()
    gc.disable()
    try:
        for turn in range(3):
            case.run(turn + 1)
            case.run(turn + 1, blocks=2)
        assert len(alive) == 30 and not any(ref() for ref in alive)
    finally:
        gc.enable()
    device = weakref.ref(case.device)
    del case.x, case.y, case.device
    gc.collect()
    assert device() is None


def test_special_registers_are_of_each_launch() -> None:
    """The same number of blocks and threads, in grids and blocks of other extents."""
    text = """
.visible .entry where(.param .u64 to)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<12>;
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mov.u32 %r5, %ctaid.x;
    mov.u32 %r6, %ctaid.y;
    mov.u32 %r7, %nctaid.x;
    mad.lo.u32 %r8, %r6, %r7, %r5;
    shl.b32 %r9, %r8, 5;
    add.u32 %r9, %r9, %r4;
    mul.wide.u32 %rd2, %r9, 4;
    add.s64 %rd1, %rd1, %rd2;
    shl.b32 %r10, %r2, 8;
    or.b32 %r10, %r10, %r1;
    shl.b32 %r11, %r6, 24;
    or.b32 %r10, %r10, %r11;
    shl.b32 %r11, %r5, 16;
    or.b32 %r10, %r10, %r11;
    st.global.u32 [%rd1], %r10;
    ret;
}
"""
    device, entry = wm.Device("sm_80"), wm.ptx.load(HEAD + text)["where"]
    out = device.zeros(128, np.uint32)
    for grid, block in (((4, 1), (32, 1)), ((2, 2), (8, 4)), ((1, 4), (32, 1)), ((4, 1), (16, 2)), ((4, 1), (32, 1))):
        entry.launch(device, grid, block, [out])
        number, thread = np.divmod(np.arange(128), 32)
        places = (thread % block[0]) | (thread // block[0]) << 8 | (number % grid[0]) << 16 | (number // grid[0]) << 24
        assert (out.numpy() == places).all()


def test_a_program_needs_the_parameters_that_it_reads() -> None:
    case = Case()
    program = case.entry.module.linked("k", case.device, "ptxas").launched
    run, _, _ = batch_of(range(1), 32)
    with pytest.raises(OperandError, match="k reads bytes 0 to 7 of its parameters; the launch has 4 bytes of them"):
        executor.run_program(run, program, Grid((1, 1, 1), (32, 1, 1), 4096), parameters=bytes(4))


SPIN = """
.visible .entry spin(.param .u64 flag, .param .u64 to)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<8>;
    .reg .pred %p<4>;
    ld.param.u64 %rd1, [flag];
    ld.param.u64 %rd2, [to];
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 31;
    @%p1 bra write;
wait:
    ld.acquire.gpu.global.u32 %r2, [%rd1];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra wait;
    bra done;
write:
    mov.u32 %r3, 1;
    st.release.gpu.global.u32 [%rd1], %r3;
done:
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd2, %rd2, %rd3;
    st.global.u32 [%rd2], %r1;
    ret;
}
"""


def test_what_was_seen_of_other_threads_is_of_each_launch() -> None:
    device, entry = wm.Device("sm_80"), wm.ptx.load(HEAD + SPIN)["spin"]
    counts = []
    for _ in range(3):
        flag, out = device.zeros(1, np.uint32), device.zeros(32, np.uint32)
        report = entry.launch(device, 1, 32, [flag, out], limit=20_000)
        counts.append(report.costs.instructions)
        assert (out.numpy() == np.arange(32)).all()
    assert counts[0] == counts[1] == counts[2]
