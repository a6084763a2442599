"""The tool that records `ldmatrix` and `stmatrix` of a GPU, on a simulated one: it records and finds differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import Array, same
from compared_gpu import ComparedGpu

from lab.record import fragments as tool
from warpmma.hardware import move_simulated
from warpmma.operations import MatrixMove, matrix_moves

FORMS = [move for move in matrix_moves("sm_90a") if ".shared." in move.mnemonic]
RECORDING = Path(__file__).parents[1] / "data" / "h200_fragments.npz"


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> ComparedGpu:
    simulated = ComparedGpu()
    monkeypatch.setattr(tool, "first_gpu", lambda: simulated)
    return simulated


def test_every_form_is_recorded_as_of_an_h200(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main([str(tmp_path / "kept.npz"), "--warps", "2"]) == 0
    assert capsys.readouterr().out.endswith(f": {len(FORMS)} forms, 0 differences\n")
    with np.load(tmp_path / "kept.npz") as kept, np.load(RECORDING) as of_h200:
        assert set(kept.files) == set(of_h200.files)
        for move in FORMS:
            memory, out = (kept[f"{move.mnemonic}|{name}"] for name in ("memory", "out"))
            assert memory.shape == (2, 1024) and out.dtype == of_h200[f"{move.mnemonic}|out"].dtype
            registers = kept[f"{move.mnemonic}|registers"] if move.direction == "store" else out
            same(out, move_simulated(move, memory, registers, kept[f"{move.mnemonic}|addresses"]))


def test_a_difference_is_found_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "stmatrix.sync.aligned.m8n8.x2.shared.b16"

    def other(move: MatrixMove, *given: Any) -> Array:
        out: Array = move_simulated(move, *given).copy()
        out.reshape(-1)[7] ^= move.mnemonic == name
        return out

    monkeypatch.setattr(tool, "move_simulated", other)
    assert tool.main([str(tmp_path / "kept.npz"), "--warps", "8"]) == 1
    assert f"       1 of 8192 registers or bytes differ: {name}\n" in capsys.readouterr().out
