"""Execution: load and store, the slow loop, batches, engines, errors, evidence; sparse and scaled have files of their own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from generators import random_codes, with_exponents
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warpmma import evidence, execute, execution, load, mma, store
from warpmma.arithmetic.reference import dot
from warpmma.errors import OperandError, TargetError, UnsupportedError, WarpmmaError
from warpmma.formats import FORMATS, FloatFormat, Format
from warpmma.instructions import FAMILIES, TARGETS, Instruction, instructions, parse
from warpmma.layouts import Operand
from warpmma.registers import LANES
from warpmma.targets import recipe

Array = npt.NDArray[Any]
same = partial(np.testing.assert_array_equal, strict=True)  # shapes and dtypes too
OPERANDS: tuple[Operand, ...] = ("A", "B", "C", "D")

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
F64 = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
QUAD = "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16"
S8 = "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32"
S4 = "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32"
B1 = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"
FP8 = "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16"
FP4 = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32"
SP = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
MX = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
each_instruction = pytest.mark.parametrize("instruction", instructions(), ids=str)
SAMPLES = [(F16, "sm_80"), (F64, "sm_90"), (QUAD, "sm_75"), (S8, "sm_86"), (S4, "sm_90"), (B1, "sm_90a")]
each_sample = pytest.mark.parametrize(("mnemonic", "target"), SAMPLES)


def random_registers(mnemonic: str, operand: Operand, *batch: int, seed: int = 0) -> Array:
    """Random bits, all of which mean something."""
    layout = parse(mnemonic).layout(operand)
    shape, rng = (*batch, layout.registers, LANES), np.random.default_rng((seed, OPERANDS.index(operand)))
    return rng.integers(0, np.iinfo(layout.packing.dtype).max, shape, layout.packing.dtype, endpoint=True)


def abc(mnemonic: str, *batch: int, seed: int = 0) -> list[Array]:
    return [random_registers(mnemonic, operand, *batch, seed=seed) for operand in OPERANDS[:3]]


# Load and store.


@each_instruction
def test_load_and_store_are_inverse(instruction: Instruction) -> None:
    rng = np.random.default_rng(1)
    for operand in OPERANDS:
        fmt, layout = instruction.format(operand), instruction.layout(operand)
        codes = random_codes(fmt, (2, 3, *layout.shape), rng)
        registers = load(instruction, operand, codes)
        assert registers.dtype == (np.uint64 if fmt.bits == 64 else np.uint32)
        assert registers.shape == (2, 3, layout.registers, LANES)
        assert registers.flags.c_contiguous
        matrix = store(str(instruction), operand, registers)
        assert matrix.dtype == fmt.dtype
        same(fmt.codes(matrix), codes)
        same(load(str(instruction), operand, matrix), registers)
        same(load(instruction, operand, matrix[1, 2]), registers[1, 2])
        for at in rng.integers(0, layout.shape, (5, len(layout.shape))).tolist():
            *which, row, column = at
            lane, register, bit = layout.locate(row, column, *which)
            code = int(registers[1, 0, register, lane]) >> bit & layout.packing.mask
            assert code == codes[(1, 0, *at)]


@pytest.mark.parametrize(
    ("mnemonic", "operand", "codes"),
    [
        (F64, "A", [0x7FF0000000000001, 0xFFF8DEADBEEF0123, 0x7FFFFFFFFFFFFFFF, 1 << 63, 1]),
        (F64, "D", [0xFFF0000000000001, 0x7FF4000000000000]),
        (TF32, "A", [0x3F801FFF, 0x00001FFF, 0x7F801000, 0x7F800001, 0xFFFFFFFF]),
        (F16, "C", [0x7F800001, 0xFFC12345, 0x80000000, 1]),
        (F16, "B", [0x7C01, 0xFE0F, 0x8000, 1]),
        (FP8, "A", [0x7F, 0xFF, 0x80]),
    ],
)
def test_every_bit_of_special_values_survives(mnemonic: str, operand: Operand, codes: list[int]) -> None:
    fmt, layout = parse(mnemonic).format(operand), parse(mnemonic).layout(operand)
    given = np.resize(np.array(codes, fmt.code_dtype), layout.shape)
    same(fmt.codes(store(mnemonic, operand, load(mnemonic, operand, fmt.array(given)))), given)


@pytest.mark.parametrize(
    ("mnemonic", "operand", "matrix", "codes"),
    [
        (B1, "A", np.tile([True, False, False], (16, 86))[:, :256], np.tile([1, 0, 0], (16, 86))[:, :256]),
        (S4, "A", np.full((8, 32), -3, np.int64), np.full((8, 32), 13)),
        (S4, "A", np.full((8, 32), -3, ml_dtypes.int4), np.full((8, 32), 13)),
        (S8, "A", [[-1] * 32] * 16, np.full((16, 32), 255)),
        (S8, "C", np.full((16, 8), -2, np.int8), np.full((16, 8), 2**32 - 2)),
        (FP4, "B", np.full((32, 8), -6, ml_dtypes.float4_e2m1fn), np.full((32, 8), 15)),
        (TF32, "B", np.full((8, 8), 1.5, np.float32), np.full((8, 8), 0x3FC00000)),
    ],
)
def test_typed_arrays_mean_the_same_as_raw_codes(
    mnemonic: str, operand: Operand, matrix: Any, codes: Array
) -> None:
    raw = codes.astype(parse(mnemonic).format(operand).code_dtype)
    same(load(mnemonic, operand, matrix), load(mnemonic, operand, raw))


# Execution against a loop over the elements of matrices.


def mixed(fmt: Format, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Numbers about 1, and here and there any bits."""
    bits = random_codes(fmt, shape, rng)
    if not isinstance(fmt, FloatFormat):
        return bits
    near = with_exponents(fmt, rng.integers(-3, 4, shape), rng)
    return np.where(rng.random(shape) < 0.02, bits, near).astype(fmt.code_dtype)


