"""Registers that are vectors: moved, packed, and as parameters and results of functions."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import PtxError

ptx: Any = import_module("warpmma.ptx")

TEXT = """.version 7.0
.target sm_80
.address_size 64
.func (.reg .v2 .u32 sums) swapped(.reg .v2 .u32 given) {
    add.u32 sums.x, given.y, 100;
    add.u32 sums.y, given.x, 200;
    ret;
}
.visible .entry k(.param .u64 y) {
    .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .b16 %h<5>; .reg .v4 .u16 four; .reg .v2 .u32 two, more; .reg .v2 .b16 both;
    ld.param.u64 %rd1, [y];
    mov.u16 %h1, 1; mov.u16 %h2, 2; mov.u16 %h3, 3; mov.u16 %h4, 4;
    mov.v4.u16 four, {%h2, %h3, %h4, %h1};
    mov.v4.u16 {%h4, %h1, %h2, %h3}, four;
    mov.v4.u16 {%h1, %h2, %h3, %h4}, {%h2, %h1, %h4, %h3};
    st.v4.u16 [%rd1], {%h1, %h2, %h3, %h4};
    mov.u32 two.x, 7; mov.u32 two.y, 8;
    call (more), swapped, (two);
    st.v2.u32 [%rd1+8], more;
    mov.b32 %r1, 0x00050006;
    mov.b32 both, %r1;
    mov.b32 %r2, both;
    st.u16 [%rd1+16], both.x;
    st.u16 [%rd1+18], both.y;
    st.u32 [%rd1+20], %r2;
    ret;
}
"""


def test_vectors_are_moved_packed_and_passed() -> None:
    device = wm.Device("sm_90")
    y = device.array(np.zeros(12, np.uint16))
    ptx.load(TEXT)["k"].launch(device, 1, 1, [y])
    four, words, halves = y.numpy()[:4], y.numpy()[4:8].view(np.uint32), y.numpy()[8:]
    # four is 2 3 4 1: then h4 h1 h2 h3 are 2 3 4 1, and h1 h2, h3 h4 change places.
    assert four.tolist() == [4, 3, 2, 1]
    assert words.tolist() == [108, 207]
    assert halves.tolist() == [6, 5, 6, 5]


def test_parameters_have_as_many_registers_as_are_given() -> None:
    with pytest.raises(PtxError, match="1 register for a parameter of 2"):
        text = TEXT.replace("call (more), swapped, (two)", "call (more), swapped, (%r1)")
        ptx.load(text)["k"].launch(wm.Device("sm_90"), 1, 1, [0])
