"""Hazards: kernels that have each, found at its line, warp, lane and address; and kernels that nearly have it."""

from __future__ import annotations

import importlib
import linecache
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from warpmma.errors import OperandError, WarpmmaError
from warpmma.kernel.launching import Launch, Output, launch
from warpmma.machine.hazards import KINDS, Hazard, HazardError, HazardWarning, Reporter, caller

module = importlib.import_module("warpmma.kernel.launching")  # `kernel.launch` is the function
Kernel = Callable[..., object]
BASE = 0x7F0000000000  # where the first array lies
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SP = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
LDSM = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
LDSM1 = "ldmatrix.sync.aligned.m8n8.x1.shared.b16"
STSM1 = "stmatrix.sync.aligned.m8n8.x1.shared.b16"
COPY = "cp.async.cg.shared.global"
COMMIT, WAIT, WAIT_ALL = "cp.async.commit_group", "cp.async.wait_group", "cp.async.wait_all"
EVERY = 0xFFFFFFFF


def run(kernel: Kernel, *args: Any, block: Any = 64, grid: Any = 1, target: str = "sm_90", **options: Any) -> Launch:
    return launch(kernel, grid, block, args, target=target, **{"shared": 4096, **options})


@dataclass
class Case:
    """A kernel with a hazard, at its line marked `# here`, and where it is met."""

    kernel: Kernel
    kind: str
    warp: int = 0
    lane: int = 0
    address: int | None = None
    block: int = 0
    count: int = 1
    says: str = ""
    args: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


def words(n: int = 256) -> np.ndarray[Any, Any]:
    return np.arange(n, dtype=np.uint32)


# Races. Two warps of 32 threads, a word each.


def read_after_write(t: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])  # there
    t("ld.shared.b32", (63 - t.tid[0]) * 4)  # here


def write_after_read(t: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])
    t("bar.sync")
    t("ld.shared.b32", (63 - t.tid[0]) * 4)  # there
    t("st.shared.b32", t.tid[0] * 4, 0)  # here


def write_after_write(t: Any) -> None:
    with t.where(t.warpid == 0):
        t("st.shared.b32", t.laneid * 4, 1)  # there
    with t.where(t.warpid == 1):
        t("st.shared.b8", t.laneid + 127, 1)  # here


def write_after_reads(t: Any) -> None:
    with t.where(t.warpid == 0):
        t("st.shared.b32", t.laneid * 4, 1)
    t("bar.sync")
    t("ld.shared.b32", t.laneid * 4)  # there
    with t.where(t.warpid == 1):
        t("st.shared.b32", t.laneid * 4, 1)  # here


def write_after_reads_in_turn(t: Any) -> None:
    """The writer has read it last, and another warp before."""
    with t.where(t.warpid == 0):
        t("st.shared.b32", t.laneid * 4, 1)
    t("bar.sync")
    for warp in (0, 1):
        with t.where(t.warpid == warp):
            t("ld.shared.b32", t.laneid * 4)  # there
    with t.where(t.warpid == 1):
        t("st.shared.b32", t.laneid * 4, 1)  # here


def write_after_reads_at_two_lines(t: Any) -> None:
    """Of both warps that read it, the one that does not write; and its line, however often the other reads."""
    with t.where(t.warpid == 0):
        t("st.shared.b32", t.laneid * 4, 1)
    t("bar.sync")
    with t.where(t.warpid == 0):
        t("ld.shared.b32", t.laneid * 4)
    with t.where(t.warpid == 1):
        t("ld.shared.b64", t.laneid % 16 * 8)  # there
    with t.where(t.warpid == 0):
        t("ld.shared.b32", t.laneid * 4)
        t("st.shared.b32", t.laneid * 4, 1)  # here


def write_with_write(t: Any) -> None:
    t("st.shared.b32", t.laneid * 4, 1)  # here


