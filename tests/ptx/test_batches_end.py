"""A batch of blocks releases its memory when it ends: memory does not grow with the number of batches.

Steps that were prepared stay, one state for each shape of a batch, without a register of any thread.
"""

from __future__ import annotations

import gc
from typing import Literal

import numpy as np
import pytest

import warpmma as wm
from warpmma import ptx
from warpmma.machine.block.batch import Batch
from warpmma.machine.run.state import State

TEXT = """.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 y) {
    .reg .b64 %rd<4>; .reg .b32 %r<6>; .reg .pred %p<3>;
    ld.param.u64 %rd1, [y];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %laneid;
    mad.lo.s32 %r3, %r1, 32, %r2;
    setp.lt.u32 %p1, %r2, 7;
    @%p1 bra LESS;
    add.u32 %r4, %r3, 1;
    bra END;
LESS:
    shl.b32 %r4, %r3, 1;
END:
    bar.sync 0;
    mul.wide.u32 %rd2, %r3, 4;
    add.u64 %rd2, %rd1, %rd2;
    st.global.u32 [%rd2], %r4;
    ret;
}
"""


@pytest.mark.parametrize("hazards", ["error", "off"])
def test_nothing_of_a_batch_waits_for_the_collector(hazards: Literal["error", "off"]) -> None:
    device = wm.Device("sm_90")
    y = device.zeros(32 * 32, np.uint32)
    entry = ptx.load(TEXT)["k"]
    gc.collect()
    gc.disable()
    try:
        # By type: to ask any object for its class runs code of libraries. And they are kept: a new one could get the id
        # of one that goes meanwhile.
        known = {id(x): x for x in gc.get_objects() if type(x) in (State, Batch)}
        entry.launch(device, 32, 32, [y], resident=8, hazards=hazards)
        left = [x for x in gc.get_objects() if type(x) in (State, Batch) and id(x) not in known]
    finally:
        gc.enable()
    states = [x for x in left if isinstance(x, State)]
    assert len(states) == len(left) == 1 and not hasattr(states[0], "batch")
    kept = [x.bits for x in states[0].registers if x is not None]
    assert all(isinstance(bits, int) or 0 in bits.strides for bits in kept)  # a value for all threads, or all blocks
    assert y.numpy()[[6, 7]].tolist() == [12, 8]
