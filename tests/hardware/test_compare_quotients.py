"""The tool that compares quotients and roots with a GPU, without one: it compares all and stores differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import Array, same

from lab.compare import quotients as tool
from lab.compare.quotients import special_codes, special_operands
from lab.gpu.lane_archives import recorded_lanes
from lab.gpu.row_jobs import RowJob, row_simulated
from warpmma.formats import FORMATS, FloatFormat
from warpmma.operations import operation
from warpmma.operations.arithmetic import divisions

ROWS = [mnemonic for form in divisions.FORMS for mnemonic in form.mnemonics]


def stub(flip: str = "") -> type[Any]:
    class Stub:
        device = "no GPU"

        def __init__(self, jobs: Sequence[RowJob], target: str) -> None:
            assert target == "sm_90a" and [job.mnemonic for job in jobs] == ROWS

        def run(self, job: RowJob, given: Sequence[Array]) -> tuple[Array, ...]:
            (output,) = (x.copy() for x in row_simulated(operation(job.mnemonic), given))
            if job.mnemonic == flip:
                output[2, 5] ^= 1
            return (output,)

    return Stub


def test_special_codes_are_eighty_of_each_kind() -> None:
    for fmt in (FORMATS["f32"], FORMATS["f64"]):
        assert isinstance(fmt, FloatFormat)
        codes = special_codes(fmt)
        assert len(codes) == len(set(codes.tolist())) == 80 and codes.dtype == fmt.code_dtype
        values = fmt.decode(codes[:40])
        assert np.isnan(values).sum() == 5 and np.isinf(values).sum() == 1 and (values == 0).sum() == 1
        assert (values[~np.isnan(values)] < 2.0**fmt.emin).sum() == 8
    assert special_operands(operation("div.rn.f64"))[1].shape == (200, 32)
    (alone,) = special_operands(operation("sqrt.rn.f32"))
    assert alone.shape == (3, 32) and set(alone.ravel().tolist()) == set(special_codes(FORMATS["f32"]).tolist())


def test_quotients_are_compared_and_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tool, "OperationGpu", stub())
    file = tmp_path / "kept.npz"
    assert tool.main(["--lanes", "256", "--keep", "64", "--record", str(file)]) == 0
    lanes = 12 * (6400 + 256) + 24 * (96 + 256)
    assert capsys.readouterr().out == f"no GPU: 36 rows, {lanes} lanes, 0 differences\n"
    kept = list(recorded_lanes(file))
    assert [mnemonic for mnemonic, *_ in kept] == ROWS
    for mnemonic, _, given, (got,) in kept:
        assert got.size == 64 + (6400 if mnemonic.startswith("div") else 96)
        same(row_simulated(operation(mnemonic), given)[0], got)


def test_lanes_fill_warps(capsys: pytest.CaptureFixture[str]) -> None:
    for lanes in ("0", "33", "-32"):
        with pytest.raises(SystemExit, match="2"):
            tool.main(["--lanes", lanes])
        assert "--lanes is a multiple of 32" in capsys.readouterr().err


def test_a_difference_is_found_and_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tool, "OperationGpu", stub("sqrt.rm.f64"))
    assert tool.main(["--lanes", "64"]) == 1
    out = capsys.readouterr().out
    assert "      1 sqrt.rm.f64: warp 2 lane 5: in 0x" in out and out.endswith(" lanes, 1 differences\n")
