"""Execution of dense instructions: load and store, the slow loop, batches, errors, evidence."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from generators import random_codes, with_exponents
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warpmma import engines, evidence, execute, load, mma, store
from warpmma.arithmetic import native
from warpmma.arithmetic.engines import Engine
from warpmma.arithmetic.recipes import recipe
from warpmma.arithmetic.reference import dot
from warpmma.errors import OperandError, TargetError, UnsupportedError, WarpmmaError
from warpmma.execution import registers
from warpmma.formats import FloatFormat, Format
from warpmma.isa.mma import TARGETS, Instruction, instructions, parse
from warpmma.layouts import Operand
from warpmma.registers import LANES

Array = npt.NDArray[Any]
same = partial(np.testing.assert_array_equal, strict=True)  # shapes and dtypes too
OPERANDS: tuple[Operand, ...] = ("A", "B", "C", "D")
ABC = OPERANDS[:3]

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
SAMPLES = [(F16, "sm_80"), (F64, "sm_90"), (QUAD, "sm_75"), (S8, "sm_86"), (S4, "sm_90"), (B1, "sm_90a")]
each_sample = pytest.mark.parametrize(("mnemonic", "target"), SAMPLES)


def registers_of(mnemonic: str, operand: Operand, *batch: int, seed: int = 0) -> Array:
    """Random bits, all of which mean something."""
    layout, rng = parse(mnemonic).layout(operand), np.random.default_rng([seed, ord(operand)])
    bits = rng.integers(0, 1 << 32, (*batch, layout.registers, 2 * LANES), np.uint32)
    return bits.view(np.uint64) if layout.packing.width == 64 else bits[..., :LANES].copy()


def abc(mnemonic: str, *batch: int, seed: int = 0) -> list[Array]:
    return [registers_of(mnemonic, operand, *batch, seed=seed) for operand in ABC]


# Load and store.


@pytest.mark.parametrize("instruction", instructions(), ids=str)
def test_load_and_store_are_inverse(instruction: Instruction) -> None:
    rng = np.random.default_rng(1)
    for operand in OPERANDS:
        fmt, layout = instruction.format(operand), instruction.layout(operand)
        codes = random_codes(fmt, (2, 3, *layout.shape), rng)
        registers = load(instruction, operand, codes)
        assert registers.dtype == (np.uint64 if fmt.bits == 64 else np.uint32)
        assert registers.shape == (2, 3, layout.registers, LANES) and registers.flags.c_contiguous
        matrix = store(str(instruction), operand, registers)
        assert matrix.dtype == fmt.dtype
        same(fmt.codes(matrix), codes)
        same(load(str(instruction), operand, matrix), registers)
        same(load(instruction, operand, matrix[1, 2]), registers[1, 2])
        for *which, row, column in rng.integers(0, layout.shape, (5, len(layout.shape))).tolist():
            lane, register, bit = layout.locate(row, column, *which)
            code = int(registers[1, 0, register, lane]) >> bit & layout.packing.mask
            assert code == codes[(1, 0, *which, row, column)]


@pytest.mark.parametrize(
    ("mnemonic", "operand", "codes"),
    [
        (F64, "A", [0x7FF0000000000001, 0xFFF8DEADBEEF0123, 0x7FFFFFFFFFFFFFFF, 1 << 63, 1]),
        (F64, "D", [0xFFF0000000000001, 0x7FF4000000000000]),
        (TF32, "A", [0x3F801FFF, 0x00001FFF, 0x7F801000, 0x7F800001, 0xFFFFFFFF]),
        (F16, "C", [0x7F800001, 0xFFC12345, 1 << 31, 1]), (F16, "B", [0x7C01, 0xFE0F, 0x8000, 1]),
    ],
)  # fmt: skip
def test_every_bit_of_special_values_survives(mnemonic: str, operand: Operand, codes: list[int]) -> None:
    fmt, layout = parse(mnemonic).format(operand), parse(mnemonic).layout(operand)
    given = np.resize(np.array(codes, fmt.code_dtype), layout.shape)
    same(fmt.codes(store(mnemonic, operand, load(mnemonic, operand, fmt.array(given)))), given)


@pytest.mark.parametrize(
    ("mnemonic", "operand", "value", "dtype", "code"),
    [
        (B1, "A", True, "?", 1), (B1, "B", 1, "i8", 1), (S4, "A", -3, "i8", 13), (S4, "B", -3, "int4", 13),
        (S8, "A", -1, "i1", 255), (S8, "C", -2, "i2", 2**32 - 2), (TF32, "B", 1.5, "f4", 0x3FC00000),
        (FP4, "B", -6, "float4_e2m1fn", 15),
    ],
)  # fmt: skip
def test_typed_arrays(mnemonic: str, operand: Operand, value: Any, dtype: str, code: int) -> None:
    record, to = parse(mnemonic), np.dtype(getattr(ml_dtypes, dtype, dtype))
    some = np.random.default_rng(2).random(record.layout(operand).shape) < 0.5
    raw = np.where(some, code, 0).astype(record.format(operand).code_dtype)
    same(load(mnemonic, operand, np.where(some, value, 0).astype(to)), load(mnemonic, operand, raw))


# Execution against a loop over the elements of matrices.


def mixed(fmt: Format, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Codes of numbers about 1, and here and there any bits; of integers any."""
    bits = random_codes(fmt, shape, rng)
    if not isinstance(fmt, FloatFormat):
        return bits
    near = with_exponents(fmt, rng.integers(-3, 4, shape), rng)
    return np.where(rng.random(shape) < 0.02, bits, near).astype(fmt.code_dtype)


