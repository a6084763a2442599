"""What a launch of PTX costs where there is little to compute, beside additions of 32 integers in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import warpmma as wm

from .measure import Call, against, measure, repeat

TEXT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry copy(.param .u64 from, .param .u64 to)
{
    .reg .b64 %rd<6>;
    .reg .b32 %r<3>;
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [to];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.u32 %r2, [%rd4];
    st.global.u32 [%rd5], %r2;
    ret;
}
.visible .entry sum(.param .u64 from, .param .u64 to, .param .u32 count, .param .u32 lanes)
{
    .reg .b64 %rd<6>;
    .reg .b32 %r<6>;
    .reg .f32 %f<3>;
    .reg .pred %p<3>;
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [to];
    ld.param.u32 %r1, [count];
    ld.param.u32 %r3, [lanes];
    mov.u32 %r4, %tid.x;
    setp.ge.u32 %p2, %r4, %r3;
    @%p2 bra done;
    mov.u32 %r2, 0;
    mov.f32 %f1, 0f00000000;
next:
    cvt.s64.s32 %rd3, %r2;
    shl.b64 %rd4, %rd3, 2;
    add.s64 %rd5, %rd1, %rd4;
    ld.global.f32 %f2, [%rd5];
    add.f32 %f1, %f1, %f2;
    add.s32 %r2, %r2, 1;
    setp.lt.s32 %p1, %r2, %r1;
    @%p1 bra next;
    st.global.f32 [%rd2], %f1;
done:
    bar.warp.sync 0xffffffff;
    ret;
}
"""

COUNT = 1000
ADDITIONS = 20_000


def additions() -> None:
    x = np.arange(32, dtype=np.uint32)
    for _ in range(ADDITIONS):
        np.add(x, x)


BESIDE = {
    "launches/s": against("1,000 additions in NumPy", additions, ADDITIONS / 1000),
    "instructions/s": against("additions in NumPy", additions, ADDITIONS),
}


def launches() -> dict[str, tuple[Call, float, str]]:
    """By label: a launch, what it does, and the unit of that."""
    device, module = wm.Device("sm_80"), wm.ptx.load(TEXT)
    x, y = device.array(np.arange(COUNT, dtype=np.float32)), device.zeros(COUNT, np.float32)

    def call(name: str, threads: int, *args: Any, hazards: Any = "error") -> Call:
        return lambda: module[name].launch(device, 1, threads, args, hazards=hazards)

    instructions = 8 * COUNT
    return {
        "an empty kernel": (call("nothing", 1), 1, "launches/s"),
        "a copy, 32 threads": (call("copy", 32, x, y), 1, "launches/s"),
        "a sum, 1 thread": (call("sum", 1, x, y, COUNT, 1), instructions, "instructions/s"),
        "a sum, 1 thread, hazards off": (call("sum", 1, x, y, COUNT, 1, hazards="off"), instructions, "instructions/s"),
        "a sum, half of 32 threads": (call("sum", 32, x, y, COUNT, 16), instructions, "instructions/s"),
    }


@pytest.mark.parametrize("label", launches())
def test_launch(benchmark: BenchmarkFixture, label: str) -> None:
    call, work, unit = launches()[label]
    times = 200 if work == 1 else 5
    measure(
        benchmark, repeat(call, times), section="launches", label=label, work=work * times, unit=unit,
        reference=BESIDE[unit], seconds=1,
    )  # fmt: skip


def test_map_and_free(benchmark: BenchmarkFixture) -> None:
    """Among 4,000 pieces of memory, beside the same among 4."""

    def calls(pieces: int) -> Call:
        device = wm.Device("sm_80")
        kept = [device.map(np.zeros(64, np.uint8)) for _ in range(pieces)]
        more = np.zeros(64, np.uint8)

        def call() -> object:
            device.map(more).free()
            return kept

        return repeat(call, 500)

    measure(
        benchmark, calls(4000), section="launches", label="map and free, 4,000 pieces", work=500, unit="pairs/s",
        reference=against("4 pieces", calls(4), 500), seconds=1,
    )  # fmt: skip
