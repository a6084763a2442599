"""What a launch costs by each front end: how it is measured, and its table."""

from __future__ import annotations

import json
import mmap
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from lab.measure import front_ends as tool

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@linux
def test_launches_are_measured_in_rounds() -> None:
    calls = Counter[str]()
    found = tool.measured(
        tool.FrontEnd(
            compile=lambda: calls.update(["compile"]), launch=lambda: calls.update(["launch"]),
            forget=lambda: calls.update(["forget"]), within=lambda: 2.0,
        ),
        launches=50, imports=3.0,
    )  # fmt: skip
    assert calls == {"compile": 1, "launch": 51, "forget": 10}
    assert found.first >= 5 and found.compile < 0 and found.later > 0


@linux
def test_memory_that_is_kept_is_found() -> None:
    held = list[mmap.mmap]()  # not of the heap, which may have as much to give away

    def keep() -> None:
        held.append(mmap.mmap(-1, 1_000_000))
        held[-1].write(b"x" * 1_000_000)

    found = tool.measured(tool.FrontEnd(compile=lambda: None, launch=keep), launches=20)
    assert 15 < found.kept < 25


@linux
def test_one_front_end_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--one", "fixture, Python", "--launches", "20"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"compile", "first", "later", "kept"}


def test_one_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tilelang", None)
    assert tool.main(["--one", "TileLang"]) == 0
    assert json.loads(capsys.readouterr().out) == "not installed: tilelang"


def test_the_table_has_errors_in_place_of_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = json.dumps({"compile": 0.5, "first": 1.25, "later": 0.125, "kept": 0})
    outputs = {"Triton": (f"a warning\n{row}\n", ""), "TileLang": ('"not installed: tilelang"', ""),
               "torch.compile": ("", "Traceback\nValueError: no")}  # fmt: skip

    def run(command: list[str], **_: Any) -> Any:
        return SimpleNamespace(stdout=outputs[command[4]][0], stderr=outputs[command[4]][1])

    monkeypatch.setattr(subprocess, "run", run)
    assert tool.main(["--only", "T*"]) == 0
    assert tool.main(["--only", "t*"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "front end            compile s  first s  later ms  MB kept",
        "Triton                    0.50     1.25     0.125      0.0",
        "TileLang             not installed: tilelang",
        "front end            compile s  first s  later ms  MB kept",
        "torch.compile        ValueError: no",
    ]
