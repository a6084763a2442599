"""`tl.dot` as an H200's own Triton computes it (`python -m lab.record.dots`), and what launches here say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm

pytest.importorskip("triton")
from lab.record.dots import K, cases, digest, product

FOUND = json.loads((Path(__file__).parents[1] / "data/h200_dots.json").read_text())["outputs"]


@pytest.mark.parametrize(("case", "name", "a", "b"), [pytest.param(*each, id=each[0]) for each in cases()])
def test_a_launch_has_a_note_where_an_h200_gives_other_bits(case: str, name: str, a: Any, b: Any) -> None:
    d = np.zeros((a.shape[0], b.shape[1]), np.float32)
    with wm.triton.device("sm_90", ptx_target=("sm_80", "sm_89")) as gpu:
        product[(1,)](a, b, d, M=a.shape[0], N=b.shape[1], K=K, num_warps=4)
    (note,) = gpu.launches[0].report.notes or ("",)
    assert (digest(d) == FOUND[case]["digest"]) == (not note)
    written = FOUND[case]["instructions"][0].partition(".")[0]
    assert not note or f"Triton writes {written}" in note or ("to f16" in note and written == "mma")


@pytest.mark.parametrize(("case", "name", "a", "b"), [pytest.param(*each, id=each[0]) for each in cases()])
def test_what_triton_writes_for_sm_90_has_an_h200s_bits(case: str, name: str, a: Any, b: Any) -> None:
    d = np.zeros((a.shape[0], b.shape[1]), np.float32)
    with wm.triton.device("sm_90") as gpu:
        product[(1,)](a, b, d, M=a.shape[0], N=b.shape[1], K=K, num_warps=4)
    assert digest(d) == FOUND[case]["digest"] and gpu.launches[0].report.notes == ()


# Triton deals out k among the instructions in another order where it converts fp8 to f16.
@pytest.mark.parametrize(
    ("case", "name", "a", "b"),
    [pytest.param(*each, id=each[0]) for each in cases() if f".{each[1]}." in FOUND[each[0]]["instructions"][0]],
)
def test_products_by_the_recorded_instruction_have_an_h200s_bits(case: str, name: str, a: Any, b: Any) -> None:
    (instruction,) = FOUND[case]["instructions"]
    assert digest(wm.matmul(a, b, instruction=instruction, target="sm_90a")) == FOUND[case]["digest"]
