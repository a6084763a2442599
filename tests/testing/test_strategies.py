"""Strategies: which values they make, that instructions take them, and what failing examples shrink to."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

import warpmma as wm
from warpmma import sparsity
from warpmma.errors import MnemonicError, OperandError, TargetError
from warpmma.formats import FORMATS, FloatFormat, Format
from warpmma.isa import Instruction, instructions
from warpmma.layouts import Operand
from warpmma.registers import LANES
from warpmma.scaling import byte_ids, thread_ids
from warpmma.testing.draws import weighted
from warpmma.testing.strategies import KINDS, Kind, fragments, matrices, operands

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SP = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"

# Some codes are in one example of a hundred, and hypothesis varies each a few times: so many that luck plays no part.
MANY = 20_000
SEARCH = settings(
    max_examples=MANY, database=None, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)


def some(examples: int) -> settings:
    return settings(
        max_examples=examples, database=None, derandomize=True, deadline=None, phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip


def least(strategy: st.SearchStrategy[Any], condition: Callable[[Any], Any]) -> Any:
    """What an example shrinks to."""
    without_explanations = settings(SEARCH, phases=[Phase.generate, Phase.shrink])
    return find(strategy, lambda x: bool(condition(x)), settings=without_explanations)


def any_of(strategy: st.SearchStrategy[Any], condition: Callable[[Any], Any], examples: int = MANY) -> Any:
    """The first example; `NoSuchExample` if there is none."""
    first = settings(SEARCH, phases=[Phase.generate], max_examples=examples)
    return find(strategy, lambda x: bool(condition(x)), settings=first)


# Values


def allowed(fmt: Format, kind: Kind) -> set[int]:
    """Codes of a kind, from what they mean; of "ties" and "special" all that could be."""
    codes = np.arange(fmt.mask + 1)
    values = fmt.decode(codes).astype(np.float64)
    size, whole = np.abs(values), values == np.round(values)
    number = np.isfinite(values)
    nears = (size <= 8) if not isinstance(fmt, FloatFormat) else (size >= 2.0**-4) & (size <= 16) | (size == 0)
    chosen = {
        "any": np.ones(codes.shape, bool),
        "finite": number,
        "near": number & nears,
        "exact": number & whole & (size <= 4),
        "ties": np.ones(codes.shape, bool),
        "special": np.ones(codes.shape, bool),
    }
    return set(codes[chosen[kind]].tolist())


NARROW = [f for f in FORMATS.values() if f.bits <= 16]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fmt", NARROW, ids=lambda f: f.name)
def test_kinds_are_what_they_say(fmt: Format, kind: Kind) -> None:
    """Every code that a kind numbers: once each, and none that it should not have, or lacks."""
    values = weighted(fmt, kind)
    numbered = values.numbered(np.arange(values.count).astype(np.uint64)).tolist()
    assert len(set(numbered)) == len(numbered) == values.count
    both = set(numbered) | set(values.listed)
    expected = allowed(fmt, kind)
    assert both <= expected
    if kind in ("any", "finite"):
        assert set(numbered) == expected
    if kind == "near":  # zeros are listed, but not numbered between 2**-4 and 2**4
        assert both == expected
    if kind == "exact":  # one zero is enough
        assert set(fmt.decode(np.array(numbered)).tolist()) == set(fmt.decode(np.array([*expected])).tolist())


@pytest.mark.parametrize("fmt", NARROW, ids=lambda f: f.name)
def test_codes_are_numbered_from_small_to_large(fmt: Format) -> None:
    values = weighted(fmt, "finite")
    size = np.abs(fmt.decode(values.numbered(np.arange(values.count).astype(np.uint64))).astype(np.float64))
    assert (np.diff(size) >= 0).all()


@pytest.mark.parametrize("name", ["f64", "f32", "tf32", "s32"])
def test_wide_codes_are_numbered_to_the_ends(name: str) -> None:
    fmt = FORMATS[name]
    values = weighted(fmt, "any")
    assert values.count == 1 << fmt.bits
    ends = values.numbered(np.array([0, 1, 2, values.count - 2, values.count - 1], np.uint64)).tolist()
    if isinstance(fmt, FloatFormat):
        assert ends == [0, fmt.sign_bit, 1, fmt.sign_bit - 1, fmt.mask]
        finite = weighted(fmt, "finite")
        last = finite.numbered(np.array([finite.count - 1], np.uint64))
        assert fmt.decode(last).tolist() == [-float(fmt.decode(np.array(fmt.max_code, fmt.code_dtype)))]
        assert not np.isfinite(fmt.decode(last + fmt.code_dtype.type(1))).any()
    else:
        assert [fmt.unpack(c) for c in ends] == [0, 1, -1, 1 - (1 << 31), -(1 << 31)]


def has(predicate: Callable[[Array], Array]) -> Callable[[Array], bool]:
    return lambda matrix: bool(predicate(matrix).any())


def bits(code: int) -> Callable[[Array], bool]:
    return lambda matrix: bool((matrix.view(np.uint16) == code).any())


@pytest.mark.parametrize("shape", [(2, 3), (16, 16)])
@pytest.mark.parametrize(
    "condition",
    [
        pytest.param(bits(0x8000), id="negative zero"),
        pytest.param(bits(0x0001), id="least subnormal"),
        pytest.param(bits(0x83FF), id="largest subnormal, negative"),
        pytest.param(bits(0x0400), id="least normal"),
        pytest.param(bits(0x7BFF), id="largest"),
        pytest.param(bits(0xFC00), id="negative infinity"),
        pytest.param(bits(0x7C01), id="signalling NaN"),
        pytest.param(bits(0x3C01), id="next to 1"),
        pytest.param(has(lambda m: np.isnan(m) & (m.view(np.uint16) & 0x3FF > 0x201)), id="NaN with a payload"),
    ],
)
def test_what_breaks_kernels_is_found(condition: Callable[[Array], bool], shape: tuple[int, int]) -> None:
    any_of(matrices("f16", shape), condition)


@given(matrices("f16", (16, 16), kind="finite"), matrices(np.float32, 5, kind="near"), matrices("e4m3", ()))
@some(100)
def test_matrices_are_of_their_kind(finite: Array, near: Array, one: Array) -> None:
    assert finite.shape == (16, 16)
    assert finite.dtype == np.float16
    assert np.isfinite(finite).all()
    assert near.shape == (5,)
    assert near.dtype == np.float32
    assert ((np.abs(near) <= 16) & ((np.abs(near) >= 1 / 16) | (near == 0))).all()
    assert one.shape == ()
    assert one.dtype == ml_dtypes.float8_e4m3fn


@given(st.data(), st.sampled_from(list(FORMATS)), st.sampled_from(KINDS))
@some(80)
def test_matrices_have_the_types_that_load_takes(data: st.DataObject, name: str, kind: Kind) -> None:
    fmt = FORMATS[name]
    matrix = data.draw(matrices(name, (3, 40), kind=kind))
    assert matrix.shape == (3, 40)
    assert matrix.dtype == fmt.dtype
    codes = fmt.codes(matrix)
    if fmt.bits <= 16:
        assert set(codes.ravel().tolist()) <= allowed(fmt, kind)


@given(matrices("bf16", st.tuples(st.integers(0, 9), st.integers(0, 9))))
@some(60)
def test_shapes_may_be_drawn(matrix: Array) -> None:
    assert matrix.dtype == ml_dtypes.bfloat16
    assert all(n <= 9 for n in matrix.shape)


def test_most_sums_are_numbers() -> None:
    """NaN is among the operands, but does not make all of every result NaN; nor are results mostly zero."""
    nan, zero, full = [], [], []

    @given(operands(F16))
    @some(120)
    def collect(given: dict[str, Any]) -> None:
        d = wm.mma(F16, **given, target="sm_90")
        nan.append(float(np.isnan(d).mean()))
        zero.append(float((d == 0).mean()))
        full.append(len(np.unique(d.view(np.uint32))))

    collect()
    assert 0.2 < np.mean(np.array(nan) > 0) < 0.8
    assert np.mean(np.array(nan) > 0.5) < 0.25
    assert np.mean(np.array(zero) > 0.5) < 0.35
    assert np.mean(np.array(full) > 40) > 0.3


# Shrinking


def test_examples_shrink_to_few_small_elements() -> None:
    one = least(matrices("f16", (16, 16)), lambda m: (m != 0).any())
    assert np.count_nonzero(one.view(np.uint16)) == 1  # all others are +0
    one = least(matrices("f16", (4, 6)), lambda m: (m != 0).any())
    assert sorted(one.view(np.uint16).ravel().tolist())[-2:] == [0, 0x3C00]  # 1, and all others +0
    assert np.count_nonzero(least(matrices("s8", (16, 32)), lambda m: m.min() < 0)) == 1
    assert (least(matrices("bf16", (4, 4)), lambda m: True) == 0).all()
    assert np.flatnonzero(least(matrices("f32", (3, 3)), lambda m: m[1, 2] > 100)).tolist() == [5]
    assert (least(matrices("ue8m0", (16, 4)), lambda m: True).view(np.uint8) == 0x7F).all()


@pytest.mark.parametrize("place", [(5, 7), (15, 12)])
def test_an_element_that_matters_is_alone(place: tuple[int, int]) -> None:
    found = least(matrices("f16", (16, 16)), lambda m: np.isnan(m[place]))
    assert np.isnan(found[place])
    rest = found.copy()
    rest[place] = 0
    assert not rest.view(np.uint16).any()


def test_operands_shrink_to_nothing() -> None:
    """The simplest example is the first that hypothesis tries."""
    given = any_of(operands(NVFP4, form="registers"), lambda x: True, 1)
    assert not any(given[name].any() for name in "abc")
    assert {given[name] for name in given if "_id_" in name} == {0}
    assert set(np.unique(given["scale_a"].view(np.uint8)).tolist()) == {0, 0x38}  # 1, and bytes that are not scales
    sparse = any_of(operands(SP), lambda x: True, 1)
    assert sparse["selector"] == 0
    assert set(sparsity.unpack_metadata(sparse["metadata"], SP).reshape(-1, 2).tolist()[0]) == {0, 1}
    assert len(np.unique(sparsity.unpack_metadata(sparse["metadata"], SP).reshape(-1, 2), axis=0)) == 1


# Fragments and operands


@given(st.data(), st.sampled_from(instructions()), st.sampled_from("ABCD"), st.sampled_from([(), 2, (2, 3)]))
@some(80)
def test_fragments_are_registers(data: st.DataObject, i: Instruction, operand: Operand, batch: Any) -> None:
    registers = data.draw(fragments(i, operand, batch))
    layout = i.layout(operand)
    lead = batch if isinstance(batch, tuple) else (batch,)
    assert registers.shape == (*lead, layout.registers, LANES)
    assert registers.dtype == layout.packing.dtype
    assert (wm.load(i, operand, wm.store(i, operand, registers)) == registers).all()  # so padding is 0


SAMPLE = instructions()[::13]


@pytest.mark.parametrize("i", SAMPLE, ids=str)
def test_instructions_take_their_operands(i: Instruction) -> None:
    """As matrices and as registers, on the oldest and the newest target that have it."""

    of_any_kind = st.sampled_from(KINDS).flatmap(lambda kind: operands(i, kind=kind))

    @given(operands(i), operands(i, form="registers", batch=2), of_any_kind)
    @some(3)
    def check(given: dict[str, Any], registers: dict[str, Any], third: dict[str, Any]) -> None:
        for target in (i.targets[0], i.targets[-1]):
            d = wm.mma(i, **given, target=target)
            assert d.shape == i.layout("D").shape
            assert d.dtype == i.format("D").dtype
            assert wm.execute(i, **registers, target=target).shape == (2, i.layout("D").registers, LANES)
            wm.mma(i, **third, target=target)

    check()


def test_there_are_sparse_and_scaled_among_them() -> None:
    assert {(i.sparse, i.block_scale) for i in SAMPLE} == {(False, False), (True, False), (False, True), (True, True)}


SPARSE = [i for i in instructions() if i.sparse][::11]


@pytest.mark.parametrize("i", SPARSE, ids=str)
def test_sparse_operands_obey_the_pattern(i: Instruction) -> None:
    """All targets take the metadata, and the dense matrix that A stands for compresses again."""

    @given(operands(i, batch=3))
    @some(5)
    def check(given: dict[str, Any]) -> None:
        sparsity.check_metadata(given["metadata"], i, selector=given["selector"])
        indices = sparsity.unpack_metadata(given["metadata"], i, selector=given["selector"])
        dense = sparsity.expand(given["a"], indices, i)
        sparsity.compress(dense, i)
        fmt = i.format("A")
        kept = np.sort(fmt.codes(given["a"])[fmt.codes(given["a"]) != 0])
        assert (np.sort(fmt.codes(dense)[fmt.codes(dense) != 0]) == kept).all()
        codes = set((indices[..., 0] | indices[..., 1] << 2).ravel().tolist())
        for target in i.targets:
            assert codes <= sparsity.legal_codes(i)
            assert codes <= sparsity.legal_codes(i, target)

    check()


def narrower(i: Instruction, target: str) -> bool:
    """Whether the target does not say what some of PTX's nibbles mean."""
    return sparsity.legal_codes(i, target) < sparsity.legal_codes(i)


