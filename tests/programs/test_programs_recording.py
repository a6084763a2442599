"""Recordings that are made in processes of their own are merged; here without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from lab.programs import recording as tool
from lab.programs.archive import Recording, kept, read, write


def of(name: str, value: int) -> Recording:
    about = {"gpu": "H200", "texts": {name: f"text {value}"}}
    return Recording(about, {name: {"y": kept(np.array([value]))}}, {})


def test_what_comes_is_merged_and_what_does_not_come_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "all.npz"
    write(out, Recording(of("a", 1).about, {**of("a", 1).outputs, **of("b", 1).outputs}, {}))
    ended = {"b": (of("b", 2), 0), "not repeatable": (of("c", 3), 1), "hangs": (None, -1), "writes nothing": (None, 0)}

    def apart(command: Sequence[str]) -> tuple[Recording | None, int]:
        return ended[command[0]]

    monkeypatch.setattr(tool, "_apart", apart)
    assert tool.record_apart({name: (name,) for name in ended}, out, jobs=1) == 3
    found = read(out)
    assert found.about == {"gpu": "H200", "texts": {"a": "text 1", "b": "text 2", "c": "text 3"}}
    expected = {**of("a", 1).outputs, **of("b", 2).outputs, **of("c", 3).outputs}
    assert {name: x["y"][0] for name, x in found.outputs.items()} == {name: x["y"][0] for name, x in expected.items()}
    assert capsys.readouterr().out.splitlines() == [
        "hangs: NOT RECORDED (-1)", "writes nothing: NOT RECORDED (0)"
    ]  # fmt: skip