def copy_with_copy(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # here


def write_within_warp(t: Any) -> None:
    t("st.shared.b8", t.laneid >> 1, t.laneid)  # here


def copies_within_warp(t: Any, x: Any) -> None:
    with t.where(t.warpid == 0):
        t(COPY, (t.laneid >> 1) * 16, x + t.laneid * 16, 16)  # here
        t(WAIT_ALL)


def matrices_overlap(t: Any) -> None:
    with t.where(t.warpid == 0):
        t(STSM1, (t.laneid & 3) * 16, t.laneid)  # here


def copy_onto_reads(t: Any, x: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, 0)
    t("bar.sync")
    t("ld.shared.b32", (t.tid[0] ^ 32) * 4)  # there
    with t.where(t.tid[0] < 16):
        t(COPY, t.tid[0] * 16, x + t.tid[0] * 16, 16)  # here


def copy_onto_reads_and_wait_later(t: Any, x: Any) -> None:
    """The barrier between the copy and its wait saves nobody."""
    t("st.shared.b32", t.tid[0] * 4, 0)
    t("bar.sync")
    t("ld.shared.b32", (t.tid[0] ^ 32) * 4)  # there
    with t.where(t.tid[0] < 16):
        t(COPY, t.tid[0] * 16, x + t.tid[0] * 16, 16)  # here
    t("bar.sync")
    t(WAIT_ALL)


def read_copied_without_barrier(t: Any, x: Any) -> None:
    t(COPY, t.tid[0] * 16, x + t.tid[0] * 16, 16)  # there
    t(WAIT_ALL)
    t("ld.shared.b32", (t.tid[0] ^ 32) * 16)  # here


def barrier_before_wait(t: Any, x: Any) -> None:
    t(COPY, t.tid[0] * 16, x + t.tid[0] * 16, 16)  # there
    t("bar.sync")
    t(WAIT_ALL)
    t("ld.shared.b32", (t.tid[0] ^ 32) * 16)  # here


def barrier_of_another_block(t: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])  # there
    with t.where(t.ctaid[0] == 0):
        t("bar.sync")
    t("ld.shared.b32", (t.tid[0] ^ 32) * 4)  # here


def matrix_race(t: Any) -> None:
    t("st.shared.v2.b32", t.tid[0] * 8, 0, 0)  # there
    t(LDSM, t.laneid * 16)  # here


X = (words(),)
RACES = [
    Case(read_after_write, "race", address=252, count=64, says="warp 1 wrote it"),
    Case(write_after_read, "race", address=0, count=64, says="warp 1 read it"),
    Case(write_after_write, "race", warp=1, address=127, says="warp 0 wrote it"),
    Case(write_after_reads, "race", warp=1, address=0, count=32, says="warp 0 read it at"),
    Case(write_after_reads_in_turn, "race", warp=1, address=0, count=32, says="warp 0 read it at"),
    Case(write_after_reads_at_two_lines, "race", address=0, count=32, says="warp 1 read it at"),
    Case(write_with_write, "race", address=0, count=32, says="warp 1 writes it in this very access"),
    Case(copy_with_copy, "race", address=0, count=32, args=X, says="in this very access"),
    Case(write_within_warp, "race", address=0, count=16, says="another lane", options={"block": 32}),
    Case(copies_within_warp, "race", address=0, count=16, args=X, says="another lane"),
    Case(matrices_overlap, "race", address=0, count=4, says="another lane"),
    Case(copy_onto_reads, "race", address=0, count=8, args=X, says="warp 1 read it"),
    Case(copy_onto_reads_and_wait_later, "race", address=0, count=8, args=X, says="warp 1 read it"),
    Case(read_copied_without_barrier, "race", address=512, count=64, args=X, says="warp 1 wrote it"),
    Case(barrier_before_wait, "race", address=512, count=64, args=X, says="warp 1 wrote it"),
    Case(barrier_of_another_block, "race", block=1, address=128, count=64, options={"grid": 2}),
    Case(matrix_race, "race", lane=16, address=256, count=32, says="warp 1 wrote it"),
]


# Memory that nobody wrote, and registers.


def unwritten_shared(t: Any) -> None:
    with t.where(t.tid[0] != 37):
        t("st.shared.b32", t.tid[0] * 4, 0)
    t("bar.sync")
    t("ld.shared.b32", t.tid[0] * 4)  # here


def unwritten_byte(t: Any) -> None:
    with t.where(t.laneid != 3):
        t("st.shared.b8", t.tid[0], 0)
    t("ld.shared.v2.b64", (t.laneid >> 4) * 16)  # here


def unwritten_row(t: Any) -> None:
    with t.where(t.laneid < 31):
        t("st.shared.v4.b32", t.laneid * 16, 0, 0, 0, 0)
    t(LDSM, t.laneid * 16)  # here


def unwritten_output(t: Any, x: Any, y: Any) -> None:
    with t.where(t.laneid < 20):
        t("st.global.b32", y + t.laneid * 4, t("ld.global.b32", x + t.laneid * 4))
    t("ld.global.b32", y + t.laneid * 4)  # here


def unwritten_source(t: Any, x: Any, y: Any) -> None:
    t(COPY, t.laneid * 16, y + t.laneid * 16, 16)  # here


def masked_write(t: Any) -> None:
    with t.where(t.laneid < 5):
        x = t.laneid + 1
    t("st.shared.b32", t.tid[0] * 4, x)  # here


