"""The command line where a stream is closed or takes nothing: its status says what was found, and never lies."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpmma import execute
from warpmma.cli import main
from warpmma.hardware import archives

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="no shell that closes streams")
full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
UNWRITTEN = "warpmma: the output cannot be written: "
CLOSED, FULL = f"{UNWRITTEN}Bad file descriptor\n", f"{UNWRITTEN}No space left on device\n"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """One warp of zeros; and one with a bit that differs, one that is no archive."""
    names = {"a": 4, "b": 2, "c": 4}
    fields: dict[str, Any] = {x: np.zeros((1, n, 32), np.uint32) for x, n in names.items()}
    fields["d"] = execute(F16, **fields, target="sm_90")
    good: dict[str, Any] = {f"{F16}|{x}": array for x, array in fields.items()}
    np.savez(tmp_path / "good.npz", **good)
    np.savez(tmp_path / "bad.npz", **good | {f"{F16}|d": fields["d"] ^ np.uint32(1)})
    return tmp_path


def run(redirection: str, *arguments: str, where: Path) -> tuple[int, str, str]:
    command = ["sh", "-c", f'"$@" {redirection}', "sh", sys.executable, "-m", "warpmma", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=where)
    return done.returncode, done.stdout.rpartition("compared, ")[2], done.stderr


@pytest.mark.parametrize(
    ("redirection", "file", "expected"),
    [
        ("2>&-", "good.npz", (0, "0 differences\n", "")),
        ("2>&-", "bad.npz", (1, "128 differences\n", "")),
        ("2>&-", "no.npz", (2, "", "")),
        ("<&-", "good.npz", (0, "0 differences\n", "")),
        ("<&- 2>&-", "bad.npz", (1, "128 differences\n", "")),
        (">&-", "good.npz", (2, "", CLOSED)),
        (">&-", "bad.npz", (2, "", CLOSED)),
        (">&-", "no.npz", (2, "", "warpmma: no.npz: No such file or directory\n")),
        (">&- 2>&-", "good.npz", (2, "", "")),
        ("<&- >&- 2>&-", "bad.npz", (2, "", "")),
        pytest.param(">/dev/full", "good.npz", (2, "", FULL), marks=full),
        pytest.param(">/dev/full", "bad.npz", (2, "", FULL), marks=full),
        pytest.param(">/dev/full 2>&-", "good.npz", (2, "", ""), marks=full),
        pytest.param(">/dev/full 2>/dev/full", "good.npz", (2, "", ""), marks=full),
        pytest.param("2>/dev/full", "good.npz", (0, "0 differences\n", ""), marks=full),
        pytest.param("2>/dev/full", "no.npz", (2, "", ""), marks=full),
    ],
)
def test_streams(archive: Path, redirection: str, file: str, expected: tuple[int, str, str]) -> None:
    assert run(redirection, "verify", file, where=archive) == expected


@pytest.mark.parametrize(
    ("redirection", "arguments", "status", "error"),
    [
        pytest.param(">/dev/full", ["--version"], 2, FULL, marks=full),
        pytest.param(">/dev/full", ["verify", "--help"], 2, FULL, marks=full),
        (">&-", ["--version"], 2, CLOSED),
        ("2>&-", ["--version"], 0, ""),
        ("2>&-", ["verify", "--nonsense"], 2, ""),
        (">&-", ["verify", "good.npz", "--json"], 2, CLOSED),
        ("2>&-", ["verify", "bad.npz", "--json"], 1, ""),
        ("2>&-", [], 2, ""),
    ],
)
def test_everything_that_is_printed(
    archive: Path, redirection: str, arguments: list[str], status: int, error: str
) -> None:
    found = run(redirection, *arguments, where=archive)
    assert (found[0], found[2]) == (status, error)


def test_a_fault_of_the_program_is_no_difference(
    archive: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(archives, "execute", fail)
    assert main(["verify", str(archive / "good.npz")]) == 3
    output, error = capsys.readouterr()
    assert not output and error.startswith("Traceback ") and error.endswith("RuntimeError: a fault\n")
