"""A write that races with an earlier read: the launch is undone and runs once more, and the read is poison."""

from __future__ import annotations

import numpy as np
import pytest
from poison_cases import HEAD, LATER, STORED, launch

import warpmma as wm
from warpmma import ptx
from warpmma.machine import HazardError
from warpmma.machine.memory import undoing


def test_a_later_write_that_races() -> None:
    with pytest.raises(HazardError, match=r"race: .*writes it later") as caught:
        launch(LATER + STORED, 64)
    assert caught.value.hazard.warp == 1 and caught.value.hazard.element == "x[0]"
    report, x, y = launch(LATER + "@%p2 " + STORED, 64)
    np.testing.assert_array_equal(x, np.arange(32) + 1)  # not by 2: the first run was undone
    np.testing.assert_array_equal(y[:32], x)
    assert [(key[0], lanes) for key, lanes in report.harmless.items()] == [("race", 32)]
    with pytest.raises(HazardError, match=r"race: .*warp 1 read it"):
        launch(LATER, 64, hazards="strict")


def test_a_launch_that_changes_too_much_is_not_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    harmless = LATER + "@%p2 " + STORED
    monkeypatch.setattr(undoing, "MOST_KEPT", 200)  # x alone
    with pytest.raises(HazardError, match=r"race: .*it changes bytes that an unordered thread has read"):
        launch(harmless, 64)
    monkeypatch.setattr(undoing, "MOST_KEPT", 100)
    with pytest.raises(HazardError, match=r"race: .*warp 1 read it"):
        launch(harmless, 64)


def test_a_later_write_of_the_same_value_changes_nothing() -> None:
    body = LATER.replace("add.u32 %r9, %r8, 1", "add.u32 %r9, %r8, 0")
    assert launch(body + STORED, 64)[0].harmless == {}


def test_reads_that_are_ordered_before_a_later_write_are_clean() -> None:
    body = """ld.global.u32 %r9, [%rd4]; st.global.u32 [%rd6], %r9; bar.sync 0;
    ld.global.u32 %r8, [%rd4]; setp.lt.u32 %p2, %r1, 32; @%p2 st.global.u32 [%rd4], 99;"""
    report, x, y = launch(body, 64)
    assert (x == 99).all() and (y == np.tile(np.arange(32), 2)).all() and sum(report.harmless.values()) == 32


def test_undoing_restores_all_that_a_kernel_changes(capsys: pytest.CaptureFixture[str]) -> None:
    body = """
    { .param .b64 f; .param .b64 b; .param .b32 r; mov.u64 %rd7, hello; cvta.global.u64 %rd7, %rd7;
      setp.eq.u32 %p3, %r1, 0; @!%p3 bra DONE; mov.u64 %rd8, 0;
      st.param.b64 [f], %rd7; st.param.b64 [b], %rd8; call (r), vprintf, (f, b);
      atom.global.add.u32 %r10, [counter], 1; st.global.u32 [%rd2], %r10;
      DONE: }
    bar.sync 0;
    """
    module = ptx.load(HEAD + body + LATER + "\n    ret;\n}\n")
    device = wm.Device("sm_80")
    for before in (5, 6):
        x, y = np.arange(32, dtype=np.uint32), np.zeros(64, np.uint32)
        report = module["k"].launch(device, 1, 64, [x, y], limit=1000)
        assert y[0] == before and report.harmless and report.printed == "hi\n"
        assert sum(n for site, n in report.costs.instructions.items() if site.mnemonic == "atom.global.add.u32") == 1
        np.testing.assert_array_equal(x, np.arange(32) + 1)
    assert capsys.readouterr().out == "hi\nhi\n"


def test_the_lane_that_read_is_named_and_the_one_that_decides() -> None:
    """Lane 0 writes late what all lanes read, and stores what lane 1 read; no thread races with itself."""
    body = """setp.eq.u32 %p3, %r1, 0; @%p3 st.shared.u32 [%r4], 5;
    bar.sync 0;
    ld.shared.u32 %r8, [%r4];
    @%p3 st.shared.u32 [%r4], 7;
    shfl.sync.bfly.b32 %r9, %r8, 1, 31, -1;
    """
    with pytest.raises(HazardError) as caught:
        launch(body + "@%p3 st.global.u32 [%rd6], %r9;")
    assert "block 0, warp 0, lane 1 at address" in (text := str(caught.value))
    assert "lane 0 of its own warp writes it later" in text
    assert "its value is left in" in text and text.endswith("(st.global.u32) by lane 0 of warp 0 of block 0")
    with pytest.raises(HazardError) as caught:
        launch(body + "setp.eq.u32 %p4, %r9, 3; @!%p3 mov.pred %p4, 0; @%p4 bra end; st.global.u32 [%rd6], 1; end:")
    assert "block 0, warp 0, lane 1 at address" in (text := str(caught.value))
    assert "its value matters at" in text and text.endswith("(bra) by lane 0 of warp 0 of block 0")
