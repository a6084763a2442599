"""The advice in a race about the missing order: a barrier, or fences if threads communicate through memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kernels import run

from warpmma.kernel import HazardError

FENCES = {
    "global": r"only with __threadfence\(\) \(fence.acq_rel.gpu\) on both sides$",
    "shared": r"only with __threadfence_block\(\) \(fence.acq_rel.cta\) on both sides$",
}
PLAIN = {
    "lanes": "no bar.warp.sync lies between$",
    "warps": "no barrier lies between$",
    "blocks": "blocks are unordered$",
}
PARTIES: dict[str, Callable[[Any, int], Any]] = {
    "lanes": lambda t, i: t.tid[0] == 5 + i,
    "warps": lambda t, i: t.tid[0] == 5 + 32 * i,
    "blocks": lambda t, i: (t.tid[0] == 5) & (t.ctaid[0] == i),
}


def passed(t: Any, who: Callable[[int], Any], flag: Any, data: Any, space: str, *, fence: bool, meets: bool) -> None:
    """Write data and a flag in one thread, look at the flag and read the data in another."""
    with t.where(who(0)):
        t(f"st.{space}.b32", data, 5)
        if fence:
            t("fence.acq_rel.gpu")
        t(f"atom.{space}.exch.b32", flag, 1)
    with t.where(who(1)):
        t(f"ld.volatile.{space}.b32", flag if meets else flag + 64)
        if fence:
            t("fence.acq_rel.gpu")
        t(f"ld.{space}.b32", data)


def launched(parties: str, space: str, **options: bool) -> None:
    blocks = 2 if parties == "blocks" else 1
    memory = [np.zeros(64, np.uint32), np.zeros(64, np.uint32)]

    def kernel(t: Any, flag: Any, data: Any) -> None:
        if space == "shared":
            flag, data = 0, 128
            with t.where(t.tid[0] == 0):
                t("st.shared.b32", flag, 0)
                t("st.shared.b32", flag + 64, 0)
            t("bar.sync", 0)
        passed(t, lambda i: PARTIES[parties](t, i), flag, data, space, **options)

    run(kernel, *memory, grid=blocks, block=64, shared=256)


@pytest.mark.parametrize("parties", PARTIES)
@pytest.mark.parametrize("space", FENCES)
def test_threads_that_meet_through_memory_are_told_of_fences(parties: str, space: str) -> None:
    if parties == "blocks" and space == "shared":
        return  # of two blocks
    with pytest.raises(HazardError, match=FENCES[space]):
        launched(parties, space, fence=False, meets=True)
    launched(parties, space, fence=True, meets=True)


@pytest.mark.parametrize("parties", PARTIES)
@pytest.mark.parametrize("fence", [False, True])
def test_threads_that_do_not_meet_are_told_of_barriers(parties: str, fence: bool) -> None:
    with pytest.raises(HazardError, match=PLAIN[parties]):
        launched(parties, "global", fence=fence, meets=False)


@pytest.mark.parametrize("parties", PARTIES)
def test_atomics_before_the_race_are_no_meeting(parties: str) -> None:
    def kernel(t: Any, flag: Any, data: Any) -> None:
        t("atom.global.add.u32", flag, 1)
        with t.where(PARTIES[parties](t, 0)):
            t("st.global.b32", data, 5)
        with t.where(PARTIES[parties](t, 1)):
            t("ld.global.b32", data)

    with pytest.raises(HazardError, match=PLAIN[parties]):
        run(kernel, np.zeros(1, np.uint32), np.zeros(1, np.uint32), grid=1 + (parties == "blocks"), block=64)


def test_threads_of_blocks_that_have_ended_are_told_of_fences() -> None:
    """The grid has more blocks than run together: of those that have ended it is not known where they met."""

    def kernel(t: Any, flag: Any, data: Any) -> None:
        with t.where((t.tid[0] == 0) & (t.ctaid[0] == 0)):
            t("st.global.b32", data, 5)
            t("atom.global.exch.b32", flag, 1)
        with t.where((t.tid[0] == 0) & (t.ctaid[0] == 99)):
            t("ld.volatile.global.b32", flag)
            t("ld.global.b32", data)

    with pytest.raises(HazardError, match=FENCES["global"]):
        run(kernel, np.zeros(1, np.uint32), np.zeros(1, np.uint32), grid=100, block=1024)
