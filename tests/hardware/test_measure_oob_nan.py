"""The tool that finds the NaN of out-of-bounds elements, without a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import needs
from ptxas_cases import assembled

from lab.measure import oob_nan as tool


class Stub:
    """A GPU that takes 0x7FFF for what is out of bounds, and returns its first operand otherwise."""

    def __init__(self, kernels: Mapping[Any, Any], target: str, version: tuple[int, int]) -> None:
        assert len(kernels) == 6 and target == "sm_90a"

    def launch(self, key: Any, blocks: int, threads: int, arrays: Any, written: Any) -> Any:
        a, b, c, _ = arrays
        assert blocks * threads == a.size and written == [3]
        form, _ = key
        oob = (a == 0x7FFF) | (b == 0x7FFF) | (c == 0x7FFF)
        result = np.where(oob & (form != "plain"), 0, a)
        return (np.where((result >> 15 != 0) & (form == "relu"), 0, result).astype(np.uint16),)


def test_the_code_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setattr(tool, "KernelGpu", Stub)
    assert tool.main(["--out", str(tmp_path / "x.npz")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 2 * 2 * 3 * 3
    assert "f16 oob operand 0 others 0x3c00: 1 differ: 0x7fff -> 0x0000" in out
    with np.load(tmp_path / "x.npz") as kept:
        assert len(kept.files) == 36 and kept["bf16 relu operand 2 others 0xc000"].shape == (2, 1 << 16)


@needs("ptxas")
def test_kernels_assemble(tmp_path: Path) -> None:
    forms = [(form, type_) for form in ("plain", "oob", "relu") for type_ in ("f16", "bf16")]
    assert assembled([tool.kernel(*x, f"k{i}") for i, x in enumerate(forms)], tmp_path) == ""
