"""The kernels of `tests/hazard_kernels` that read too early or too late, as PTX that uses what it reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hazard_kernels.cp_async import PENDING
from hazard_kernels.races import RACES
from hazard_kernels.unwritten import UNWRITTEN

import warpmma as wm
from warpmma import ptx
from warpmma.kernel import Output
from warpmma.machine import HazardError

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 out) {
    .reg .b64 %rd<12>; .reg .b32 %r<24>; .reg .b16 %h<4>; .reg .pred %p<8>; .reg .f32 %f<8>;
    .shared .align 16 .b8 s[4096];
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u64 %rd3, [out];
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shr.u32 %r3, %r1, 5;
    setp.eq.u32 %p1, %r3, 0; setp.ne.u32 %p2, %r3, 0; setp.eq.u32 %p3, %r2, 9; mov.u32 %r9, 0;
    shl.b32 %r4, %r1, 2; shl.b32 %r5, %r2, 2; shl.b32 %r6, %r2, 4; xor.b32 %r7, %r4, 128; xor.b32 %r8, %r4, 252;
    shl.b32 %r10, %r1, 4; xor.b32 %r11, %r10, 512;
    mul.wide.u32 %rd4, %r2, 4; add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4;
    mul.wide.u32 %rd7, %r2, 16; add.s64 %rd8, %rd1, %rd7; add.s64 %rd9, %rd2, %rd7;
    mul.wide.u32 %rd10, %r1, 4; add.s64 %rd11, %rd3, %rd10;
"""  # r4, r5: words of the thread and of the lane; r6, r10: 16 bytes of them; r7, r8, r11: of threads of the other warp
STORE, LOAD = "st.shared.b32 [%r4], %r1;", "ld.shared.b32 %r9, [%r8];"
COPY, COMMIT, ALL = "cp.async.cg.shared.global [%r6], [%rd8], 16;", "cp.async.commit_group;", "cp.async.wait_all;"
USED = "st.global.b32 [%rd11], %r9;"
NINE = "@!%p3 mov.u32 %r12, 5;"  # lane 9 has not written %r12

