"""The tool that compares operations with a GPU, without one: it compares what is requested and stores differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from arrays import Array, same

from lab.compare import operations as tool
from lab.gpu.lane_archives import recorded_lanes
from lab.gpu.row_jobs import RowJob, row_simulated
from warpmma.operations import operation, operations


def stub(flip: str = "") -> type[Any]:
    class Stub:
        device = "no GPU"

        def __init__(self, jobs: Sequence[RowJob], target: str) -> None:
            self.jobs = set(jobs)

        def run(self, job: RowJob, given: Sequence[Array]) -> tuple[Array, ...]:
            assert job in self.jobs
            outputs = [x.copy() for x in row_simulated(operation(job.mnemonic), given, job.immediates)]
            if job.mnemonic == flip:
                outputs[0][1, 5] ^= 1
            return tuple(outputs)

    return Stub


def test_operations_are_compared_and_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tool, "OperationGpu", stub())
    file = tmp_path / "kept.npz"
    options = ["--only", "min.*", "--lanes", "256", "--workers", "1", "--record", str(file)]
    assert tool.main(options) == 0
    expected = {row.mnemonic for row in operations("sm_90a") if row.mnemonic.startswith("min.")}
    assert f"no GPU: {len(expected)} operations, {256 * len(expected)} lanes" in capsys.readouterr().out
    kept = list(recorded_lanes(file))
    assert {mnemonic for mnemonic, *_ in kept} == expected
    for mnemonic, immediates, given, got in kept:
        for x, y in zip(row_simulated(operation(mnemonic), given, immediates), got, strict=True):
            same(x, y)


def test_a_difference_is_found_and_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tool, "OperationGpu", stub("min.u32"))
    assert tool.main(["--only", "min.?32", "--lanes", "256", "--workers", "1"]) == 1
    out = capsys.readouterr().out
    assert "      1 min.u32: warp 1 lane 5: in 0x" in out and " 1 differences\n1 operations differ;" in out


def test_modules_of_rows_can_be_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tool, "OperationGpu", stub())
    assert tool.main(["--only", "add.*", "--modules", "warp.collectives", "--workers", "1"]) == 2
    assert capsys.readouterr().out == "no such operation\n"
