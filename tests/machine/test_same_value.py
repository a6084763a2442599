"""The same value stored to one address by several threads: counted, and a hazard on request."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warpmma.kernel import KINDS, HazardError, HazardWarning, launch

KIND = "same value"
Kernel = Callable[..., object]


def run(kernel: Kernel, *args: Any, block: int = 64, grid: int = 1, **options: Any) -> Any:
    return launch(kernel, grid, block, args, target="sm_90", shared=256, **options)


def lanes(t: Any, x: Any) -> None:
    with t.where(t.tid[0] == 3):
        t("st.shared.b32", 0, 5)  # there
    with t.where(t.tid[0] == 4):
        t("st.shared.b32", 0, 5)  # here


def warps(t: Any, x: Any) -> None:
    with t.where(t.tid[0] == 0):
        t("st.shared.b32", 0, 5)  # there
    with t.where(t.tid[0] == 32):
        t("st.shared.b32", 0, 5)  # here


def warps_in_global(t: Any, x: Any) -> None:
    with t.where((t.tid[0] == 0) & (t.ctaid[0] == 0)):
        t("st.global.b32", x, 5)  # there
    with t.where((t.tid[0] == 32) & (t.ctaid[0] == 0)):
        t("st.global.b32", x, 5)  # here


def blocks(t: Any, x: Any) -> None:
    with t.where((t.tid[0] == 0) & (t.ctaid[0] == 0)):
        t("st.global.b32", x, 5)  # there
    with t.where((t.tid[0] == 0) & (t.ctaid[0] == 1)):
        t("st.global.b32", x, 5)  # here


EACH = pytest.mark.parametrize("kernel", [lanes, warps, warps_in_global, blocks])


def words() -> np.ndarray[Any, Any]:
    return np.zeros(64, np.uint32)


@EACH
def test_counted_and_no_hazard(kernel: Kernel) -> None:
    result = run(kernel, words(), grid=2 if kernel is blocks else 1, hazards="error")
    assert result.hazards == []
    assert result.counts[KIND] == 1


@EACH
def test_an_error_where_it_is_asked_for(kernel: Kernel) -> None:
    with pytest.raises(HazardError) as caught:
        run(kernel, words(), grid=2, hazards={KIND: "error"})
    hazard = caught.value.hazard
    assert hazard.kind == KIND and hazard.other is not None
    assert linecache.getline(hazard.site.file, hazard.site.line).endswith("# here\n")
    assert linecache.getline(hazard.other.file, hazard.other.line).endswith("# there\n")
    assert hazard.other.place in str(hazard)


@EACH
def test_a_warning_where_it_is_asked_for(kernel: Kernel) -> None:
    with pytest.warns(HazardWarning, match=KIND):
        result = run(kernel, words(), grid=2, hazards={KIND: "warn"})
    assert [x.kind for x in result.hazards] == [KIND]


def test_in_one_access() -> None:
    """Of the two warps and the 64 lanes that store the same, all but one."""

    def kernel(t: Any) -> None:
        t("st.shared.b32", 0, 7)

    assert run(kernel).counts[KIND] == 63
    with pytest.raises(HazardError, match=KIND):
        run(kernel, hazards={KIND: "error"})


def test_not_of_one_thread_nor_behind_a_barrier() -> None:
    def kernel(t: Any) -> None:
        with t.where(t.tid[0] == 0):
            t("st.shared.b32", 0, 7)
            t("st.shared.b32", 0, 7)
        t("bar.sync")
        with t.where(t.tid[0] == 40):
            t("st.shared.b32", 0, 7)

    result = run(kernel, hazards={KIND: "error"})
    assert result.counts.get(KIND, 0) == 0


def test_reading_it_is_a_race_still() -> None:
    """Who reads it without a barrier may read what was there before."""

    def kernel(t: Any) -> None:
        with t.where(t.warpid == 0):
            t("st.shared.b32", 0, 7)
        with t.where(t.warpid == 1):
            t("ld.shared.b32", 0)

    with pytest.raises(HazardError, match="race"):
        run(kernel)


def test_another_value_is_a_race() -> None:
    def kernel(t: Any) -> None:
        t("st.shared.b32", 0, 7)
        with t.where(t.tid[0] == 32):
            t("st.shared.b32", 0, 8)

    with pytest.raises(HazardError, match="race"):
        run(kernel)


def test_it_has_a_meaning() -> None:
    assert KIND in KINDS
