"""The tool that compares `ldmatrix` and `stmatrix` with a GPU, without one: it finds and stores differences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import Array

from lab.compare import fragments as tool
from warpmma.hardware import move_simulated
from warpmma.operations import MatrixMove, matrix_moves


def stub(flip: str = "") -> type[Any]:
    class Stub:
        device = "no GPU"

        def __init__(self, moves: Sequence[MatrixMove], target: str, size: int) -> None:
            self.moves, self.size = list(moves), size

        def run(self, move: MatrixMove, memory: Array, registers: Array, addresses: Array) -> Array:
            assert move in self.moves and memory.shape[1] == self.size
            out: Array = move_simulated(move, memory, registers, addresses).copy()
            if move.mnemonic == flip:
                out.reshape(-1)[7] ^= 1
            return out

    return Stub


def test_every_form_is_compared_and_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tool, "MoveGpu", stub())
    file = tmp_path / "kept.npz"
    assert tool.main(["--warps", "8", "--record", str(file)]) == 0
    forms = matrix_moves("sm_90a")
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"no GPU: {len(forms)} forms, {len(forms) * 8 * 32} lanes, 0 differences"
    with np.load(file) as kept:
        assert {name.split("|")[0] for name in kept.files} - {"device"} == {
            move.mnemonic for move in forms if ".shared." in move.mnemonic
        }


def test_a_difference_is_found_and_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    name = "stmatrix.sync.aligned.m8n8.x2.shared.b16"
    monkeypatch.setattr(tool, "MoveGpu", stub(name))
    assert tool.main(["--warps", "8"]) == 1
    out = capsys.readouterr().out
    assert f"       1 of 8192 registers or bytes differ: {name}\n  at [0, 7]: gpu 0x" in out