def plain() -> Iterator[tuple[Instruction, str]]:
    """One instruction of each dense family, and for each of its recipes the last target that has it."""
    for family in FAMILIES:
        if family.sparsity is None and family.scales == ((None, None),):
            instruction = family.instructions()[-1]
            for target in {recipe(instruction, target): target for target in instruction.targets}.values():
                yield instruction, target


@pytest.mark.parametrize(("instruction", "target"), plain(), ids=str)
def test_execute_is_the_slow_loop(instruction: Instruction, target: str) -> None:
    rng, fmt = np.random.default_rng(2), instruction.format("D")
    a, b, c = (mixed(instruction.format(x), instruction.layout(x).shape, rng) for x in OPERANDS[:3])
    slow = np.empty(c.shape, fmt.code_dtype)
    for *which, m, n in np.ndindex(c.shape):
        row, column = a[(*which, m)].tolist(), b[(*which, slice(None), n)].tolist()
        slow[(*which, m, n)] = dot(recipe(instruction, target), row, column, int(c[(*which, m, n)]))
    given = [load(instruction, x, codes) for x, codes in zip(OPERANDS, (a, b, c), strict=False)]
    d = execute(instruction, *given, target=target)
    assert (d.dtype, d.flags.c_contiguous) == (instruction.layout("D").packing.dtype, True)
    same(fmt.codes(store(instruction, "D", d)), slow)
    typed = [instruction.format(x).array(codes) for x, codes in zip(OPERANDS, (a, b, c), strict=False)]
    matrix = mma(str(instruction), *typed, target=target)
    assert matrix.dtype == fmt.dtype
    same(fmt.codes(matrix), slow)


@each_sample
def test_without_c_it_is_plus_zero(mnemonic: str, target: str) -> None:
    record, rng = parse(mnemonic), np.random.default_rng(3)
    a, b = (mixed(record.format(x), (2, *record.layout(x).shape), rng) for x in OPERANDS[:2])
    zero = np.zeros(record.layout("C").shape, record.format("C").dtype)
    fmt = record.format("D")
    same(fmt.codes(mma(record, a, b, target=target)), fmt.codes(mma(record, a, b, zero, target=target)))


def test_four_matrices_at_once() -> None:
    a, b = (
        np.random.default_rng(4).integers(-9, 10, (3, 4, *shape)).astype("f2") for shape in ((8, 4), (4, 8))
    )
    for mnemonic in (QUAD, QUAD.replace("row.col", "col.row")):
        d = mma(mnemonic, a, b, target="sm_70")
        assert d.shape == (3, 4, 8, 8)
        same(d, a @ b)


# Batches, views, chunks, threads.


