"""Look-ups in words: what is found, what given bits mean, and what is refused in which words."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma import lookup, scaling, sparsity
from warpmma.errors import MetadataError, MnemonicError, OperandError, ScaleError, WarpmmaError
from warpmma.formats import FloatFormat
from warpmma.isa import instructions
from warpmma.lookup import ids_of, operand_layout, read_word, what, where

pytestmark = pytest.mark.quick

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
QUAD = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
SP = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SP_TF32 = "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32"
MX = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
WG = "wgmma.mma_async.sync.aligned.m64n24k16.f16.f16.f16"


@pytest.mark.parametrize(
    ("arguments", "given", "place"),
    [
        ((F16, "A", 3, 5), {}, (14, 0, 16, 31, 1)),
        ((F16, "B", 9, 2), {}, (8, 1, 16, 31, 3)),
        ((F16, "D", 15, 7), {}, (31, 3, 0, 31, 3)),
        ((QUAD, "A", 5, 2), {"matrix": 3}, (29, 1, 0, 15, 2)),
        ((SP, "metadata", 9, 6), {"selector": 1}, (7, 0, 24, 27, 6)),
        ((MX, "scale_a", 11, 1), {"byte_id": 2, "thread_id": 1}, (15, 0, 24, 31, 3)),
        ((MX, "scale_b", 7, 0), {"thread_id": 3}, (31, 0, 0, 7, 0)),
        ((WG, "D", 63, 23), {}, (127, 5, 16, 31, 11)),
        ((WG, "A", 24, 9), {}, (32, 3, 16, 31, 7)),
    ],
)
def test_where_an_element_is(arguments: Any, given: Any, place: tuple[int, ...]) -> None:
    found = wm.where(*arguments, **given)
    assert (found.lane, found.register, found.low, found.high, found.index) == place
    assert (found.operand, found.row, found.column) == arguments[1:]
    assert found in wm.what(*arguments[:2], lane=found.lane, register=found.register)


def test_places_are_those_of_the_rooms_that_pack() -> None:
    """Of metadata and scales: what `sparsity` and `scaling` pack lies where a look-up says."""
    for i in instructions():
        for selector in sparsity.selectors(i) if i.sparse else ():
            rows, groups = operand_layout(i, "metadata").shape[-2:]
            indices = np.zeros((rows, groups, 2), np.uint8)
            indices[rows - 3, groups - 1] = 3
            words = sparsity.pack_metadata(indices, i, selector=selector)
            cell = where(i, "metadata", rows - 3, groups - 1, selector=selector)
            assert words[cell.lane] == 15 << cell.low and np.count_nonzero(words) == 1
        for operand, name in (("A", "scale_a"), ("B", "scale_b")) if i.block_scale else ():
            for given in ids_of(i, name):
                outer, blocks = operand_layout(i, name).shape[-2:]
                scales = np.zeros((outer, blocks), np.uint8)
                scales[outer - 3, blocks - 1] = 3
                turned = scales if operand == "A" else scales.T
                words = scaling.pack_scales(turned, i, operand, **given)  # type: ignore[arg-type]
                cell = where(i, name, outer - 3, blocks - 1, **given)  # type: ignore[call-overload]
                assert words[cell.lane] == 3 << cell.low and np.count_nonzero(words) == 1


def test_only_what_selectors_read() -> None:
    assert what(SP, "metadata", lane=7, selector=0) == ()
    assert {x.matrix for x in what(SP, "metadata", lane=7)} == {1}
    assert what(SP, "metadata", lane=7, selector=1) == what(SP, "metadata", lane=7)
    assert [(x.row, x.column) for x in what(MX, "scale_a", lane=3, byte_id=2)] == [(8, 0), (8, 1)]
    assert [x.low for x in what(MX, "scale_a", lane=3, byte_id=2)] == [16, 24]
    assert what(MX, "scale_a", lane=3, thread_id=0) == ()
    assert len(what(F16, "A", lane=3, register=None)) == 8


# What bits mean.


def test_metadata_words_mean_what_execution_reads() -> None:
    rng = np.random.default_rng(5)
    for i in instructions():
        for selector in sparsity.selectors(i) if i.sparse else ():
            codes = sorted(sparsity.legal_codes(i))
            rows, groups = operand_layout(i, "metadata").shape[-2:]
            nibbles = rng.choice(codes, (rows, groups))
            words = sparsity.pack_metadata(np.stack([nibbles & 3, nibbles >> 2], -1), i, selector=selector)
            expected = sparsity.positions(words, i, selector=selector).reshape(rows, groups, -1)
            for lane in rng.integers(0, 32, 4).tolist():
                for part in read_word(i, "metadata", int(words[lane]), lane=lane, selector=selector):
                    assert part.stored == tuple(expected[part.cell.row, part.cell.column])
                    assert part.code == nibbles[part.cell.row, part.cell.column]
                    assert all(re.search(rf"\b{column}\b", part.meaning) for column in part.stored[::4])


@pytest.mark.parametrize(
    ("mnemonic", "nibble", "stored", "meaning"),
    [
        (SP, 0x4, (24, 25), "A[9, 24-27]: columns 24 and 25 are stored"),
        (SP, 0x8, (24, 26), "A[9, 24-27]: columns 24 and 26 are stored"),
        (SP, 0x5, (25, 25), "A[9, 24-27]: columns 25 and 25 are stored; PTX leaves it undefined"),
        (SP_TF32, 0x4, (12,), "A[9, 12-13]: column 12 is stored"),
        (SP_TF32, 0xE, (13,), "A[9, 12-13]: column 13 is stored"),
        (SP_TF32, 0x9, (), "A[9, 12-13]: the high half of column 12 and the low half of column 13 are stored as one; "
                           "PTX leaves it undefined"),
        (SP.replace("k32.row.col.f32.f16.f16.f32", "k64.row.col.s32.s4.s4.s32"), 0xD, (50, 51, 54, 55),
         "A[9, 48-55]: columns 50-51 and 54-55 are stored"),
    ],
)  # fmt: skip
def test_nibbles_in_words(mnemonic: str, nibble: int, stored: tuple[int, ...], meaning: str) -> None:
    cell = where(mnemonic, "metadata", 9, 6)
    parts = read_word(mnemonic, "metadata", nibble << cell.low, lane=cell.lane)
    (part,) = [x for x in parts if x.cell == cell]
    assert (part.code, part.stored, part.meaning, part.value) == (nibble, stored, meaning, None)


def test_numbers_are_those_of_their_formats() -> None:
    rng = np.random.default_rng(7)
    for i in instructions()[::5]:
        for operand in "ABCD":
            layout, fmt = i.layout(operand), i.format(operand)  # type: ignore[arg-type]
            word = int(rng.integers(0, 1 << 63)) % (1 << layout.packing.width)
            codes = layout.packing.unpack(np.array(word, layout.packing.dtype))
            for part, code in zip(read_word(i, operand, word, lane=5), codes.tolist(), strict=True):
                value = fmt.decode(np.array([code], fmt.code_dtype))[0]
                assert part.code == code
                if isinstance(fmt, FloatFormat) and not np.isfinite(value):
                    assert part.value is None and part.meaning in ("NaN", "infinity", "-infinity")
                else:
                    assert part.value == Fraction(value.item()) and float(part.meaning) == value


def test_scales_are_numbers() -> None:
    parts = read_word(MX, "scale_a", 0xFF807F01, lane=3)
    assert [x.value for x in parts] == [Fraction(1, 2**126), 1, 2, None]
    assert [x.meaning for x in parts[1:]] == ["1", "2", "NaN"]
    assert (parts[0].cell.row, parts[3].cell.column) == (8, 1)


# Errors.


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: where(F16, "A", 16, 0), OperandError, f"{F16}: A has 16 rows; row is 16, expected 0 to 15"),
        (lambda: where(F16, "A", 0, -1), OperandError, f"{F16}: A has 16 columns; column is -1, expected 0 to 15"),
        (lambda: where(SP, "A", 0, 16), OperandError, f"{SP}: A has 16 stored columns; column is 16, expected 0 to 15"),
        (lambda: where(SP, "metadata", 0, 8), OperandError, f"{SP}: metadata has 8 groups; group is 8, expected 0 to"),
        (lambda: where(MX, "scale_b", 8, 0), OperandError, f"{MX}: scale_b has 8 columns; column is 8, expected 0 to"),
        (lambda: where(MX, "scale_a", 0, 2), OperandError, f"{MX}: scale_a has 2 blocks; block is 2, expected 0 to 1"),
        (lambda: where(F16, "E", 0, 0), OperandError, "operand is 'E'; expected 'A', 'B', 'C', 'D', 'metadata', "),
        (lambda: where(F16, "scales_a", 0, 0), OperandError, "operand is 'scales_a'; expected 'A', 'B', 'C', 'D', 'me"),
        (lambda: where(F16, "A", 0, 0, matrix=1), OperandError, f"{F16}: matrix of A is 1; expected 0"),
        (lambda: where(QUAD, "A", 0, 0, matrix=4), OperandError, f"{QUAD}: matrix of A is 4; expected 0, 1, 2, 3"),
        (lambda: where(F16, "A", 0, 0, selector=1), OperandError, f"{F16}: selector of A is 1; expected 0"),
        (lambda: where(SP, "metadata", 0, 0, selector=2), OperandError, f"{SP}: selector of metadata is 2; expected 0"),
        (lambda: where(MX, "scale_a", 0, 0, byte_id=1), OperandError, f"{MX}: byte_id of scale_a is 1; expected 0, 2"),
        (lambda: what(F16, "A", lane=32), OperandError, f"{F16}: A is in 32 lanes; lane is 32, expected 0 to 31"),
        (lambda: what(F16, "A", lane=0, register=4), OperandError,
         f"{F16}: A is in 4 registers; register is 4, expected 0 to 3"),
        (lambda: what(WG, "D", lane=128), OperandError,
         f"{WG}: D is in 128 lanes of a warpgroup; lane is 128, expected 0 to 127"),
        (lambda: what(WG, "B", lane=0), OperandError, f"{WG}: B lies in shared memory, in no registers; expected"),
        (lambda: what(WG, "metadata", lane=0), OperandError, f"{WG} has no metadata; expected 'A', 'C' or 'D'"),
        (lambda: what(F16, "metadata", lane=0), MetadataError, f"{F16} is dense, without pattern and metadata; exp"),
        (lambda: what(F16, "scale_a", lane=0), ScaleError, f"{F16} has no block scaling. Nearest that has: mma."),
        (lambda: read_word(F16, "A", 1 << 32, lane=0), OperandError, f"{F16}: the word is 4294967296; expected 32"),
        (lambda: read_word(F16, "A", 1, lane=0, register=None), OperandError,  # type: ignore[arg-type]
         f"{F16}: register is None; expected the one that has the word"),
        (lambda: lookup.layout_table(F16, "A", by="row"), OperandError, "by is 'row'; expected 'element' or 'lane'"),
        (lambda: lookup.layout_table("mma", "A"), MnemonicError, "mma: "),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused(call: Any, error: type[WarpmmaError], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        call()
