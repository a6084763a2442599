"""What the native engine is compared over: every recipe and kind of it, and the operands of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from arrays import Array, Rng, same

from lab.generators import RecipeCase, by_reference, instruction_inputs, metadata_words, operands, recipe_cases
from warpmma.arithmetic import compute
from warpmma.arithmetic.dispatch import native
from warpmma.arithmetic.recipes.lowerings import recipe
from warpmma.arithmetic.recipes.units import FusedDotAdd, GroupedDotAdd, IntegerSum
from warpmma.execution import running
from warpmma.formats import FORMATS
from warpmma.isa import Instruction, warpgroup_instructions

LEVELS = native.levels()


@contextmanager
def only(level: native.Level) -> Iterator[None]:
    """Take away the other builds, also those of the same name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "levels", lambda: (level,))
        running._native_registers.cache_clear()
        yield
    running._native_registers.cache_clear()


def _every_recipe() -> list[RecipeCase]:
    """Those of `mma`, and of `wgmma` those that `mma` has not."""
    found = {(case.recipe, case.k): case for case in recipe_cases()}
    first = next(iter(recipe_cases()))
    return [*recipe_cases(), *{
        (recipe(i, t), i.k): replace(first, recipe=recipe(i, t), k=i.k, blocks=0, target=f"wgmma {i.d_type} {t}")
        for i in warpgroup_instructions() for t in i.targets if (recipe(i, t), i.k) not in found
    }.values()]  # fmt: skip


EVERY = _every_recipe()
# Formats of floating-point A and B are all the same to a unit, but for how they are read.
KINDS = list(
    {
        (r.unit, r.accumulate, r.convert, r.scale, x.k, (r.a, r.b) if isinstance(r.unit, IntegerSum) else None): x
        for x in EVERY
        for r in [x.recipe]
    }.values()
)
SPARSE = [x for x in KINDS if isinstance(x.recipe.unit, FusedDotAdd | GroupedDotAdd | IntegerSum)]
FUSED = [x for x in EVERY if isinstance(x.recipe.unit, FusedDotAdd | GroupedDotAdd)]
each_kind = pytest.mark.parametrize("case", KINDS, ids=str)


def draw(case: RecipeCase, each: Sequence[str], m: int, n: int, rng: Rng, *, sparse: bool = False) -> dict[str, Array]:
    """Operands of `native.product`: an instruction in each of these styles, one after the other along k.

    Row i and column i belong together, as some styles want it; of a sparse A most elements meet their own partner.
    """
    parts = [operands(case.recipe, case.k, max(m, n), style, rng, case.blocks) for style in each]
    column, row = np.arange(n), np.arange(m)[:, None]
    x = {"c": parts[0]["c"][(2 * column - row) % max(m, n)][None]}
    for name in ("a", "scale_a") if case.blocks else ("a",):
        x[name] = np.concatenate([part[name][:, :m] for part in parts]).T[None]
    for name in ("b", "scale_b") if case.blocks else ("b",):
        x[name] = np.concatenate([part[name][:, :n] for part in parts])[None]
    if sparse:
        x["b"] = np.repeat(x["b"], 2, axis=1)
        own = np.tile(2 * np.arange(case.k), len(each)) + rng.integers(0, 2, x["a"].shape)
        other = rng.integers(0, 2 * case.k, x["a"].shape)
        x["chosen"] = np.where(rng.random(x["a"].shape) < 0.9, own, other).astype(np.uint8)
    return x


def one_by_one(case: RecipeCase, x: dict[str, Array]) -> Array:
    """Compute a chain by NumPy, one instruction at a time."""
    c, count = x["c"], x["a"].shape[2] // case.k

    def part(name: str, axis: int, i: int) -> Array:
        size = x[name].shape[axis] // count
        piece = np.moveaxis(x[name], axis, 0)[i * size : (i + 1) * size]
        return piece[..., None] if axis == 2 else piece[:, :, None]

    for i in range(count):
        more = {name: part(name, axis, i) for name, axis in (("scale_a", 2), ("scale_b", 1)) if name in x}
        if "chosen" in x:
            more["chosen"] = part("chosen", 2, i).astype(np.intp)
        c = compute(case.recipe, part("a", 2, i), part("b", 1, i), c, **more)
    return c


def check(case: RecipeCase, x: dict[str, Array], levels: Sequence[native.Level] = LEVELS, note: object = "") -> Array:
    """Compare all builds with NumPy; return what they agree on."""
    expected = one_by_one(case, x)
    for level in levels:
        with only(level):
            got = native.product(case.recipe, k=case.k, scales=case.blocks, **x)  # type: ignore[arg-type]
        assert got.dtype == FORMATS[case.recipe.d].code_dtype and got.shape == expected.shape
        if not np.array_equal(got, expected):
            w, i, j = (int(v) for v in np.argwhere(got != expected)[0])
            row = {name: v[w, i].tolist() for name, v in x.items() if name in ("a", "scale_a", "chosen")}
            column = {name: v[w, :, j].tolist() for name, v in x.items() if name in ("b", "scale_b")}
            operand = {**row, **column, "c": int(x["c"][w, i, j])}
            pytest.fail(
                f"{case} {note}, {level}: {(got != expected).sum()} differ; at {w, i, j} native {got[w, i, j]:#x}, "
                f"NumPy {expected[w, i, j]:#x} for {operand}"
            )
    return expected


def check_slowly(case: RecipeCase, x: dict[str, Array], d: Array, rng: Rng, count: int) -> None:
    """Compare a few outputs of a single instruction with the reference."""
    w, i, j = rng.integers(0, np.array(d.shape)[:, None], (3, count))
    columns = x["chosen"][w, i] if "chosen" in x else np.arange(case.k)[None]
    of = {"a": x["a"][w, i].T, "b": x["b"][w[:, None], columns, j[:, None]].T, "c": x["c"][w, i, j]}
    if case.blocks:
        of |= {"scale_a": x["scale_a"][w, i].T, "scale_b": x["scale_b"][w, :, j].T}
    same(d[w, i, j].astype(np.uint64), by_reference(case.recipe, **of))


def words(i: Instruction, target: str, each: Sequence[str], rng: Rng, *, undefined: bool = False) -> dict[str, Any]:
    """Keyword arguments of `execute`: two warps in each style."""
    parts = [instruction_inputs(i, target, style, 2, rng) for style in each]
    x = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if i.sparse:
        x["e"] = metadata_words(i, target, 2 * len(each), rng, undefined=undefined)
    named = {"e": "metadata", "sa": "scale_a", "sb": "scale_b"}
    return {"target": target, **{named.get(name, name): v for name, v in x.items()}}


HEAD = "mma.sync.aligned.m16n8k"
SAMPLES = [
    (HEAD + "16.row.col.f32.f16.f16.f32", "sm_90", "near"),
    ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rm", "sm_90", "special"),
    ("mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16", "sm_75", "near"),
    ("mma.sync.aligned.m8n8k32.row.col.s32.s4.u4.s32", "sm_80", "bits"),
    (HEAD + "256.row.col.s32.b1.b1.s32.xor.popc", "sm_90a", "bits"),
    (HEAD.replace("mma.", "mma.sp.") + "32.row.col.f16.f16.f16.f16", "sm_90", "near"),
    (HEAD.replace("mma.", "mma.sp.") + "16.row.col.f32.tf32.tf32.f32", "sm_80", "middle"),
    (HEAD + "32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0", "sm_120a", "near"),
]
each_sample = pytest.mark.parametrize(("mnemonic", "target", "style"), SAMPLES)
