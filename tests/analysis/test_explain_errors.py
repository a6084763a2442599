"""What `explain` refuses, and that it says so in one line that names the nearest right form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm

HALF = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
QUAD = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
A, B = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"row": 16}, wm.OperandError, "row is 16; expected 0 to 15"),
        ({"column": -1}, wm.OperandError, "column is -1; expected 0 to 7"),
        ({"row": 1.0}, wm.OperandError, "row is 1.0; expected 0 to 15"),
        ({"matrix": 1}, wm.OperandError, "matrix is 1; expected 0 to 0"),
        ({"target": "sm_60"}, wm.TargetError, "sm_60"),
        ({"against": "sm_70"}, wm.TargetError, "sm_70"),
        ({"instruction": "mma.m16n8k16"}, wm.MnemonicError, "mma.m16n8k16"),
        ({"a": A[None]}, wm.OperandError, "explain takes one product; D would be (1, 16, 8): give the matrices of one"),
        ({"metadata": np.zeros(32, np.uint32)}, wm.OperandError, "takes no metadata"),
        ({"metadata": np.zeros(32, np.uint32), "split_k": 2}, wm.OperandError, "give a whole product indices"),
        ({"instruction": None, "selector": 1}, wm.OperandError, "matmul: metadata and a selector are of one mma"),
        ({"selector": 1}, wm.OperandError, "it takes no selector"),
        ({"instruction": SPARSE, "b": np.ones((32, 8), np.float16)}, wm.OperandError, "needs metadata"),
        ({"scale_a": np.zeros((16, 1), np.uint8)}, wm.WarpmmaError, "scale"),
        ({"b": B[:8]}, wm.OperandError, "A is (16, 16) and B is (8, 8)"),
        ({"a": [[1], [1, 2]]}, wm.OperandError, "A: not an array"),
        ({"split_k": "2"}, wm.OperandError, "split_k is '2'"),
        ({"instruction": QUAD, "a": np.ones((2, 4, 8, 4), np.float16), "b": np.ones((2, 4, 4, 8), np.float16),
          "target": "sm_70"}, wm.OperandError, "explain takes one product"),
    ],
    ids=str,
)  # fmt: skip
def test_refusals(change: dict[str, Any], error: type[wm.WarpmmaError], said: str) -> None:
    given = {"instruction": HALF, "a": A, "b": B, "target": "sm_80", "row": 0, "column": 0, **change}
    with pytest.raises(error) as raised:
        wm.explain(**given)
    assert said in str(raised.value) and "\n" not in str(raised.value)


def test_dask_arrays_are_for_matmul() -> None:
    da = pytest.importorskip("dask.array")
    with pytest.raises(wm.OperandError, match="compute"):
        wm.explain(HALF, da.from_array(A), B, target="sm_80")


def test_four_matrices() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((4, 8, 4)).astype(np.float16), rng.standard_normal((4, 4, 8)).astype(np.float16)
    d = wm.mma(QUAD, a, b, target="sm_70")
    told = wm.explain(QUAD, a, b, None, 5, 6, matrix=2, target="sm_70")
    assert (told.matrix, told.result) == (2, int(d[2, 5, 6].view(np.uint32)))
