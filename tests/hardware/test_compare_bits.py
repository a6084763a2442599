"""The tool that compares integers and collectives with a GPU, without one: it finds and stores differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import Array

from lab.compare import bits as tool
from lab.gpu.row_jobs import RowJob
from warpmma.operations import operation


def stub(flip: bool) -> type[Any]:
    class Stub:
        device = "no GPU"

        def __init__(self, jobs: Sequence[RowJob], target: str) -> None:
            self.jobs = {(job.mnemonic, job.immediates) for job in jobs}

        def run(self, job: RowJob, given: tuple[Array, ...]) -> tuple[Array, ...]:
            assert (job.mnemonic, job.immediates) in self.jobs
            row = operation(job.mnemonic)
            active = tool.taking_part(row, given, job.lanes // 32)
            outputs = [x.copy() for x in tool.ours(row, given, job.immediates, active)[0]]
            if flip:
                outputs[0][np.nonzero(active)[0][0], np.nonzero(active)[1][0]] ^= 1
            return tuple(outputs)

    return Stub


@pytest.mark.parametrize("only", ["bfi", "match", "prmt"])
def test_rows_are_compared_and_kept(
    only: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tool, "OperationGpu", stub(False))
    file = tmp_path / "kept.npz"
    assert tool.main(["--only", only, "--lanes", "512", "--record", str(file)]) == 0
    assert capsys.readouterr().out.endswith(" 0 differences\n")
    with np.load(file) as kept:
        assert str(kept["device"]) == "no GPU" and {name.split(".")[0] for name in kept.files} == {"device", only}
        assert all(kept[name].shape == (2, 32) for name in kept.files if name != "device")


def test_a_difference_is_found_and_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tool, "OperationGpu", stub(True))
    assert tool.main(["--only", "bfi.b32", "--lanes", "512"]) == 1
    out = capsys.readouterr().out
    assert "  bfi.b32: warp 0 lane 0: in 0x" in out and out.endswith(" 1 differences\n")
