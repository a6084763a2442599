"""`--output FILE` on every command that draws: the ending decides the format, and older spellings say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpmma.cli import main
from warpmma.cli.command_line import COMMANDS, parser_of

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
PTX = Path(__file__).parents[2] / "examples" / "row_sums.ptx"
Capture = pytest.CaptureFixture[str]

COMMAND = {
    "explain": ["explain", F16, "--target", "sm_90", "--a", "1 2^-24", "--b", "1"],
    "error": ["error", "A.npy", "B.npy", "--target", "sm_90", "--no-bound"],
    "layout": ["layout", F16, "A"],
    "run": ["run", str(PTX), "--grid", "2", "--block", "128", "--arg", "a=f32[2,64]:ones", "--arg",
            "b=out:f32[2]", "--arg", "n=64"],
}  # fmt: skip
WRITTEN = {
    "explain": "svg html txt json", "error": "svg html txt json csv", "layout": "svg html txt json csv md",
    "run": "svg",
}  # fmt: skip
BEGINS = {"svg": "<svg ", "html": "<!DOCTYPE html>", "json": "{", "csv": "", "txt": "", "md": ""}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", np.ones((4, 20), np.float16))
    np.save("B.npy", np.ones((20, 3), np.float16))


def said(capture: Capture, *arguments: str) -> tuple[int, str, str]:
    try:
        status = main(list(arguments))
    except SystemExit as done:
        status = int(done.code or 0)
    return status, *capture.readouterr()


@pytest.mark.parametrize(("name", "ending"), [(name, x) for name, all_ in WRITTEN.items() for x in all_.split()])
def test_the_ending_decides(name: str, ending: str, capsys: Capture) -> None:
    status, out, err = said(capsys, *COMMAND[name], "--output", f"x.{ending}")
    text = Path(f"x.{ending}").read_text()
    assert (status, err) == (0, "") and text.startswith(BEGINS[ending]) and text.endswith("\n")
    if ending == "json":
        json.loads(text)
    if ending == "html":
        assert text.rstrip().endswith("</html>") and "prefers-color-scheme" in text
    if name != "layout":
        assert out
        if ending == "txt":
            assert out == text
    else:
        assert not out


@pytest.mark.parametrize("name", WRITTEN)
def test_other_endings_are_refused_before_anything_is_computed(name: str, capsys: Capture) -> None:
    for path in ("x.png", "x", "x.svg.gz"):
        status, out, err = said(capsys, *COMMAND[name], "-o", path)
        listed = " or ".join(f"*.{x}" for x in WRITTEN[name].split())
        assert (status, out) == (2, "") and f"--output '{path}': expected a file " in err
        assert sorted(err.split("expected a file ")[1].strip().split(" or ")) == sorted(listed.split(" or "))
        assert not Path(path).exists()


def test_several_files_and_the_standard_output(capsys: Capture) -> None:
    assert said(capsys, *COMMAND["explain"], "-o", "x.svg", "-o", "y.html", "-o", "z.JSON")[0] == 0
    assert all(Path(x).stat().st_size for x in ("x.svg", "y.html", "z.JSON"))
    status, out, _ = said(capsys, *COMMAND["explain"], "-o", "-.svg")
    assert status == 0 and out == Path("x.svg").read_text() and not Path("-.svg").exists()


@pytest.mark.parametrize(
    ("name", "option", "ending"),
    [("explain", "svg", "svg"), ("error", "svg", "svg"), ("error", "csv", "csv"), ("run", "picture", "svg")],
)
def test_older_spellings_write_the_same_and_say_what_is_new(
    name: str, option: str, ending: str, capsys: Capture
) -> None:  # fmt: skip
    status, _, err = said(capsys, *COMMAND[name], f"--{option}", "old")
    assert status == 0
    assert err == f"warpmma: --{option} is now --output FILE.{ending}; the next release does not take it\n"
    said(capsys, *COMMAND[name], "--output", f"new.{ending}")
    assert Path("old").read_text() == Path(f"new.{ending}").read_text()
    status, out, _ = said(capsys, COMMAND[name][0], "--help")
    assert f"--{option} " not in out and "--output FILE" in out


def test_the_explorer_takes_it_too(capsys: Capture) -> None:
    assert said(capsys, "explore", "-o", "page.html")[0] == 0
    assert Path("page.html").read_text().lower().startswith("<!doctype html>")


def test_a_format_of_layout_is_stronger_than_an_ending(capsys: Capture) -> None:
    assert said(capsys, *COMMAND["layout"], "--format", "csv", "-o", "x.txt")[0] == 0
    assert Path("x.txt").read_text() == said(capsys, *COMMAND["layout"], "--format", "csv")[1]


def test_every_file_option_has_this_name() -> None:
    """No command brings back a spelling of its own, but for what older ones are hidden."""
    for name in COMMANDS:
        actions: list[Any] = parser_of(name)._actions
        shown = {x for action in actions if action.help != "==SUPPRESS==" for x in action.option_strings}
        assert not shown & {"--svg", "--html", "--csv", "--picture", "--out"}, name
