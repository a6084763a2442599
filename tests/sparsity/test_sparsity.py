"""Sparsity: PTX's tables against the law, slow expansions, round trips, errors, and registers of an H200."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import Array
from hypothesis import given, settings
from hypothesis import strategies as st

from warpmma import sparsity as sp
from warpmma.errors import MetadataError, OperandError
from warpmma.formats import FloatFormat
from warpmma.isa import Instruction, instructions
from warpmma.layouts import Operand
from warpmma.registers import LANES

same = np.testing.assert_array_equal

SPARSE = [i for i in instructions() if i.sparse]
TYPES = list({(i.shape, i.packing("A").slot, i.a_type): i for i in SPARSE}.values())
SHAPES = list({(i.shape, i.packing("A").slot): i for i in SPARSE}.values())
each_instruction = pytest.mark.parametrize("instruction", SPARSE, ids=str)
each_type = pytest.mark.parametrize("instruction", TYPES, ids=str)
each_shape = pytest.mark.parametrize("instruction", SHAPES, ids=str)

SORTED, REVERSED = {0x4, 0x8, 0xC, 0x9, 0xD, 0xE}, {0x1, 0x2, 0x3, 0x6, 0x7, 0xB}

# PTX's tables, as docs/specification/ptx.md 3.1 and 3.2 have them; g is groupID, t threadID_in_group.

Rule = tuple[tuple[int, ...], Callable[[int, int], list[int]], Callable[[int, int, int], tuple[int, int]]]
METADATA: dict[str, Rule] = {  # legal selectors F, contributing lanes (numbered p), and row and chunk of nibble n
    "m16n8k16 f16 bf16, m16n8k8 tf32": (
        (0, 1, 2, 3), lambda g, f: [4 * g + f], lambda g, p, n: (g, n) if n < 4 else (g + 8, n - 4)
    ),
    "m16n8k32 f16 bf16, m16n8k16 tf32": (
        (0, 1), lambda g, f: [4 * g + 2 * f + p for p in (0, 1)],
        lambda g, p, n: (g, 4 * p + n) if n < 4 else (g + 8, 4 * p + n - 4),
    ),
    "m16n8k32 s8 u8, m16n8k64 s4 u4": (
        (0, 1), lambda g, f: [4 * g + 2 * f + p for p in (0, 1)], lambda g, p, n: (g + 8 * p, n)
    ),
    "m16n8k64 s8 u8 e4m3 e5m2 e3m2 e2m3 e2m1, m16n8k128 s4 u4 e2m1": (
        (0,), lambda g, f: [4 * g + t for t in range(4)], lambda g, t, n: (g + 8 * (t & 1), 8 * (t >> 1) + n)
    ),
}  # fmt: skip
STORED = {  # row of stored i, chunk start column, chunk width, which kept element
    "m16n8k16 f16 bf16": ("g+8*(i>>1)", "4*t", 4, "i&1"),
    "m16n8k32 f16 bf16": ("g+8*((i>>1)&1)", "4*t+16*(i>>2)", 4, "i&1"),
    "m16n8k8 tf32": ("g+8*i", "2*t", 2, "0*i"),
    "m16n8k16 tf32": ("g+8*(i&1)", "2*t+8*(i>>1)", 2, "0*i"),
    "m16n8k32 s8 u8": ("g+8*(i>>2)", "8*t+4*((i>>1)&1)", 4, "i&1"),
    "m16n8k64 s8 u8 e4m3 e5m2 e3m2 e2m3 e2m1": ("g+8*((i>>2)&1)", "8*t+4*((i>>1)&1)+32*(i>>3)", 4, "i&1"),
    "m16n8k64 s4 u4": ("g+8*(i>>3)", "16*t+8*((i>>2)&1)", 8, "2*((i>>1)&1)+(i&1)"),
    "m16n8k128 s4 u4 e2m1": ("g+8*((i>>3)&1)", "16*t+8*((i>>2)&1)+64*(i>>4)", 8, "2*((i>>1)&1)+(i&1)"),
}


def names(entry: str, instruction: Instruction) -> bool:
    parts = [part.split() for part in entry.split(", ")]
    return any(shape == instruction.shape and instruction.a_type in types for shape, *types in parts)


def stored(instruction: Instruction) -> tuple[Array, Array, int, Array]:
    """The row of 3.1 for an instruction, with its formulas as arrays `[lane, i]`."""
    ((row, start, width, kept),) = [rule for entry, rule in STORED.items() if names(entry, instruction)]
    lane, i = np.indices((LANES, instruction.layout("A").elements))
    known = {"g": lane >> 2, "t": lane & 3, "i": i}
    return eval(row, known), eval(start, known), width, eval(kept, known)


def described(instruction: Instruction, f: int) -> dict[tuple[int, int], tuple[int, int]]:
    """Lane and number of the nibble of every row and chunk, by 3.2."""
    ((_, lanes, nibble),) = [rule for entry, rule in METADATA.items() if names(entry, instruction)]
    quads = [(g, p, lane) for g in range(8) for p, lane in enumerate(lanes(g, f))]
    return {nibble(g, p, n): (lane, n) for g, p, lane in quads for n in range(8)}


def expanded_slowly(instruction: Instruction, words: list[int], f: int) -> Array:
    """Logical column of every stored element, `[lane, i]`."""
    rows, starts, width, kept = stored(instruction)
    place, columns = described(instruction, f), np.empty_like(rows)
    for at in np.ndindex(rows.shape):
        lane, n = place[int(rows[at]), int(starts[at]) // width]
        nibble = (words[lane] >> (4 * n)) & 0xF
        lo, hi = nibble & 3, nibble >> 2
        pairs = (2 * lo, 2 * lo + 1, 2 * hi, 2 * hi + 1)
        element: dict[int, Any] = {2: {0b0100: (0,), 0b1110: (1,)}.get(nibble), 4: (lo, hi), 8: pairs}
        columns[at] = starts[at] + element[width][kept[at]]
    return columns


# The law.


@each_instruction
@pytest.mark.alike(2)
def test_metadata_sits_where_ptx_says(instruction: Instruction) -> None:
    (legal,) = [rule[0] for entry, rule in METADATA.items() if names(entry, instruction)]
    assert sp.selectors(instruction) == legal
    at = list(product(range(16), range(instruction.k // sp.pattern(instruction).width)))
    every: list[tuple[int, int]] = []
    for f in legal:
        found = {place: sp.metadata_place(str(instruction), *place, selector=f) for place in at}
        assert found == {place: (lane, 4 * n) for place, (lane, n) in described(instruction, f).items()}
        every += found.values()
    assert sorted(every) == list(product(range(LANES), range(0, 32, 4)))  # the selectors share the whole warp


@each_instruction
def test_stored_elements_sit_where_ptx_says(instruction: Instruction) -> None:
    row, start, width, kept = stored(instruction)
    law = sp.pattern(instruction)
    assert law == sp.Pattern(width=width)
    assert (law.kept, law.unit) == {2: (1, 1), 4: (2, 1), 8: (4, 2)}[width]
    _, rows, columns = instruction.layout("A").places
    same(rows, row)
    same(columns // law.kept * width, start)
    same(columns % law.kept, kept)


@each_instruction
def test_codes_that_ptx_defines(instruction: Instruction) -> None:
    both = instruction.sparsity == "sp" and instruction.a_type in ("f16", "bf16", "s8", "u8", "s4", "u4")
    expected = {0x4, 0xE} if instruction.a_type == "tf32" else SORTED | REVERSED if both else SORTED
    assert sp.legal_codes(instruction) == expected


def every_nibble(values: list[int]) -> Array:
    """Metadata of one warp for each value; every nibble of a register sees all of them."""
    number = np.arange(len(values))[:, None, None] + 5 * np.arange(LANES)[:, None] + 3 * np.arange(8)
    fields = np.array(values, np.uint32)[number % len(values)] << np.arange(0, 32, 4, dtype=np.uint32)
    return np.asarray(np.bitwise_or.reduce(fields, axis=-1))


@each_shape
def test_every_nibble_in_every_place(instruction: Instruction) -> None:
    words = every_nibble([0x4, 0xE] if instruction.a_type == "tf32" else list(range(16)))
    _, rows, columns = instruction.layout("A").places
    for f in sp.selectors(instruction):
        found = sp.positions(words, instruction, selector=f)
        assert found.dtype == np.intp
        assert found.shape == (len(words), 16, instruction.k // 2)
        slow = [expanded_slowly(instruction, warp, f) for warp in words.tolist()]
        same(found[:, rows, columns], slow)


@each_shape
def test_indices_are_the_nibbles(instruction: Instruction) -> None:
    words = every_nibble(list(range(16)))
    for f in sp.selectors(instruction):
        indices = sp.unpack_metadata(words, instruction, selector=f)
        assert indices.dtype == np.uint8
        for (row, group), (lane, n) in described(instruction, f).items():
            nibble = (words[:, lane] >> np.uint32(4 * n)) & 0xF
            same(indices[:, row, group], np.stack([nibble & 3, nibble >> 2], -1))
        if instruction.a_type == "tf32":
            same(sp.halves(words, instruction, selector=f), indices)


@each_shape
def test_pack_writes_the_selected_lanes_only(instruction: Instruction) -> None:
    rng = np.random.default_rng(11)
    before = rng.integers(0, 1 << 32, (2, 1, LANES), dtype=np.uint32)
    indices = rng.integers(0, 4, (3, 16, instruction.k // sp.pattern(instruction).width, 2), dtype=np.uint8)
    for f in sp.selectors(instruction):
        chosen = np.isin(np.arange(LANES), [lane for lane, _ in described(instruction, f).values()])
        bare = sp.pack_metadata(indices, instruction, selector=f)
        into = sp.pack_metadata(indices.astype(np.int64), instruction, selector=f, into=before)
        assert bare.dtype == into.dtype == before.dtype
        assert not bare[:, ~chosen].any()
        same(into, np.where(chosen, bare, before))
        same(sp.unpack_metadata(bare, instruction, selector=f), indices)
        read = sp.unpack_metadata(before, instruction, selector=f)
        same(sp.pack_metadata(read, instruction, selector=f, into=before), before)


@pytest.mark.parametrize("instruction", {(i.shape, i.a_type, sp.legal_codes(i)): i for i in SPARSE}.values())
@pytest.mark.alike(2)
def test_illegal_nibbles_are_named(instruction: Instruction) -> None:
    legal = sorted(sp.legal_codes(instruction))
    illegal = sorted(set(range(16)) - set(legal))
    for f in sp.selectors(instruction):
        place = described(instruction, f)
        chosen = np.isin(np.arange(LANES), [lane for lane, _ in place.values()])
        good = np.where(chosen, 0x44444444, 0x50FA50FA).astype(np.uint32)  # lanes left out may hold anything
        for (row, group), (lane, n) in place.items():
            words = np.tile(good, (16, 1))
            words[:, lane] ^= (np.arange(16, dtype=np.uint32) ^ 4) << np.uint32(4 * n)
            sp.check_metadata(words[legal], instruction, selector=f)
            sp.check_metadata(words, instruction, selector=f, legal=range(16))
            at = rf"nibble {n} of lane {lane} is {illegal[0]:#x}, .*, {illegal[0]}\), row {row}, group {group} "
            with pytest.raises(MetadataError, match=at):
                sp.check_metadata(words[None], instruction, selector=f)
        sp.positions(good, instruction, selector=f)
        readers: list[Callable[..., Any]] = [sp.check_metadata]
        if instruction.a_type == "tf32":
            readers.append(sp.positions)
        for value, read in product(illegal, readers):
            with pytest.raises(MetadataError, match=rf"is {value:#x}, indices \({value & 3}, {value >> 2}\)"):
                read(words[value], instruction, selector=f)


# Matrices.


def of(values: list[float], instruction: Instruction) -> Array:
    """A matrix of the operand's type that repeats these values along its rows."""
    fmt = instruction.format("A")
    return fmt.array(fmt.encode(np.resize(np.array(values), (16, instruction.k))))