TWINS = {
    "read_after_write": STORE + LOAD,
    "write_after_read": STORE + "bar.sync 0;" + LOAD + "st.shared.b32 [%r4], 77;",
    "write_after_reads": "@%p1 st.shared.b32 [%r5], 1; bar.sync 0; ld.shared.b32 %r9, [%r5];"
    "@%p2 st.shared.b32 [%r5], 2;",
    "write_after_reads_in_turn": "@%p1 st.shared.b32 [%r5], 1; bar.sync 0; @%p1 ld.shared.b32 %r9, [%r5];"
    "@%p2 ld.shared.b32 %r9, [%r5]; @%p2 st.shared.b32 [%r5], 2;",
    "write_after_reads_at_two_lines": "@%p1 st.shared.b32 [%r5], 1; bar.sync 0; @%p1 ld.shared.b32 %r13, [%r5];"
    "@%p2 ld.shared.b32 %r9, [%r5]; @%p1 ld.shared.b32 %r13, [%r5]; @%p1 st.shared.b32 [%r5], 2;",
    "write_after_write": "@%p1 st.shared.b32 [%r5], 1; @%p2 st.shared.b8 [%r2+127], 1;",
    "write_with_write": "st.shared.b32 [%r5], %r3;",
    "copy_with_copy": COPY + ALL,
    "write_within_warp": "shr.u32 %r12, %r2, 1; @%p1 st.shared.b8 [%r12], %r2;",
    "matrices_overlap": "and.b32 %r12, %r2, 3; shl.b32 %r12, %r12, 4; @%p2 bra END;"
    "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r12], {%r2}; END:",
    "copy_onto_reads": "st.shared.b32 [%r4], 1; bar.sync 0; ld.shared.b32 %r9, [%r7]; bar.warp.sync -1;"
    "setp.lt.u32 %p4, %r1, 16; @%p4 " + COPY + ALL,
    "copies_within_warp": "shr.u32 %r12, %r2, 1; shl.b32 %r12, %r12, 4;"
    "@%p1 cp.async.cg.shared.global [%r12], [%rd8], 16;" + ALL,
    "copy_onto_reads_and_wait_later": "st.shared.b32 [%r4], 1; bar.sync 0; ld.shared.b32 %r9, [%r7]; bar.warp.sync -1;"
    "setp.lt.u32 %p4, %r1, 16; @%p4 " + COPY + "bar.sync 0;" + ALL,
    "read_copied_without_barrier": "cp.async.cg.shared.global [%r10], [%rd8], 16;" + ALL + "ld.shared.b32 %r9, [%r11];",
    "barrier_before_wait": "cp.async.cg.shared.global [%r10], [%rd8], 16; bar.sync 0;" + ALL
    + "ld.shared.b32 %r9, [%r11];",
    "barrier_of_another_block": "mov.u32 %r12, %ctaid.x; setp.eq.u32 %p4, %r12, 0;"
    "mad.wide.u32 %rd11, %r12, 256, %rd11;" + STORE + "@%p4 bar.sync 0; ld.shared.b32 %r9, [%r7];",
    "matrix_race": "shl.b32 %r12, %r1, 3; st.shared.v2.b32 [%r12], {0, 0}; bar.warp.sync -1;"
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r9, %r13, %r14, %r15}, [%r6]; add.u32 %r9, %r9, %r15;",
    "unwritten_shared": "setp.ne.u32 %p4, %r1, 37; @%p4 st.shared.b32 [%r4], 0; bar.sync 0; ld.shared.b32 %r9, [%r4];",
    "unwritten_byte": "setp.ne.u32 %p4, %r2, 3; @%p4 st.shared.b8 [%r1], 0; bar.sync 0; ld.shared.b32 %r9, [s];",
    "unwritten_row": "setp.lt.u32 %p4, %r2, 31; @%p4 st.shared.v4.b32 [%r10], {0, 0, 0, 0}; bar.sync 0;"
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r13, %r14, %r15, %r9}, [%r6];",
    "unwritten_output": "setp.lt.u32 %p4, %r2, 20; setp.lt.and.u32 %p4, %r1, 32, %p4; @%p4 st.global.b32 [%rd6], 1;"
    "@%p1 ld.global.b32 %r9, [%rd6];",
    "unwritten_source": "@%p1 cp.async.cg.shared.global [%r6], [%rd9], 16;" + ALL + "@%p1 ld.shared.b32 %r9, [%r6];",
    "masked_write": NINE + "st.shared.b32 [%r4], %r12; ld.shared.b32 %r9, [%r4];",
    "masked_update": NINE + "@%p1 add.u32 %r12, %r12, 1; mov.u32 %r9, %r12;",
    "masked_update_with_poison": NINE + "mov.u32 %r9, %r2; @%p1 mov.u32 %r9, %r12;",
    "masked_address": NINE + "and.b32 %r13, %r12, 4; ld.shared.b32 %r9, [%r13];",
    "masked_predicate": NINE + "setp.eq.u32 %p4, %r12, 5; @%p4 ld.global.b32 %r9, [%rd1];",
    "masked_multiplicand": NINE + "mov.f32 %f0, 0f00000000; mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
    "{%f1, %f2, %f3, %f4}, {%r12, %r12}, {%r1}, {%f0, %f0, %f0, %f0}; mov.b32 %r9, %f1;",
    "masked_operand": NINE + "prmt.b32 %r9, %r12, %r12, 0x3210;",
    "shuffled_from_nobody": NINE + "shfl.sync.down.b32 %r9, %r12, 3, 31, -1;",
    "shuffled_by_nobody": NINE + "shfl.sync.idx.b32 %r9, %r2, %r12, 31, -1;",
    "masked_load": "@!%p3 ld.global.b32 %r12, [%rd1]; mov.u32 %r9, %r12;",
    "read_before_wait": "@%p1 " + COPY + COMMIT + "@%p1 ld.shared.b32 %r9, [%r6];" + ALL,
    "matrix_before_wait": "@%p2 bra END;" + COPY
    + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r6];" + ALL + "END:",
    "write_before_wait": "@%p1 " + COPY + "@%p1 st.shared.b32 [%r6], 0;" + ALL,
    "copy_before_wait": "@%p1 " + COPY + COMMIT + "@%p1 " + COPY + ALL,
    "not_committed": "@%p1 " + COPY + "cp.async.wait_group 0; @%p1 ld.shared.b32 %r9, [%r6];" + ALL,
    "waits_for_too_few": "@%p2 bra END;" + COPY + COMMIT + "add.u32 %r12, %r6, 512; add.u32 %r13, %r6, 1024;"
    "cp.async.cg.shared.global [%r12], [%rd8], 16;" + COMMIT + "cp.async.cg.shared.global [%r13], [%rd8], 16;" + COMMIT
    + "cp.async.wait_group 1; ld.shared.b32 %r9, [%r12]; ld.shared.b32 %r9, [%r13];" + ALL + "END:",
    "commits_for_others": "@%p2 bra END;" + COPY + "setp.lt.u32 %p4, %r2, 30; @%p4 " + COMMIT
    + "cp.async.wait_group 0; ld.shared.b32 %r9, [%r6];" + ALL + "END:",
    "read_from_another_warp": "@%p1 " + COPY + "bar.sync 0; @%p2 ld.shared.b32 %r9, [%r6];" + ALL,
    "waits_for_others": "@%p1 " + COPY + COMMIT + "setp.lt.u32 %p4, %r2, 30; @%p4 cp.async.wait_group 0;"
    "@%p1 ld.shared.b32 %r9, [%r6];" + ALL,
}  # fmt: skip
CASES = {case.kernel.__name__: case for case in (*RACES, *UNWRITTEN, *PENDING)}


def launch(body: str, grid: int, **options: Any) -> None:
    x, y, out = (np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32), np.zeros((grid, 64), np.uint32))
    entry = ptx.load(HEAD + body + "\n    ret;\n}\n")["k"]
    given = Output(y) if "%rd6" in body or "%rd9" in body else y
    entry.launch(wm.Device("sm_90"), grid, 64, [x, given, out], **options)


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("hazards", ["error", "strict"])
def test_it_is_an_error_where_its_value_is_used(name: str, hazards: str) -> None:
    with pytest.raises(HazardError) as caught:
        launch(TWINS[name] + USED, CASES[name].options.get("grid", 1), hazards=hazards)
    assert caught.value.hazard.kind == CASES[name].kind
    assert caught.value.hazard.block == CASES[name].block


def test_every_kernel_has_a_twin() -> None:
    assert set(CASES) == set(TWINS)