def masked_update(t: Any) -> None:
    with t.where(t.laneid < 5):
        x = t.laneid + 1
        with t.where(t.laneid > 1):
            x = t.update(x, x * 2)
    with t.where(t.laneid < 6):
        x + 1  # here


def masked_update_with_poison(t: Any) -> None:
    with t.where(t.laneid == 7):
        x = t.laneid + 1
    x = t.update(t.laneid, x)
    x + 1  # here


def masked_address(t: Any) -> None:
    with t.where(t.laneid < 31):
        at = t.laneid * 4
    t("st.shared.b32", at, 0)  # here


def masked_predicate(t: Any) -> None:
    with t.where(t.laneid < 31):
        p = t.laneid < 4
    with t.where(p):  # here
        pass


def masked_multiplicand(t: Any) -> None:
    with t.where(t.laneid != 9):
        a = t.laneid + 0
    zero = [t.constant(0)] * 4
    t(MMA, [zero[0], a, a, a], zero[:2], zero)  # here


def masked_operand(t: Any) -> None:
    with t.where(t.laneid != 9):
        a = t.laneid + 0
    t("prmt.b32", a, a, 0x3210)  # here


def masked_load(t: Any, x: Any, y: Any) -> None:
    with t.where(t.laneid != 9):
        a = t("ld.global.b32", x)
    t("st.global.b32", y + t.laneid * 4, a)  # here


ONE = {"block": 32}
OUT = (words(), Output(words()))
UNWRITTEN = [
    Case(unwritten_shared, "unwritten", warp=1, lane=5, address=148, says="nobody wrote"),
    Case(unwritten_byte, "unwritten", address=0, count=16, options=ONE),
    Case(unwritten_row, "unwritten", lane=31, address=496, options=ONE),
    Case(unwritten_output, "unwritten", lane=20, address=BASE + 1280 + 80, count=12, args=OUT, options=ONE,
         says="array 1 is an Output"),
    Case(unwritten_source, "unwritten", address=BASE + 1280, count=32, args=OUT, options=ONE),
    Case(masked_write, "poison", lane=5, count=54, says="never wrote"),
    Case(masked_update, "poison", lane=5, count=2),
    Case(masked_update_with_poison, "poison", lane=0, count=62),
    Case(masked_address, "poison", lane=31, count=2),
    Case(masked_predicate, "poison", lane=31, count=2),
    Case(masked_multiplicand, "poison", lane=9, count=2, says="number 1 of 4"),
    Case(masked_operand, "poison", lane=9, count=2, says="number 0 of 3"),
    Case(masked_load, "poison", lane=9, count=1, args=(words(), words()), options=ONE),
]  # fmt: skip


# Addresses.


def beyond_shared(t: Any) -> None:
    t("st.shared.b8", t.tid[0] + 4033, 0)  # here


def beyond_shared_by_a_part(t: Any) -> None:
    t("st.shared.v2.b64", t.tid[0] * 16, 0, 0)  # here


def negative_shared(t: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4 - 4, 0)  # here


def huge_shared(t: Any) -> None:
    t("st.shared.b32", t.constant(2**62 - 4, "b64"), 0)  # here


def beyond_row(t: Any) -> None:
    t(LDSM1, (t.laneid - 7) * 16)  # here


def beyond_global(t: Any, x: Any, y: Any) -> None:
    t("ld.global.b8", x + t.laneid * 33)  # here


def larger_than_array(t: Any, x: Any, y: Any) -> None:
    t("ld.global.b64", y)  # here


def negative_global(t: Any, x: Any, y: Any) -> None:
    t("ld.global.b32", x - t.laneid * 4)  # here


def between_arrays(t: Any, x: Any, y: Any) -> None:
    t("st.global.b64", y - 8 * (t.laneid + 1), 0)  # here


def beyond_end_of_space(t: Any, x: Any, y: Any) -> None:
    t("ld.global.v4.b32", t.constant(2**63 - 16, "b64"))  # here


def read_only(t: Any, x: Any, y: Any) -> None:
    t("st.global.b32", y + t.laneid * 4, 0)  # here


def beyond_source(t: Any, x: Any, y: Any) -> None:
    t(COPY, t.laneid * 16, x + (t.laneid + 33) * 16, 16)  # here


def misaligned_vector(t: Any) -> None:
    t("st.shared.v4.b32", t.laneid * 8, 0, 0, 0, 0)  # here


def misaligned_global(t: Any, x: Any, y: Any) -> None:
    t("ld.global.b64", x + t.laneid * 4)  # here


def misaligned_row(t: Any) -> None:
    t("st.shared.v4.b32", t.laneid * 16, 0, 0, 0, 0)
    at = t.laneid * 16
    with t.where(t.laneid == 6):
        at = t.update(at, at + 8)
    t(LDSM1, at)  # here