PLACES = {  # which units are nonzero, unit 0 first: the indices that are stored
    "....": (0, 1), "x...": (0, 1), ".x..": (0, 1), "..x.": (0, 2), "...x": (0, 3), "xx..": (0, 1),
    "x.x.": (0, 2), "x..x": (0, 3), ".xx.": (1, 2), ".x.x": (1, 3), "..xx": (2, 3),
    "..": (0, 1), "x.": (0, 1), ".x": (2, 3),
}  # fmt: skip


@each_type
def test_compress_takes_nonzeros_then_the_lowest(instruction: Instruction) -> None:
    law = sp.pattern(instruction)
    groups = instruction.k // law.width
    broken = rf"A breaks the {law.kept}:{law.width} pattern at row 0, group 0 "
    for occupied in map("".join, product(".x", repeat=law.units)):
        for unit in ((1, 0), (0, 1), (1, 1)) if law.unit == 2 else ((1,),):
            matrix = of([x if o == "x" else 0 for o in occupied for x in unit], instruction)
            if occupied not in PLACES:
                with pytest.raises(MetadataError, match=broken):
                    sp.compress(matrix, instruction)
                continue
            found, indices = sp.compress(matrix, instruction)
            i0, i1 = PLACES[occupied]
            assert (found.dtype, indices.dtype) == (matrix.dtype, np.dtype(np.uint8))
            same(indices, np.broadcast_to((i0, i1), (16, groups, 2)))
            columns = {2: [i0 // 2], 4: [i0, i1], 8: [2 * i0, 2 * i0 + 1, 2 * i1, 2 * i1 + 1]}[law.width]
            same(found, np.tile(matrix[:, columns], groups))
            same(sp.expand(found, indices, instruction), matrix)
            swapped = indices[..., ::-1] if law.width > 2 else indices
            stored = found.reshape(16, groups, -1, law.unit)[..., ::-1, :].reshape(found.shape)
            same(sp.expand(stored, swapped, instruction), matrix)


def random_matrix(instruction: Instruction, seed: int, density: float, raw: bool) -> Array:
    """Codes, or elements: special ones (zeros, ties, infinities, NaN) and random bits, and zeros."""
    fmt, rng = instruction.format("A"), np.random.default_rng(seed)
    special = [0, fmt.mask, 1, 2]
    if isinstance(fmt, FloatFormat):
        one = int(fmt.encode(1.0))
        positive = (0, one, one + (1 << fmt.padding), fmt.max_code, fmt.inf_code or one, fmt.nan_code or one)
        special = [code | sign for code in positive for sign in (0, fmt.sign_bit)]
    shape = (2, 16, instruction.k)
    bits = rng.integers(0, fmt.mask, shape, endpoint=True)
    codes = np.where(rng.random(shape) < 0.5, rng.choice(special, shape), bits)
    codes = np.where(rng.random(shape) < density, codes, 0).astype(fmt.code_dtype)
    return codes if raw else fmt.array(codes)


def pruned_slowly(unit: int, values: list[float], codes: list[int]) -> list[int]:
    """One group, with Python's own sort; a NaN outweighs everything."""
    starts = range(0, len(values), unit)
    sums = {i: sum(map(abs, values[i : i + unit])) for i in starts}
    weights = {i: (0, x) if x == x else (1, 0) for i, x in sums.items()}
    kept = sorted(starts, key=lambda i: (weights[i], -i))[len(starts) // 2 :]
    return [codes[i] if x == 0 or i - i % unit in kept else 0 for i, x in enumerate(values)]


@each_type
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), density=st.sampled_from([0.1, 0.5, 1.0]), raw=st.booleans())
@pytest.mark.alike(2)
def test_prune_compress_expand(instruction: Instruction, seed: int, density: float, raw: bool) -> None:
    fmt, law = instruction.format("A"), sp.pattern(instruction)
    matrix = random_matrix(instruction, seed, density, raw)
    pruned = sp.prune(matrix, instruction)
    every = fmt.codes(matrix).reshape(-1, law.width)
    slow = [pruned_slowly(law.unit, fmt.decode(group).tolist(), group.tolist()) for group in every]
    same(fmt.codes(pruned).reshape(-1, law.width), slow)
    same(fmt.codes(sp.prune(pruned, instruction)), fmt.codes(pruned))
    stored, indices = sp.compress(pruned, instruction)
    back = sp.expand(stored, indices, instruction)
    assert matrix.dtype == pruned.dtype == stored.dtype == back.dtype
    before, after = fmt.codes(pruned), fmt.codes(back)
    nonzero = fmt.decode(before) != 0
    same(after[nonzero], before[nonzero])
    assert not fmt.decode(after[~nonzero]).any()
    words = sp.pack_metadata(indices, instruction)
    sp.check_metadata(words, instruction)
    columns = sp.positions(words, instruction)
    same(np.take_along_axis(before, columns, -1), fmt.codes(stored))
    np.put_along_axis(after, columns, 0, axis=-1)
    assert not after.any()  # nothing but +0 where nothing is stored


# Errors.

F16 = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
TF32 = "mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
S4 = "mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32"
WORDS = np.full((2, LANES), 0x44444444, np.uint32)
INDICES = np.tile(np.array([0, 1], np.uint8), (2, 16, 4, 1))
STORED_A, STORED_1 = np.zeros((16, 8), np.float16), np.zeros((16, 4), np.float32)
FULL_A = np.zeros((2, 16, 16), np.float16)
FULL_A[1, 3, 5:8] = [1, np.nan, -2]
EQUAL = np.where(np.arange(128).reshape(2, 16, 4, 1) == 75, np.uint8(2), INDICES)  # warp 1, row 2, group 3
MET, OP = MetadataError, OperandError


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ("compress(FULL_A, F16)", MET, "A breaks the 2:4 pattern at warp (1,), row 3, group 1 (columns 4 to 7): "),
        ("compress(FULL_A, F16)", MET, "[0.0, 1.0, nan, -2.0]; expected at most 2 nonzero elements (see prune)"),
        ("compress(np.ones((16, 64), np.int8), S4)", MET, "expected at most 2 nonzero pairs"),
        ("compress(np.ones((16, 8), np.float32), TF32)", MET, "[1.0, 1.0]; expected at most 1 nonzero"),
        ("compress(STORED_A[:, 1:], F16)", OP, "A is (16, 7); expected [..., m, k], the latter a multiple of 4"),
        ("prune(np.zeros((16, 16)), F16)", OP, "A: f16: got dtype float64; expected float16"),
        ("prune(np.full((16, 64), 9, np.int8), S4)", OP, "A: s4: 9 at [0, 0] does not fit; expected -8 to 7"),
        ("compress(FULL_A[0, 0], F16)", OP, "A is (16,); expected [..., m, k], the latter a multiple of 4"),
        ("prune(np.zeros((16, 68), np.int8), S4)", OP, "A is (16, 68); expected [..., m, k], the latter a multi"),
        ("expand(STORED_A[:, 1:], INDICES, F16)", OP, "A is (16, 7); expected [..., m, k/2], the latter a multip"),
        ("expand(FULL_A, INDICES, F16)", MET, "indices are uint8 (2, 16, 4, 2); expected int [..., 16, 8, 2]"),
        ("check_indices(INDICES[0, 0], F16)", MET, "indices are uint8 (4, 2); expected int [..., m, groups, 2]"),
        ("check_indices(INDICES, F16, legal=[9])", MET, "nibble 0x4, of matrix (0,), row 0, group 0 (columns 0 to "),
        ("rows_met(INDICES[..., ::-1], TF32)", MET, "indices (1, 0), nibble 0x1, of matrix (0,), row 0, group 0 (colu"),
        ("expand(STORED_A, EQUAL, F16)", MET, "cannot expand warp (1,), row 2, group 3 (columns 12 to 15)"),
        ("expand(STORED_A, EQUAL, F16)", MET, "its indices are (2, 2); expected i0 != i1"),
        ("expand(STORED_1, INDICES[0, ..., ::-1], TF32)", MET, "are (1, 0); expected (i0, i1) = (0, 1) or (2, 3), "),
        ("expand(np.tile(STORED_A, (3, 1, 1)), INDICES, F16)", OP, "'stored': (3,), 'indices': (2,)"),
        ("pack_metadata(INDICES, F16, into=WORDS[[0, 0, 0]])", OP, "'indices': (2,), 'into': (3,)"),
        ("pack_metadata(INDICES[..., 0], F16)", MET, "uint8 (2, 16, 4); expected int [..., 16, 4, 2]"),
        ("pack_metadata(INDICES * 1.0, F16)", MET, "indices are float64 (2, 16, 4, 2); expected int"),
        ("pack_metadata(INDICES + 3, F16)", MET, "indices go from 3 to 4; expected 0 to 3"),
        ("pack_metadata(INDICES, F16, into=[0] * 32)", MET, "metadata is int64 (32,); expected uint32"),
        ("unpack_metadata(WORDS[:, 1:], F16)", MET, "metadata is uint32 (2, 31); expected uint32 [..., 32]"),
        ("unpack_metadata(WORDS, F16, selector=4)", MET, "selector is 4; legal are 0, 1, 2, 3"),
        ("positions(WORDS, S4, selector=-1)", MET, "selector is -1; legal are 0, 1"),
        ("check_metadata(WORDS, S4, selector=1.0)", MET, "selector is 1.0; legal are 0, 1"),
        ("metadata_place(F16, 16, 0)", MET, "row is 16; legal are 0, 1, 2, "),
        ("metadata_place(F16, 0, -1)", MET, "group is -1; legal are 0, 1, 2, 3"),
        ("check_metadata(WORDS, F16, legal=[9])", MET, "nibble 0 of lane 0 is 0x4, indices (0, 1), for warp (0,)"),
        ("check_metadata(WORDS, F16, legal=[9])", MET, "row 0, group 0 (columns 0 to 3); legal are 0x9 (as asked)"),
        ("check_metadata(WORDS ^ 1, F16)", MET, "0xb, 0xc, 0xd, 0xe (PTX: i0 != i1)"),
        ("positions(WORDS ^ 7, TF32)", MET, "is 0x3, indices (3, 0), "),
        ("positions(WORDS ^ 7, TF32)", MET, "legal are 0x4, 0xe (PTX: (i0, i1) = (0, 1) or (2, 3), whole elements)"),
        ("halves(WORDS, F16)", MET, "an index addresses whole elements; expected tf32"),
    ],
)  # fmt: skip
def test_errors(call: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match="^mma.sp.sync.aligned.m16n8k.*" + re.escape(message)):
        eval(f"sp.{call}")


