"""Models through `warpmma.torch.compile`, forward and backward, against PyTorch's own results; what is recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from oracles import skip_without

pytest.importorskip("triton.language")
skip_without("PyTorch")

from compile_cases import own_caches  # noqa: E402, F401

from lab.compare import torch_models as tool  # noqa: E402
from lab.triton_programs.snapshots import read  # noqa: E402


@pytest.mark.alike(4)
@pytest.mark.parametrize("name", tool.CASES)
def test_results_are_near_those_of_eager(name: str) -> None:
    """PyTorch's functions and sums on the CPU have other last bits than a GPU's."""
    case = tool.CASES[name]
    found, made = tool.compiled(case)
    if case.error is not None:
        assert tool.error(found, tool.eager(case)) <= case.error
    assert made.report.launches == sum(kernel.launches for kernel in made.report.kernels) > 0
    assert not made.report.hazards and made.report.instructions > 0


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_89", "sm_100", "sm_120"])
def test_other_targets(target: str) -> None:
    case = tool.CASES["layer norm, f32"]
    found, made = tool.compiled(case, target)
    assert made.report.target == target and made.report.launches == 3
    assert case.error is not None and tool.error(found, tool.eager(case)) <= case.error


def test_launches_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "launches.npz"
    assert tool.main(["--only", "GELU, f32", "--launches", str(file), "--version", "8.8"]) == 0
    assert "GELU, f32: 2 launches" in capsys.readouterr().out
    launches, texts, before = read(file)
    assert [one.name for one in launches] == ["GELU, f32"] * 2
    assert all(".version 8.8\n" in text for text in texts.values())
    assert all(piece.before in before for one in launches for piece in one.pieces)
    assert all(any(piece.before != piece.after for piece in one.pieces) for one in launches)


def test_what_a_gpu_left_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "replay.json"
    launches = [{"name": "a", "different": []}, {"name": "a", "different": [64]}, {"name": "b", "different": []}]
    about = {"gpu": "H200", "driver": "580"}
    file.write_text(json.dumps({**about, "launches": launches}))
    assert tool.main(["--compare", str(file)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "a: 1 of 2", "b: 1 of 1", "2 of 3 launches leave the bytes of H200, driver 580",
    ]  # fmt: skip
    file.write_text(json.dumps({**about, "launches": launches[:1]}))
    assert tool.main(["--compare", str(file)]) == 0
