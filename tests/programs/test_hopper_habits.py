"""What public Hopper kernels do that was once reported without reason, each in a small kernel."""

from __future__ import annotations

import numpy as np
import pytest

import warpmma as wm

pytestmark = pytest.mark.quick

ONE_LANE_RELEASES = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 from, .param .u64 to)
{
.reg .pred %p, %one; .reg .b64 %x, %y, %at, %d, %state; .reg .b32 %t, %i, %v, %w, %a, %f, %e, %bytes; .reg .f32 %c<4>;
.shared .align 1024 .b8 tile[4096];
.shared .align 128 .b8 stage[512];
.shared .align 8 .b64 full;
.shared .align 8 .b64 empty;
ld.param.u64 %x, [from]; ld.param.u64 %y, [to];
mov.u32 %t, %tid.x; mov.u32 %f, full; mov.u32 %e, empty; mov.u32 %a, stage; mov.u32 %i, 0;
setp.eq.u32 %p, %t, 0;
@%p mbarrier.init.shared.b64 [full], 1;
@%p mbarrier.init.shared.b64 [empty], 4;
mov.u32 %w, tile; shl.b32 %v, %t, 2; add.u32 %w, %w, %v;
setp.lt.u32 %p, %t, 128; mov.u32 %v, 0;
FILL:
@%p st.shared.u32 [%w], %v;
add.u32 %w, %w, 512; add.u32 %i, %i, 1; setp.lt.u32 %one, %i, 8; @%one bra FILL;
fence.proxy.async.shared::cta;
bar.sync 0;
mov.u32 %i, 0;
@%p bra COMPUTE;
setp.ne.u32 %p, %t, 128; @%p bra END;
LOAD:
xor.b32 %v, %i, 1; and.b32 %v, %v, 1;
FREE: mbarrier.try_wait.parity.shared.b64 %p, [empty], %v; @!%p bra FREE;
mbarrier.arrive.expect_tx.shared.b64 %state, [full], 512;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%x], 512, [%f];
add.u64 %x, %x, 512; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 3; @%p bra LOAD;
bra END;
COMPUTE:
shl.b32 %v, %t, 2; add.u32 %w, %a, %v; cvt.u64.u32 %at, %v; add.u64 %y, %y, %at; mov.u64 %d, DESCRIPTOR;
and.b32 %bytes, %t, 31; setp.eq.u32 %one, %bytes, 0;
NEXT:
and.b32 %v, %i, 1;
READY: mbarrier.try_wait.parity.shared.b64 %p, [full], %v; @!%p bra READY;
ld.shared.u32 %bytes, [%w];
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%c0, %c1, %c2, %c3}, %d, %d, 0, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
BETWEEN
@%one mbarrier.arrive.shared.b64 %state, [empty];
st.global.u32 [%y], %bytes;
add.u64 %y, %y, 512; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 3; @%p bra NEXT;
END: ret;
}
"""


def released(between: str) -> None:
    """Run a ring of one stage, which lane 0 of each warp releases after a product; compare what was read."""
    descriptor = wm.MatrixDescriptor(start=0, leading=128, stride=256).word
    text = ONE_LANE_RELEASES.replace("DESCRIPTOR", str(descriptor)).replace("BETWEEN", between)
    given = np.arange(3 * 128, dtype=np.uint32)
    out = np.zeros_like(given)
    wm.ptx.load(text)["k"].launch(wm.Device("sm_90a"), 1, 160, [given, out], hazards="error")
    np.testing.assert_array_equal(out, given)


def test_lane_0_releases_a_stage_for_its_warp_behind_a_warp_barrier() -> None:
    released("bar.warp.sync 0xFFFFFFFF;")


@pytest.mark.xfail(strict=True, raises=wm.kernel.HazardError, reason="wgmma's .sync orders nothing among lanes")
def test_lane_0_releases_a_stage_for_its_warp_behind_a_product() -> None:
    """DeepGEMM: what other lanes have read was read long before the product that lane 0 has waited for."""
    released("")


ARRIVES_AND_WAITS = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 to)
{
.reg .pred %p; .reg .b64 %y, %at; .reg .b32 %t, %v;
.shared .b8 words[256];
ld.param.u64 %y, [to]; mov.u32 %t, %tid.x; shl.b32 %v, %t, 2; cvt.u64.u32 %at, %v; add.u64 %y, %y, %at;
mov.u32 %v, words; mad.lo.u32 %v, %t, 4, %v; st.shared.u32 [%v], %t;
setp.lt.u32 %p, %t, 32;
bar.arrive 1, 96;
@%p bra END;
SECOND 1, 96;
xor.b32 %v, %t, 32; shl.b32 %v, %v, 2; mov.u32 %t, words; add.u32 %v, %v, %t; ld.shared.u32 %v, [%v];
st.global.u32 [%y], %v;
END: ret;
}
"""


def test_a_warp_arrives_with_all_and_then_waits() -> None:
    """FlashAttention-3's epilogue: all arrive, one of the warps waits as well, and the barrier counts it twice."""
    out = np.zeros(64, np.uint32)
    module = wm.ptx.load(ARRIVES_AND_WAITS.replace("SECOND", "bar.sync"))
    module["k"].launch(wm.Device("sm_90a"), 1, 64, [out], hazards="error")
    assert (out == [*[0] * 32, *range(32)]).all()


def test_a_warp_that_arrives_twice_without_waiting_is_reported() -> None:
    module = wm.ptx.load(ARRIVES_AND_WAITS.replace("SECOND", "bar.arrive"))
    with pytest.raises(wm.kernel.HazardError, match="it has already arrived at barrier 1"):
        module["k"].launch(wm.Device("sm_90a"), 1, 64, [np.zeros(64, np.uint32)], hazards="error")


def test_a_warp_that_waits_counts_no_third_time() -> None:
    """96 threads of 64 are too many by one warp if 128 are expected: what is missing is told."""
    module = wm.ptx.load(ARRIVES_AND_WAITS.replace("SECOND", "bar.sync").replace("1, 96", "1, 128"))
    with pytest.raises(wm.kernel.HazardError, match="barrier"):
        module["k"].launch(wm.Device("sm_90a"), 1, 64, [np.zeros(64, np.uint32)], hazards="error")