# One instruction of each family, and for each of its recipes the last target that has it.
PLAIN = {i.family: i for i in instructions() if not i.sparse and not i.block_scale}
RECIPES = [(i, t) for i in PLAIN.values() for t in {recipe(i, t): t for t in i.targets}.values()]


@pytest.mark.parametrize(("instruction", "target"), RECIPES, ids=str)
def test_execute_is_the_slow_loop(instruction: Instruction, target: str) -> None:
    rng, how, fmt = np.random.default_rng(2), recipe(instruction, target), instruction.format("D")
    codes = [mixed(instruction.format(x), instruction.layout(x).shape, rng) for x in ABC]
    a, b, c = codes
    slow = np.empty(c.shape, fmt.code_dtype)
    for *which, m, n in np.ndindex(c.shape):
        row, column = a[(*which, m)].tolist(), b[(*which, slice(None), n)].tolist()
        slow[(*which, m, n)] = dot(how, row, column, int(c[(*which, m, n)]))
    registers = [load(instruction, x, matrix) for x, matrix in zip(ABC, codes, strict=True)]
    d = execute(instruction, *registers, target=target)
    assert d.dtype == instruction.layout("D").packing.dtype and d.flags.c_contiguous
    same(fmt.codes(store(instruction, "D", d)), slow)
    typed = [instruction.format(x).array(matrix) for x, matrix in zip(ABC, codes, strict=True)]
    same(mma(str(instruction), *typed, target=target).view(fmt.code_dtype), slow)


@each_sample
def test_without_c_it_is_plus_zero(mnemonic: str, target: str) -> None:
    record, codes = parse(mnemonic), parse(mnemonic).format("D").codes
    a, b, c = (store(mnemonic, x, y) for x, y in zip(ABC, abc(mnemonic, 2), strict=True))
    zero = np.zeros(record.layout("C").shape, c.dtype)
    same(codes(mma(record, a, b, target=target)), codes(mma(record, a, b, zero, target=target)))
    assert not np.signbit(mma(F64, np.full((8, 4), -0.0), np.ones((4, 8)), target="sm_90")).any()


def test_four_matrices_at_once() -> None:
    a, b = np.random.default_rng(4).integers(-9, 10, (2, 3, 4, 8, 4)).astype(np.float16)
    b = b.swapaxes(-1, -2)
    for mnemonic in (QUAD, QUAD.replace("row.col", "col.row")):
        same(mma(mnemonic, a, b, target="sm_70"), a @ b)


# Batches, views, chunks, threads.


BATCHES = [((), (), ()), ((3,), (), ()), ((), (), (2,)), ((3, 1), (4,), (1, 1)), ((2, 1, 2), (3, 1), (1,))]


