"""A copy pipeline: copies in bulk into a ring of stages, full and empty mbarriers.

What consumes a stage are warps that read it, or a thread that copies it in bulk to global memory. It is compared with
the same without hazards, and that with a copy of as many bytes in NumPy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import warpmma as wm

from .measure import Call, against, measure

_WARP = 32
_VECTOR = 16  # bytes of a load of a lane
_TEXT = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 rounds)
{{
.reg .pred %p, %q, %first, %odd;
.reg .b32 %t, %w, %i, %stage, %parity, %rounds, %barrier, %to, %at, %n, %v<4>, %acc<4>;
.reg .b64 %x, %y, %step;
.shared .align 128 .b8 ring[{ring}];
.shared .align 8 .b64 full[{stages}];
.shared .align 8 .b64 empty[{stages}];
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u32 %rounds, [rounds];
mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; mov.u32 %n, %ctaid.x;
setp.eq.u32 %first, %t, 0;
{init}
fence.proxy.async.shared::cta; bar.sync 0;
mov.u32 %i, 0; mov.u32 %stage, 0; mov.u32 %parity, 0;
setp.ne.u32 %p, %w, 0; @%p bra CONSUMER;
@!%first bra END;
mul.lo.u32 %at, %n, %rounds; mul.wide.u32 %step, %at, {stage}; add.u64 %x, %x, %step;
xor.b32 %parity, %parity, 1;
PRODUCE:
mov.u32 %barrier, empty; mad.lo.u32 %barrier, %stage, 8, %barrier;
WAIT_EMPTY: mbarrier.try_wait.parity.shared.b64 %q, [%barrier], %parity; @!%q bra WAIT_EMPTY;
mov.u32 %barrier, full; mad.lo.u32 %barrier, %stage, 8, %barrier;
mov.u32 %to, ring; mad.lo.u32 %to, %stage, {stage}, %to;
mbarrier.arrive.expect_tx.shared.b64 _, [%barrier], {stage};
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%to], [%x], {stage}, [%barrier];
add.u64 %x, %x, {stage};
add.u32 %stage, %stage, 1; setp.eq.u32 %q, %stage, {stages};
@%q mov.u32 %stage, 0; @%q xor.b32 %parity, %parity, 1;
add.u32 %i, %i, 1; setp.lt.u32 %q, %i, %rounds; @%q bra PRODUCE;
bra END;
CONSUMER:
{begin}
CONSUME:
mov.u32 %barrier, full; mad.lo.u32 %barrier, %stage, 8, %barrier;
WAIT_FULL: mbarrier.try_wait.parity.shared.b64 %q, [%barrier], %parity; @!%q bra WAIT_FULL;
mov.u32 %at, ring; mad.lo.u32 %at, %stage, {stage}, %at;
{consume}
mov.u32 %barrier, empty; mad.lo.u32 %barrier, %stage, 8, %barrier;
mbarrier.arrive.shared.b64 _, [%barrier];
add.u32 %stage, %stage, 1; setp.eq.u32 %q, %stage, {stages};
@%q mov.u32 %stage, 0; @%q xor.b32 %parity, %parity, 1;
add.u32 %i, %i, 1; setp.lt.u32 %q, %i, %rounds; @%q bra CONSUME;
{end}
END:
ret;
}}
"""
# What consumers do at the beginning, with a stage, and at the end.
_SUM = """
mov.u32 %acc0, 0; mov.u32 %acc1, 0; mov.u32 %acc2, 0; mov.u32 %acc3, 0;
""", """
sub.u32 %to, %t, 32; mad.lo.u32 %at, %to, 16, %at;
{reads}
""", """
mul.lo.u32 %at, %n, {consumers}; add.u32 %at, %at, %to; mad.wide.u32 %y, %at, 16, %y;
st.global.v4.u32 [%y], {{%acc0, %acc1, %acc2, %acc3}};
"""  # fmt: skip
_STORE = """
setp.ne.u32 %q, %t, 32; @%q bra END;
mul.lo.u32 %at, %n, %rounds; mul.wide.u32 %step, %at, {stage}; add.u64 %y, %y, %step;
""", """
cp.async.bulk.global.shared::cta.bulk_group [%y], [%at], {stage};
cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
add.u64 %y, %y, {stage};
""", """
cp.async.bulk.wait_group 0;
"""  # fmt: skip


