"""Execution of block-scaled instructions, and of the 4-, 6- and 8-bit floating-point types."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array, Rng, same
from messages import exactly

from lab.generators import by_reference, random_codes, with_exponents
from warpmma import execute, load, mma
from warpmma import sparsity as sp
from warpmma.arithmetic.recipes.lowerings import recipe
from warpmma.errors import OperandError, ScaleError, WarpmmaError
from warpmma.formats import FORMATS, FloatFormat
from warpmma.isa import Instruction, instructions, parse
from warpmma.layouts import Operand
from warpmma.registers import LANES
from warpmma.scaling import block_size, byte_ids, quantize, thread_ids

ABC: tuple[Operand, ...] = ("A", "B", "C")
TARGET = "sm_120a"

SCALED = [i for i in instructions() if i.block_scale]
KINDS = list({(i.kind, i.scale_vec, i.stype, i.sparsity): i for i in SCALED}.values())
PADDED = [i for i in instructions() if any(8 == i.packing(x).slot > i.packing(x).bits for x in ABC[:2])]
each_instruction = pytest.mark.parametrize("instruction", SCALED, ids=str)
each_kind = pytest.mark.parametrize("instruction", KINDS, ids=str)


def numbers(instruction: Instruction, operand: Operand, warps: int, rng: Rng) -> Array:
    """Codes of finite numbers about 1; of a sparse A those of its stored elements."""
    fmt = instruction.format(operand)
    assert isinstance(fmt, FloatFormat)
    shape = (warps, *instruction.layout(operand).shape)
    return with_exponents(fmt, rng.integers(-3, 4, shape), rng).astype(fmt.code_dtype)


def scales(instruction: Instruction, warps: int, rng: Rng) -> tuple[Array, Array]:
    """Codes of scales of A, `[warp, m, S]`, and of B, `[warp, S, n]`: about 1, or any but NaN."""
    low, high = (120, 135) if instruction.stype == "ue8m0" else (0, 0x7F)
    s = instruction.scales_per_row
    a, b = (rng.integers(low, high, shape, np.uint8) for shape in ((warps, 16, s), (warps, s, 8)))
    return a, b


def placed(stype: str, operand: Operand, codes: Array, byte_id: int, thread_id: int, rng: Rng) -> Array:
    """Words of one warp with scales where PTX ISA 9.1, 9.7.14.3 wants them, and garbage in all other bytes.

    A ue4m3 has seven bits: the eighth is garbage too.
    """
    octets = rng.integers(0, 256, (LANES, 4), np.uint8)
    lines = codes if operand == "A" else codes.T
    index, block = np.indices(lines.shape)
    lane = 4 * (index % 8) + 2 * thread_id + index // 8 if operand == "A" else 4 * index + thread_id
    top = rng.integers(0, 2, lines.shape, np.uint8) << 7 if stype == "ue4m3" else 0
    octets[lane, byte_id + block] = lines | top
    return octets.view("<u4")[:, 0].astype(np.uint32)


def metadata(instruction: Instruction, rng: Rng, *batch: int) -> dict[str, Any]:
    """Legal metadata of a sparse instruction, nothing for a dense one."""
    if not instruction.sparse:
        return {}
    nibbles = rng.choice(np.array(sorted(sp.legal_codes(instruction)), np.uint32), (*batch, LANES, 8))
    return {"metadata": np.bitwise_or.reduce(nibbles << np.arange(0, 32, 4, dtype=np.uint32), axis=-1)}


def drawn(instruction: Instruction, warps: int, rng: Rng) -> tuple[list[Array], dict[str, Any]]:
    """Codes of A, B and C, and by name scales and metadata."""
    (scale_a, scale_b), extra = scales(instruction, warps, rng), metadata(instruction, rng, warps)
    return [numbers(instruction, x, warps, rng) for x in ABC], {"scale_a": scale_a, "scale_b": scale_b, **extra}


def check_slowly(i: Instruction, d: Array, codes: list[Array], more: dict[str, Any], rng: Rng) -> None:
    """Compare a few elements of D with the reference."""
    (a, b, c), (w, m, n) = codes, rng.integers(0, d.shape, (10, 3)).T
    columns = np.tile(np.arange(i.k), (len(d), 16, 1))
    if i.sparse:
        columns = sp.positions(more["metadata"], i)
    x, y, scale_a, scale_b = (a[w, m].T, b[w, columns[w, m].T, n], more["scale_a"][w, m].T, more["scale_b"][w, :, n].T)
    slow = by_reference(recipe(i, TARGET), a=x, b=y, c=c[w, m, n], scale_a=scale_a, scale_b=scale_b)
    same(d[w, m, n].view(np.uint32), slow.astype(np.uint32))


# Scales in their places.


@each_instruction
def test_every_byte_id_and_thread_id(instruction: Instruction) -> None:
    """All combinations of them; of a second spelling of an instruction, each of A and each of B."""
    rng = np.random.default_rng(1)
    codes, more = drawn(instruction, 1, rng)
    registers = [load(instruction, x, matrix) for x, matrix in zip(ABC, codes, strict=True)]
    matrix = mma(instruction, *codes, target=TARGET, **more)
    check_slowly(instruction, matrix, codes, more, rng)
    d = load(instruction, "D", matrix)
    of_a, of_b = (list(product(byte_ids(instruction), thread_ids(x))) for x in ABC[:2])
    stype, some = str(instruction.stype), zip(of_a * 2, of_b, strict=True)  # B has twice as many thread-ids
    for a, b in product(of_a, of_b) if instruction == instruction.canonical else some:
        words = {"scale_a": placed(stype, "A", more["scale_a"][0], *a, rng)}
        words["scale_b"] = placed(stype, "B", more["scale_b"][0], *b, rng)
        ids = {"byte_id_a": a[0], "thread_id_a": a[1], "byte_id_b": b[0], "thread_id_b": b[1]}
        same(execute(instruction, *registers, target=TARGET, **{**more, **words, **ids}), d)


@each_instruction
def test_mma_is_the_slow_loop(instruction: Instruction) -> None:
    rng = np.random.default_rng(2)
    codes, more = drawn(instruction, 3, rng)
    d = mma(instruction, *codes, target=TARGET, **more)
    check_slowly(instruction, d, codes, more, rng)
    dtype = {"ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}[instruction.stype or ""]
    typed = {name: more[name].view(dtype) for name in ("scale_a", "scale_b")}
    same(mma(instruction, *codes, target=TARGET, threads=2, **{**more, **typed}), d)


@each_instruction
def test_a_scale_that_is_nan(instruction: Instruction) -> None:
    """It makes its row of D, or its column, NaN, and nothing else."""
    rng, nan = np.random.default_rng(3), {"ue8m0": 0xFF, "ue4m3": 0x7F}[instruction.stype or ""]
    codes, more = drawn(instruction, 1, rng)
    call = partial(mma, instruction, *codes, target=TARGET)
    expected = call(**more).view(np.uint32)
    assert np.isfinite(expected.view(np.float32)).all()
    for block in range(instruction.scales_per_row):
        m, n = rng.integers(0, (16, 8))
        bad_a, bad_b = more["scale_a"].copy(), more["scale_b"].copy()
        bad_a[0, m, block] = bad_b[0, block, n] = nan
        row, column = expected.copy(), expected.copy()
        row[0, m] = column[0, :, n] = 0x7FFFFFFF
        same(call(**{**more, "scale_a": bad_a}).view(np.uint32), row)
        same(call(**{**more, "scale_b": bad_b}).view(np.uint32), column)


@pytest.mark.parametrize("instruction", [i for i in SCALED if i.stype == "ue4m3"], ids=str)
def test_a_scale_that_is_zero(instruction: Instruction) -> None:
    """It is as good as a block of zeros."""
    rng, each = np.random.default_rng(4), block_size(instruction) // (2 if instruction.sparse else 1)
    (a, b, c), more = drawn(instruction, 16, rng)
    zero = rng.random(more["scale_a"].shape) < 0.5
    blocks = np.where(np.repeat(zero, each, axis=2), 0, a).astype(np.uint8)
    gone = {**more, "scale_a": np.where(zero, 0, more["scale_a"]).astype(np.uint8)}
    same(mma(instruction, a, b, c, target=TARGET, **gone), mma(instruction, blocks, b, c, target=TARGET, **more))


@each_kind
def test_batches(instruction: Instruction) -> None:
    rng = np.random.default_rng(5)
    a, b, c = (load(instruction, x, numbers(instruction, x, 4, rng)) for x in ABC)
    sa, sb = rng.integers(0x70707070, 0x7F7F7F7F, (2, 4, LANES), np.uint32) & np.uint32(0x7E7E7E7E)
    call: Callable[..., Array] = partial(execute, instruction, target=TARGET, **metadata(instruction, rng))
    d = call(a[:2, None], b[0], c, scale_a=sa[:3, None, None], scale_b=sb)
    assert d.shape == (3, 2, 4, 4, LANES)
    for i, j, k in np.ndindex(3, 2, 4):
        same(d[i, j, k], call(a[j], b[0], c[k], scale_a=sa[i], scale_b=sb[k]))
    assert call(a[:0], b[0], c[0], scale_a=sa[0], scale_b=sb[0]).shape == (0, 4, LANES)


@pytest.mark.parametrize("instruction", PADDED, ids=str)
def test_padding_of_containers_is_ignored(instruction: Instruction) -> None:
    rng = np.random.default_rng(6)
    extra = metadata(instruction, rng, 2)
    if instruction.block_scale:
        extra |= {x: rng.integers(0, 1 << 32, (2, LANES), np.uint32) for x in ("scale_a", "scale_b")}
    call = partial(execute, instruction, target=TARGET, **extra)
    clean: list[Array] = []
    dirty: list[Array] = []
    for x in ABC:
        packing = instruction.packing(x)
        codes = random_codes(instruction.format(x), (2, *instruction.layout(x).shape), rng)
        clean.append(load(instruction, x, codes))
        used = packing.pack(np.full(packing.per_register, packing.mask))
        assert int(used) == {4: 0x3C3C3C3C, 6: 0x3F3F3F3F}.get(packing.bits, 0xFFFFFFFF)
        dirty.append(clean[-1] | rng.integers(0, 1 << 32, clean[-1].shape, np.uint32) & ~used)
    assert any((x != y).any() for x, y in zip(clean, dirty, strict=True))
    same(call(*dirty), call(*clean))


# Exact results.

ELEMENTS = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
DENSE = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{}.{}.f32"
MX = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.{}.{}.f32.ue8m0"
MXFP8 = MX.format("e4m3", "e4m3")
MXFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"


@pytest.mark.parametrize(
    "mnemonic", [*(x.format(*pair) for x in (DENSE, MX) for pair in product(ELEMENTS, repeat=2)), MXFP4, NVFP4]
)
def test_every_product(mnemonic: str) -> None:
    """All pairs of codes, one product to an element of D: rows of A and columns of B, over all warps."""
    record = parse(mnemonic)
    x, y = (FORMATS[name] for name in (record.a_type, record.b_type))
    a, b = np.zeros((1 << x.bits, record.k), np.uint8), np.zeros((record.k, 1 << y.bits), np.uint8)
    at = record.k - 5
    a[:, at], b[at] = np.arange(1 << x.bits), np.arange(1 << y.bits)
    one, s = {"ue8m0": 127, "ue4m3": 0x38, None: 0}[record.stype], record.scales_per_row
    ones: dict[str, Any] = {"scale_a": np.full((16, s), one, "u1"), "scale_b": np.full((s, 8), one, "u1")}
    columns = np.moveaxis(b.reshape(record.k, -1, 8), 1, 0)
    d = mma(record, a.reshape(-1, 1, 16, record.k), columns, target=TARGET, **(ones if s else {}))
    with np.errstate(invalid="ignore"):  # infinity by zero
        exact = x.decode(a[:, at])[:, None] * y.decode(b[at])
    found = d.view(np.uint32).swapaxes(1, 2).reshape(exact.shape)
    codes = FORMATS["f32"].encode(exact)
    same(FORMATS["f32"].decode(codes), exact)  # as every product is a number of f32
    same(found, np.where(codes == 1 << 31, 0, codes).astype(np.uint32))  # a result is never -0


@each_instruction
def test_quantised_integers_are_multiplied_exactly(instruction: Instruction) -> None:
    """Small integers, each block's largest a 6; 448 times that for NVFP4, whose tensor scale is then 1."""
    rng, unit = np.random.default_rng(7), 448 if instruction.stype == "ue4m3" else 1
    a, b = rng.choice([-6, -4, -3, -2, -1, 0, 0, 1, 2, 3, 4, 6], (2, 5, 16, instruction.k))
    b = b[:, :8].swapaxes(1, 2)
    a[..., :: block_size(instruction)] = b[:, :: block_size(instruction)] = 6
    fmt = instruction.format("A")
    if instruction.sparse:
        a = fmt.decode(sp.prune(fmt.encode(a), instruction)).astype(int)
    c = rng.integers(-9, 10, (5, 16, 8)) * unit**2
    x = quantize((unit * a).astype(np.float32), instruction)
    y = quantize((unit * b).astype(np.float32), instruction, "B")
    call = partial(mma, instruction, target=TARGET, scale_a=x.scales, scale_b=y.scales)
    d = call(x.elements, y.elements, c.astype(np.float32))
    same(d.astype(float), x.dequantize() @ y.dequantize() + c)
    same(d.astype(int), unit**2 * (a @ b) + c)