def misaligned_copy(t: Any, x: Any, y: Any) -> None:
    t("cp.async.ca.shared.global", t.laneid * 8 + 4, x, 8)  # here


def misaligned_source(t: Any, x: Any, y: Any) -> None:
    t(COPY, t.laneid * 16, x + t.laneid * 8, 16, 4)  # here


frozen = words()
frozen.flags.writeable = False
PAIR = (np.zeros(1000, np.uint8), np.zeros(1000, np.uint8))
ADDRESSES = [
    Case(beyond_shared, "bounds", warp=1, lane=31, address=4096, says="shared memory, which has 4096 bytes"),
    Case(beyond_shared_by_a_part, "bounds", lane=6, address=96, options={"block": 7, "shared": 111}),
    Case(negative_shared, "bounds", lane=0, address=2**32 - 4),
    Case(huge_shared, "bounds", lane=0, address=2**62 - 4, count=64),
    Case(beyond_row, "bounds", lane=0, address=2**32 - 112, count=7, options=ONE),
    Case(beyond_global, "bounds", lane=31, address=BASE + 1023, args=PAIR, options=ONE,
         says="array 1 (1000 bytes from 0x7f0000000400), begins 1 bytes later"),
    Case(larger_than_array, "bounds", address=BASE + 1280, count=32, args=(words(), words(1)), options=ONE,
         says="array 1 (4 bytes from 0x7f0000000500), ends 4 bytes too early"),
    Case(negative_global, "bounds", lane=1, address=BASE - 4, count=31, args=PAIR, options=ONE,
         says="4 bytes outside of all arrays; the nearest, array 0 (1000 bytes from 0x7f0000000000), begins 4 bytes"),
    Case(between_arrays, "bounds", lane=0, address=BASE + 1016, count=3, args=PAIR, options=ONE,
         says="begins 8 bytes later"),
    Case(beyond_end_of_space, "bounds", address=2**63 - 16, count=32, args=PAIR, options=ONE),
    Case(read_only, "bounds", address=BASE + 1280, count=32, args=(words(), frozen), options=ONE, says="read-only"),
    Case(beyond_source, "bounds", lane=29, address=BASE + 992, count=2, args=PAIR, options=ONE,
         says="ends 8 bytes too early"),
    Case(misaligned_vector, "misaligned", lane=1, address=8, count=32, says="a multiple of 16"),
    Case(misaligned_global, "misaligned", lane=1, address=BASE + 4, count=32, args=PAIR, says="a multiple of 8"),
    Case(misaligned_row, "misaligned", lane=6, address=104, options=ONE, says="a multiple of 16"),
    Case(misaligned_copy, "misaligned", address=4, count=32, args=PAIR, options=ONE, says="a multiple of 8"),
    Case(misaligned_source, "misaligned", lane=1, address=BASE + 8, count=16, args=PAIR, options=ONE, says="of 16"),
]  # fmt: skip


# Asynchronous copies: warps of their own, so that nothing else is in the way.


