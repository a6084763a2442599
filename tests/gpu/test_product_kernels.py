"""Kernels of products, compiled by NVRTC and run on a simulated device, have the bits of the CPU's engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arrays import Array, same
from native_cases import KINDS, SPARSE, draw
from simulated_gpu import SimulatedGpu

import warpmma as wm
from lab.generators import RecipeCase, styles
from warpmma.arithmetic import GroupedDotAdd, IntegerSum, product, resolve
from warpmma.cuda import nvrtc
from warpmma.gpu import ProductForm, product_of_codes
from warpmma.products import gpu_products

pytestmark = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())

M, N = 20, 24  # one tile, and less than its rows and columns
STYLES = 3  # of operands, an instruction each


def _units() -> list[RecipeCase]:
    """One of each unit and way around it, the least k; `python -m lab.check.engines --simulated` does all."""
    found: dict[object, RecipeCase] = {}
    for x in sorted(KINDS, key=lambda x: x.k):
        found.setdefault((x.recipe.unit, x.recipe.accumulate, x.recipe.scale, x.recipe.convert), x)
    return list(found.values())


def compared(
    case: RecipeCase, seed: int, *, sparse: bool = False, hazards: str = "off", options: tuple[str, ...] = ()
) -> tuple[Array, Array]:  # fmt: skip
    """Compute an instruction in every style, one after the other; by the kernel, and by the CPU."""
    rng = np.random.default_rng(seed)
    each = rng.permutation(styles(case.recipe))[: STYLES if case.recipe.c == case.recipe.d else 1].tolist()
    x = draw(case, each, M, N, rng, sparse=sparse)
    if sparse:
        first = 4 * (np.arange(x["a"].shape[2]) % case.k // 2)  # of four columns
        x["chosen"] = (first + _two_of_four(x["a"].shape, rng)).astype(np.uint8)
    form = ProductForm(recipe=case.recipe, k=case.k, width=4 if sparse else 0, scales=case.blocks, result=case.recipe.d)
    k = x["b"].shape[1]
    simulated: Any = SimulatedGpu(hazards, options=options)
    given: dict[str, Any] = {**x}
    got = product_of_codes(simulated, form, slices=(0, k), **given)
    return got, product(case.recipe, k=case.k, engine=resolve("auto"), scales=case.blocks, **given)


def _two_of_four(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Choose two different rows of each four."""
    pairs = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3], [2, 0], [3, 1]])
    return pairs[rng.integers(0, len(pairs), (*shape[:-1], shape[-1] // 2))].reshape(shape)


@pytest.mark.parametrize("case", _units(), ids=str)
def test_every_unit(case: RecipeCase) -> None:
    same(*compared(case, 1))


@pytest.mark.alike(2)
@pytest.mark.parametrize("case", [x for x in _units() if x in SPARSE][::4], ids=str)
def test_sparse_products(case: RecipeCase) -> None:
    same(*compared(case, 2, sparse=True))


def test_no_kernel_has_a_race() -> None:
    for unit in (GroupedDotAdd, IntegerSum):
        same(*compared(_first(unit), 3, hazards="error"))


def test_nothing_depends_on_what_lies_in_registers() -> None:
    """Compiled in the fastest way, arrays of a thread lie in memory, and have the alignment of their type."""
    same(*compared(_first(IntegerSum), 3, hazards="error", options=("-Ofc=max",)))


def _first(unit: type) -> RecipeCase:
    return next(x for x in _units() if isinstance(x.recipe.unit, unit))


def test_sixteen_largest_products_and_c_need_33_bits() -> None:
    """The sum of sixteen products of 65504 fits into 32 bits; with C it does not."""
    largest = np.float16(65504)
    a, b = np.full((4, 16), largest), np.full((16, 4), largest)
    b[:, 1] *= -1
    b[0, 2:] *= -1
    c = [[1, 1, 1, 1], [7.9e9, -7.9e9, 7.9e9, -7.9e9], [-7.9e9, 7.9e9, 0, 0], [4.29e9, -4.29e9, 1e10, 1e30]]
    both(a, b, np.array(c, np.float32), target="sm_90")


def test_subnormal_results_are_truncated() -> None:
    """Scaling a sum back must not round it to nearest."""
    rng = np.random.default_rng(4)
    a, b = (np.ldexp(rng.standard_normal(s), -70).astype(np.float32) for s in ((8, 16), (16, 8)))
    both(a, b, np.ldexp(rng.standard_normal((8, 8)), -128).astype(np.float32), target="sm_90", float32="tf32")


def test_a_zero_c_of_f16_does_not_count() -> None:
    """Its least exponent is above that of small products, though sums are of f32."""
    a, b = np.full((4, 4), 2.0**-12, np.float16), np.full((4, 4), 1.3e-5, np.float16)
    c = np.zeros((4, 4), np.float16)
    c[0] = 2.0**-24
    both(a, b, c, target="sm_70", instruction="mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f16")


def both(a: Array, b: Array, c: Array, **options: Any) -> None:
    """Compare `matmul` on a simulated GPU with that on the CPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_products, "gpu", lambda: SimulatedGpu("off"))
        got = wm.matmul(a, b, c, engine="cuda", **options)
    same(got.view(np.uint32), wm.matmul(a, b, c, **options).view(np.uint32))