@each_sample
@pytest.mark.parametrize(
    "batches",
    [((), (), ()), ((3,), (), ()), ((), (), (2,)), ((3, 1), (4,), (1, 1)), ((2, 1, 2), (3, 1), (1,))],
    ids=str,
)
def test_leading_dimensions_broadcast(
    mnemonic: str, target: str, batches: tuple[tuple[int, ...], ...]
) -> None:
    given = [random_registers(mnemonic, x, *batch) for x, batch in zip(OPERANDS, batches, strict=False)]
    d, batch = execute(mnemonic, *given, target=target), np.broadcast_shapes(*batches)
    assert d.shape == (*batch, parse(mnemonic).layout("D").registers, LANES)
    whole = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in given]
    for warp in np.ndindex(batch):
        same(d[warp], execute(mnemonic, *(x[warp] for x in whole), target=target))


def _read_only(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


def _unaligned(x: Array) -> Array:
    return np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)


VIEWS: dict[str, Callable[[Array], Array]] = {
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "strided": lambda x: np.repeat(np.repeat(x, 2, axis=-1), 3, axis=0)[::3, ..., ::2],
    "reversed": lambda x: x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "read-only": _read_only,
    "unaligned": _unaligned,
}  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
@each_sample
def test_how_registers_lie_in_memory_does_not_matter(mnemonic: str, target: str, view: str) -> None:
    given = [VIEWS[view](x) for x in abc(mnemonic, 3)]
    before = [x.copy() for x in given]
    d = execute(mnemonic, *given, target=target)
    same(d, execute(mnemonic, *before, target=target))
    assert not any(np.shares_memory(d, x) for x in given)
    matrices = [
        VIEWS[view](store(mnemonic, x, y).reshape(3, -1, 8)) for x, y in zip(OPERANDS, given, strict=False)
    ]
    shaped = [
        y.reshape(3, *parse(mnemonic).layout(x).shape) for x, y in zip(OPERANDS, matrices, strict=False)
    ]
    fmt = parse(mnemonic).format("D")
    expected = fmt.codes(mma(mnemonic, *(x.copy() for x in shaped), target=target))
    same(fmt.codes(mma(mnemonic, *shaped, target=target)), expected)
    for x, y in zip(given, before, strict=True):
        same(x, y)


@each_sample
@pytest.mark.parametrize("threads", [None, 2])
def test_no_warps_are_no_results(mnemonic: str, target: str, threads: int | None) -> None:
    a, b, c = abc(mnemonic)
    for batches in (((0,), (), ()), ((3, 1), (0,), (1, 1)), ((), (), (2, 0, 3))):
        given = [np.broadcast_to(x, (*y, *x.shape)) for x, y in zip((a, b, c), batches, strict=True)]
        d = execute(mnemonic, *given, target=target, threads=threads)
        assert d.shape == (*np.broadcast_shapes(*batches), parse(mnemonic).layout("D").registers, LANES)


@pytest.mark.xfail(raises=ValueError, strict=True, reason="load and store reshape an empty array with -1")
@each_sample
def test_no_matrices_are_no_results(mnemonic: str, target: str) -> None:
    record = parse(mnemonic)
    a, b = (np.zeros((0, *record.layout(x).shape), record.format(x).dtype) for x in OPERANDS[:2])
    assert mma(mnemonic, a, b, target=target).shape == (0, *record.layout("D").shape)


