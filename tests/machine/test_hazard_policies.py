"""Policies of hazards, and what their texts say."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest
from hazard_kernels.case import run
from hazard_kernels.races import read_after_write, write_after_read

from warpmma.errors import OperandError, WarpmmaError
from warpmma.kernel import Output
from warpmma.kernel.call_sites import caller
from warpmma.machine import KINDS, Hazard, HazardError, HazardWarning, Reporter

module = importlib.import_module("warpmma.machine.block.grid")  # `kernel.launch` is the function


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
    with pytest.raises(OperandError, match="expected 'error', 'warn' or 'count'"):
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
    assert {hazard.kind for hazard in result.hazards} == {"bounds", "misaligned", "lane order"}
    assert x.tolist() == [9] + [7] * 15 + [8] * 24  # of lanes that write to the first word, the first stays


def test_blocks_are_numbered_over_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_THREADS", 64)

    def kernel(t: Any) -> None:
        with t.where(t.ctaid[0] == 5):
            t("ld.shared.b32", t.laneid * 4)

    with pytest.raises(HazardError) as caught:
        run(kernel, grid=7)
    assert caught.value.hazard.block == 5


def test_races_of_blocks_that_do_not_run_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_THREADS", 64)

    def kernel(t: Any, x: Any) -> None:
        with t.where(t.ctaid[0] == 1):
            t("st.global.b32", x, 1)
        with t.where(t.ctaid[0] == 6):
            t("ld.global.b32", x)

    with pytest.raises(HazardError, match=r"of block 1 wrote it at .*, and blocks are unordered") as caught:
        run(kernel, np.zeros(4, np.uint32), grid=7)
    hazard = caught.value.hazard
    assert hazard.block == 6 and hazard.other is not None and hazard.site.line == hazard.other.line + 2


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
        place = f"test_hazard_policies.py:{site.line}: nop"
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


def test_lines_beyond_the_distinguished_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the clock of a batch stands still, no line is named wrongly."""
    for module in ("access_words", "happens_before"):
        monkeypatch.setattr(importlib.import_module(f"warpmma.machine.order.{module}"), "LAST_TIME", 3)
    with pytest.raises(HazardError, match=r"warp 1 wrote it at races\.py") as caught:
        run(read_after_write)
    assert caught.value.hazard.other is not None
    with pytest.raises(HazardError, match="warp 1 read it at a line that was not noted") as caught:
        run(write_after_read)
    assert caught.value.hazard.other is None


def test_kinds_that_are_only_counted() -> None:
    """In lanes, or once for the launch; other kinds are errors."""

    def kernel(t: Any, x: Any, y: Any) -> None:
        t("st.global.b32", x, t.laneid)

    x, y = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    result = run(kernel, x, Output(y), block=32, hazards={"lane order": "count", "unwritten": "count"})
    assert result.hazards == [] and result.counts == {"lane order": 31, "unwritten": 1} and x[0] == 0
    with pytest.raises(HazardError, match="lane order"):
        run(kernel, x, Output(y), block=32, hazards={"unwritten": "count"})


def test_all_kinds_are_counted() -> None:
    """As after warnings, the launch goes on; the lines of "order" alone are kept."""

    def kernel(t: Any, x: Any, counter: Any) -> None:
        t("st.global.b32", x + 1024, t.laneid)  # beyond the array
        t("st.global.b32", x + t.tid[0] * 4, t("atom.global.add.u32", counter, 1))

    x, counter = np.zeros(32, np.uint32), np.zeros(1, np.uint32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = run(kernel, x, counter, block=32, hazards="count")
    assert report.hazards == [] and report.counts["bounds"] == 32 and counter[0] == 32
    assert [(site.mnemonic, lanes) for site, lanes in report.order.items()] == [("atom.global.add.u32", 32)]
