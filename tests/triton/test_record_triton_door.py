"""Kernels of Triton through `warpmma.triton`, from their source to the bits of an H200."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("triton.language")

import triton

from lab.programs.archive import kept, read
from lab.programs.simulating import simulate
from lab.triton_programs.calls import TritonCase
from lab.triton_programs.cases import CASES
from lab.triton_programs.kept import KEPT, kept_case, kept_texts, plain_text, version
from lab.triton_programs.launching import launched
from warpmma import ptx

TRIED = (
    "softmax f16", "layer norm f32", "orders s32", "product bf16", "product e4m3", "grouped", "split, in turn",
    "attention f16, causal",
)  # fmt: skip
"""Compiling takes most of the time: of each kind one."""


@pytest.mark.parametrize("case", [case for case in CASES if case.name in TRIED], ids=str)
def test_source_gives_what_its_kept_ptx_gives(case: TritonCase) -> None:
    outputs, _, launches = launched(case)
    made = kept_case(case)
    expected, _, _ = simulate(ptx.load(kept_texts()[made.program], "triton.ptx"), made.make())
    for name, array in outputs.items():
        # Another version of Triton may sum in another order.
        x, y = (np.nan_to_num(one.astype(np.float64)) for one in (array, expected[name]))
        np.testing.assert_allclose(x, y, rtol=0.02, atol=0.02 * np.abs(y).max())
    if triton.__version__ == version():
        assert {plain_text(one.text) for one in launches} == {kept_texts()[made.program]}
        assert {name: kept(x)[0] for name, x in outputs.items()} == {
            name: digest for name, (digest, _) in read(KEPT["sm_80"].recorded).outputs[str(made)].items()
        }
    assert not launches[0].report.hazards
