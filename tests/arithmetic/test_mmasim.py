"""Against the PyPI package mmasim 2.1.1 (Xie et al., arXiv 2511.10909), an independent model checked on seven GPUs.

Skipped where it is not installed. It compiles an extension on import and needs PyTorch.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from oracles import skip_without

from lab.generators import RecipeCase, operands, recipe_cases, styles
from warpmma.arithmetic import compute
from warpmma.arithmetic.recipes.lowerings import recipe as find_recipe
from warpmma.formats import FORMATS
from warpmma.isa import parse, parse_warpgroup, warpgroup_instructions

skip_without("mmasim")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch, nv_ptx, isa, isa_wgmma = map(
        importlib.import_module, ("torch", "mmasim.nv_ptx", "mmasim.nv_ptx.isa_mma", "mmasim.nv_ptx.isa_wgmma")
    )

ARCHITECTURES = {
    "Volta": "sm_70",
    "Turing": "sm_75",
    "Ampere": "sm_80",
    "Ada Lovelace": "sm_89",
    "Hopper": "sm_90",
    "Blackwell": "sm_100",
    "RTX Blackwell": "sm_120a",
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


DENSE = [(name, spelled) for name in ARCHITECTURES for spelled in isa.mma_shape_and_type[name]]


def test_every_architecture_is_compared() -> None:
    assert set(ARCHITECTURES) == set(isa.mma_shape_and_type)
    assert len(DENSE) == 138


@pytest.mark.parametrize(("name", "spelled"), DENSE)
def test_dense(name: str, spelled: str) -> None:
    shape, *rest = spelled.split(".")
    i = parse(f"mma.sync.aligned.{shape}.row.col.{'.'.join(rest)}")
    recipe, model = find_recipe(i, ARCHITECTURES[name]), nv_ptx.MMA(name, spelled)
    rng = np.random.default_rng(7)
    shifts = [i.packing(x).shift for x in ("A", "B")]
    for style in styles(recipe):
        given = operands(recipe, i.k, 300, style, rng)
        ours = compute(recipe, **given)
        a, b = (tensor(getattr(recipe, x), given[x].T, shift) for x, shift in zip("ab", shifts, strict=True))
        theirs = codes(model.dpa(a, b, tensor(recipe.c, given["c"])))
        if recipe.d == "f64":  # mmasim does not model which NaN comes out
            nan = FORMATS["f64"].decode(theirs) != FORMATS["f64"].decode(theirs)
            assert np.array_equal(FORMATS["f64"].decode(ours) != FORMATS["f64"].decode(ours), nan), style
            ours, theirs = ours[~nan], theirs[~nan]
        assert np.array_equal(ours, theirs), style


WARPGROUP = isa_wgmma.wgmma_shape_and_type["Hopper"]


def test_covers_every_dense_floating_wgmma() -> None:
    floating = [i for i in warpgroup_instructions() if i.d_type != "s32" and not i.sparse]
    ours = {str(i).removeprefix("wgmma.mma_async.sync.aligned.") for i in floating}
    assert set(WARPGROUP) == ours


@pytest.mark.parametrize("spelled", [s for s in WARPGROUP if s.startswith("m64n8k")])
def test_wgmma(spelled: str) -> None:
    i = parse_warpgroup(f"wgmma.mma_async.sync.aligned.{spelled}")
    recipe, model = find_recipe(i, "sm_90a"), nv_ptx.WGMMA("Hopper", spelled)
    rng = np.random.default_rng(9)
    for style in styles(recipe):
        given = operands(recipe, i.k, 300, style, rng)
        a, b = (tensor(getattr(recipe, x), given[x].T) for x in "ab")
        theirs = codes(model.dpa(a, b, tensor(recipe.c, given["c"])))
        assert np.array_equal(compute(recipe, **given), theirs), style


def _scaled(case: RecipeCase) -> str:
    i = case.instruction
    block = case.k // max(1, case.blocks)
    return f"{i.shape}.kind::{i.kind}.block{block}.f32.{i.a_type}.{i.b_type}.f32.{i.stype}"


_SCALED = [c for c in recipe_cases() if c.recipe.scale and not c.instruction.sparse]


@pytest.mark.parametrize("case", _SCALED, ids=str)
def test_block_scaled(case: RecipeCase) -> None:
    model = nv_ptx.MMABlockScale("RTX Blackwell", _scaled(case))
    rng = np.random.default_rng(8)
    recipe = case.recipe
    packed = case.instruction.kind != "mxf8f6f4"
    for style in styles(recipe):
        given = operands(recipe, case.k, 400, style, rng, case.blocks)
        ours = compute(recipe, **given)
        elements = [given[x].T for x in "ab"]
        if packed:  # two to a byte; mmasim takes the high half first
            a, b = (torch.from_numpy(np.ascontiguousarray(x[:, 0::2] << 4 | x[:, 1::2])) for x in elements)
        else:
            shifts = [case.instruction.packing(x).shift for x in ("A", "B")]
            a, b = (
                tensor(getattr(recipe, x), codes, shift) for x, codes, shift in zip("ab", elements, shifts, strict=True)
            )
        assert recipe.scale
        alpha, beta = (tensor(recipe.scale, given[x].T) for x in ("scale_a", "scale_b"))
        theirs = codes(model.dpa(a, b, tensor(recipe.c, given["c"]), alpha, beta))
        assert np.array_equal(ours, theirs), style


def test_covers_every_block_scaled_kind() -> None:
    """One of each recipe: mxf4 and mxf4nvf4 with blocks of 32 are the same."""
    theirs = set(isa.mma_block_scale_shape_and_type["RTX Blackwell"])
    assert theirs - {_scaled(c) for c in _SCALED} == {"m16n8k64.kind::mxf4nvf4.block32.f32.e2m1.e2m1.f32.ue8m0"}