@each_sample
def test_chunks_are_not_seen(mnemonic: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size = execution._CHUNK // parse(mnemonic).layout("D").flat.size
    given = abc(mnemonic, 2 * size + 3)
    whole = execute(mnemonic, *given, target=target)
    for first, last in ((0, size), (size - 2, size + 2), (2 * size - 1, 2 * size + 3)):
        same(whole[first:last], execute(mnemonic, *(x[first:last] for x in given), target=target))
    for threads in (2, 5):
        same(execute(mnemonic, *given, target=target, threads=threads), whole)
    few = [x[: 2 * 7].reshape(2, 7, *x.shape[1:]) for x in given]
    for chunk in (1, 3 * 128):
        monkeypatch.setattr(execution, "_CHUNK", chunk)
        same(execute(mnemonic, *few, target=target).reshape(14, *whole.shape[1:]), whole[:14])


@given(seed=st.integers(0), cuts=st.lists(st.integers(0, 9), max_size=3), sample=st.sampled_from(SAMPLES))
@settings(deadline=None, max_examples=60)
def test_how_a_batch_is_split_does_not_matter(seed: int, cuts: list[int], sample: tuple[str, str]) -> None:
    mnemonic, target = sample
    given = abc(mnemonic, 9, seed=seed)
    parts = zip(*(np.split(x, sorted(cuts)) for x in given), strict=True)
    joined = np.concatenate([execute(mnemonic, *part, target=target) for part in parts])
    same(joined, execute(mnemonic, *given, target=target, engine="numpy", threads=2))


@each_sample
def test_engines(mnemonic: str, target: str) -> None:
    given = abc(mnemonic, 3)
    same(execute(mnemonic, *given, target=target, engine="numpy"), execute(mnemonic, *given, target=target))
    with pytest.raises(
        UnsupportedError, match=r"^the native engine is not built; use engine='auto' or 'numpy'$"
    ):
        execute(mnemonic, *given, target=target, engine="native")


# Errors.

A, B, C = abc(F16)
WORDS = np.full(LANES, 0x44444444, np.uint32)
LEGAL_FP8 = "sm_89, sm_90, sm_90a, sm_100, sm_100f, sm_100a, sm_103, sm_103f, sm_103a, sm_110"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"target": "sm_91"}, TargetError, "unknown target 'sm_91'; did you mean 'sm_90'? Known are sm_70, sm_72"),
        ({"target": "SM90"}, TargetError, "unknown target 'SM90'; did you mean 'sm_"),
        ({"target": None}, TargetError, "unknown target None; did you mean"),
        ({"instruction": FP8, "target": "sm_80"}, TargetError, f"{FP8} is not legal on sm_80; legal on {LEGAL_FP8}"),
        ({"a": A[:3]}, OperandError, f"{F16}: registers of A are (3, 32); expected [..., 4, 32]"),
        ({"b": A}, OperandError, f"{F16}: registers of B are (4, 32); expected [..., 2, 32]"),
        ({"c": C[..., 1:]}, OperandError, f"{F16}: registers of C are (4, 31); expected [..., 4, 32]"),
        ({"c": C.T}, OperandError, f"{F16}: registers of C are (32, 4); expected [..., 4, 32]"),
        ({"a": A[0]}, OperandError, f"{F16}: registers of A are (32,); expected [..., 4, 32]"),
        ({"b": np.uint32(1)}, OperandError, f"{F16}: registers of B are (); expected [..., 2, 32]"),
        ({"c": C.view("f4")}, OperandError, f"{F16}: registers of C are float32; expected uint32 (use .view(np.uint32))"),
        ({"a": A.view("i4")}, OperandError, f"{F16}: registers of A are int32; expected uint32 (use .view(np.uint32))"),
        ({"a": A.astype("u8")}, OperandError, f"{F16}: registers of A are uint64; expected uint32$"),
        ({"b": B.tolist()}, OperandError, f"{F16}: registers of B are int64; expected uint32$"),
        ({"b": B.astype(object)}, OperandError, f"{F16}: registers of B are object; expected uint32$"),
        ({"a": None}, OperandError, f"{F16}: registers of A are object; expected uint32$"),
        ({"instruction": F64}, OperandError, f"{F64}: registers of A are uint32; expected uint64$"),
        ({"a": np.stack([A] * 2), "b": np.stack([B] * 3)}, OperandError,
         f"{F16}: batches do not broadcast: A (2, 4, 32), B (3, 2, 32), C (4, 32)"),
        ({"metadata": WORDS}, OperandError, f"{F16} takes no metadata"),
        ({"scale_a": WORDS}, OperandError, f"{F16} takes no scale_a"),
        ({"scale_b": WORDS}, OperandError, f"{F16} takes no scale_b"),
        ({"instruction": SP, "a": A[:2]}, OperandError, f"{SP} needs metadata"),
        ({"instruction": MX, "target": "sm_120a"}, OperandError, f"{MX} needs scale_a"),
        ({"instruction": MX, "target": "sm_120a", "scale_a": WORDS}, OperandError, f"{MX} needs scale_b"),
        ({"engine": "cuda"}, OperandError, "unknown engine 'cuda'; expected 'auto', 'numpy' or 'native'"),
        ({"threads": 0}, OperandError, "threads is 0; expected a positive integer or None"),
        ({"threads": -2}, OperandError, "threads is -2; expected a positive integer or None"),
        ({"threads": 1.5}, OperandError, "threads is 1.5; expected a positive integer or None"),
        ({"threads": "2"}, OperandError, "threads is '2'; expected a positive integer or None"),
    ],
)  # fmt: skip
def test_what_cannot_be_executed(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    whole = re.escape(message.removesuffix("$")) + "$" * message.endswith("$")
    with pytest.raises(error, match=f"^{whole}"):
        execute(**{"instruction": F16, "a": A, "b": B, "c": C, "target": "sm_90", **changes})


@pytest.mark.parametrize(
    ("mnemonic", "operand", "matrix", "message"),
    [
        (F16, "A", np.zeros((16, 8), "f2"), "A is (16, 8); expected [..., 16, 16]"),
        (F16, "B", np.zeros((8, 16), "f2"), "B is (8, 16); expected [..., 16, 8]"),
        (F16, "C", np.zeros(8, "f4"), "C is (8,); expected [..., 16, 8]"),
        (F16, "D", 0.0, "D is (); expected [..., 16, 8]"),
        (QUAD, "A", np.zeros((8, 4), "f2"), "A is (8, 4); expected [..., 4, 8, 4]"),
        (QUAD, "C", np.zeros((2, 8, 8), "f2"), "C is (2, 8, 8); expected [..., 4, 8, 8]"),
        (SP, "A", np.zeros((16, 16), "f2"), "A is (16, 16); expected [..., 16, 8]"),
        (F16, "A", np.zeros((16, 16)), "A: f16: got dtype float64; expected float16, or raw codes as uint16 (to round"),
        (F16, "A", np.zeros((16, 16), "u4"), "A: f16: got dtype uint32; expected float16, or raw codes as uint16$"),
        (F16, "C", np.zeros((16, 8), "f2"), "C: f32: got dtype float16; expected float32, or raw codes as uint32 ("),
        (F16, "B", np.zeros((16, 8), object), "B: f16: object arrays hold no bits; give float16 or uint16 codes"),
        (FP8, "A", np.zeros((16, 32), ml_dtypes.float8_e5m2), "A: e4m3: got dtype float8_e5m2; expected float8_e4m3fn"),
        (S4, "A", np.full((8, 32), 16, "u1"), "A: s4: 16 at [0, 0] does not fit; expected 0 to 15"),
        (S4, "B", np.full((32, 8), -9), "B: s4: -9 at [0, 0] does not fit; expected -8 to 7"),
        (S8, "A", np.eye(16, 32, 3, dtype=int) * 128, "A: s8: 128 at [0, 3] does not fit; expected -128 to 127"),
        (S8, "C", np.full((2, 16, 8), 2**31), "C: s32: 2147483648 at [0, 0, 0] does not fit; expected -2147483648 to"),
        (S8, "A", np.zeros((16, 32), "f4"), "A: s8: got dtype float32; expected int8, or raw codes as uint8 (to round"),
        (FP4, "B", np.full((32, 8), 16, "u1"), "B: e2m1: 16 at [0, 0] does not fit; expected 0 to 15"),
        (B1, "A", np.full((16, 256), 2, "u1"), "A: b1: 2 at [0, 0] does not fit; expected 0 to 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded(mnemonic: str, operand: Operand, matrix: Any, message: str) -> None:
    whole = re.escape(f"{mnemonic}: {message.removesuffix('$')}") + "$" * message.endswith("$")
    with pytest.raises(OperandError, match=f"^{whole}"):
        load(mnemonic, operand, matrix)


@pytest.mark.parametrize("call", [load, store])
def test_an_operand_has_a_name(call: Callable[..., Array]) -> None:
    with pytest.raises(OperandError, match=r"^no operand 'E'; expected 'A', 'B', 'C' or 'D'$"):
        call(F16, "E", C)


@pytest.mark.xfail(raises=ValueError, strict=True, reason="numpy.asarray of a ragged list is not caught")
@pytest.mark.parametrize(
    "call", [lambda x: load(F16, "A", x), lambda x: execute(F16, x, B, C, target="sm_90")]
)
def test_ragged_lists_are_refused(call: Callable[[Any], Array]) -> None:
    try:
        call([[1], [2, 3]])
    except WarpmmaError:
        return
    pytest.fail("not refused")


LEADING = st.lists(st.integers(1, 3), max_size=2).map(tuple)
DTYPES = st.sampled_from(
    ["u4", "u8", "i4", "f4", "f2", "u1", "?", "O", "c8", "U3", "M8[s]", "V4", ">u4", "bfloat16"]
)
SIZES = st.sampled_from(
    [(), (32,), (31,), (1, 32), (2, 32), (4, 32), (4, 8, 4), (16, 16), (16, 8), (0, 32), (0,)]
)
RIGHT = st.sampled_from([{}, {"instruction": SP, "a": A[:2], "metadata": WORDS},
                         {"instruction": MX, "target": "sm_120a", "scale_a": WORDS, "scale_b": WORDS}])  # fmt: skip
ANYTHING = st.one_of(
    st.builds(lambda lead, size, dtype: np.zeros((*lead, *size), dtype), LEADING, SIZES, DTYPES),
    st.builds(lambda lead, size: np.zeros((*lead, *size), "u4") + 0x44444444, LEADING, SIZES),
    st.sampled_from([None, "A", 1.0, 2**70, b"", [], {}, float, A, B, C, np.float32(0), A[None][:0]]),
)
WRONG: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("a", "b", "c", "metadata", "scale_a", "scale_b"), ANYTHING),
    **dict.fromkeys(("selector", "byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b"), st.integers(-1, 4)),
    "instruction": st.sampled_from([F16, F64, S4, B1, QUAD, SP, MX, "mma", "", None, 3]),
    "target": st.sampled_from(["sm_70", "sm_90", "sm_120a", "sm_121", "", None, 90]),
    "undefined": st.sampled_from(["hardware", "", None]),
    "engine": st.sampled_from(["numpy", "native", "", None]),
    "threads": st.sampled_from([1, 2, 0, -1, 0.5, "1"]),
}  # fmt: skip


@given(right=RIGHT, wrong=st.fixed_dictionaries({}, optional=WRONG))
@settings(deadline=None, max_examples=400)
@example(right={}, wrong={})
def test_nothing_but_our_own_errors_comes_out(right: dict[str, Any], wrong: dict[str, Any]) -> None:
    given = {"instruction": F16, "a": A, "b": B, "c": C, "target": "sm_90", **right, **wrong}
    try:
        d = execute(**given)
    except WarpmmaError as error:
        assert wrong and str(error)
    else:
        assert d.shape[-2:] == (parse(given["instruction"]).layout("D").registers, LANES)


@given(
    mnemonic=st.sampled_from([F16, F64, S4, B1, QUAD, SP, MX]),
    operand=st.sampled_from(OPERANDS),
    given=ANYTHING,
)
@settings(deadline=None, max_examples=400)
def test_load_and_store_raise_our_own_errors(mnemonic: str, operand: Operand, given: Any) -> None:
    for call, shape in ((load, parse(mnemonic).layout(operand).shape), (store, (0, LANES))):
        try:
            call(mnemonic, operand, given)  # type: ignore[operator]
        except WarpmmaError as error:
            assert str(error)
        else:
            assert np.size(given) and np.shape(given)[-len(shape) :][-1] == (shape[-1])


# Evidence.

CATALOGUE = Path(__file__).parent / "data" / "catalogue.jsonl"
UNPUBLISHED = ("sm_72", "sm_87", "sm_88", "sm_103", "sm_110", "sm_121")  # nobody measured these


@pytest.mark.parametrize("target", TARGETS)
def test_evidence_says_how_we_know(target: str) -> None:
    for instruction in instructions(target):
        found = evidence(str(instruction), target=target)
        assert found == evidence(instruction, target=target)
        assert found.kind in ("measured", "published", "derived")
        assert found.source and found.machine and "{" not in found.machine
        assert str(found).startswith(f"{found.kind}: {found.source}")
        assert (found.kind == "measured") == (target in ("sm_90", "sm_90a")) == bool(found.compared)
        assert bool(found.assumption) or found.kind != "derived"
        if isinstance(instruction.format("A"), FloatFormat):
            quad = target == "sm_75" and instruction.shape == "m8n8k4"
            assert found.kind != "published" or not (quad or target.rstrip("fa") in UNPUBLISHED)
            assert bool(found.device) == (found.kind != "derived")


def test_recipes_are_those_of_the_catalogue() -> None:
    """Every mnemonic on every target: the recipe is there exactly where ptxas has the instruction."""
    rows = map(json.loads, CATALOGUE.read_text().splitlines())
    catalogue = {(row["mnemonic"], target) for row in rows for target in row["targets"]}
    found = set()
    for mnemonic in {mnemonic for mnemonic, _ in catalogue}:
        for target in TARGETS:
            try:
                how = recipe(parse(mnemonic), target)
            except TargetError:
                continue
            assert {how.a, how.b, how.c, how.d} <= FORMATS.keys()
            found.add((mnemonic, target))
    assert found == catalogue


@pytest.mark.parametrize("target", ["sm_70", "sm_91"])
def test_there_is_no_evidence_without_an_instruction(target: str) -> None:
    with pytest.raises(TargetError, match=f"{F64} is not legal on sm_70|unknown target 'sm_91'"):
        evidence(F64, target=target)