# Errors: ~ stands for the rest of a message.

WORDS = np.full(LANES, 0x38383838, np.uint32)


@pytest.mark.parametrize(
    ("mnemonic", "error", "changes", "message"),
    [
        (MXFP8, ScaleError, {"byte_id_a": 4}, "{}: byte-id of A is 4; expected 0, 1, 2, 3"),
        (MXFP8, ScaleError, {"byte_id_b": -1}, "{}: byte-id of B is -1; expected 0, 1, 2, 3"),
        (MXFP4, ScaleError, {"byte_id_a": 1}, "{}: byte-id of A is 1; expected 0, 2"),
        (NVFP4, ScaleError, {"byte_id_b": 2}, "{}: byte-id of B is 2; expected 0"),
        (NVFP4, ScaleError, {"thread_id_a": 2}, "{}: thread-id of A is 2; expected 0, 1"),
        (MXFP8, ScaleError, {"thread_id_b": 4}, "{}: thread-id of B is 4; expected 0, 1, 2, 3"),
        (MXFP8, ScaleError, {"thread_id_b": 1.0}, "{}: thread-id of B is 1.0; expected 0, 1, 2, 3"),
        (MXFP8, OperandError, {"scale_a": None}, "{} needs scale_a"),
        (MXFP8, OperandError, {"scale_b": None}, "{} needs scale_b"),
        (MXFP8, OperandError, {"scale_a": WORDS[1:]}, "{}: scale_a is uint32 (31,); expected uint32 [~"),
        (MXFP8, OperandError, {"scale_b": WORDS.view("u1")}, "{}: scale_b is uint8 (128,); expected ~"),
        (MXFP8, OperandError, {"scale_b": np.ones(32)}, "{}: scale_b is float64 (32,); expected uint32 [~"),
        (MXFP8, OperandError, {"scale_a": np.array([WORDS] * 2), "scale_b": np.array([WORDS] * 3)},
         "{}: batches do not broadcast: A (4, 32), B (2, 32), C (4, 32), scale_a (2, 32), scale_b (3, 32)"),
        (MXFP8, OperandError, {"metadata": WORDS}, "{} takes no metadata"),
        (MXFP8, OperandError, {"selector": 1}, "{} is dense: it takes no selector; got 1"),
        (FP8, OperandError, {}, "{} takes no scale_a"),
        (FP8, OperandError, {"scale_a": None}, "{} takes no scale_b"),
    ],
)  # fmt: skip
def test_what_cannot_be_executed(
    mnemonic: str, error: type[WarpmmaError], changes: dict[str, Any], message: str
) -> None:
    registers = [np.zeros((parse(mnemonic).layout(x).registers, LANES), np.uint32) for x in ABC]
    with pytest.raises(error, match=exactly(message.format(mnemonic))):
        execute(mnemonic, *registers, target=TARGET, **{"scale_a": WORDS, "scale_b": WORDS, **changes})