@each_sample
@pytest.mark.parametrize("batches", BATCHES)
def test_leading_dimensions_broadcast(mnemonic: str, target: str, batches: Any) -> None:
    given = [registers_of(mnemonic, x, *batch) for x, batch in zip(ABC, batches, strict=True)]
    d, batch = execute(mnemonic, *given, target=target), np.broadcast_shapes(*batches)
    assert d.shape == (*batch, parse(mnemonic).layout("D").registers, LANES)
    whole = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in given]
    for warp in np.ndindex(batch):
        same(d[warp], execute(mnemonic, *(x[warp] for x in whole), target=target))


VIEWS: dict[str, Callable[[Array], Array]] = {
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "strided": lambda x: np.repeat(np.repeat(x, 2, axis=-1), 3, axis=0)[::3, ..., ::2],
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder("S")),
    "reversed": lambda x: x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1],
    "read-only": lambda x: np.broadcast_to(x, x.shape),
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), "u1")[1:].view(x.dtype).reshape(x.shape),
}


@pytest.mark.parametrize("view", VIEWS)
@each_sample
def test_how_operands_lie_in_memory_does_not_matter(mnemonic: str, target: str, view: str) -> None:
    plain, codes = abc(mnemonic, 3), parse(mnemonic).format("D").codes
    viewed = [VIEWS[view](x) for x in plain]
    d = execute(mnemonic, *plain, target=target)
    same(execute(mnemonic, *viewed, target=target), d)
    matrices = [store(mnemonic, x, y) for x, y in zip(ABC, plain, strict=True)]
    same(codes(mma(mnemonic, *map(VIEWS[view], matrices), target=target)), codes(store(mnemonic, "D", d)))
    for x, y, z in zip(plain, viewed, abc(mnemonic, 3), strict=True):
        assert not (y.flags.carray and y.dtype.isnative)
        same([x, y], [z, z])  # nothing was written


@each_sample
def test_no_warps_are_no_results(mnemonic: str, target: str) -> None:
    for batches in (((0,), (), ()), ((3, 1), (0,), (1, 1)), ((), (), (2, 0, 3))):
        given = [registers_of(mnemonic, x, *batch) for x, batch in zip(ABC, batches, strict=True)]
        d = execute(mnemonic, *given, target=target, threads=len(batches[0]) or None)
        assert d.shape == (*np.broadcast_shapes(*batches), parse(mnemonic).layout("D").registers, LANES)


@each_sample
def test_no_matrices_are_no_results(mnemonic: str, target: str) -> None:
    record = parse(mnemonic)
    a, b = (np.zeros((0, *record.layout(x).shape), record.format(x).dtype) for x in ABC[:2])
    assert mma(mnemonic, a, b, target=target).shape == (0, *record.layout("D").shape)


