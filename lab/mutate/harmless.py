"""Why mutants that nobody notices are harmless: arguments, and the kernels and mutations that they are for.

`*` stands for anything. An argument must hold for every mutant that it names and that is not noticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

__all__ = ["HARMLESS", "Arguments", "Table", "by_name", "reason", "stale"]

Names = tuple[tuple[str, str], ...]
Arguments = tuple[tuple[str, Names], ...]
Table = Mapping[tuple[str, str], str]

_ARGUMENTS: Arguments = (
    (
        "The threads are numbered in another order, for both reads and writes: each piece of the work still has one"
        " thread.",
        (
            ("gemm_*", "threads swapped: t.tid[0] -> ^ 1"),
            ("gemm_*", "warps swapped: t.warpid -> ^ 1 in t.warpid & 1"),
            ("attention", "warps swapped: t.warpid -> ^ 1 in t.warpid * WARP"),
            ("attention", "threads swapped: t.tid[0] -> ^ 1 in first + t.tid[0] #2"),
            ("attention", "lanes swapped: lane -> ^ 1 in lane % (ROW // PIECE)"),
            ("rowwise", "warps swapped: t.warpid -> ^ 1 in t.ctaid[0] * (THREADS // WARP) + t.warpid"),
            ("rowwise", "threads swapped: t.tid[0] -> ^ 1 in t.ctaid[0] * THREADS + t.tid[0]*"),
            ("classics.product_in_tiles", "threads swapped: t.tid[0] -> ^ 1"),
            ("habits_warps.slices_of_warps", "warps swapped: t.warpid -> ^ 1 in t.warpid * (8 * 9 * 4)"),
            ("habits_barriers.update_in_place", "threads swapped: t.tid[0] -> ^ 1 in t.ctaid[0] * 64 + t.tid[0]"),
            ("habits_barriers.broadcast", "threads swapped: t.tid[0] -> ^ 1 in t.ctaid[0] * 64 + t.tid[0]"),
            ("habits_barriers.strides_of_the_grid", "threads swapped: t.tid[0] -> ^ 1 in t.ctaid[0] * 64 + t.tid[0]"),
            ("habits_barriers.flags_in_global", "threads swapped: t.tid[0] -> ^ 1 in t.ctaid[0] * 64 + t.tid[0]"),
            ("habits_memory.neighbouring_bytes", "lanes swapped: t.laneid -> ^ 1 in t.laneid * 2"),
            ("habits_memory.neighbouring_bytes", "warps swapped: t.warpid -> ^ 1 in t.laneid * 2 + t.warpid"),
            ("habits_memory.own_word_again_and_again", "threads swapped: t.tid[0] -> ^ 1 in t.tid[0] * 4"),
            ("habits_memory.transpose_*", "threads swapped: t.tid[0] -> ^ 1 in t.tid[0] % 32"),
            ("habits_barriers.flags_in_shared", "threads swapped: t.tid[0] -> ^ 1 in t.tid[0] * 4"),
            ("habits_barriers.flags_in_shared", "threads swapped: t.tid[0] -> ^ 1 in t.tid[0] * 4 #2"),
            ("habits_copies.zeros_beyond_the_end", "threads swapped: t.tid[0] -> ^ 1 in t.tid[0] * 16"),
            ("habits_copies.source_is_written_after_the_wait", "lanes swapped: t.laneid -> ^ 1 in t.laneid * 16"),
            ("habits_copies.two_buffers", "threads swapped: t.tid[0] -> ^ 1"),
            ("habits_copies.three_buffers", "threads swapped: t.tid[0] -> ^ 1"),
            ("habits_copies.four_buffers", "threads swapped: t.tid[0] -> ^ 1"),
        ),
    ),
    (
        "Neighbouring lanes are swapped: a butterfly adds the same numbers, the last two in the other order.",
        (
            ("rowwise", "lanes swapped: t.laneid -> ^ 1 in _places(columns, t.laneid, WARP)*"),
            ("rowwise", "threads swapped: t.tid[0] -> ^ 1 in _places(columns, t.tid[0], THREADS)"),
        ),
    ),
    (
        "After the butterfly every lane has the warp's sum: any may store it, and several store the same one.",
        (
            ("rowwise", "mask dropped: t.where(t.laneid == 0)"),
            ("rowwise", "comparison: t.laneid == 0 -> !="),
            ("rowwise", "lanes swapped: t.laneid -> ^ 1 in t.laneid == 0"),
        ),
    ),
    (
        "The quotient, or the side of an even bound, is the same for a thread and its neighbour.",
        (
            ("gemm_*", "threads swapped: thread -> ^ 1 in piece + thread"),
            ("gemm_f16", "threads swapped: thread -> ^ 1 in piece + thread #4"),
            ("gemm_sparse", "threads swapped: thread -> ^ 1 in piece + thread #4"),
            ("attention", "threads swapped: t.tid[0] -> ^ 1 in first + t.tid[0]"),
            ("attention", "lanes swapped: lane -> ^ 1 in lane // (ROW // PIECE)"),
            ("habits_memory.output_in_parts", "threads swapped: t.tid[0] -> ^ 1 in t.tid[0] < many*"),
        ),
    ),
    (
        "The same two pieces along k are swapped in A and in W, zeros too, and sums of integers have no order.",
        (
            ("gemm_int8", "threads swapped: thread -> ^ 1 in piece + thread #2"),
            ("gemm_int8", "threads swapped: thread -> ^ 1 in piece + thread #3"),
        ),
    ),
    (
        "A sum of integers is the same in any order, and the same in every lane that has it.",
        (
            ("classics.sum_by_shuffles", "threads swapped: t.tid[0] -> ^ 1 in t.ctaid[0] * 128 + t.tid[0]"),
            ("classics.sum_by_shuffles", "warps swapped: t.warpid -> ^ 1 in t.warpid * 4"),
            ("habits_warps.shuffles_of_halves", "lanes swapped: t.laneid -> ^ 1 in t.laneid * 4*"),
            ("habits_warps.shuffle_after_exit", "lanes swapped: t.laneid -> ^ 1 in t.laneid * 4*"),
            ("habits_warps.shuffle_in_half_a_warp", "threads swapped: t.tid[0] -> ^ 1 in t.tid[0] * 4*"),
            ("habits_warps.votes_in_half_a_warp", "threads swapped: t.tid[0] -> ^ 1 in t.tid[0] * 4 #2"),
        ),
    ),
    (
        "After the barrier any thread may store the sum, and several store the same one.",
        (
            ("classics.sum_by_shuffles", "mask dropped: t.where(t.tid[0] == 0)"),
            ("classics.sum_by_shuffles", "comparison: t.tid[0] == 0 -> !="),
            ("classics.sum_by_shuffles", "threads swapped: t.tid[0] -> ^ 1 in t.tid[0] == 0"),
        ),
    ),
    (
        "Addresses, or words of scales inside their matrix, are computed but not used.",
        (
            ("gemm_*", "loop: TILE_K -> + a step, its end in range(0, TILE_K, *"),
            ("gemm_nvfp4", "loop: WARP_* -> + a step, its end in range(0, WARP_*, 32)"),
            ("attention", "loop: 2 -> + a step, its end in range(2)"),
        ),
    ),
    (
        "The extra iteration is masked off for every thread.",
        (
            ("classics.scan_by_shuffles", "loop: 3 -> + a step, its end in range(3)"),
            ("habits_barriers.update_in_place", "loop: 2 -> + a step, its end in range(2)"),
            ("habits_barriers.strides_of_the_grid", "loop: 500 -> + a step, its end in range(0, 500, 192)"),
            ("habits_memory.warps_in_turns", "loop: 2 -> + a step, its end in range(2)"),
        ),
    ),
    (
        "With so many buffers the condition has that value anyway, or the line is not reached.",
        (
            ("habits_copies.two_buffers", "comparison: buffers < ahead + 2 -> <="),
            ("habits_copies.two_buffers", "branch: buffers < ahead + 2 -> True"),
            ("habits_copies.three_buffers", "branch: buffers < ahead + 2 -> False"),
            ("habits_copies.four_buffers", "branch: buffers < ahead + 2 -> False"),
            ("habits_copies.three_buffers", "barrier dropped: t('bar.sync') #2"),
            ("habits_copies.four_buffers", "barrier dropped: t('bar.sync') #2"),
        ),
    ),
    (
        "The kernel has one barrier more than it needs.",
        (
            ("habits_copies.three_buffers", "comparison: buffers < ahead + 2 -> <="),
            ("habits_copies.three_buffers", "branch: buffers < ahead + 2 -> True"),
            ("habits_copies.four_buffers", "comparison: buffers < ahead + 2 -> <="),
            ("habits_copies.four_buffers", "branch: buffers < ahead + 2 -> True"),
        ),
    ),
    (
        "The statement swapped with the barrier or the wait accesses nothing that it orders.",
        (
            ("habits_copies.*", "order: t('bar.sync') -> after place = t.tid[0]"),
            ("habits_copies.*_buffers", "order: t('bar.sync') -> after start = tile % buffers * 1024"),
            ("habits_copies.source_is_read_meanwhile", "order: t('st.shared.b64', *) -> after t(WAIT_ALL)"),
            ("attention", "order: t('bar.warp.sync', 4294967295) -> after factors = *"),
            ("habits_barriers.work_after_barriers_at_two_lines", "order: t('bar.sync') -> after value = t.update(*"),
            ("classics.stencil", "order: value = t('ld.shared.b32', at) + left * 3 + right -> after t('bar.sync')"),
        ),
    ),
    (
        "Every step multiplies what the previous step copied: an extra step has nothing left to multiply.",
        (("gemm_nvfp4", "loop: k -> + a step, its end in range(0, k, TILE_K)"),),
    ),
    (
        "An element is half a byte: k + 1 is in the byte of k, and no piece ends there.",
        (
            ("gemm_nvfp4", "call: 0 -> + 1, argument 1 of copy(0, 0)"),
            ("gemm_nvfp4", "call: k0 + TILE_K -> + 1, argument 1 of copy((number + 1) % 2, k0 + TILE_K)"),
        ),
    ),
    (
        "Every key of a tile other than the last is visible: the mask hides none.",
        (("attention", "branch: causal or tile == tiles - 1 -> True"),),
    ),
    ("The queries are loaded again, and are the same.", (("attention", "branch: tile == 0 -> True"),)),
    ("The two buffers swap roles.", (("classics.scan_in_two_buffers", "stage: step % 2 -> the next"),)),
    (
        "The warps take turns in another order, and there is still a barrier between two turns.",
        (
            ("habits_memory.warps_in_turns", "comparison: t.warpid == turn -> !="),
            ("habits_memory.warps_in_turns", "warps swapped: t.warpid -> ^ 1 in t.warpid == turn"),
            ("habits_memory.warps_in_turns", "order: with t.where(t.warpid == turn): * -> after t('bar.sync')"),
        ),
    ),
    (
        "No lane waits for a lane that has exited, whether the mask names it or not.",
        (("habits_warps.shuffle_after_exit", "member dropped: EVERY -> without lane * (shfl.sync.bfly.b32)"),),
    ),
    (
        "The mask would have kept old values in some lanes; `selp` or the next `update` discards the new ones.",
        (
            ("habits_warps.select_of_branches", "mask dropped: t.where(*"),
            ("habits_barriers.work_after_barriers_at_two_lines", "update dropped: t.update(value, value + 1)"),
        ),
    ),
    (
        "The first lane starts with a large value, and every other lane exits when its value is 1: no lane has 0.",
        (("habits_warps.exit_from_loop", "comparison: left >= 0 -> >"),),
    ),
    (
        "The extra arrival comes at the end, and no thread waits for it.",
        (
            ("habits_barriers.producer_and_consumer", "comparison: step < 2 -> <="),
            ("habits_barriers.producer_and_consumer", "branch: step < 2 -> True"),
        ),
    ),
    (
        "No other warps use that barrier.",
        (("habits_barriers.barriers_of_pairs", "barrier's number: 2 -> + 1 (bar.sync)"),),
    ),
    (
        "Neighbours that are swapped before and after the lanes are reversed end up in their old places.",
        (
            ("habits_memory.warps_in_turns", "threads swapped: t.tid[0] -> ^ 1 in t.ctaid[0] * 64 + t.tid[0]"),
            ("habits_warps.block_exits", "threads swapped: t.tid[0] -> ^ 1 in t.ctaid[0] * 64 + t.tid[0]"),
        ),
    ),
)


def by_name(arguments: Arguments) -> Table:
    """Return the argument by the names of a kernel and a mutation."""
    return {key: argument for argument, keys in arguments for key in keys}


HARMLESS = by_name(_ARGUMENTS)
"""The argument, by the names of a kernel and a mutation."""


def reason(kernel: str, mutation: str, table: Table | None = None) -> str:
    """Return the argument for a mutation that nothing notices, "" for none."""
    those = (HARMLESS if table is None else table).items()
    return next((why for key, why in those if _fits(key[0], kernel) and _fits(key[1], mutation)), "")


def stale(harmless: Iterable[tuple[str, str]], table: Table | None = None) -> list[tuple[str, str]]:
    """Return entries that no harmless mutant, of kernel and mutation, is an example of."""
    those = list(harmless)
    keys = HARMLESS if table is None else table
    return [key for key in keys if not any(_fits(key[0], x) and _fits(key[1], y) for x, y in those)]


def _fits(pattern: str, text: str) -> bool:
    return _expression(pattern).fullmatch(text) is not None


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))))
