"""Tracebacks of errors end at the line of the kernel with the mistake."""

from __future__ import annotations

import functools
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.kernel import HazardError, HazardWarning, launch
from warpmma.testing import Gpu


def race(t: Any) -> None:
    t("st.shared.b32", t.laneid * 4, t.warpid)  # the last line


def operand(t: Any) -> None:
    t("add.rn.f32", 1.0, t.constant(1, "b64"))  # the last line


def operator(t: Any) -> None:
    t.laneid + 1.5  # the last line


def mask(t: Any) -> None:
    with t.where(t.laneid):  # the last line
        pass


def called(t: Any) -> None:
    inner(t)


def inner(t: Any) -> None:
    t("ld.shared.b32", t.laneid * 4)  # the last line


def run(kernel: Callable[..., object], **options: Any) -> None:
    launch(kernel, 1, 64, [], target="sm_90", shared=256, **options)


def frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


@pytest.mark.parametrize("kernel", [race, operand, operator, mask, called, functools.partial(race)])
def test_errors_of_kernels_end_at_their_line(kernel: Callable[..., object]) -> None:
    with pytest.raises((HazardError, OperandError)) as caught:
        run(kernel)
    last = frames(caught.value)[-1]
    assert last.filename == __file__
    assert last.line is not None and last.line.endswith("# the last line")


def test_warnings_that_are_errors_end_there_too() -> None:
    with warnings.catch_warnings(), pytest.raises(HazardWarning) as caught:
        warnings.simplefilter("error")
        run(race, hazards="warn")
    assert frames(caught.value)[-1].filename == __file__


def test_what_is_no_mistake_in_the_use_of_the_package_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("warpmma.kernel.threads.row", broken)
    with pytest.raises(ZeroDivisionError) as caught:
        run(race)
    assert [frame.name for frame in frames(caught.value)[-3:]] == ["race", "__call__", "broken"]


def test_errors_before_the_kernel_say_where_they_arise() -> None:
    with pytest.raises(OperandError) as caught:
        Gpu("sm_90").launch(race, 1, 2000, [])
    assert frames(caught.value)[-1].filename != __file__


def test_threads_are_shown_briefly() -> None:
    """As pytest does above a kernel's lines."""
    shown: list[str] = []
    launch(lambda t: shown.append(repr(t)), 3, 96, [], target="sm_90")
    assert shown == ["<threads of 3 x 3 warps on sm_90>"]


def test_nothing_is_cut_where_all_is_ours() -> None:
    from warpmma._tracebacks import end_outside

    with pytest.raises(OperandError) as caught:
        wm.mma("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", np.ones(3), np.ones(3), target="sm_90")
    error = caught.value
    own = error.__traceback__
    assert own is not None
    error.__traceback__ = own.tb_next  # without the frame of this test
    before = frames(error)
    end_outside(error)
    assert frames(error) == before and len(before) > 1