def test_byte_ids_are_refused_without_warps_too() -> None:
    none = np.zeros((0, 4, LANES), np.uint32)
    with pytest.raises(ScaleError, match="byte-id of A is 4"):
        execute(MXFP8, none, none[:, :2], none, target=TARGET, scale_a=WORDS, scale_b=WORDS, byte_id_a=4)


@pytest.mark.parametrize(
    ("mnemonic", "scale_a", "message"),
    [
        (MXFP8, np.ones((16, 2), np.uint8), "{}: scales of A are (16, 2); expected [..., 16, 1]"),
        (NVFP4, np.ones((4, 16), np.uint8), "{}: scales of A are (4, 16); expected [..., 16, 4]"),
        (MXFP8, np.ones((16, 1)), "{}: scales of A are float64; expected float8_e8m0fnu, or codes as uint~"),
        (NVFP4, np.full((16, 4), 0x80, np.uint8), "{}: scale 0x80 of A at [0, 0] has its top bit set; ~"),
        (FP8, np.ones((16, 1), np.uint8), "{} has no block scaling. Nearest that has: ~"),
    ],
)  # fmt: skip
def test_scales_that_cannot_be_used(mnemonic: str, scale_a: Array, message: str) -> None:
    a, b = (np.zeros(parse(mnemonic).layout(x).shape, np.uint8) for x in ABC[:2])
    with pytest.raises(ScaleError, match=exactly(message.format(mnemonic))):
        mma(mnemonic, a, b, target=TARGET, scale_a=scale_a)
