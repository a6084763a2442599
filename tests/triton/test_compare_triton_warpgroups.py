"""Triton's kernels for sm_90a give the bits that they gave on an H200, hazards on and without a report."""

from __future__ import annotations

import json

import pytest
from oracles import skip_without

pytest.importorskip("triton.language")
skip_without("PyTorch")

from lab.compare.triton_warpgroups import CASES, RECORDED, output  # noqa: E402


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_those_of_an_h200(name: str) -> None:
    found, launches = output(name)
    assert sum(x.text.count("wgmma.mma_async") for x in launches)
    assert found == json.loads(RECORDED.read_text())["outputs"][name]
