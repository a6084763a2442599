"""The example of batch invariance: what changes bits, and what does not."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

example: Any = import_module("batch_invariance")


def test_shapes_change_nothing_and_kernels_do(capsys: pytest.CaptureFixture[str]) -> None:
    example.main(["--target", "sm_90"])
    said = capsys.readouterr().out.splitlines()
    assert [x.split(":")[1] for x in said[1:6]] == [" 0 outputs differ"] * 5
    rows = example.compared("sm_80")
    assert rows["one chain along k"].sums == 0 and rows["k in 8 slices"].sums > 50
    assert rows["instructions of 8 products"].sums == 0  # an A100 adds eight at a time in both
    assert example.compared("sm_90")["instructions of 8 products"].sums > 50