def test_dense_instructions_have_none_of_it() -> None:
    for arguments in (
        "pattern(i)", "selectors(i)", "legal_codes(i)", "compress(FULL_A, i)", "prune(FULL_A, i)",
        "expand(STORED_A, INDICES, i)", "metadata_place(i, 0, 0)", "pack_metadata(INDICES, i)",
        "check_indices(INDICES, i)", "rows_met(INDICES, i)",
        "unpack_metadata(WORDS, i)", "check_metadata(WORDS, i)", "positions(WORDS, i)", "halves(WORDS, i)",
    ):  # fmt: skip
        with pytest.raises(MetadataError, match=r"f32 is dense, without pattern and metadata; expected an mma\.sp"):
            eval(f"sp.{arguments}", globals(), {"i": F16.replace(".sp", "")})


# Registers recorded on an H200. Of integers the arithmetic is beyond doubt, so here they test the layout alone;
# test_hardware.py replays all types.

RECORDED = Path(__file__).parents[1] / "data" / "h200_sm90a.npz"


def matrix_of(instruction: Instruction, operand: Operand, registers: Array) -> Array:
    layout, fmt = instruction.layout(operand), instruction.format(operand)
    word, position = layout.slots
    return fmt.decode(layout.packing.unpack(registers.reshape(len(registers), -1))[:, word, position])


@pytest.mark.parametrize("instruction", [i for i in SPARSE if "sm_90a" in i.targets and i.d_type == "s32"], ids=str)
def test_recorded_metadata_selects_what_the_hardware_multiplied(instruction: Instruction) -> None:
    with np.load(RECORDED, allow_pickle=False) as recorded:
        fields = {f: recorded[f"{instruction}|{f}"] for f in ("a", "b", "c", "e")}
        results = {f: recorded[f"{instruction}|d{f}"] for f in sp.selectors(instruction)}
        assert f"{instruction}|d{len(results)}" not in recorded
    for f, d in results.items():
        sp.check_metadata(fields["e"], instruction, selector=f)
        columns = sp.positions(fields["e"], instruction, selector=f)
        a, b, c = (matrix_of(instruction, x, fields[x.lower()]) for x in ("A", "B", "C"))
        found = np.einsum("wms,wmsn->wmn", a, b[np.arange(len(b))[:, None, None], columns]) + c
        if instruction.satfinite:
            found = np.clip(found, -(1 << 31), (1 << 31) - 1)
        same(found & 0xFFFFFFFF, matrix_of(instruction, "D", d) & 0xFFFFFFFF)