@pytest.mark.parametrize("engine", engines())
@each_sample
def test_chunks_and_threads_are_not_seen(
    mnemonic: str, target: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = {"numpy": "CHUNK", "native": "NATIVE_CHUNK"}[engine]
    size = getattr(registers, name) // parse(mnemonic).layout("D").flat.size
    given = abc(mnemonic, 2 * size + 3)
    call = partial(execute, mnemonic, target=target, engine=engine)
    whole = call(*given)
    for first, last in ((0, size), (size - 2, size + 2), (2 * size - 1, 2 * size + 3)):
        same(whole[first:last], call(*(x[first:last] for x in given)))
    for threads in (1, 2, 5):
        same(call(*given, threads=threads), whole)
    few = [x[:14].reshape(2, 7, *x.shape[1:]) for x in given]
    for chunk in (1, 3 * 128):
        monkeypatch.setattr(registers, name, chunk)
        same(call(*few).reshape(14, *whole.shape[1:]), whole[:14])


ENGINES: list[Engine] = ["auto", "numpy", *(["native"] if native.levels() else [])]  # type: ignore[list-item]


@given(
    seed=st.integers(0), cuts=st.lists(st.integers(0, 9), max_size=3), sample=st.sampled_from(SAMPLES),
    which=st.tuples(st.sampled_from(ENGINES), st.sampled_from(ENGINES)),
)  # fmt: skip
@settings(deadline=None, max_examples=80)
def test_how_a_batch_is_split_does_not_matter(
    seed: int, cuts: list[int], sample: tuple[str, str], which: tuple[Engine, Engine]
) -> None:
    mnemonic, target = sample
    given = abc(mnemonic, 9, seed=seed)
    parts = zip(*(np.split(x, sorted(cuts)) for x in given), strict=True)
    joined = np.concatenate([execute(mnemonic, *part, target=target, engine=which[0]) for part in parts])
    same(joined, execute(mnemonic, *given, target=target, engine=which[1], threads=2))


# Engines.


def test_the_engines_that_there_are() -> None:
    assert list(engines()) == [*(["native"] if native.levels() else []), "numpy"]
    assert engines()["numpy"] == f"NumPy {np.__version__}"
    assert not native.levels() or engines()["native"] == f"C++, {native.levels()[0].name}"


UNBUILT = "the native engine is not built: warpmma was installed without a C++ compiler; use engine='auto' or 'numpy'"


@each_sample
def test_without_the_native_engine(mnemonic: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = abc(mnemonic, 3)
    d = execute(mnemonic, *given, target=target)
    monkeypatch.setattr(native, "levels", lambda: ())
    monkeypatch.setattr(native, "_native", None)  # whatever calls into it all the same does not get far
    assert list(engines()) == ["numpy"]
    for engine in ("auto", "numpy"):
        same(execute(mnemonic, *given, target=target, engine=engine), d)
    with pytest.raises(UnsupportedError, match=exactly(UNBUILT)):
        execute(mnemonic, *given, target=target, engine="native")


def test_the_package_is_whole_without_the_native_engine() -> None:
    """As where no compiler could build it."""
    program = "import sys; sys.modules['warpmma._native'] = None; import warpmma as wm; print(*wm.engines())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("numpy\n", "")


# Errors: ~ stands for the rest of a message.

(A, B, C), WORDS = abc(F16), np.full(LANES, 0x44444444, np.uint32)
SCALED = {"instruction": MX, "target": "sm_120a"}
HINT = "expected uint32 (use .view(np.uint32))"
MISFIT = {"a": np.array([A, A]), "b": np.array([B, B, B])}


def exactly(message: str) -> str:
    return f"^{re.escape(message)}$".replace(r"\~", ".*")


@pytest.mark.parametrize(
    ("error", "changes", "message"),
    [
        (TargetError, {"target": "sm_91"}, "unknown target 'sm_91'; did you mean 'sm_90'? Known are sm_7~"),
        (TargetError, {"target": None}, "a target is a string such as 'sm_90'; got None"),
        (TargetError, {"instruction": FP8}, f"{FP8} is not legal on sm_80; legal on sm_89, sm_90, sm_90a, ~"),
        (OperandError, {"a": A[:3]}, f"{F16}: registers of A are (3, 32); expected [..., 4, 32]"),
        (OperandError, {"c": C[:, 1:]}, f"{F16}: registers of C are (4, 31); expected [..., 4, 32]"),
        (OperandError, {"c": C.view("f4")}, f"{F16}: registers of C are float32; {HINT}"),
        (OperandError, {"b": B.tolist()}, f"{F16}: registers of B are int64; expected uint32"),
        (OperandError, {"b": [[1], [2, 3]]}, f"{F16}: registers of B: no array: ~"),
        (OperandError, MISFIT, f"{F16}: batches do not broadcast: A (2, 4, 32), B (3, 2, 32), C (4, 32)"),
        (OperandError, {"metadata": WORDS}, f"{F16} takes no metadata"),
        (OperandError, {"scale_a": WORDS}, f"{F16} takes no scale_a"),
        (OperandError, {"selector": 1}, f"{F16} is dense: it takes no selector; got 1"),
        (OperandError, {"byte_id_b": 2}, f"{F16} is not block-scaled: it takes no byte-id and thread-id; ~"),
        (OperandError, {"instruction": SP, "a": A[:2]}, f"{SP} needs metadata"),
        (OperandError, {**SCALED, "scale_a": WORDS}, f"{MX} needs scale_b"),
        (OperandError, {"engine": "cuda"}, "engine is 'cuda'; expected 'auto', 'numpy' or 'native'"),
        (OperandError, {"threads": 0}, "threads is 0; expected a positive integer or None"),
        (OperandError, {"threads": 1.0}, "threads is 1.0; expected a positive integer or None"),
    ],
)  # fmt: skip
def test_what_cannot_be_executed(error: type[WarpmmaError], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(error, match=exactly(message)):
        execute(**{"instruction": F16, "a": A, "b": B, "c": C, "target": "sm_80", **changes})


def zeros(*shape: int, dtype: str = "f2") -> Array:
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("mnemonic", "operand", "matrix", "message"),
    [
        (F16, "A", zeros(16, 8), "A is (16, 8); expected [..., 16, 16]"),
        (F16, "B", zeros(2, 8, 16), "B is (2, 8, 16); expected [..., 16, 8]"),
        (F16, "C", zeros(8), "C is (8,); expected [..., 16, 8]"), (F16, "D", 0.0, "D is (); expected ~"),
        (F16, "A", [[1], [2, 3]], "A: no array: ~"),
        (QUAD, "A", zeros(8, 4), "A is (8, 4); expected [..., 4, 8, 4]"),
        (SP, "A", zeros(16, 16), "A is (16, 16); expected [..., 16, 8]"),
        (F16, "A", zeros(16, 16, dtype="f8"), "A: f16: got dtype float64; expected float16, or raw codes ~"),
        (F16, "B", zeros(16, 8, dtype="u4"), "B: f16: got dtype uint32; expected float16, or raw codes as ~"),
        (F16, "C", zeros(16, 8), "C: f32: got dtype float16; expected float32, or raw codes as uint32 (to ~"),
        (F16, "B", zeros(16, 8, dtype="O"), "B: f16: object arrays hold no bits; give float16 or ~"),
        (FP8, "B", zeros(32, 8, dtype="int4"), "B: e5m2: got dtype int4; expected float8_e5m2, or raw ~"),
        (S4, "A", zeros(8, 32, dtype="u1") + 16, "A: s4: 16 at [0, 0] does not fit; expected 0 to 15"),
        (S4, "B", zeros(32, 8, dtype="i1") - 9, "B: s4: -9 at [0, 0] does not fit; expected -8 to 7"),
        (S8, "A", np.eye(16, 32, 3, "i8") << 7, "A: s8: 128 at [0, 3] does not fit; expected -128 to 127"),
        (S8, "C", zeros(1, 16, 8, dtype="i8") + 2**31, "C: s32: 2147483648 at [0, 0, 0] does not fit; ~"),
        (S8, "A", zeros(16, 32), "A: s8: got dtype float16; expected int8, or raw codes as uint8 (to ~"),
        (FP4, "B", zeros(32, 8, dtype="u1") + 16, "B: e2m1: 16 at [0, 0] does not fit; expected 0 to 15"),
        (B1, "A", zeros(16, 256, dtype="u1") + 2, "A: b1: 2 at [0, 0] does not fit; expected 0 to 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded(mnemonic: str, operand: Operand, matrix: Any, message: str) -> None:
    with pytest.raises(OperandError, match=exactly(f"{mnemonic}: {message}")):
        load(mnemonic, operand, matrix)


DTYPES = st.sampled_from(["u4", "u8", "i4", "f4", "f2", "u1", "?", "O", "c8", "U3", "M8[s]", "V4", ">u4"])
SIZES = st.sampled_from([(), (32,), (31,), (1, 32), (2, 32), (4, 32), (4, 8, 4), (16, 16), (16, 8), (0, 32)])
LEADING = st.sampled_from([(), (1,), (2,), (3, 1)])
ANYTHING: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda lead, size, dtype: np.zeros((*lead, *size), dtype), LEADING, SIZES, DTYPES),
    st.builds(lambda lead, size: np.full((*lead, *size), 0x44444444, np.uint32), LEADING, SIZES),
    st.sampled_from([None, "A", 1.0, 2**70, b"", [], {}, float, A, B, C, np.float32(0)]),
)
RIGHT: list[dict[str, Any]] = [
    {"instruction": F16, "a": A, "b": B, "c": C, "target": "sm_90"},
    {"instruction": SP, "a": A[:2], "b": B, "c": C, "metadata": WORDS, "target": "sm_90"},
    {"instruction": MX, "a": A, "b": B, "c": C, "scale_a": WORDS, "scale_b": WORDS, "target": "sm_120a"},
]
WRONG: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("a", "b", "c", "metadata", "scale_a", "scale_b"), ANYTHING | st.just(A[:0])),
    **dict.fromkeys(("selector", "byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b"), st.integers(-1, 4)),
    "instruction": st.sampled_from([F16, F64, S4, B1, QUAD, SP, MX, "mma", "", None, 3]),
    "target": st.sampled_from(["sm_70", "sm_90", "sm_120a", "sm_121", "", None, 90]),
    "undefined": st.sampled_from(["hardware", "", None]),
    "engine": st.sampled_from(["auto", "numpy", "native", "", None]),
    "threads": st.sampled_from([1, 2, 0, -1, 0.5, "1"]),
}


@given(right=st.sampled_from(RIGHT), wrong=st.fixed_dictionaries({}, optional=WRONG))
@settings(deadline=None, max_examples=500)
@example(right=RIGHT[1], wrong={"c": A[:0], "threads": 2})
def test_nothing_but_our_own_errors_comes_out(right: dict[str, Any], wrong: dict[str, Any]) -> None:
    try:
        d = execute(**{**right, **wrong})
    except WarpmmaError as error:
        assert wrong and str(error)
    else:
        assert d.shape[-1] == LANES


@given(st.sampled_from([F16, F64, S4, B1, QUAD, SP, MX]), st.sampled_from("ABCDE"), ANYTHING)
@settings(deadline=None, max_examples=400)
def test_load_and_store_raise_our_own_errors(mnemonic: str, operand: Operand, x: Any) -> None:
    for call in (load, store):
        try:
            assert call(mnemonic, operand, x).ndim >= 2
        except WarpmmaError as error:
            assert str(error)


@pytest.mark.parametrize("changes", [{"target": ["sm_90"]}, {"a": A.reshape(*[1] * 40, 4, 32)}])
def test_odd_arguments(changes: dict[str, Any]) -> None:
    with pytest.raises(WarpmmaError):
        execute(**{**RIGHT[0], **changes})


# Evidence.

ROWS = (Path(__file__).parents[1] / "data" / "catalogue.jsonl").read_text()
CATALOGUE = [json.loads(row) for row in ROWS.splitlines()]
UNPUBLISHED = ("sm_72", "sm_87", "sm_88", "sm_103", "sm_110", "sm_121")  # nobody measured these


@pytest.mark.parametrize("target", TARGETS)
def test_evidence_says_how_we_know(target: str) -> None:
    for instruction in instructions(target):
        found = evidence(str(instruction), target=target)
        assert found.kind in ("measured", "published", "derived")
        assert found.source and found.machine and "{" not in found.machine
        assert str(found).startswith(f"{found.kind}: {found.source}")
        assert (found.kind == "measured") == (target in ("sm_90", "sm_90a")) == bool(found.compared)
        assert found.assumption or found.kind != "derived"
        if isinstance(instruction.format("A"), FloatFormat):
            quad = target == "sm_75" and instruction.shape == "m8n8k4"
            assert found.kind != "published" or not (quad or target.rstrip("fa") in UNPUBLISHED)


@pytest.mark.parametrize("row", CATALOGUE, ids=itemgetter("mnemonic"))
def test_a_recipe_is_where_ptxas_has_the_instruction(row: dict[str, Any]) -> None:
    instruction = parse(row["mnemonic"])
    assert {recipe(instruction, target).d for target in row["targets"]} == {instruction.d_type}
    for target in set(TARGETS) - set(row["targets"]):
        for call in (recipe, lambda i, t: evidence(i, target=t)):
            with pytest.raises(TargetError, match=f"is not legal on {target}; legal on "):
                call(instruction, target)
