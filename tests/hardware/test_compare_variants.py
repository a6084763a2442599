"""The tool that compares variants of operations with a GPU, without one."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from oracles import needs
from ptxas_cases import assembled

from lab.compare import variants as tool
from warpmma.hardware import every_variant, row_kernel
from warpmma.operations import operations


def stub(flip: str = "") -> type[Any]:
    class Stub:
        device = "no GPU"

        def __init__(self, kernels: Any, target: str, version: tuple[int, int]) -> None:
            self.rows = dict(every_variant(target))
            assert list(kernels) == list(self.rows)

        def launch(self, name: str, blocks: int, threads: int, arrays: Any, written: Iterable[int]) -> Any:
            results = [x.copy() for x in self.rows[name](*arrays[: written[0]])]  # type: ignore[index]
            if name == flip:
                results[1][0, 3] ^= True
            return tuple(results)

    return Stub


def test_all_variants_are_compared(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tool, "KernelGpu", stub())
    assert tool.main(["--lanes", "256"]) == 0
    number = len(dict(every_variant("sm_90a")))
    assert f"no GPU: {number} variants, {256 * number} lanes, 0 differences" in capsys.readouterr().out


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tool, "KernelGpu", stub("setp.lt.s32 p|q"))
    assert tool.main(["--lanes", "256"]) == 1
    out = capsys.readouterr().out
    assert "      1 setp.lt.s32 p|q: warp 0 lane 3: in 0x" in out and " 1 differences" in out


@needs("ptxas")
def test_kernels_of_variants_and_carries_assemble(tmp_path: Path) -> None:
    rows = [row for name, row in every_variant("sm_90a") if ".lt." in name or any(row.vectors)]
    rows += [row for row in operations("sm_90a") if row.reads_carry or row.writes_carry]
    assert assembled([row_kernel(row, f"k{i}") for i, row in enumerate(rows)], tmp_path) == ""
