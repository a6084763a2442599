"""Partial sums along k that are made within one call: against a call for each chain, and NumPy's own f32 additions."""

from __future__ import annotations

from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from arrays import Array, Rng, same

import warpmma as wm
from lab.generators import RecipeCase, operands, recipe_cases, styles
from warpmma.arithmetic import product
from warpmma.arithmetic.dispatch import native
from warpmma.formats import FORMATS
from warpmma.products.chain import Chain, ChainState, Operands, boundaries
from warpmma.scaling import block_size, quantize

LEVELS = native.levels()
built = pytest.mark.skipif(not LEVELS, reason="warpmma was installed without its native engine")
CASES = [x for x in recipe_cases() if (x.recipe.c, x.recipe.d) == ("f32", "f32")]
KINDS = list({(x.recipe.unit, x.recipe.accumulate, x.recipe.convert, x.recipe.scale, x.k): x for x in CASES}.values())
WAYS = [*((level.name, level) for level in LEVELS), ("numpy", None)]
# -0, +0, subnormals, numbers near 1, the largest (which overflow), infinities, NaN of several payloads.
HARD = [0, 1, 0x7FFFFF, 0x800000, 0x33800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00123, 0x7FFFFFFF]


def drawn(case: RecipeCase, count: int, m: int, n: int, rng: Rng, *, sparse: bool = False) -> dict[str, Array]:
    """Operands of `product`: instructions in every style, some of which sums are subnormal, infinite or NaN."""
    known = [x for x in ("near", "tiny", "special", "zeros", "huge", "cancel") if x in styles(case.recipe)]
    parts = [
        operands(case.recipe, case.k, max(m, n), known[int(rng.integers(len(known))) if i % 2 else 0], rng, case.blocks)
        for i in range(count)
    ]
    x = {"a": np.concatenate([p["a"][:, :m] for p in parts]).T[None], "b": np.concatenate([p["b"] for p in parts])}
    x["b"] = x["b"][None, :, :n]
    if case.blocks:
        x["scale_a"] = np.concatenate([p["scale_a"][:, :m] for p in parts]).T[None]
        x["scale_b"] = np.concatenate([p["scale_b"][:, :n] for p in parts])[None]
    if sparse:
        x["b"] = np.repeat(x["b"], 2, axis=1)
        x["chosen"] = (np.tile(2 * np.arange(case.k), count) + rng.integers(0, 2, x["a"].shape)).astype(np.uint8)
    return x


def codes(shape: tuple[int, ...], rng: Rng) -> Array:
    """Codes of f32, most of them of ordinary numbers."""
    ordinary = rng.standard_normal(shape).astype(np.float32).view(np.uint32)
    hard = rng.choice(np.array(HARD, np.uint32), shape) | rng.choice(np.array([0, 1 << 31], np.uint32), shape)
    return np.where(rng.random(shape) < 0.4, hard, ordinary)


def added(x: Array, y: Array) -> Array:
    with np.errstate(all="ignore"):
        total: Array = x.view(np.float32) + y.view(np.float32)
    return np.where(np.isnan(total), np.uint32(0x7FFFFFFF), total.view(np.uint32))


def part(case: RecipeCase, x: dict[str, Array], start: int, stop: int) -> dict[str, Array]:
    """Some instructions of operands."""
    axis = {"a": 2, "scale_a": 2, "chosen": 2, "b": 1, "scale_b": 1}
    each = {"scale_a": case.blocks, "scale_b": case.blocks, "b": case.k * (2 if "chosen" in x else 1)}
    some = {name: slice(start * each.get(name, case.k), stop * each.get(name, case.k)) for name in x}
    return {name: v[(slice(None),) * axis[name] + (some[name],)] for name, v in x.items()}


def model(
    case: RecipeCase, x: dict[str, Array], c: Array, sums: Array, ends: native.Ends, count: int
) -> tuple[Array, Array]:
    """A call for each chain; their sums."""
    at, of_slice, total = 0, sums[0], sums[1]
    for end, ends_slice in ends:
        piece: dict[str, Any] = part(case, x, at, end)
        done = product(case.recipe, c=c, k=case.k, scales=case.blocks, engine="numpy", **piece)
        of_slice, c, at = added(of_slice, done), np.zeros_like(c), end
        if ends_slice:
            total, of_slice = added(total, of_slice), np.full_like(c, 1 << 31)
    rest: dict[str, Any] = part(case, x, at, count)
    left = product(case.recipe, c=c, k=case.k, scales=case.blocks, engine="numpy", **rest)
    return left, np.stack([of_slice, total])


