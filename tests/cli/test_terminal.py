"""What a terminal shows and a pipe does not: colour and columns, with rich and without, and when neither is wanted."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

import pytest

from warpmma.cli import main
from warpmma.cli.output.streams import terminal_width
from warpmma.cli.output.terminal import Paint, paint_of, tabulated

Patch = pytest.MonkeyPatch
ROWS = [("name", "what"), ("first", "a text of several words that is longer than a narrow terminal"), ("second", "b")]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: Patch, *arguments: str, columns: int = 80, environment: Mapping[str, str] | None = None) -> str:
    """What a command shows on a terminal."""
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"COLUMNS": str(columns), "TERM": "xterm", **(environment or {})}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    assert main(arguments) == 0
    return terminal.getvalue()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


LOOK = ("show", "m16n8k16", "dense", "f16", "f32")


@pytest.mark.parametrize("arguments", [LOOK, ("targets",), ("list", "e4m3"), ("evidence", "nvfp4", "dense")])
@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_terminal_has_colour_and_its_width(monkeypatch: Patch, arguments: tuple[str, ...], columns: int) -> None:
    pytest.importorskip("rich")
    text = shown(monkeypatch, *arguments, columns=columns)
    assert "\x1b[1m" in text
    longest = max(len(line.rstrip()) for line in plain(text).splitlines())
    assert longest <= max(columns, 107)  # mnemonics, and formulas, are not broken


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_is_left_out(monkeypatch: Patch, environment: dict[str, str]) -> None:
    assert "\x1b" not in shown(monkeypatch, *LOOK, environment=environment)
    assert "\x1b" not in shown(monkeypatch, "targets", environment=environment)


def test_color_decides(monkeypatch: Patch, capsys: pytest.CaptureFixture[str]) -> None:
    assert "\x1b" not in shown(monkeypatch, *LOOK, "--color", "never")
    assert "\x1b[1m" in shown(monkeypatch, *LOOK, "--color", "always", environment={"NO_COLOR": "1"})
    monkeypatch.undo()
    assert main([*LOOK, "--color", "always"]) == 0 and "\x1b[1m" in capsys.readouterr().out
    assert main(LOOK) == 0 and "\x1b" not in capsys.readouterr().out


def test_an_empty_no_color_is_none(monkeypatch: Patch) -> None:
    assert "\x1b[1m" in shown(monkeypatch, *LOOK, environment={"NO_COLOR": ""})


def test_tables(monkeypatch: Patch) -> None:
    expected = "name    what\nfirst   a text of several words that is longer than a narrow terminal\nsecond  b"
    assert tabulated(ROWS, Paint(), (0, 1)) == expected
    monkeypatch.setenv("COLUMNS", "40")
    terminal = Paint(terminal=True)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert tabulated(ROWS, terminal, (0, 1)) == expected
    monkeypatch.undo()
    monkeypatch.setenv("COLUMNS", "40")
    if pytest.importorskip("rich"):
        folded = tabulated(ROWS, terminal, (0, 1)).splitlines()
        assert max(map(len, folded)) <= 40 and len(folded) > 3
        assert " ".join(" ".join(folded).split()) == " ".join(expected.split())


def test_paint() -> None:
    assert Paint(colour=True)("x", "bold") == "\x1b[1mx\x1b[0m" and Paint()("x", "bold") == "x"
    assert Paint(colour=True)("", "bold") == ""


def test_no_output_at_all(monkeypatch: Patch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert not paint_of(Namespace(color="auto")).colour


@pytest.mark.parametrize(("columns", "width"), [("100", 100), ("0", 80), ("", 80), ("x", 80), ("-3", 80), ("²", 80)])
def test_width(monkeypatch: Patch, columns: str, width: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "__stdout__", None)
    assert terminal_width() == width


@pytest.mark.skipif(not Path("/dev/ptmx").exists(), reason="no pseudoterminals")
def test_a_real_terminal(tmp_path: Path) -> None:
    """A pseudoterminal: colour, and progress, which leaves nothing behind."""
    leader, follower = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "warpmma", "what", "m16n8k16", "f16", "A", "--lane", "14"]
    done = subprocess.Popen(command, stdout=follower, stderr=follower, env=environment, cwd=tmp_path)
    os.close(follower)
    seen = b""
    while True:
        try:
            part = os.read(leader, 1 << 16)
        except OSError:  # all is closed
            break
        if not part:
            break
        seen += part
    os.close(leader)
    assert done.wait() == 0
    assert b"\x1b[1m" in seen and b"a7" in seen