class Pipeline(NamedTuple):
    """A kernel: a warp brings stages of so many bytes; others sum them up by exclusive or, or one copies them."""

    consumers: int  # warps; with 0, a thread copies the stages to global memory
    stages: int
    stage: int  # bytes
    rounds: int
    blocks: int
    part: int = 1  # the consumers read one part in so many of each stage

    @property
    def text(self) -> str:
        """In PTX."""
        threads = self.consumers * _WARP
        init = "\n".join(
            f"@%first mbarrier.init.shared.b64 [full+{8 * s}], 1;\n"
            f"@%first mbarrier.init.shared.b64 [empty+{8 * s}], {threads or 1};"
            for s in range(self.stages)
        )
        sums = " ".join(f"xor.b32 %acc{i}, %acc{i}, %v{i};" for i in range(4))
        places = range(0, self.stage // self.part, threads * _VECTOR) if threads else ()
        reads = "\n".join(f"ld.shared.v4.u32 {{%v0, %v1, %v2, %v3}}, [%at+{place}]; {sums}" for place in places)
        names = {"stage": self.stage, "consumers": threads, "reads": reads}
        begin, consume, end = (x.format(**names) for x in (_SUM if threads else _STORE))
        return _TEXT.format(
            ring=self.stages * self.stage, stages=self.stages, init=init, begin=begin, consume=consume, end=end,
            stage=self.stage,
        )  # fmt: skip

    @property
    def copied(self) -> int:
        """Bytes that a launch copies."""
        return self.blocks * self.rounds * self.stage

    def launch(self, hazards: Any) -> Call:
        """Return a launch, whose result was checked once."""
        kernel, device = wm.ptx.load(self.text)["k"], wm.Device("sm_90")
        x = np.arange(self.copied // 4, dtype=np.uint32) * np.uint32(2654435761)
        shape = (self.blocks, self.consumers * _WARP, 4) if self.consumers else (self.copied // 4,)
        y = np.zeros(shape, np.uint32)
        here, there = device.array(x), device.array(y)

        def call() -> None:
            args = [here, there, self.rounds]
            kernel.launch(device, self.blocks, (1 + max(self.consumers, 1)) * _WARP, args, hazards=hazards)

        call()
        wanted = x
        if self.consumers:
            read = x.reshape(self.blocks, self.rounds, self.part, -1, *y.shape[1:])[:, :, 0]
            wanted = np.bitwise_xor.reduce(read, axis=(1, 2))
        assert np.array_equal(there.numpy(), wanted)
        return call


PIPELINES = {
    "132 blocks, 4 stages of 16 KB, copied on": Pipeline(consumers=0, stages=4, stage=16384, rounds=16, blocks=132),
    "132 blocks, 4 stages of 48 KB, copied on": Pipeline(consumers=0, stages=4, stage=49152, rounds=16, blocks=132),
    "132 blocks, 3 stages of 64 KB, copied on": Pipeline(consumers=0, stages=3, stage=65536, rounds=24, blocks=132),
    "132 blocks, 2 stages of 112 KB, copied on": Pipeline(consumers=0, stages=2, stage=114688, rounds=32, blocks=132),
    "1 block, 4 stages of 16 KB": Pipeline(consumers=4, stages=4, stage=16384, rounds=64, blocks=1),
    "1 block, 4 stages of 48 KB": Pipeline(consumers=4, stages=4, stage=49152, rounds=32, blocks=1),
    "132 blocks, 4 stages of 16 KB": Pipeline(consumers=4, stages=4, stage=16384, rounds=8, blocks=132),
    "132 blocks, 4 stages of 48 KB": Pipeline(consumers=4, stages=4, stage=49152, rounds=8, blocks=132),
    "132 blocks, 48 KB, 2 KB of it read": Pipeline(consumers=4, stages=4, stage=49152, rounds=8, blocks=132, part=24),
}


@pytest.mark.parametrize("hazards", ["error", "off"])
@pytest.mark.parametrize("label", PIPELINES)
def test_pipeline(benchmark: BenchmarkFixture, label: str, hazards: str) -> None:
    pipeline = PIPELINES[label]
    if hazards == "off":
        source = np.ones(pipeline.copied, np.uint8)
        target = np.empty_like(source)
        beside = against("a copy in NumPy", lambda: np.copyto(target, source), pipeline.copied)
    else:
        beside = against("hazards off", pipeline.launch("off"), pipeline.copied)
    measure(
        benchmark, pipeline.launch(hazards), section="pipelines",
        label=label if hazards == "error" else f"{label}, hazards off", work=pipeline.copied, unit="B/s",
        reference=beside,
    )  # fmt: skip
