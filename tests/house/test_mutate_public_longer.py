"""Launches with more turns, for mutants of public kernels: all are stored, from the PTX that was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.mutate import public_longer as tool
from lab.programs.hopper_cases import LAUNCHES
from lab.programs.hopper_kernels import KERNELS
from lab.programs.texts import read_text


def test_every_launch_is_stored_and_of_a_recorded_kernel() -> None:
    stored, recorded = json.loads(read_text(tool._STORED)), json.loads(read_text(LAUNCHES))
    assert {name: tuple(x["size"]) for name, x in stored.items()} == {
        name: longer.size for name, longer in tool.LONGER.items()
    }
    for name, longer in tool.LONGER.items():
        assert len(longer.size) == len(KERNELS[name].sizes[0]) and longer.size not in KERNELS[name].sizes
        run = tool.longer_run(name)
        assert run is not None
        (step,) = run.steps
        (others,) = {(x["steps"][0]["entry"], x["steps"][0]["block"]) for x in recorded[name]["launches"]}
        assert (step.entry, *step.block) == others
    assert tool.longer_run("gemm_f64") is None


def test_what_is_missing_is_stored_but_not_of_other_ptx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept: dict[str, Any] = {}
    monkeypatch.setattr(tool, "headers", lambda: tmp_path / "include")
    monkeypatch.setattr(
        tool, "LONGER", {x: tool.Longer(size, 9) for x, size in (("a", (1, 2)), ("b", (3,)), ("c", (4,)))}
    )
    monkeypatch.setattr(tool, "_launches", lambda: {"a": {"size": [1, 2], "launch": "old"}})
    monkeypatch.setattr(tool, "read_text", lambda name: json.dumps({x: {"sha256": f"PTX of {x}"} for x in "ab"}
                                                                   | {"c": {"sha256": "recorded"}}))  # fmt: skip
    monkeypatch.setattr(tool, "text_hash", lambda text: text)
    monkeypatch.setattr(tool, "compiled", lambda name, includes, folder: (f"PTX of {name}", folder / name))
    monkeypatch.setattr(tool, "described", lambda program, text, size: f"{text}: {size}")
    monkeypatch.setattr(tool, "keep", lambda name, text: kept.update(json.loads(text)))
    assert tool.main([]) == 1
    assert kept == {"a": {"size": [1, 2], "launch": "old"}, "b": {"size": [3], "launch": "PTX of b: (3,)"}}
    assert capsys.readouterr().out == "c: nvcc makes other PTX than the recorded one\n"


def test_without_headers_nothing_is_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "headers", lambda: None)
    with pytest.raises(SystemExit):
        tool.main([])
    assert "no headers of CUTLASS: pip install nvidia-cutlass" in capsys.readouterr().err
