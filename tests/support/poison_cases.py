"""A kernel of one block for tests of poison: what they add to it, and how they launch it."""

from __future__ import annotations

from typing import Any

import numpy as np

import warpmma as wm
from warpmma import ptx
from warpmma.machine import HazardError

HEAD = """.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 b);
.extern .func (.param .b64 r) malloc (.param .b64 n);
.global .align 1 .b8 hello[4] = {104, 105, 10, 0};
.global .align 1 .b8 number[4] = {37, 100, 10, 0};
.global .align 4 .u32 counter = 5;
.visible .entry k(.param .u64 x, .param .u64 y) {
    .reg .b64 %rd<12>; .reg .b32 %r<24>; .reg .b16 %h<6>; .reg .pred %p<6>; .reg .f32 %f<6>;
    .shared .align 16 .b8 tile[1024];
    .local .align 16 .b8 mine[16];
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31;
    mul.wide.u32 %rd3, %r2, 4; add.s64 %rd4, %rd1, %rd3;
    mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd2, %rd5;
    shl.b32 %r3, %r2, 2; mov.u32 %r4, tile; add.u32 %r5, %r4, %r3;
    setp.lt.u32 %p1, %r1, 16;
"""
LUCK = "ld.shared.u32 %r6, [%r5];\n"  # nobody has written it


def launch(body: str, threads: int = 32, **options: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Run a kernel of one block; return the report, x and y."""
    x, y = np.arange(32, dtype=np.uint32), np.zeros(64, np.uint32)
    entry = ptx.load(HEAD + body + "\n    ret;\n}\n")["k"]
    report = entry.launch(wm.Device("sm_80"), 1, threads, [x, y], **options)
    return report, x, y


def kind(body: str, **options: Any) -> str:
    """Return the kind of the hazard of a kernel; "" for none."""
    try:
        launch(body, **options)
    except HazardError as error:
        assert error.hazard.decided is not None or options.get("hazards") == "strict"
        return error.hazard.kind
    return ""


STORED = "st.global.u32 [%rd6], %r9;"
LATER = """ld.global.u32 %r8, [%rd4]; add.u32 %r9, %r8, 1;
    setp.lt.u32 %p2, %r1, 32; @%p2 st.global.u32 [%rd4], %r9;
"""
"""Two warps read x, and the first adds 1."""
