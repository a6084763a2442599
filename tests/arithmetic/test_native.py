"""The native engine equals NumPy and the reference bit for bit: every build of it that this machine can run."""

from __future__ import annotations

import ctypes.util
import platform
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from cases import Case, cases, reference
from generators import STYLES, operands, styles
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracles import needs

from warpmma import execute
from warpmma.arithmetic import compute, native
from warpmma.arithmetic.recipes import recipe
from warpmma.arithmetic.units import FmaChain, FusedDotAdd, GroupedDotAdd, IntegerSum, Recipe
from warpmma.errors import UnsupportedError
from warpmma.execution import registers
from warpmma.formats import FORMATS, FloatFormat
from warpmma.isa.mma import Instruction, instructions, parse
from warpmma.isa.wgmma import warpgroup_instructions
from warpmma.registers import LANES
from warpmma.sparsity import selectors

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import compare_engines  # type: ignore[import-not-found,unused-ignore]
import compare_gpu  # type: ignore[import-not-found,unused-ignore]

LEVELS = native.levels()
pytestmark = needs("native engine")

Array = npt.NDArray[Any]
Rng = np.random.Generator
same = partial(np.testing.assert_array_equal, strict=True)


@contextmanager
def only(level: native.Level) -> Iterator[None]:
    """Take away the other builds, also those of the same name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "levels", lambda: (level,))
        registers._native_registers.cache_clear()
        yield
    registers._native_registers.cache_clear()


def _every_recipe() -> list[Case]:
    """Those of `mma`, and of `wgmma` those that `mma` has not."""
    found = {(case.recipe, case.k): case for case in cases()}
    first = next(iter(cases()))
    return [*cases(), *{
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


def draw(case: Case, each: Sequence[str], m: int, n: int, rng: Rng, *, sparse: bool = False) -> dict[str, Array]:
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


def one_by_one(case: Case, x: dict[str, Array]) -> Array:
    """Compute a chain by NumPy, one instruction at a time."""
    c, count = x["c"], x["a"].shape[2] // case.k

    def part(name: str, axis: int, i: int) -> Array:
        piece = np.array_split(x[name], count, axis)[i]
        return np.moveaxis(piece, axis, 0)[..., None] if axis == 2 else np.moveaxis(piece, axis, 0)[:, :, None]

    for i in range(count):
        more = {name: part(name, axis, i) for name, axis in (("scale_a", 2), ("scale_b", 1)) if name in x}
        if "chosen" in x:
            more["chosen"] = part("chosen", 2, i).astype(np.intp)
        c = compute(case.recipe, part("a", 2, i), part("b", 1, i), c, **more)
    return c


def check(case: Case, x: dict[str, Array], levels: Sequence[native.Level] = LEVELS, note: object = "") -> Array:
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


def check_slowly(case: Case, x: dict[str, Array], d: Array, rng: Rng, count: int) -> None:
    """Compare a few outputs of a single instruction with the reference."""
    w, i, j = rng.integers(0, np.array(d.shape)[:, None], (3, count))
    columns = x["chosen"][w, i] if "chosen" in x else np.arange(case.k)[None]
    of = {"a": x["a"][w, i].T, "b": x["b"][w[:, None], columns, j[:, None]].T, "c": x["c"][w, i, j]}
    if case.blocks:
        of |= {"scale_a": x["scale_a"][w, i].T, "scale_b": x["scale_b"][w, :, j].T}
    same(d[w, i, j].astype(np.uint64), reference(case.recipe, **of))


# One instruction.


@pytest.mark.parametrize("case", EVERY, ids=str)
def test_every_recipe_in_every_style(case: Case) -> None:
    rng = np.random.default_rng(1)
    for style in styles(case.recipe):
        x = draw(case, [style], 13, 21, rng)
        check_slowly(case, x, check(case, x, note=style), rng, 2)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    case=st.sampled_from(EVERY), style=st.sampled_from(sorted(STYLES)), seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 35), n=st.integers(1, 35), sparse=st.booleans(), level=st.sampled_from(LEVELS or (None,)),
)  # fmt: skip
def test_any_size(case: Case, style: str, seed: int, m: int, n: int, sparse: bool, level: native.Level) -> None:
    assume(style in styles(case.recipe))
    sparse &= isinstance(case.recipe.unit, FusedDotAdd | GroupedDotAdd | IntegerSum)
    rng = np.random.default_rng(seed)
    x = draw(case, [style], m, n, rng, sparse=sparse)
    check_slowly(case, x, check(case, x, [level], style), rng, 6)


# Chains.


def crossing(case: Case) -> int:
    """Instructions enough to cross the engine's blocks of 128 products twice and to end within one."""
    return 2 * max(1, 128 // case.k) + 1 + (case.k < 128)


CHAINED = [x for x in KINDS if x.recipe.c == x.recipe.d]


@pytest.mark.parametrize("case", CHAINED, ids=str)
def test_a_chain_is_one_instruction_after_the_other(case: Case) -> None:
    """Every style somewhere in the middle, where the fast path has to give up, and special values in a few rows."""
    rng, count, known = np.random.default_rng(2), crossing(case), styles(case.recipe)
    heavy = isinstance(case.recipe.unit, FmaChain)  # to NumPy
    tame = "middle" if "middle" in known else "bits"
    rare = ("tiny", "huge", "zeros", "special") if heavy else known
    for number, style in enumerate(x for x in rare if x in known):
        each = [tame] * count
        each[[count // 2, count // 2 + 1, 0, count - 1, 1][number % 5]] = style
        for sparse in (False, True) if case in SPARSE else (False,):
            check(case, draw(case, each, *((5, 9) if heavy else (13, 21)), rng, sparse=sparse), note=(style, sparse))


@pytest.mark.parametrize("case", [x for x in CHAINED if isinstance(FORMATS[x.recipe.a], FloatFormat)], ids=str)
def test_special_values_here_and_there_in_a_chain(case: Case) -> None:
    rng = np.random.default_rng(3)
    for sparse in (False, True) if case in SPARSE else (False,):
        x = draw(case, ["near"] * crossing(case), 13, 21, rng, sparse=sparse)
        for name in ("a", "b"):
            fmt, codes = FORMATS[getattr(case.recipe, name)], x[name]
            assert isinstance(fmt, FloatFormat)
            special = [c for c in (fmt.inf_code, fmt.nan_code, fmt.max_code, 1 << fmt.padding) if c is not None]
            for code in (*special, *(c | fmt.sign_bit for c in special)):
                place = tuple(rng.integers(0, codes.shape))
                codes[place] = code
        d = FORMATS[case.recipe.d]
        assert isinstance(d, FloatFormat)
        values = d.decode(check(case, x, note=sparse))
        assert np.isfinite(values).mean() > 0.2  # or there would be nothing to compare


@pytest.mark.parametrize("case", [x for x in KINDS if isinstance(x.recipe.unit, IntegerSum)], ids=str)
def test_integers_are_clamped_after_every_instruction(case: Case) -> None:
    """Instructions that go up, and then one that comes down again; C about as far from a limit as one of them goes."""
    rng, count = np.random.default_rng(16), crossing(case)

    def extreme(name: str, low: Array) -> Array:
        fmt = FORMATS[str(getattr(case.recipe, name))]
        sign = 1 << (fmt.bits - 1)
        high = sign - 1 if getattr(fmt, "signed", False) else fmt.mask
        return np.where(low, sign, high).astype(fmt.code_dtype)

    for sparse in (False, True):
        x = draw(case, ["turn"] * count, 13, 21, rng, sparse=sparse)
        rows = extreme("a", rng.random((1, 13, count)) < 0.4)
        columns = extreme("b", rng.random((1, count, 21)) < 0.1)
        x["a"] = np.repeat(rows, x["a"].shape[2] // count, axis=2)
        x["b"] = np.repeat(columns, x["b"].shape[1] // count, axis=1)
        check(case, x, note=sparse)


def _lines(fmt: FloatFormat, k: int) -> Array:
    """Rows of k codes: constants of every sort, and a few patterns of signs."""
    one = int(fmt.encode(1.0))
    ulp = 1 << fmt.padding
    two = int(fmt.encode(2.0))
    codes = [0, fmt.sign_bit, ulp, one, two - ulp, (two - ulp) | fmt.sign_bit, fmt.max_code, one - ulp]
    codes += [code for code in (fmt.inf_code, fmt.nan_code) if code is not None]
    if fmt.bits > 8:  # so that two of them make about the least number of f32, and half of its least square
        codes += [int(fmt.encode(2.0**e)) for e in (-66, -67, -75) if fmt.emin < -60]
    rows = [np.full(k, code) for code in codes]
    rows.append(np.where(np.arange(k) % 3 == 0, (two - ulp) | fmt.sign_bit, two - ulp))
    rows.append(np.where(np.arange(k) == k - 1, two - ulp, 0))
    return np.array(rows, fmt.code_dtype)


def _accumulators(fmt: FloatFormat) -> Array:
    """Zeros, subnormals, numbers near powers of two and their sums of L products, the largest, infinities, NaN."""
    values = [2.0**e for e in (-24, -14, -13, -1, 0, 1, 2, 4, 5, 6, 10, 15)] + [3.0, 1e-40, 65504.0, 2048.5, 7.99]
    codes = [0, 1, 2, *fmt.encode(np.array(values), "rz", overflow="saturate").tolist(), fmt.max_code]
    codes += [code - 1 for code in codes[5:12]] + [fmt.inf_code, fmt.nan_code, 1 << fmt.fraction_bits]
    return np.array([sign | int(code) for code in codes for sign in (0, fmt.sign_bit)], fmt.code_dtype)


@pytest.mark.parametrize("case", FUSED, ids=str)
def test_constant_rows_and_every_sort_of_accumulator(case: Case) -> None:
    """Each in a tile of its own, so that the fast path does all it can: sums up to 2^31 quanta, ties, overflow.

    Two instructions; what the first makes is the second's accumulator.
    """
    a_format, b_format, c_format = (FORMATS[x] for x in (case.recipe.a, case.recipe.b, case.recipe.c))
    assert isinstance(a_format, FloatFormat) and isinstance(b_format, FloatFormat) and isinstance(c_format, FloatFormat)
    count = 2 if case.recipe.c == case.recipe.d else 1
    a, b, c = _lines(a_format, count * case.k), _lines(b_format, count * case.k), _accumulators(c_format)
    which = np.indices((len(a), len(b), len(c))).reshape(3, -1)
    rng = np.random.default_rng(4)
    if case not in KINDS:
        which = rng.permuted(which, axis=1)[:, :300]
    x = {"a": a[which[0]][:, None], "b": b[which[1]][..., None], "c": c[which[2]][:, None, None]}
    if case.blocks:
        low, high = (118, 137) if case.recipe.scale == "ue8m0" else (0x30, 0x40)
        shape = (which.shape[1], count * case.blocks)
        x["scale_a"] = rng.integers(low, high, shape, np.uint8)[:, None]
        x["scale_b"] = rng.integers(low, high, shape, np.uint8)[..., None]
    check(case, x)


# Block scales.


SCALED = [x for x in EVERY if x.blocks]


@pytest.mark.parametrize(
    ("case", "sparse"), [*((x, False) for x in SCALED), *((x, True) for x in SCALED if x in KINDS)], ids=str
)
def test_scales_of_every_value(case: Case, sparse: bool) -> None:
    """All codes in the rows of A against the ends and the middle in the columns of B, and in every block."""
    rng, mask = np.random.default_rng(5), np.uint8(FORMATS[str(case.recipe.scale)].mask)
    for style in ("near", "full", "special"):
        x = draw(case, [style] * 3, 256, 13, rng, sparse=sparse)
        x["scale_a"] = (np.arange(256)[:, None] + 7 * np.arange(3 * case.blocks)).astype(np.uint8)[None] & mask
        ends = np.array([0, 1, 2, 64, 119, 120, 127, 128, 190, 252, 253, 254, 255], np.uint8) & mask
        x["scale_b"] = np.array([np.roll(ends, i) for i in range(3 * case.blocks)])[None]
        check(case, x, note=style)
        # One code for a whole row, which leaves more than NaN, and tiles without any.
        x["scale_a"] = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3 * case.blocks, axis=1)[None] & mask
        x["scale_b"] = np.repeat(ends[:, None], 3 * case.blocks, axis=1).T[None]
        check(case, x, note=style)


# Operands of `product`, wherever they lie.


@each_kind
def test_matrices_may_lie_anywhere(case: Case) -> None:
    rng = np.random.default_rng(6)
    x = draw(case, ["bits"], 10, 11, rng, sparse=case in SPARSE)
    expected = check(case, x)

    def fields(v: Array) -> Array:
        records = np.zeros(v.shape, [("pad", "u1"), ("x", v.dtype)])
        records["x"] = v
        return records["x"]

    views: list[Callable[[Array], Array]] = [
        np.asfortranarray,
        lambda v: np.repeat(np.repeat(v, 2, axis=1), 3, axis=2)[:, ::2, ::3],
        lambda v: v[:, ::-1, ::-1].copy()[:, ::-1, ::-1],
        lambda v: np.broadcast_to(v, (4, *v.shape[1:])),
        lambda v: np.concatenate([v, v, v, v])[::-1],
        fields,
    ]
    for view in views:
        got = native.product(case.recipe, k=case.k, scales=case.blocks, **{n: view(v) for n, v in x.items()})  # type: ignore[arg-type]
        same(got, np.repeat(expected, len(got), axis=0))


@each_kind
def test_nothing_gives_nothing(case: Case) -> None:
    x = draw(case, ["bits"], 5, 6, np.random.default_rng(7))
    for axis, names in enumerate((x, ("a", "c", "scale_a"), ("b", "c", "scale_b"))):
        cut = [slice(None)] * 3
        cut[axis] = slice(0)
        some = {name: v[tuple(cut)] if name in names else v for name, v in x.items()}
        assert native.product(case.recipe, k=case.k, scales=case.blocks, **some).size == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "k"),
    [({"d": "f32", "rounding": "rn"}, 16), ({"d": "f16", "rounding": "rz"}, 16), ({}, 24), ({}, 17), ({}, 1)],
)
def test_recipes_that_the_engine_does_not_do(change: dict[str, Any], k: int) -> None:
    """Of no instruction there is; refused rather than computed wrong."""
    unit = FusedDotAdd(fraction_bits=25, products=16, floor=-133, result_bits=23, rounding=change.get("rounding", "rz"))
    how = Recipe(d=change.get("d", "f32"), a="f16", b="f16", c="f32", unit=unit)
    a, c = np.zeros((1, 1, k), np.uint16), np.zeros((1, 1, 1), np.uint32)
    with pytest.raises(UnsupportedError, match=r"does not do .*; use engine='numpy'"):
        native.product(how, a, a.swapaxes(1, 2), c, k=k)


def test_a_build_that_is_not_there() -> None:
    case = EVERY[0]
    with pytest.raises(UnsupportedError, match="no native engine x86-64-v9; there are "):
        native.product(case.recipe, k=case.k, level="x86-64-v9", **draw(case, ["bits"], 1, 1, np.random.default_rng()))  # type: ignore[arg-type]


# Registers.

INSTRUCTIONS = [(i, t) for i in instructions() for t in {recipe(i, t): t for t in reversed(i.targets)}.values()]


def words(i: Instruction, target: str, each: Sequence[str], rng: Rng, *, undefined: bool = False) -> dict[str, Any]:
    """Keyword arguments of `execute`: two warps in each style."""
    parts = [compare_gpu.inputs(i, target, style, 2, rng) for style in each]
    x = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if i.sparse:
        x["e"] = compare_gpu.metadata(i, target, 2 * len(each), rng, undefined)
    named = {"e": "metadata", "sa": "scale_a", "sb": "scale_b"}
    return {"target": target, **{named.get(name, name): v for name, v in x.items()}}


def choices(i: Instruction) -> list[dict[str, Any]]:
    """Every selector of a sparse instruction; the first and the last ids of a block-scaled one."""
    ids = ("byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b")
    return [
        dict(zip(ids, chosen, strict=True)) | ({"selector": f} if i.sparse else {})
        for _, f, chosen in compare_gpu.jobs(i)
    ]


@pytest.mark.parametrize(("instruction", "target"), INSTRUCTIONS, ids=str)
def test_registers_of_every_instruction(instruction: Instruction, target: str) -> None:
    floating = isinstance(instruction.format("A"), FloatFormat)
    rng = np.random.default_rng(8)
    x = words(instruction, target, ("middle", "bits", "special") if floating else ("bits", "extreme"), rng)
    for number, choice in enumerate(choices(instruction)):
        expected = execute(instruction, **x, **choice, engine="numpy")
        for level in LEVELS if number == 0 else LEVELS[:1]:
            if level.width > (instruction.n if instruction.sparse else instruction.m):
                continue
            with only(level):
                same(execute(instruction, **x, **choice, engine="native"), expected)


HOPPER = [i for i in instructions("sm_90a") if i.sparse]


@pytest.mark.parametrize("instruction", HOPPER, ids=str)
def test_undefined_metadata_as_an_h200_reads_it(instruction: Instruction) -> None:
    floating = isinstance(instruction.format("A"), FloatFormat)
    rng = np.random.default_rng(9)
    each = ("near", "special") if floating else ("bits", "extreme")
    x = words(instruction, "sm_90a", each, rng, undefined=True) | {"undefined": "hardware"}
    for f in selectors(instruction):
        same(
            execute(instruction, **x, selector=f, engine="native"),
            execute(instruction, **x, selector=f, engine="numpy"),
        )


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


@each_sample
def test_batches_broadcast(mnemonic: str, target: str, style: str) -> None:
    """Each operand in turn without a batch, with one of 1, and of two dimensions."""
    x = words(parse(mnemonic), target, [style] * 3, np.random.default_rng(10))
    arrays = [name for name, v in x.items() if isinstance(v, np.ndarray)]
    shapes: list[Callable[[Array], Array]] = [
        lambda v: v[0], lambda v: v[:1], lambda v: v.reshape(3, 2, *v.shape[1:]), lambda v: v[:2],
        lambda v: v[:3, None],
    ]  # fmt: skip
    for name in arrays:
        for shape in shapes[:2]:
            y = x | {name: shape(x[name])}
            same(execute(mnemonic, **y, engine="native"), execute(mnemonic, **y, engine="numpy"))
    for number in range(4):
        y = x | {name: shapes[(number + place) % 5](x[name]) for place, name in enumerate(arrays)}
        y |= {name: x[name][0] for name in arrays if y[name].shape == x[name].shape}
        try:
            expected = execute(mnemonic, **y, engine="numpy")
        except ValueError:  # not all of these broadcast; one surely does
            assert number
            continue
        same(execute(mnemonic, **y, engine="native"), expected)
    one = {name: x[name][0] for name in arrays}
    same(execute(mnemonic, **x | one, engine="native"), execute(mnemonic, **x | one, engine="numpy"))


def _records(x: Array) -> Array:
    """Each warp a byte further than it should lie."""
    records = np.zeros(len(x), [("pad", "u1"), ("x", x.dtype, x.shape[1:])])
    records["x"] = x
    return records["x"]


VIEWS: list[Callable[[Array], Array]] = [
    lambda x: np.repeat(np.repeat(x, 2, axis=-1), 3, axis=0)[::3, ..., ::2],
    lambda x: np.repeat(x, 3, axis=0)[::3],
    lambda x: x[::-1].copy()[::-1],
    lambda x: x[::-1, ..., ::-1].copy()[::-1, ..., ::-1],
    np.asfortranarray,
    lambda x: x.astype(x.dtype.newbyteorder("S")),
    lambda x: np.frombuffer(b"\0" + x.tobytes(), "u1")[1:].view(x.dtype).reshape(x.shape),
    _records,
]


@each_sample
def test_registers_may_lie_anywhere(mnemonic: str, target: str, style: str) -> None:
    x = words(parse(mnemonic), target, [style] * 2, np.random.default_rng(11))
    expected = execute(mnemonic, **x, engine="numpy")
    for view in VIEWS:
        y = {name: view(v) if isinstance(v, np.ndarray) else v for name, v in x.items()}
        for warps in (slice(None), slice(1, 2)):
            cut: dict[str, Any] = {name: v[warps] if isinstance(v, np.ndarray) else v for name, v in y.items()}
            same(execute(mnemonic, **cut, engine="native"), expected[warps])


@each_sample
def test_chunks_and_threads(mnemonic: str, target: str, style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = words(parse(mnemonic), target, [style] * 7, np.random.default_rng(12))
    expected = execute(mnemonic, **x, engine="numpy")
    outputs = parse(mnemonic).layout("D").flat.size
    for chunk in (1, outputs, 3 * outputs, 5 * outputs - 1, 13 * outputs, 14 * outputs):
        monkeypatch.setattr(registers, "NATIVE_CHUNK", chunk)
        for threads in (1, 2, 3):
            same(execute(mnemonic, **x, engine="native", threads=threads), expected)
    short: dict[str, Any] = {name: v[:0] if isinstance(v, np.ndarray) else v for name, v in x.items()}
    same(execute(mnemonic, **short, engine="native"), expected[:0])


# The process around it.


def test_a_large_batch_needs_no_memory_beside_its_output() -> None:
    """Of NumPy here, and of the whole process elsewhere, where nothing else has been done."""
    i = parse("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    shapes = [i.layout(name) for name in ("A", "B", "C")]
    a, b, c = (np.zeros((1, layout.registers, LANES), np.uint32) for layout in shapes)
    e = np.broadcast_to(np.full(LANES, 0x44444444, np.uint32), (1, LANES))
    call = partial(execute, i, b=b, c=c, metadata=e, target="sm_90", engine="native")
    call(np.broadcast_to(a, (3000, *a.shape[1:])))
    tracemalloc.start()
    try:
        d = call(np.broadcast_to(a, (100_000, *a.shape[1:])))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert d.nbytes <= peak < d.nbytes + (8 << 20)


RESIDENT = """
import re, numpy as np, pathlib
from warpmma import execute
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) << 10
a, b, c = (np.zeros((1, r, 32), np.uint32) for r in (4, 2, 4))
def call(n):
    i = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    return execute(i, np.broadcast_to(a, (n, 4, 32)), b, c, target="sm_90", engine="native")
call(3000)
before = peak()
d = call(100_000)
print(peak() - before - d.nbytes)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_the_process_does_not_grow() -> None:
    done = subprocess.run([sys.executable, "-c", RESIDENT], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 8 << 20


_MXCSR = 7  # word of fenv_t: SSE control and status
_FLUSH, _UPWARD, _CONTROL = 0x8040, 0x4000, 0xFFC0


class Environment:
    """The calling thread's floating-point environment."""

    def __init__(self) -> None:
        self._libm = ctypes.CDLL(ctypes.util.find_library("m"))
        self._words = (ctypes.c_uint32 * 8)()

    def control(self) -> int:
        assert self._libm.fegetenv(self._words) == 0
        return self._words[_MXCSR] & _CONTROL

    @contextmanager
    def with_control(self, more: int) -> Iterator[None]:
        before = self.control()
        self._set(before | more)
        try:
            yield
        finally:
            self._set(before)

    def _set(self, control: int) -> None:
        assert self._libm.fegetenv(self._words) == 0
        self._words[_MXCSR] = self._words[_MXCSR] & ~_CONTROL | control
        assert self._libm.fesetenv(self._words) == 0


x86 = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="knows only glibc's fenv_t on x86-64"
)


@x86
def test_a_hostile_environment_can_be_made() -> None:
    environment = Environment()
    tiny, one = np.array([1e-40], np.float32), np.ones(1)
    with environment.with_control(_FLUSH | _UPWARD):
        flushed, raised = tiny * np.float32(1), one + 2.0**-60
    assert flushed[0] == 0 and raised[0] > 1
    assert (tiny * np.float32(1))[0] > 0 and (one + 2.0**-60)[0] == 1


@x86
@pytest.mark.parametrize("control", [_FLUSH, _UPWARD, _FLUSH | 0x2000, 0x6000])
@each_kind
def test_flushed_subnormals_and_rounding_modes_change_nothing(case: Case, control: int) -> None:
    rng, environment = np.random.default_rng(13), Environment()
    for style in ("tiny", "special", "sticky") if "tiny" in styles(case.recipe) else ("bits",):
        x = draw(case, [style], 9, 10, rng)
        expected = one_by_one(case, x)
        for level in LEVELS:
            native._plan.cache_clear()
            with only(level), environment.with_control(control):
                before = environment.control()
                got = native.product(case.recipe, k=case.k, scales=case.blocks, **x)  # type: ignore[arg-type]
                after = environment.control()
            same(got, expected)
            assert before == after and before & control == control


@x86
@each_sample
def test_threads_keep_the_environment_too(mnemonic: str, target: str, style: str) -> None:
    environment = Environment()
    tiny = "tiny" if isinstance(parse(mnemonic).format("A"), FloatFormat) else style
    x = words(parse(mnemonic), target, [style, tiny], np.random.default_rng(14))
    expected = execute(mnemonic, **x, engine="numpy")
    for threads in (1, 2):
        registers._native_registers.cache_clear()
        with environment.with_control(_FLUSH | _UPWARD):
            before = environment.control()
            got = execute(mnemonic, **x, engine="native", threads=threads)
            after = environment.control()
        same(got, expected)
        assert before == after


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_rounding_modes_do_not_leak(rounding: str) -> None:
    case = next(x for x in EVERY if x.recipe.unit == FmaChain(rounding=rounding))  # type: ignore[arg-type]
    one, half = np.ones(40), np.full(40, 2.0**-53)
    for level in LEVELS:
        check(case, draw(case, ["near"], 5, 5, np.random.default_rng(15)), [level])
        assert (one + half == 1).all() and (-one - half == -1).all() and (one + 1.5 * half > 1).all()
        assert float(one[0]) + float(half[0]) == 1 and -float(one[0]) - float(half[0]) == -1


# The command that compares at length.


def test_the_comparison_finds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare_engines.main(["--outputs", "1e5", "--seed", "3", "--threads", "2"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("114,688 outputs of ") and last.endswith(": 0 differences")


def test_the_comparison_finds_a_difference(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    product = native.product

    def flipped(*given: Any, level: str, **named: Any) -> Array:
        d = product(*given, level=level, **named)
        if level == LEVELS[-1].name:
            d[0, 0, 0] ^= 1
        return d

    monkeypatch.setattr(native, "product", flipped)
    assert compare_engines.main(["--outputs", "1", "--seed", "4"]) == 1
    out = capsys.readouterr().out
    assert f", outer, seed 4, {LEVELS[-1].name}, (0, 0, 0): native 0x" in out and out.endswith(" 2 differences\n")


def test_the_comparison_needs_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "levels", lambda: ())
    assert compare_engines.main([]) == 2


HALF_SUM = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
GROUPS = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"


@pytest.mark.parametrize(
    ("mnemonic", "target", "change"),
    [
        (HALF_SUM, "sm_90", {"fraction_bits": 26}), (HALF_SUM, "sm_90", {"products": 5}),
        (GROUPS, "sm_120a", {"fraction_bits": 36}), (GROUPS, "sm_120a", {"group": 2}),
    ],
)  # fmt: skip
def test_recipes_beyond_its_arguments_are_refused(mnemonic: str, target: str, change: dict[str, int]) -> None:
    base = recipe(parse(mnemonic), target)
    changed = replace(base, unit=replace(base.unit, **change))  # type: ignore[arg-type]
    k, scales = parse(mnemonic).k, parse(mnemonic).scales_per_row
    a, b = np.zeros((1, 1, k), np.uint8), np.zeros((1, k, 1), np.uint8)
    of_a, of_b = np.zeros((1, 1, scales), np.uint8), np.zeros((1, scales, 1), np.uint8)
    extra: dict[str, Any] = {"scale_a": of_a, "scale_b": of_b, "scales": scales} if scales else {}
    with pytest.raises(UnsupportedError, match="use engine='numpy'"):
        native.product(changed, a, b, np.zeros((1, 1, 1), np.uint32), k=k, **extra)
