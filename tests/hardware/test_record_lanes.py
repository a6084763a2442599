"""The tool that records lanes of operations on a GPU, without one: what it records, and that it finds differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import Array, same

from lab.gpu.lane_archives import recorded_lanes
from lab.gpu.row_jobs import RowJob, row_simulated
from lab.record import lanes as tool
from warpmma.formats import FORMATS, FloatFormat
from warpmma.operations import operation, operations
from warpmma.operations.arithmetic import divisions

DIVISIONS = {mnemonic for form in divisions.FORMS for mnemonic in form.mnemonics}
DATA = Path(__file__).parents[1] / "data"


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


def test_special_codes_are_eighty_of_each_kind() -> None:
    for fmt in (FORMATS["f32"], FORMATS["f64"]):
        assert isinstance(fmt, FloatFormat)
        codes = tool.special_codes(fmt)
        assert len(codes) == len(set(codes.tolist())) == 80 and codes.dtype == fmt.code_dtype
        values = fmt.decode(codes[:40])
        assert np.isnan(values).sum() == 5 and np.isinf(values).sum() == 1 and (values == 0).sum() == 1
        assert (values[~np.isnan(values)] < 2.0**fmt.emin).sum() == 8
    assert tool.special_operands(operation("div.rn.f64"))[1].shape == (200, 32)
    (alone,) = tool.special_operands(operation("sqrt.rn.f32"))
    assert alone.shape == (3, 32) and set(alone.ravel().tolist()) == set(tool.special_codes(FORMATS["f32"]).tolist())


def test_operations_are_recorded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tool, "OperationGpu", stub())
    file = tmp_path / "kept.npz"
    assert tool.main([str(file), "--only", "min.*", "--lanes", "96"]) == 0
    expected = {row.mnemonic for row in operations("sm_90a") if row.mnemonic.startswith("min.")}
    assert capsys.readouterr().out == f"no GPU: {len(expected)} operations, {96 * len(expected)} lanes, 0 differences\n"
    kept = list(recorded_lanes(file))
    assert {mnemonic for mnemonic, *_ in kept} == expected
    for mnemonic, immediates, given, got in kept:
        assert given[0].shape == (3, 32)
        for x, y in zip(row_simulated(operation(mnemonic), given, immediates), got, strict=True):
            same(x, y)


def test_immediates_are_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tool, "OperationGpu", stub())
    assert tool.main([str(tmp_path / "kept.npz"), "--only", "lop3.b32", "--lanes", "32"]) == 0
    assert [immediates for _, immediates, _, _ in recorded_lanes(tmp_path / "kept.npz")] == [(x,) for x in range(256)]


def test_quotients_are_recorded_with_special_operands_as_of_an_h200(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tool, "OperationGpu", stub())
    file = tmp_path / "kept.npz"
    assert tool.main([str(file), "--modules", "arithmetic.divisions", "--lanes", "512"]) == 0
    lanes = 12 * (6400 + 512) + 24 * (96 + 512)
    assert capsys.readouterr().out == f"no GPU: 36 operations, {lanes} lanes, 0 differences\n"
    kept = {mnemonic: (given, got) for mnemonic, _, given, (got,) in recorded_lanes(file)}
    of_h200 = {mnemonic: (given, got) for mnemonic, _, given, (got,) in recorded_lanes(DATA / "h200_quotients.npz")}
    assert kept.keys() == of_h200.keys() == DIVISIONS
    for mnemonic, (given, got) in kept.items():
        special = 200 if mnemonic.startswith("div") else 3
        assert got.shape == of_h200[mnemonic][1].shape == (special + 16, 32)
        same(row_simulated(operation(mnemonic), given)[0], got)
        for x, y in zip(given, of_h200[mnemonic][0], strict=True):
            same(x[:special], y[:special])


def test_lanes_fill_warps(capsys: pytest.CaptureFixture[str]) -> None:
    for lanes in ("0", "33", "-32"):
        with pytest.raises(SystemExit, match="2"):
            tool.main(["x.npz", "--lanes", lanes])
        assert "--lanes is a multiple of 32" in capsys.readouterr().err


def test_a_difference_is_found_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tool, "OperationGpu", stub("sqrt.rm.f64"))
    assert tool.main([str(tmp_path / "x.npz"), "--only", "sqrt.r*"]) == 1
    out = capsys.readouterr().out
    assert "      1 sqrt.rm.f64: warp 1 lane 5: in 0x" in out and out.endswith(" lanes, 1 differences\n")


def test_modules_of_rows_can_be_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tool, "OperationGpu", stub())
    assert tool.main([str(tmp_path / "x.npz"), "--only", "add.*", "--modules", "warp.collectives"]) == 2
    assert capsys.readouterr().out == "no such operation\n" and not list(tmp_path.iterdir())
