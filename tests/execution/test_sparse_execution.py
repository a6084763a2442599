"""Execution of sparse instructions: which elements of B are multiplied, and which metadata is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import Array, Rng, same
from messages import exactly

from lab.generators import by_reference, mixed, random_codes, with_exponents
from warpmma import execute, load, mma, store
from warpmma import sparsity as sp
from warpmma.arithmetic import compute
from warpmma.arithmetic.recipes.lowerings import GENERATIONS, recipe
from warpmma.errors import MetadataError, OperandError, UnsupportedError, WarpmmaError
from warpmma.execution.batches import CHUNK
from warpmma.formats import FloatFormat
from warpmma.isa import Instruction, instructions, parse
from warpmma.layouts import Operand
from warpmma.registers import LANES

ABC: tuple[Operand, ...] = ("A", "B", "C")

SPARSE = [i for i in instructions() if i.sparse and not i.block_scale]
RECIPES = [(i, t) for i in SPARSE for t in {recipe(i, t): t for t in i.targets}.values()]
HOPPER = [i for i in SPARSE if "sm_90" in i.targets]
TYPES = list({(i.shape, i.a_type, i.d_type): i for i in HOPPER}.values())
PLAIN = [i for i in SPARSE if i.sparsity == "sp"]
INTEGERS = [i for i in SPARSE if i.d_type == "s32"]
each_instruction = pytest.mark.parametrize("instruction", SPARSE, ids=str)
SORTED, REVERSED = (0x4, 0x8, 0x9, 0xC, 0xD, 0xE), (0x1, 0x2, 0x3, 0x6, 0x7, 0xB)


def operands(instruction: Instruction, warps: int, rng: Rng) -> list[Array]:
    """Codes of A, B and C; of A those of the stored elements."""
    return [mixed(instruction.format(x), (warps, *instruction.layout(x).shape), rng, 0.01) for x in ABC]


def run(instruction: Instruction, codes: list[Array], words: Array, target: str, **more: Any) -> Array:
    """Codes of D."""
    registers = [load(instruction, x, matrix) for x, matrix in zip(ABC, codes, strict=True)]
    d = execute(instruction, *registers, target=target, metadata=words, **more)
    return instruction.format("D").codes(store(instruction, "D", d))


def random_words(values: Any, shape: tuple[int, ...], rng: Rng) -> Array:
    """Metadata of these nibbles, in every lane."""
    nibbles = rng.choice(np.array(sorted(values), np.uint32), (*shape, LANES, 8))
    return np.asarray(np.bitwise_or.reduce(nibbles << np.arange(0, 32, 4, dtype=np.uint32), axis=-1))


def legal(instruction: Instruction, target: str) -> set[int]:
    """Nibbles that may be given: of bf16 only ascending ones where the hardware expects them."""
    late = instruction.a_type == "bf16" and int(re.findall(r"\d+", target)[0]) >= 100
    return set(sp.legal_codes(instruction)) & set(SORTED if late else range(16))


def met(instruction: Instruction, words: Array, selector: int, b: Array) -> Array:
    """What every stored element is multiplied by: codes `[warp, m, k/2, n]`, group by group."""
    slot = instruction.packing("A").slot
    width, warp = {4: 8, 8: 4, 16: 4, 32: 2}[slot], np.arange(len(words))
    found = np.empty((len(words), 16, instruction.k // 2, 8), b.dtype)
    for row, group in product(range(16), range(instruction.k // width)):
        lane, bit = sp.metadata_place(instruction, row, group, selector=selector)
        nibble = words[:, lane] >> np.uint32(bit) & np.uint32(15)
        i0, i1 = nibble & 3, nibble >> 2
        own, stored = b[:, width * group : width * (group + 1)], width // 2 * group
        if slot == 32:  # the nibble names two of the four halves of the group's two elements
            halves = np.stack([own & 0xFFFF, own >> np.uint32(16)], axis=2).reshape(len(b), 4, 8)
            found[:, row, stored] = halves[warp, i0] | halves[warp, i1] << np.uint32(16)
        elif slot == 4:  # it names two of four pairs
            for j, index in enumerate((2 * i0, 2 * i0 + 1, 2 * i1, 2 * i1 + 1)):
                found[:, row, stored + j] = own[warp, index]
        else:
            found[:, row, stored], found[:, row, stored + 1] = own[warp, i0], own[warp, i1]
    return found


def zeros(mnemonic: str) -> list[Array]:
    """Registers of A, B and C."""
    layouts = [parse(mnemonic).layout(x) for x in ABC]
    return [np.zeros((layout.registers, LANES), layout.packing.dtype) for layout in layouts]


# What is multiplied.


@pytest.mark.parametrize(("instruction", "target"), RECIPES, ids=str)
def test_execute_is_the_slow_loop(instruction: Instruction, target: str) -> None:
    rng = np.random.default_rng(1)
    a, b, c = codes = operands(instruction, 3, rng)
    words = random_words(legal(instruction, target), (3,), rng)
    for f in sp.selectors(instruction):
        d, columns = run(instruction, codes, words, target, selector=f), met(instruction, words, f, b)
        w, m, n = rng.integers(0, (3, 16, 8), (12, 3)).T
        slow = by_reference(recipe(instruction, target), a=a[w, m].T, b=columns[w, m, :, n].T, c=c[w, m, n])
        same(d[w, m, n], slow.astype(d.dtype))


@pytest.mark.parametrize("instruction", HOPPER, ids=str)
def test_every_nibble_in_every_place(instruction: Instruction) -> None:
    """Each place sees all sixteen, one in each warp; an H200 reads them by one rule."""
    number = np.arange(16)[:, None, None] + 5 * np.arange(LANES)[:, None] + 3 * np.arange(8)
    fields = (number % 16).astype(np.uint32) << np.arange(0, 32, 4, dtype=np.uint32)
    words, rng = np.bitwise_or.reduce(fields, axis=-1), np.random.default_rng(2)
    a, b, c = codes = operands(instruction, 16, rng)
    for f in sp.selectors(instruction):
        d = run(instruction, codes, words, "sm_90", selector=f, undefined="hardware")
        columns = np.moveaxis(met(instruction, words, f, b), 2, 0)
        same(d, compute(recipe(instruction, "sm_90"), np.moveaxis(a, 2, 0)[..., None], columns, c))
        allowed = random_words(legal(instruction, "sm_90"), (16,), rng)
        d = run(instruction, codes, allowed, "sm_90", selector=f)
        same(run(instruction, codes, allowed, "sm_90", selector=f, undefined="hardware"), d)


@each_instruction
def test_what_is_not_selected_is_not_seen(instruction: Instruction) -> None:
    fmt, rng = instruction.format("B"), np.random.default_rng(3)
    worst = [fmt.mask, fmt.mask >> 1]
    if isinstance(fmt, FloatFormat):
        worst = [code for code in (fmt.nan_code, fmt.inf_code) if code is not None] or worst
    width = sp.pattern(instruction).width
    for nibble in legal(instruction, instruction.targets[-1]):
        codes = operands(instruction, 2, rng)
        places = np.arange(instruction.k) % width * 4 // width  # of the columns, in their groups
        unseen = (places != nibble & 3) & (places != nibble >> 2)
        if width == 2:
            unseen = places // 2 != nibble >> 3
        assert unseen.sum() == instruction.k // 2
        poisoned, words = codes[1].copy(), np.full(LANES, nibble * 0x11111111, np.uint32)
        poisoned[:, unseen] = rng.choice(worst, (2, instruction.k // 2, 8))
        d = run(instruction, codes, words, instruction.targets[-1])
        same(run(instruction, [codes[0], poisoned, codes[2]], words, instruction.targets[-1]), d)


@pytest.mark.parametrize("instruction", [i for i in SPARSE if len(sp.selectors(i)) > 1], ids=str)
def test_lanes_that_the_selector_leaves_out_do_not_matter(instruction: Instruction) -> None:
    rng, target = np.random.default_rng(4), instruction.targets[-1]
    codes, words = operands(instruction, 2, rng), random_words(legal(instruction, target), (2,), rng)
    d, indices = run(instruction, codes, words, target), sp.unpack_metadata(words, instruction)
    for f in sp.selectors(instruction):
        garbage = random_words(range(16), (2,), rng)
        placed = sp.pack_metadata(indices, instruction, selector=f, into=garbage)
        same(run(instruction, codes, placed, target, selector=f), d)


@each_instruction
def test_a_dense_matrix_that_obeys_the_pattern(instruction: Instruction) -> None:
    fmt, rng = instruction.format("A"), np.random.default_rng(5)
    _, b, c = operands(instruction, 2, rng)
    dense = sp.prune(fmt.array(mixed(fmt, (2, instruction.m, instruction.k), rng, 0.01)), instruction)
    stored, indices = sp.compress(dense, instruction)
    call, codes = partial(mma, instruction, target=instruction.targets[0]), instruction.format("D").codes
    for f in sp.selectors(instruction):
        words = sp.pack_metadata(indices, instruction, selector=f)
        same(codes(call(dense, b, c, selector=f)), codes(call(stored, b, c, metadata=words, selector=f)))
        same(codes(call(dense, b)), codes(call(stored, b, np.zeros_like(c), metadata=words, selector=f)))


@pytest.mark.parametrize("instruction", PLAIN, ids=str)
def test_ordered_metadata_is_metadata(instruction: Instruction) -> None:
    ordered, rng = replace(instruction, sparsity="sp::ordered_metadata"), np.random.default_rng(6)
    codes, words = operands(instruction, 2, rng), random_words(sp.legal_codes(ordered), (2,), rng)
    for target in instruction.targets:
        f = sp.selectors(instruction)[-1]
        d = run(instruction, codes, words, target, selector=f)
        same(run(ordered, codes, words, target, selector=f), d)


# Against dense instructions.


def dense_of(instruction: Instruction, k: int) -> Instruction:
    return replace(instruction, sparsity=None, k=k)


@pytest.mark.parametrize("instruction", INTEGERS, ids=str)
def test_an_integer_product_is_that_of_the_whole_matrix(instruction: Instruction) -> None:
    """By one dense instruction of the same k, or two of half of it."""
    rng, known = np.random.default_rng(7), {i for i in instructions() if not i.sparse}
    a = sp.prune(random_codes(instruction.format("A"), (3, 16, instruction.k), rng), instruction)
    _, b, c = operands(instruction, 3, rng)
    c = c.view(np.int32) >> instruction.satfinite  # two steps would clamp twice
    parts = 1 if dense_of(instruction, instruction.k) in known else 2
    dense = dense_of(instruction, instruction.k // parts)
    for target in sorted({targets[-1] for targets in GENERATIONS.values()} & set(instruction.targets)):
        d = c
        for x, y in zip(np.split(a, parts, axis=2), np.split(b, parts, axis=1), strict=True):
            d = mma(dense, x, y, d, target=target)
        same(mma(instruction, a, b, c, target=target), d)


SHORT = {("m16n8k16", "f16"), ("m16n8k16", "bf16"), ("m16n8k8", "tf32")}
ONE_STEP = [i for i in PLAIN if (i.shape, i.a_type) in SHORT]


@pytest.mark.parametrize("target", ["sm_90", "sm_100a", "sm_120"])
@pytest.mark.parametrize("instruction", ONE_STEP, ids=str)
def test_one_step_is_that_of_the_whole_matrix(instruction: Instruction, target: str) -> None:
    """Since Hopper both take all their products in one step, and what is not stored adds nothing to it."""
    rng = np.random.default_rng(8)
    a, b, c = (
        with_exponents(instruction.format(x), rng.integers(-9, 10, (40, *shape)), rng)  # type: ignore[arg-type]
        for x, shape in zip(ABC, ((16, instruction.k), (instruction.k, 8), (16, 8)), strict=True)
    )
    a = sp.prune(a, instruction)
    codes = instruction.format("D").codes
    dense = mma(dense_of(instruction, instruction.k), a, b, c, target=target)
    same(codes(mma(instruction, a, b, c, target=target)), codes(dense))


def test_where_steps_differ_results_may() -> None:
    """On Ampere a step has 8 products, of a sparse A stored ones: logical columns 0 to 15 make up the first.

    1 + 2^-24 + 2^-24 in one step is 1 + 2^-23. The dense instructions end a step at column 8, and lose 2^-24.
    """
    sparse = parse("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    a, b = np.zeros((16, 32), np.float16), np.full((32, 8), 2.0**-12, np.float16)
    a[:, [0, 4, 8]] = 2.0**12, 2.0**-12, 2.0**-12
    first = mma(dense_of(sparse, 16), a[:, :16], b[:16], target="sm_80")
    dense = mma(dense_of(sparse, 16), a[:, 16:], b[16:], first, target="sm_80")
    same(dense, np.ones((16, 8), np.float32))
    same(mma(sparse, a, b, target="sm_80"), dense + np.float32(2.0**-23))


# Batches.


@pytest.mark.parametrize("instruction", TYPES, ids=str)
def test_batches(instruction: Instruction) -> None:
    rng, warps = np.random.default_rng(9), 2 * CHUNK // 128 + 3
    a, b, c = (load(instruction, x, y) for x, y in zip(ABC, operands(instruction, warps, rng), strict=True))
    words = random_words(range(16), (warps,), rng)
    call = partial(execute, instruction, target="sm_90a", undefined="hardware")
    whole = call(a, b, c, metadata=words)
    same(call(a, b, c, metadata=words, threads=3), whole)
    for one in (0, warps // 2, warps - 1):
        same(call(a[one], b[one], c[one], metadata=words[one]), whole[one])
    crossed = call(a[:3, None], b[0], c[:4], metadata=words[:2, None, None])
    assert crossed.shape == (2, 3, 4, *whole.shape[1:])
    for i, j, k in np.ndindex(2, 3, 4):
        same(crossed[i, j, k], call(a[j], b[0], c[k], metadata=words[i]))
    assert call(a[:0], b[0], c[0], metadata=words[0]).shape == (0, *whole.shape[1:])
    assert call(a[0], b[0], c[0], metadata=words[:0]).shape == (0, *whole.shape[1:])


# Metadata that is refused: ~ stands for the rest of a message.

F16 = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
BF16, ORDERED = F16.replace("f16.f16", "bf16.bf16"), F16.replace("mma.sp", "mma.sp::ordered_metadata")
TF32 = "mma.sp.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
FP8 = "mma.sp.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32"
GOOD = np.full(LANES, 0xEEEEEEEE, np.uint32)
A, B, C = zeros(F16)


@pytest.mark.parametrize(
    ("mnemonic", "targets", "nibble", "place"),
    [
        (F16, ("sm_90", "sm_120a"), 0x5, "row 12, group 3 (columns 12 to 15)"),
        (F16, ("sm_80", "sm_100"), 0xF, "row 12, group 3 (columns 12 to 15)"),
        (ORDERED, ("sm_80", "sm_90"), 0x1, "row 12, group 3 (columns 12 to 15)"),
        (BF16, ("sm_80", "sm_100"), 0xA, "row 12, group 3 (columns 12 to 15)"),
        (TF32, ("sm_90", "sm_90a"), 0x0, "row 12, group 3 (columns 6 to 7)"),
        (TF32, ("sm_80", "sm_120"), 0x8, "row 12, group 3 (columns 6 to 7)"),
        (FP8, ("sm_89", "sm_90"), 0x1, "row 4, group 15 (columns 60 to 63)"),
    ],
)
def test_undefined_metadata_is_named(mnemonic: str, targets: list[str], nibble: int, place: str) -> None:
    words = np.tile(GOOD, (2, 3, 1))
    words[1, 2, 18] = words[1, 2, 18] & 0x0FFFFFFF | nibble << 28
    f = max(sp.selectors(mnemonic)) - 1 if mnemonic != FP8 else 0
    indices = f"{nibble:#x}, indices ({nibble & 3}, {nibble >> 2})"
    where = f"metadata nibble 7 of lane 18 is {indices}, for warp (1, 2), "
    for target in targets:
        with pytest.raises(MetadataError, match=exactly(f"{mnemonic}: {where}{place}; legal are 0x~")):
            execute(mnemonic, *zeros(mnemonic), target=target, metadata=words, selector=f)
        execute(mnemonic, *zeros(mnemonic), target=target, metadata=words[1, :2], selector=f)


@pytest.mark.parametrize("nibble", REVERSED)
def test_descending_indices(nibble: int) -> None:
    """PTX defines them, but their effect on Blackwell is not known for bf16."""
    words = np.full(LANES, nibble * 0x11111111, np.uint32)
    for target in ("sm_80", "sm_89", "sm_90a"):
        execute(F16, A, B, C, target=target, metadata=words)
        execute(BF16, A, B, C, target=target, metadata=words)
    for target in ("sm_100", "sm_103a", "sm_110f", "sm_120", "sm_121a"):
        execute(F16, A, B, C, target=target, metadata=words)
        named = f"{BF16}: metadata nibble 0 of lane 0 is {nibble:#x}, "
        unknown = f"for bf16 ptxas does not sort them on {target}, and their effect on the hardware is not known"
        with pytest.raises(UnsupportedError, match=exactly(f"{named}~{unknown}")):
            execute(BF16, A, B, C, target=target, metadata=words)


@pytest.mark.parametrize(
    ("error", "changes", "message"),
    [
        (MetadataError, {"selector": 4}, f"{F16}: selector is 4; legal are 0, 1, 2, 3"),
        (MetadataError, {"selector": -1}, f"{F16}: selector is -1; legal are 0, 1, 2, 3"),
        (MetadataError, {"selector": 4, "undefined": "hardware"}, f"{F16}: selector is 4; legal are 0, 1~"),
        (MetadataError, {"selector": None}, f"{F16}: selector is None; legal are 0, 1, 2, 3"),
        (OperandError, {"metadata": None}, f"{F16} needs metadata"),
        (OperandError, {"metadata": GOOD[:31]}, f"{F16}: metadata is uint32 (31,); expected uint32 [~"),
        (OperandError, {"metadata": GOOD[:, None]}, f"{F16}: metadata is uint32 (32, 1); expected uint32 [~"),
        (OperandError, {"metadata": GOOD.tolist()}, f"{F16}: metadata is int64 (32,); expected uint32 [~"),
        (OperandError, {"metadata": GOOD.view("i4")}, f"{F16}: metadata is int32 (32,); expected uint32 [~"),
        (OperandError, {"metadata": np.array([GOOD] * 3), "a": np.array([A] * 2)},
         f"{F16}: batches do not broadcast: A (2, 2, 32), B (2, 32), C (4, 32), metadata (3, 32)"),
        (OperandError, {"undefined": "ignore"}, "undefined is 'ignore'; expected 'error' or 'hardware'"),
        (UnsupportedError, {"undefined": "hardware", "target": "sm_80"},
         f"{F16}: the effect of undefined metadata on sm_80 is not known; undefined='hardware' is for ~"),
        (OperandError, {"scale_a": GOOD}, f"{F16} takes no scale_a"),
    ],
)  # fmt: skip
def test_what_cannot_be_executed(error: type[WarpmmaError], changes: dict[str, Any], message: str) -> None:
    given = {"a": A, "b": B, "c": C, "metadata": GOOD, "target": "sm_90", **changes}
    with pytest.raises(error, match=exactly(message)):
        execute(F16, **given)


def test_matrices_that_break_the_pattern() -> None:
    dense, b = np.zeros((2, 16, 16), np.float16), np.ones((16, 8), np.float16)
    dense[1, 5, 8:11] = 1
    broken = f"{F16}: A breaks the 2:4 pattern at warp (1,), row 5, group 2 (columns 8 to 11): ~"
    with pytest.raises(MetadataError, match=exactly(broken)):
        mma(F16, dense, b, target="sm_90")
    with pytest.raises(OperandError, match=exactly(f"{F16}: A is (2, 16, 16); expected [..., 16, 8]")):
        mma(F16, dense, b, target="sm_90", metadata=GOOD)
    with pytest.raises(OperandError, match=exactly(f"{F16} needs metadata")):
        mma(F16, dense[..., :8], b, target="sm_90")


# Registers recorded on an H200 with metadata that PTX leaves undefined.

with np.load(Path(__file__).parents[1] / "data" / "h200_undefined.npz", allow_pickle=False) as archive:
    RECORDED = {key: archive[key] for key in archive.files}


@pytest.mark.parametrize("mnemonic", sorted({key.partition("|")[0] for key in RECORDED if "|" in key}))
def test_an_h200_reads_undefined_metadata_so(mnemonic: str) -> None:
    assert str(RECORDED["target"]) == "sm_90a"
    a, b, c, e = (RECORDED[f"{mnemonic}|{x}"] for x in "abce")
    with pytest.raises(MetadataError, match="metadata nibble"):
        sp.check_metadata(e, mnemonic)
    for f in sp.selectors(mnemonic):
        d = execute(mnemonic, a, b, c, target="sm_90a", metadata=e, selector=f, undefined="hardware")
        same(d, RECORDED[f"{mnemonic}|d{f}"])


def test_every_sparse_instruction_of_hopper_was_recorded() -> None:
    names = {key.partition("|")[0] for key in RECORDED if "|" in key}
    assert names == {str(i) for i in HOPPER if i.sparsity == "sp"}