def read_before_wait(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # there
    t(COMMIT)
    t("ld.shared.b8", t.laneid * 16 + 15)  # here


def matrix_before_wait(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # there
    t(LDSM1, t.laneid * 16)  # here


def write_before_wait(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # there
    t("st.shared.b32", t.laneid * 16, 0)  # here


def copy_before_wait(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # there
    t(COMMIT)
    t(COPY, t.laneid * 16, x, 16)  # here


def not_committed(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # there
    t(WAIT, 0)
    t("ld.shared.b32", t.laneid * 16)  # here


def waits_for_too_few(t: Any, x: Any) -> None:
    for group in range(3):
        t(COPY, t.laneid * 16 + group * 512, x, 16)  # there
        t(COMMIT)
    t(WAIT, 1)
    t("ld.shared.b32", t.laneid * 16 + 512)
    t("ld.shared.b32", t.laneid * 16 + 1024)  # here


def waits_for_others(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # there
    t(COMMIT)
    with t.where(t.laneid < 30):
        t(WAIT, 0)
    t("ld.shared.b32", t.laneid * 16)  # here


def commits_for_others(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # there
    with t.where(t.laneid < 30):
        t(COMMIT)
    t(WAIT, 0)
    t("ld.shared.b32", t.laneid * 16)  # here


def read_from_another_warp(t: Any, x: Any) -> None:
    with t.where(t.warpid == 0):
        t(COPY, t.laneid * 16, x, 16)  # there
    t("bar.sync")
    with t.where(t.warpid == 1):
        t("ld.shared.b32", t.laneid * 16)  # here


PENDING = [
    Case(
        read_before_wait,
        "pending",
        address=15,
        count=32,
        args=X,
        options=ONE,
        says="is still to fill it, and was not waited for",
    ),
    Case(matrix_before_wait, "pending", address=0, count=8, args=X, options=ONE),
    Case(write_before_wait, "pending", address=0, count=32, args=X, options=ONE),
    Case(copy_before_wait, "pending", address=0, count=32, args=X, options=ONE),
    Case(not_committed, "pending", address=0, count=32, args=X, options=ONE),
    Case(waits_for_too_few, "pending", address=1024, count=32, args=X, options=ONE),
    Case(waits_for_others, "pending", lane=30, address=480, count=2, args=X, options=ONE),
    Case(commits_for_others, "pending", lane=30, address=480, count=2, args=X, options=ONE),
    Case(read_from_another_warp, "pending", warp=1, address=0, count=32, args=X),
]


# Barriers, and instructions of whole warps.


def barrier_of_one_warp(t: Any) -> None:
    with t.where(t.warpid == 0):
        t("bar.sync")  # here


def barrier_of_some_lanes(t: Any) -> None:
    with t.where((t.ctaid[0] != 1) | (t.laneid != 13)):
        t("barrier.cta.sync.aligned", 0)  # here


def masked_mma(t: Any) -> None:
    zero = [t.constant(0)] * 4
    with t.where((t.warpid == 0) | (t.laneid > 3)):
        t(MMA, zero, zero[:2], zero)  # here


def unfilled_warp(t: Any) -> None:
    zero = [t.constant(0)] * 4
    t(MMA, zero, zero[:2], zero)  # here


def masked_ldmatrix(t: Any) -> None:
    with t.where(t.laneid < 8):
        t(LDSM1, t.laneid * 16)  # here


def masked_stmatrix(t: Any) -> None:
    with t.where(t.laneid != 31):
        t(STSM1, t.laneid * 16, t.laneid)  # here


def masked_movmatrix(t: Any) -> None:
    with t.where(t.laneid != 31):
        t("movmatrix.sync.aligned.m8n8.trans.b16", t.laneid)  # here


def masked_shuffle(t: Any) -> None:
    with t.where(t.laneid != 31):
        t("shfl.sync.bfly.b32", t.laneid, 1, 31, EVERY)  # here


def masked_vote(t: Any) -> None:
    with t.where(t.warpid == 1), t.where(t.laneid < 16):
        t("vote.sync.ballot.b32", t.laneid < 4, EVERY)  # here


def masked_warp_barrier(t: Any) -> None:
    with t.where(t.laneid < 16):
        t("bar.warp.sync", EVERY)  # here


WHOLE = [
    Case(barrier_of_one_warp, "barrier", warp=1, lane=0, count=32, says="masked off"),
    Case(barrier_of_some_lanes, "barrier", block=1, lane=13, count=2, options={"grid": 3}),
    Case(masked_mma, "divergent", warp=1, lane=4, count=28, says="all 32 lanes"),
    Case(unfilled_warp, "divergent", warp=1, lane=0, count=8, options={"block": 40}, says="no threads"),
    Case(masked_ldmatrix, "divergent", count=16),
    Case(masked_stmatrix, "divergent", count=62),
    Case(masked_movmatrix, "divergent", count=62),
    Case(masked_shuffle, "divergent", count=62, says="membermask"),
    Case(masked_vote, "divergent", warp=1, count=16, says="membermask"),
    Case(masked_warp_barrier, "divergent", count=32, says="membermask"),
]

CASES = [*RACES, *UNWRITTEN, *ADDRESSES, *PENDING, *WHOLE]


def name(case: Case) -> str:
    return f"{case.kind}-{case.kernel.__name__}"


@pytest.mark.parametrize("case", CASES, ids=name)
def test_found(case: Case) -> None:
    with pytest.raises(HazardError) as caught:
        run(case.kernel, *case.args, **case.options)
    hazard = caught.value.hazard
    assert (hazard.kind, hazard.block, hazard.warp, hazard.lane) == (case.kind, case.block, case.warp, case.lane)
    assert (hazard.address, hazard.count) == (case.address, case.count)
    assert linecache.getline(hazard.site.file, hazard.site.line).endswith("# here\n")
    text = str(caught.value)
    assert text.startswith(f"test_kernel_hazards.py:{hazard.site.line}: {hazard.site.mnemonic}: {case.kind}: ")
    assert case.says in text
    if case.address is not None:
        assert f"{case.address:#x}" in text
    if case.kind == "pending" or (case.kind == "race" and "another lane of the warp" not in text):
        assert hazard.other is not None
        itself = "in this very access" in text
        assert linecache.getline(hazard.other.file, hazard.other.line).endswith("# here\n" if itself else "# there\n")
        assert itself or f" at {hazard.other.place} ({hazard.other.mnemonic})" in text
    else:
        assert hazard.other is None


def test_all_kinds_are_tested() -> None:
    assert {case.kind for case in CASES} == set(KINDS)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_as_a_warning(case: Case) -> None:
    """The same hazard, and the kernel goes on to its end."""
    with pytest.warns(HazardWarning) as caught:
        result = run(case.kernel, *case.args, **case.options, hazards="warn")
    first = result.hazards[0]
    assert (first.kind, first.block, first.warp, first.lane, first.address, first.count) == (
        case.kind, case.block, case.warp, case.lane, case.address, case.count,
    )  # fmt: skip
    assert str(caught[0].message) == str(first)
    assert (caught[0].filename, caught[0].lineno) == (first.site.file, first.site.line)
    assert str(first) in result.text()


# Kernels that nearly have a hazard. What they compute is not looked at.


def read_after_write_and_barrier(t: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])
    t("bar.sync")
    t("ld.shared.b32", (63 - t.tid[0]) * 4)
    t("bar.sync")
    t("st.shared.b32", t.tid[0] * 4, 0)


def own_warp(t: Any) -> None:
    """A warp may read what it wrote, its lanes being in step."""
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])
    t("ld.shared.b32", (t.tid[0] ^ 31) * 4)
    t("st.shared.b32", t.tid[0] * 4, 1)


def all_read(t: Any) -> None:
    with t.where(t.tid[0] < 4):
        t("st.shared.b32", t.tid[0] * 4, t.tid[0])
    t("bar.sync")
    t("ld.shared.b32", (t.tid[0] & 3) * 4)
    t("ld.shared.v4.b32", t.tid[0] * 0)


def neighbours(t: Any) -> None:
    """Bytes of the same word, of different warps."""
    t("st.shared.b8", t.laneid * 2 + t.warpid, t.tid[0])
    t("ld.shared.b8", t.laneid * 2 + t.warpid)


def same_value(t: Any) -> None:
    with t.where(t.warpid == 0):
        t("st.shared.b32", (t.laneid & 7) * 4, 5)


def own_block(t: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, t.ctaid[0])
    with t.where(t.ctaid[0] != 3):
        t("bar.sync")
        t("ld.shared.b32", (t.tid[0] ^ 32) * 4)


def copy_after_barrier(t: Any, x: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, 0)
    t("bar.sync")
    t("ld.shared.b32", (t.tid[0] ^ 32) * 4)
    t("bar.sync")
    with t.where(t.tid[0] < 16):
        t(COPY, t.tid[0] * 16, x + t.tid[0] * 16, 16)
    t(WAIT_ALL)
    t("bar.sync")
    t("ld.shared.b32", (t.tid[0] ^ 32) * 4)


def double_buffer(t: Any, x: Any) -> None:
    def stage(k: int) -> None:
        t(COPY, t.tid[0] * 16 + k % 2 * 1024, x, 16)
        t(COMMIT)

    stage(0)
    for k in range(4):
        if k < 3:
            stage(k + 1)
        else:
            t(COMMIT)  # empty
        t(WAIT, 1)
        t("bar.sync")
        t(LDSM, (t.laneid + (1 - t.warpid) * 32) * 16 + k % 2 * 1024)
        t("bar.sync")


def empty_groups(t: Any, x: Any) -> None:
    t(COMMIT)
    t(COPY, t.tid[0] * 16, x, 16)
    t(COMMIT)
    t(COMMIT)
    t(COMMIT)
    t(WAIT, 2)
    t("ld.shared.b32", t.tid[0] * 16)


def groups_of_lanes(t: Any, x: Any) -> None:
    """Lanes below 16 commit a group more; for them the first is complete."""
    t(COPY, t.tid[0] * 16, x, 16)
    t(COMMIT)
    with t.where(t.laneid < 16):
        t(COMMIT)
    t(WAIT, 1)
    with t.where(t.laneid < 16):
        t("ld.shared.b32", t.tid[0] * 16)


def not_committed_but_all(t: Any, x: Any) -> None:
    t(COPY, t.tid[0] * 16, x, 16)
    t(WAIT_ALL)
    t("ld.shared.b32", t.tid[0] * 16)


def beside_a_copy(t: Any, x: Any) -> None:
    t("cp.async.ca.shared.global", t.tid[0] * 8, x, 4)
    t("st.shared.b32", t.tid[0] * 8 + 4, 1)
    t("ld.shared.b32", t.tid[0] * 8 + 4)


def shorter_source(t: Any, x: Any) -> None:
    """Of 16 bytes 0 to 15 are read, and of none the address does not count."""
    last = x + 1008
    t(COPY, t.laneid * 16 + t.warpid * 512, last + (t.laneid & 1) * 4096, 16, (1 - (t.laneid & 1)) * (t.laneid >> 1))


def unwritten_elsewhere(t: Any, y: Any) -> None:
    t("st.global.b32", y + t.tid[0] * 8, 1)
    t("ld.global.b32", y + t.tid[0] * 8)


def unneeded_rows(t: Any) -> None:
    """`x1` wants addresses of 8 lanes; those of others may be anything, poison too."""
    with t.where(t.laneid < 8):
        t("st.shared.v4.b32", (t.laneid + t.warpid * 8) * 16, 0, 0, 0, 0)
        at = (t.laneid + t.warpid * 8) * 16
    t(LDSM1, at)
    t(LDSM1, (t.laneid + t.warpid * 8) * t.update(t.constant(5), t.constant(16)))


def padding(t: Any) -> None:
    """8 bytes of each row count."""
    t("st.shared.b64", (t.laneid + t.warpid * 32) * 16, 1)
    t("ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.b4x16_p64", (t.laneid + t.warpid * 32) * 16)


def masked_but_defined(t: Any) -> None:
    with t.where(t.laneid < 5):
        x = t.laneid + 1
        x + 1
    x = t.update(t.constant(3), t.constant(4))
    with t.where(t.laneid < 9):
        y = t.update(x, t.laneid)
    t("st.shared.b32", t.tid[0] * 4, y)


def masked_then_all(t: Any) -> None:
    p = t.laneid < 5
    with t.where(p):
        x = t.laneid + 1
    with t.where(~p):
        x = t.update(x, t.laneid + 2)
    t("st.shared.b32", t.tid[0] * 4, x)


def last_bytes(t: Any, x: Any) -> None:
    t("st.shared.b8", 4095 - t.tid[0], 0)
    t("st.shared.v4.b32", t.tid[0] * 16, 0, 0, 0, 0)
    t("ld.global.b8", x + (1023 - t.tid[0]))
    t("ld.global.v4.b32", x + t.tid[0] * 16)


def masked_off_addresses(t: Any, x: Any) -> None:
    with t.where(t.tid[0] < 2):
        t("ld.global.b32", x + t.tid[0] * 1020)
        t("st.shared.b32", t.tid[0] * 4092, 0)


def whole_warps(t: Any) -> None:
    zero = [t.constant(0)] * 4
    with t.where(t.warpid == 1):
        t(MMA, zero, zero[:2], zero)
        t("st.shared.v4.b32", t.laneid * 16, zero)
        t(LDSM, t.laneid * 16)
        t("shfl.sync.idx.b32", t.laneid, 0, 31, EVERY)


def no_warp(t: Any) -> None:
    zero = [t.constant(0)] * 4
    with t.where(t.warpid == 9):
        t(MMA, zero, zero[:2], zero)
        t("bar.sync")


def sparse_of_one_warp(t: Any) -> None:
    """Warps that do not take part may hold metadata that is none."""
    zero = [t.constant(0)] * 4
    with t.where(t.warpid == 1):
        t(SP, zero, zero, zero, t.update(t.constant(0), t.constant(0xEEEEEEEE)), 0)


def members(t: Any) -> None:
    with t.where(t.laneid < 16):
        t("shfl.sync.bfly.b32", t.laneid, 8, 31, 0xFFFF)
        t("bar.warp.sync", 0xFFFF)
        t("redux.sync.add.u32", t.laneid, 0xFFFF)


def barrier_in_blocks(t: Any) -> None:
    with t.where(t.ctaid[0] < 2):
        t("bar.sync")
        t("bar.sync", 0)


NEARLY: list[tuple[Kernel, dict[str, Any]]] = [
    (read_after_write_and_barrier, {}), (own_warp, {}), (all_read, {}), (neighbours, {}), (same_value, {}),
    (own_block, {"grid": 4}), (copy_after_barrier, {"args": X}), (double_buffer, {"args": X}),
    (empty_groups, {"args": X}), (groups_of_lanes, {"args": X}), (not_committed_but_all, {"args": X}),
    (beside_a_copy, {"args": X}), (shorter_source, {"args": X}), (unwritten_elsewhere, {"args": (Output(words()),)}),
    (unneeded_rows, {}), (padding, {"target": "sm_100a"}), (masked_but_defined, {}), (masked_then_all, {}),
    (last_bytes, {"args": X, "shared": 4096, "block": 32}), (masked_off_addresses, {"args": X}), (whole_warps, {}),
    (no_warp, {}), (sparse_of_one_warp, {}), (members, {}), (barrier_in_blocks, {"grid": 4}),
]  # fmt: skip


@pytest.mark.parametrize(("kernel", "options"), NEARLY, ids=lambda x: getattr(x, "__name__", ""))
def test_not_found(kernel: Kernel, options: dict[str, Any]) -> None:
    assert run(kernel, *options.get("args", ()), **{k: x for k, x in options.items() if k != "args"}).hazards == []


# Policies.


def several(t: Any) -> None:
    for _ in range(3):
        t("ld.shared.b32", t.laneid * 4)
    t("ld.shared.b32", t.laneid * 4 + 1)


def test_policies_by_kind() -> None:
    with pytest.raises(HazardError) as caught, pytest.warns(HazardWarning, match="unwritten"):
        run(several, hazards={"unwritten": "warn"})
    assert caught.value.hazard.kind == "misaligned"
    with pytest.raises(HazardError, match="unwritten"):
        run(several, hazards={"unwritten": "error", "misaligned": "warn"})
    with pytest.warns(HazardWarning) as warned:
        result = run(several, hazards=dict.fromkeys(KINDS, "warn"))
    # Each line once, however often it is met.
    assert [hazard.kind for hazard in result.hazards] == ["unwritten", "misaligned"] and len(warned) == 2


@pytest.mark.parametrize("policy", ["ignore", None, 3, {"unwritten": "ignore"}, {"unread": "warn"}, {3: "warn"}, []])
def test_wrong_policies(policy: Any) -> None:
    with pytest.raises(OperandError, match="expected 'error' or 'warn'"):
        run(several, hazards=policy)


def test_warned_accesses_take_no_part() -> None:
    """A lane outside of memory reads 0 and writes nothing; others act."""
    x = np.full(40, 7, np.uint32)

    def kernel(t: Any, x: Any) -> None:
        got = t("ld.global.b32", x + t.laneid * 4 + 64)
        t("st.global.b32", x + (t.laneid * 4 + 64), got + 1)
        t("st.shared.b32", t.laneid * 4, got)
        t("st.global.b32", x + (t.laneid & 1) * 2, got + 2)

    with pytest.warns(HazardWarning):
        result = run(kernel, x, block=32, shared=64, hazards="warn")
    assert {hazard.kind for hazard in result.hazards} == {"bounds", "misaligned"}
    assert x.tolist() == [2] + [7] * 15 + [8] * 24  # of lanes that write to the first word, the last reads 0


def test_blocks_are_numbered_over_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_THREADS", 64)

    def kernel(t: Any) -> None:
        with t.where(t.ctaid[0] == 5):
            t("ld.shared.b32", t.laneid * 4)

    with pytest.raises(HazardError) as caught:
        run(kernel, grid=7)
    assert caught.value.hazard.block == 5


def helper(t: Any) -> None:
    t("ld.shared.b32", t.laneid * 4)  # the innermost line outside of the package


def test_the_line_of_a_helper() -> None:
    with pytest.raises(HazardError) as caught:
        run(lambda t: helper(t))
    assert caught.value.hazard.site.line == helper.__code__.co_firstlineno + 1


def test_text_of_hazards() -> None:
    site = caller("nop")
    bad = np.zeros((1, 1, 32), bool)
    reporter = Reporter()
    reporter.report("race", site, bad)  # nobody
    for lanes, more in ((1, ""), (2, " (and 1 more lane)"), (3, " (and 2 more lanes)")):
        bad[..., :lanes] = True
        with pytest.raises(HazardError) as caught:
            reporter.report("race", site, bad)
        place = f"test_kernel_hazards.py:{site.line}: nop"
        assert str(caught.value) == f"{place}: race: block 0, warp 0, lane 0{more}: {KINDS['race']}"
    assert isinstance(caught.value, WarpmmaError)
    hazard = Hazard(kind="race", site=site, block=1, warp=2, lane=3)
    assert hazard == Hazard(kind="race", site=site, block=1, warp=2, lane=3)


def test_warnings_can_be_errors() -> None:
    with warnings.catch_warnings(), pytest.raises(HazardWarning):
        warnings.simplefilter("error")
        run(several, hazards="warn")


def test_no_arrays() -> None:
    with pytest.raises(HazardError, match="no array is in global memory"):
        run(lambda t: t("ld.global.b32", 16))


def test_lines_beyond_those_that_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("warpmma.machine.memory"), "_MOST_SITES", 1)
    with pytest.raises(HazardError, match="warp 1 wrote it at test_kernel") as caught:
        run(read_after_write)
    assert caught.value.hazard.other is not None
    with pytest.raises(HazardError, match="warp 1 read it at a line that was not noted") as caught:
        run(write_after_read)
    assert caught.value.hazard.other is None