def descending(i: str, given: dict[str, Any]) -> bool:
    indices = sparsity.unpack_metadata(given["metadata"], i, selector=given["selector"])
    return bool((indices[..., 0] > indices[..., 1]).any())


def test_metadata_is_such_as_the_target_takes() -> None:
    """Descending indices where the target says what they mean; ascending ones where it does not."""
    unknown = {i: t for i in instructions() if i.sparse for t in i.targets if narrower(i, t)}
    i, there = next(iter(unknown.items()))
    elsewhere = [t for t in i.targets if not narrower(i, t)]
    for target in elsewhere[:1]:
        any_of(operands(i, target=target), lambda given: descending(str(i), given))
    for known in (there, None):
        with pytest.raises(NoSuchExample):
            any_of(operands(i, target=known), lambda given: descending(str(i), given), 60)
    any_of(operands(SP), lambda given: descending(SP, given))


def _is(name: str, value: int, given: dict[str, Any]) -> bool:
    return bool(given[name] == value)


def test_every_selector_and_id_is_drawn_and_other_lanes_hold_anything() -> None:
    for selector in sparsity.selectors(SP):
        any_of(operands(SP), partial(_is, "selector", selector))
    used = sparsity.pack_metadata(np.full((16, 8, 2), 3), SP, selector=0)
    any_of(operands(SP), lambda given: given["selector"] == 0 and (given["metadata"][used == 0] == 0xFFFF_FFFF).all())
    mx = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
    for name, legal in (("byte_id_a", byte_ids(mx)), ("byte_id_b", byte_ids(mx)), ("thread_id_a", thread_ids("A")),
                        ("thread_id_b", thread_ids("B"))):  # fmt: skip
        assert len(legal) > 1
        for value in legal:
            any_of(operands(mx, form="registers"), partial(_is, name, value))


