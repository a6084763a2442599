"""Against the PyPI package mmasim 2.1.1 (Xie et al., arXiv 2511.10909), an independent model checked on seven GPUs.

Skipped where it is not installed. It compiles an extension on import and needs PyTorch.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from cases import Case, cases
from generators import operands, styles

from warpmma.arithmetic import compute
from warpmma.formats import FORMATS
from warpmma.instructions import Instruction

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    nv_ptx = pytest.importorskip("mmasim.nv_ptx")
    isa = pytest.importorskip("mmasim.nv_ptx.isa_mma")

ARCHITECTURES = {
    "sm_70": "Volta",
    "sm_75": "Turing",
    "sm_80": "Ampere",
    "sm_89": "Ada Lovelace",
    "sm_90": "Hopper",
    "sm_100": "Blackwell",
    "sm_120": "RTX Blackwell",
    "sm_120f": "RTX Blackwell",
}
_TORCH = {
    "f64": torch.float64, "f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e3m2": torch.uint8, "e2m3": torch.uint8,
    "e2m1": torch.uint8, "ue8m0": torch.float8_e8m0fnu, "ue4m3": torch.float8_e4m3fn,
}  # fmt: skip


def tensor(name: str, codes: npt.NDArray[Any], shift: int = 0) -> Any:
    """Codes as a tensor of the type, bit for bit; fp6 and fp4 as bytes."""
    signed = (codes << shift).astype(codes.dtype).view(f"int{8 * codes.dtype.itemsize}")
    raw = torch.from_numpy(np.ascontiguousarray(signed))
    return raw.view(_TORCH[name])


def codes(result: Any) -> npt.NDArray[Any]:
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[result.element_size()]
    array: npt.NDArray[Any] = result.view(bits).numpy()
    return array.view(f"uint{8 * result.element_size()}")


def spelled(instruction: Instruction) -> str:
    kind = f".kind::{instruction.kind}" if instruction.kind else ""
    types = f"{instruction.d_type}.{instruction.a_type}.{instruction.b_type}.{instruction.c_type}"
    return f"{instruction.shape}{kind}.{types}"


def _covered(case: Case) -> bool:
    known = isa.mma_shape_and_type.get(ARCHITECTURES.get(case.target, ""), ())
    return spelled(case.instruction) in known and case.instruction.rounding in (None, "rn")


@pytest.mark.parametrize("case", [c for c in cases() if _covered(c)], ids=str)
def test_dense(case: Case) -> None:
    model = nv_ptx.MMA(ARCHITECTURES[case.target], spelled(case.instruction))
    rng = np.random.default_rng(7)
    recipe = case.recipe
    shifts = [case.instruction.packing(x).shift for x in ("A", "B")]
    for style in styles(recipe):
        a, b, c = operands(recipe, case.k, 400, style, rng)
        ours = compute(recipe, a, b, c)
        theirs = codes(
            model.dpa(tensor(recipe.a, a.T, shifts[0]), tensor(recipe.b, b.T, shifts[1]), tensor(recipe.c, c))
        )
        if recipe.d == "f64":  # mmasim does not model which NaN comes out
            nan = FORMATS["f64"].decode(theirs) != FORMATS["f64"].decode(theirs)
            assert np.array_equal(FORMATS["f64"].decode(ours) != FORMATS["f64"].decode(ours), nan), style
            ours, theirs = ours[~nan], theirs[~nan]
        assert np.array_equal(ours, theirs), style


def test_covers_every_architecture() -> None:
    assert {c.target for c in cases() if _covered(c)} >= {
        "sm_70",
        "sm_75",
        "sm_80",
        "sm_89",
        "sm_90",
        "sm_120",
    }
