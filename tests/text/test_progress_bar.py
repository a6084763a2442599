"""What `progress=True` shows, and that nothing of it is left."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import warpmma as wm
from warpmma import _progress
from warpmma._progress import Progressing
from warpmma.kernel import launch

Patch = pytest.MonkeyPatch
ROWS = np.ones((200, 16), np.float16)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def at_once(monkeypatch: Patch) -> None:
    monkeypatch.setattr(_progress, "DELAY", 0)


def terminal(monkeypatch: Patch) -> Terminal:
    """In the test itself: between the phases of a test pytest puts its own stream back."""
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    monkeypatch.setenv("TERM", "xterm")
    return stream


def plain_terminal(monkeypatch: Patch) -> Terminal:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    return terminal(monkeypatch)


def test_a_product(monkeypatch: Patch) -> None:
    plain = plain_terminal(monkeypatch)
    expected = wm.matmul(ROWS, ROWS.T, target="sm_90")
    assert (wm.matmul(ROWS, ROWS.T, target="sm_90", progress=True) == expected).all()
    shown = plain.getvalue().split("\r")[1:]
    total = shown[0].removeprefix("tiles 0/")
    assert shown == [*(f"tiles {i}/{total}" for i in range(int(total) + 1)), "\x1b[K"]


def test_with_rich(monkeypatch: Patch) -> None:
    pytest.importorskip("rich")
    stream = terminal(monkeypatch)
    wm.matmul(ROWS, ROWS.T, target="sm_90", progress=True)
    assert "tiles" in stream.getvalue() and "\x1b[2K" in stream.getvalue()  # the line is erased


def test_a_launch(monkeypatch: Patch) -> None:
    plain = plain_terminal(monkeypatch)
    launch(lambda t: None, 3, 32, [], target="sm_90", progress=True)
    assert plain.getvalue() == "\rblocks 0/3\rblocks 3/3\r\x1b[K"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_nothing_is_left_after_an_end(monkeypatch: Patch, error: type[BaseException]) -> None:
    plain = plain_terminal(monkeypatch)

    def fail(t: object) -> None:
        raise error

    with pytest.raises(error):
        launch(fail, 3, 32, [], target="sm_90", progress=True)
    assert plain.getvalue().endswith("\r\x1b[K")


def test_no_terminal_no_bar(monkeypatch: Patch) -> None:
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    wm.matmul(ROWS, ROWS.T, target="sm_90", progress=True)
    monkeypatch.setattr(sys, "stderr", None)
    wm.matmul(ROWS, ROWS.T, target="sm_90", progress=True)
    assert stream.getvalue() == ""


@pytest.mark.parametrize("none", [None, False])
def test_without_progress(monkeypatch: Patch, none: bool | None) -> None:
    plain = plain_terminal(monkeypatch)
    wm.matmul(ROWS, ROWS.T, target="sm_90", progress=none)
    assert plain.getvalue() == ""


def test_a_terminal_that_takes_nothing_stops_no_work(monkeypatch: Patch) -> None:
    plain = plain_terminal(monkeypatch)

    def refuse(text: str) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(plain, "write", refuse)
    with Progressing(True, "tiles") as tell:
        tell(1, 2)
        tell(2, 2)


def test_a_bar_comes_late(monkeypatch: Patch) -> None:
    plain = plain_terminal(monkeypatch)
    monkeypatch.setattr(_progress, "DELAY", 3600)
    with Progressing(True, "tiles") as tell:
        tell.begin(3)
        tell(1, 3)
        assert plain.getvalue() == "" and tell._bar is not None
        tell._bar.come()  # as the timer does
        assert plain.getvalue() == "\rtiles 1/3"
        tell(2, 3)
    assert plain.getvalue() == "\rtiles 1/3\rtiles 2/3\r\x1b[K"
    tell._bar.come()  # too late
    assert plain.getvalue().endswith("\r\x1b[K")


def test_what_is_done_at_once_shows_none(monkeypatch: Patch) -> None:
    plain = plain_terminal(monkeypatch)
    monkeypatch.setattr(_progress, "DELAY", 3600)
    wm.matmul(ROWS, ROWS.T, target="sm_90", progress=True)
    assert plain.getvalue() == ""


def test_the_timer_brings_it(monkeypatch: Patch) -> None:
    plain = plain_terminal(monkeypatch)
    monkeypatch.setattr(_progress, "DELAY", 1e-6)
    with Progressing(True, "tiles") as tell:
        tell.begin(3)
        assert tell._bar is not None
        tell._bar._timer.join()
    assert plain.getvalue() == "\rtiles 0/3\r\x1b[K"