def canonical(x: Array) -> Array:
    """A NaN that passes through untouched has any payload, or the canonical one."""
    return np.where(np.isnan(x.view(np.float32)), np.uint32(0x7FFFFFFF), x)


@pytest.mark.parametrize("case", KINDS, ids=str)
@pytest.mark.parametrize(("name", "level"), WAYS, ids=[str(level or name) for name, level in WAYS])
@pytest.mark.alike(3)
def test_chains_end_within_a_call(
    case: RecipeCase, name: str, level: native.Level | None, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """After any instructions, those that the engine's blocks of 128 products end with and others."""
    if level is not None:
        monkeypatch.setattr(native, "levels", lambda: (level,))
    rng, count = np.random.default_rng(CASES.index(case)), 2 * max(1, 128 // case.k) + 3
    for sparse in (False, True) if case.instruction.sparse else (False,):
        x = drawn(case, count, 19, 21, rng, sparse=sparse)
        c, sums = codes((1, 19, 21), rng), codes((2, 1, 19, 21), rng)
        for chosen in (range(1, count + 1), (count,), sorted(rng.choice(np.arange(1, count), 3, replace=False)), ()):
            ends = [(int(end), bool(number % 3 == 1)) for number, end in enumerate(chosen)]
            expected = model(case, x, c, sums, ends, count)
            got = sums.copy()
            more: dict[str, Any] = x
            d = product(
                case.recipe, c=c, k=case.k, scales=case.blocks, ends=ends, sums=got, engine="numpy" if level is None
                else "native", **more,
            )  # fmt: skip
            same(d, expected[0])
            same(canonical(got), canonical(expected[1]))


def test_hard_sums_are_hard() -> None:
    """What the test above compares has zeros of both signs, subnormals, infinities and NaN."""
    x, y = (codes((1, 90, 90), np.random.default_rng(i)) for i in range(2))
    total = added(x, y).view(np.float32)
    assert np.isnan(total).any() and np.isinf(total).any() and np.signbit(total[total == 0]).any()
    assert ((total != 0) & (abs(total) < 2.0**-126)).any()


def chain(case: RecipeCase, k: int, *, promote: int, split: int, engine: Any) -> Chain:
    step = case.instruction.k
    return Chain(
        instruction=case.instruction, recipe=case.recipe, engine=engine, k=k, slices=boundaries(k, step, split),
        promote=promote,
    )  # fmt: skip


@pytest.mark.parametrize("engine", list(wm.engines()))
def test_where_a_part_of_k_ends_cannot_be_seen(engine: Any) -> None:
    """Parts of k end at chains, within them, at slices; a `ChainState` that was handed on is as it was."""
    case = next(x for x in KINDS if x.k == 16 and not x.instruction.sparse and not x.blocks)
    rng, k = np.random.default_rng(1), 16 * 11 - 5
    x, c = drawn(case, 11, 7, 9, rng), codes((1, 7, 9), rng)
    for promote, split in ((0, 3), (32, 1), (48, 2), (16, 4)):
        of = chain(case, k, promote=promote, split=split, engine=engine)
        whole = of.finish(of.advance(of.start(c), Operands(x["a"][:, :, :k], x["b"][:, :k]), 0))
        for cuts in ((64, 128), (16, 32, 48, 160), (96,)):
            state = of.start(c)
            for start, stop in pairwise((0, *cuts, k)):
                before = ChainState(*(None if v is None else v.copy() for v in state))  # type: ignore[arg-type]
                after = of.advance(state, Operands(x["a"][:, :, start:stop], x["b"][:, start:stop]), start)
                assert state.sums is not None and before.sums is not None
                same(state.sums, before.sums)
                same(state.accumulator, before.accumulator)
                state = after
            same(of.finish(state), whole)
        nothing = Operands(x["a"][:, :, :0], x["b"][:, :0])
        same(of.finish(of.advance(of.start(c), nothing, 0)), c)


MMA, SP = "mma.sync.aligned", "mma.sp::ordered_metadata.sync.aligned"
PRODUCTS = [
    (f"{MMA}.m16n8k16.row.col.f32.f16.f16.f32", "sm_90"),
    (f"{MMA}.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_80"),
    (f"{MMA}.m8n8k4.row.col.f32.f16.f16.f32", "sm_70"),
    (f"{MMA}.m16n8k32.row.col.f32.e4m3.e5m2.f32", "sm_90"),
    (f"{SP}.m16n8k32.row.col.f32.bf16.bf16.f32", "sm_80"),
    (f"{MMA}.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e5m2.f32.ue8m0", "sm_120a"),
    (f"{MMA}.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", "sm_120a"),
]


@pytest.mark.parametrize(("mnemonic", "target"), PRODUCTS)
@pytest.mark.parametrize("engine", list(wm.engines()))
def test_partial_sums_are_sums_of_plain_products(engine: Any, mnemonic: str, target: str) -> None:
    """Of every unit, sparse and block-scaled operands too; with C, a batch, and sizes that are not whole."""
    i = wm.parse(mnemonic)
    rng, k = np.random.default_rng(2), 4 * i.k + (i.k if i.block_scale else i.k // 2)
    a, b = rng.standard_normal((2, 9, k)).astype(np.float32), rng.standard_normal((k, 11)).astype(np.float32)
    c = rng.standard_normal((9, 11)).astype(np.float32)
    if i.sparse:
        a = np.where(np.arange(k) % 4 < 2, a, 0)
    size = block_size(i) if i.block_scale else k
    scales: dict[str, Array] = {}
    if i.block_scale:
        qa, qb = quantize(a, i, "A"), quantize(b, i, "B")
        a, b, scales = qa.elements, qb.elements, {"scale_a": qa.scales, "scale_b": qb.scales}
    else:
        of_a, of_b = i.format("A"), i.format("B")
        a, b = of_a.array(of_a.encode(a)), of_b.array(of_b.encode(b))
    call: Any = partial(wm.matmul, instruction=i, target=target, engine=engine)

    def plain(start: int, stop: int) -> Array:
        """Codes of the product of some of k."""
        some = {name: v[..., start // size : stop // size] for name, v in scales.items() if name == "scale_a"}
        some |= {name: v[start // size : stop // size] for name, v in scales.items() if name == "scale_b"}
        d: Array = call(a[..., start:stop], b[start:stop], **some)
        return d.view(np.uint32)

    def check(expected: Array, *more: Array, **options: Any) -> None:
        same(call(a, b, *more, **scales, **options).view(np.uint32), expected)

    first, *others = (plain(at, min(at + i.k, k)) for at in range(0, k, i.k))
    zero = np.zeros_like(first)
    check(added(np.broadcast_to(c.view(np.uint32), zero.shape), reduce(added, others, first)), c, promote_every=i.k)
    check(reduce(added, (plain(0, 3 * i.k), plain(3 * i.k, k)), zero), split_k=2, threads=2)
    slices = reduce(added, others[:2], first), added(*others[2:])
    check(reduce(added, slices, zero), split_k=2, promote_every=i.k)


@built
@pytest.mark.parametrize(
    ("sums", "ends"),
    [
        ((2, 1, 3, 4), [(0, False)]), ((2, 1, 3, 4), [(3, False)]), ((2, 1, 3, 4), [(2, False), (1, True)]),
        ((2, 1, 3, 5), [(1, True)]), ((1, 1, 3, 4), [(1, True)]),
    ],
)  # fmt: skip
def test_the_engine_checks_where_chains_end(sums: tuple[int, ...], ends: native.Ends) -> None:
    case = next(x for x in KINDS if x.k == 16)
    dtype = FORMATS[case.recipe.a].code_dtype
    a, b, c = np.zeros((1, 3, 32), dtype), np.zeros((1, 32, 4), dtype), np.zeros((1, 3, 4), np.uint32)
    with pytest.raises(ValueError, match=r"^(sums is \[|chains end after 1 to all instructions, ascending$)"):
        native.product(case.recipe, a, b, c, k=16, ends=ends, sums=np.zeros(sums, np.uint32))