def test_scales_are_numbers_where_the_kind_is() -> None:
    mx = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
    any_of(operands(mx), lambda given: (given["scale_a"].view(np.uint8) == 0xFF).any())

    @given(operands(mx, kind="finite"))
    @some(50)
    def check(given: dict[str, Any]) -> None:
        assert (given["scale_a"].view(np.uint8) < 0xFF).all()
        assert (given["scale_b"].view(np.uint8) < 0xFF).all()

    check()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: matrices("f17", 3), OperandError, "no format 'f17'; expected one of f64"),
        (lambda: matrices(np.complex64, 3), OperandError, "no format"),
        (lambda: matrices(7, 3), OperandError, "no format 7"),  # type: ignore[arg-type]
        (lambda: matrices("f16", 3, kind="odd"), OperandError, "kind is 'odd'; expected 'any', 'finite'"),  # type: ignore[arg-type]
        (lambda: matrices("f16", -1), OperandError, "shape is -1; expected non-negative integers"),
        (lambda: matrices("f16", (2, 1.5)), OperandError, "shape is (2, 1.5)"),  # type: ignore[arg-type]
        (lambda: matrices("f16", "33"), OperandError, "shape is '33'"),  # type: ignore[arg-type]
        (lambda: fragments(F16, "E"), OperandError, "operand is 'E'"),  # type: ignore[arg-type]
        (lambda: fragments("mma.odd", "A"), MnemonicError, "mma.odd"),
        (lambda: operands(F16, form="registry"), OperandError, "form is 'registry'"),  # type: ignore[arg-type]
        (lambda: operands(F16, target="sm_70"), TargetError, "is not legal on sm_70"),
        (lambda: operands(F16, kind="odd"), OperandError, "kind is 'odd'"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_made_is_refused(call: Callable[[], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        call()


def test_strategies_are_written_briefly() -> None:
    """Hypothesis prints them in its messages."""
    assert len(repr(matrices("f64", (16, 16)))) < 300
