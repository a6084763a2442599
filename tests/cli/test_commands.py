"""The table of commands: a command loads its own module alone, and what is wrong is said in one line."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from warpmma.cli import main
from warpmma.cli.command_line import COMMANDS

Capture = pytest.CaptureFixture[str]


def ended(*arguments: str) -> int:
    try:
        return main(arguments)
    except SystemExit as end:
        return int(str(end.code))


def test_all_are_listed(capsys: Capture) -> None:
    assert ended("--help") == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) < 100 for line in lines)
    assert [line.split()[0] for line in lines if line.startswith("  ")] == list(COMMANDS)


def test_help_as_of_git(capsys: Capture) -> None:
    assert ended("help") == 0
    overview = capsys.readouterr().out
    assert ended("--help") == 0 and capsys.readouterr().out == overview
    assert ended("help", "list") == 0
    assert capsys.readouterr().out.startswith("usage: warpmma list ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "warpmma: the following arguments are required: COMMAND; `warpmma --help` lists them\n"),
        (["verfy"], f"warpmma: unknown command 'verfy'; did you mean 'verify'?; commands: {', '.join(COMMANDS)}\n"),
        (["foo"], f"warpmma: unknown command 'foo'; commands: {', '.join(COMMANDS)}\n"),
        (["kernel"], "warpmma: unknown command 'kernel'; did you mean 'run'?; commands: list, "),
        (["lane"], "warpmma: unknown command 'lane'; did you mean 'where' or 'what' or 'layout'?; commands: list, "),
        (["--colour"], "warpmma: unrecognized arguments: --colour"),
        (["verify", "--targte"], "warpmma verify: unrecognized arguments: --targte; did you mean '--target'?\n"),
        (["ptx", "chck", "x"], "warpmma ptx: argument ACTION: invalid choice: 'chck' (choose from "),
        (["ptx", "check"], "warpmma ptx check: the following arguments are required: FILE\n"),
    ],
)
def test_wrong_arguments_get_one_line(capsys: Capture, arguments: list[str], message: str) -> None:
    assert ended(*arguments) == 2
    output, error = capsys.readouterr()
    assert error.startswith(message) and error.count("\n") == 1 and not output


def test_every_command_is_an_example_on_a_page() -> None:
    """`tests/house/test_pages.py` runs the pages, and compares what they show."""
    root = Path(__file__).parents[2]
    pages = "".join(page.read_text() for page in (root / "README.md", root / "docs" / "command_line.md"))
    shown = set(re.findall(r"^(?:\$|<!-- output:) warpmma (\w+)", pages, re.M))
    assert shown >= set(COMMANDS)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_a_reader_that_has_enough() -> None:
    script = f'"{sys.executable}" -m warpmma list --json | head -1; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[\n141\n", "")


def test_the_list_needs_no_numpy() -> None:
    code = (
        "import sys; sys.modules['numpy'] = None\nfrom warpmma.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: print(sorted(x for x in sys.modules if x.startswith('warpmma.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert "warpmma.isa" not in done.stdout.splitlines()[-1]


def test_an_option_is_compared_without_its_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    for option, meant in (("--sparce", "; did you mean '--sparse'?"), ("--wg", "")):
        with pytest.raises(SystemExit):
            main(["list", option])
        assert capsys.readouterr().err == f"warpmma list: unrecognized arguments: {option}{meant}\n"
