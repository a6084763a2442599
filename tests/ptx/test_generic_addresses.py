"""Generic addresses of variables, and of matrices in shared memory."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

import warpmma as wm

ptx: Any = import_module("warpmma.ptx")

TEXT = """.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 y) {
    .reg .b64 %rd<4>; .reg .b32 %r<4>;
    .shared .align 16 .b32 rows[32];
    ld.param.u64 %rd1, [y];
    mov.u32 %r1, %laneid;
    mul.wide.u32 %rd2, %r1, 4;
    mov.u64 %rd3, rows;
    cvta.shared.u64 %rd3, %rd3;
    add.u64 %rd3, %rd3, %rd2;
    st.b32 [%rd3], %r1;
    bar.sync 0;
    and.b32 %r2, %r1, 7;
    mul.wide.u32 %rd3, %r2, 16;
    mov.u64 %rd2, rows;
    add.u64 %rd3, %rd3, %rd2;
    cvta.shared.u64 %rd3, %rd3;
    ldmatrix.sync.aligned.m8n8.x1.b16 {%r3}, [%rd3];
    ld.b32 %r2, [rows+20];
    mul.wide.u32 %rd2, %r1, 8;
    add.u64 %rd1, %rd1, %rd2;
    st.v2.b32 [%rd1], {%r3, %r2};
    ret;
}
"""


def test_matrices_and_variables_at_generic_addresses() -> None:
    device = wm.Device("sm_90")
    y = device.array(np.zeros((32, 2), np.uint32))
    ptx.load(TEXT)["k"].launch(device, 1, 32, [y])
    assert np.array_equal(y.numpy()[:, 0], np.arange(32))  # lane 4 r + c has word c of row r
    assert (y.numpy()[:, 1] == 5).all()


LOCAL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 y) {
    .local .align 8 .b8 stack[8]; .reg .b64 %rd<4>; .reg .b32 %r<4>;
    mov.b32 %r1, stack;
    mov.u32 %r2, %tid.x;
    st.local.b32 [%r1+4], %r2;
    add.u32 %r1, %r1, 4;
    cvt.u64.u32 %rd1, %r1;
    cvta.local.u64 %rd1, %rd1;
    ld.b32 %r3, [%rd1];
    ld.param.u64 %rd2, [y];
    mul.wide.u32 %rd3, %r2, 4;
    add.u64 %rd2, %rd2, %rd3;
    st.global.b32 [%rd2], %r3;
    ret;
}
"""


def test_addresses_in_local_memory_of_32_bits() -> None:
    """As Triton 3.9 writes them; ptxas takes them."""
    y = np.zeros(32, np.uint32)
    ptx.load(LOCAL)["k"].launch(wm.Device("sm_90"), 1, 32, [y])
    assert np.array_equal(y, np.arange(32))
