"""Warpgroup instructions: what ptxas accepts, parsing, errors, recipes and their evidence."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpmma as wm
from lab.generators import by_reference, operands, styles
from warpmma.arithmetic import FusedDotAdd, IntegerSum, Popcount, Recipe, compute, recipe
from warpmma.arithmetic import evidence_of as evidence
from warpmma.arithmetic import lowering as path
from warpmma.arithmetic.recipes.evidence import EVIDENCE
from warpmma.arithmetic.recipes.lowerings import LOWERINGS as PATHS
from warpmma.errors import MnemonicError, OperandError, TargetError
from warpmma.formats import FloatFormat
from warpmma.isa import TARGET_NAMES as TARGETS
from warpmma.isa import WarpgroupInstruction, parse, parse_any, parse_warpgroup, warpgroup_instructions

HEAD = "wgmma.mma_async.sync.aligned"
F16, S8, B1 = f"{HEAD}.m64n8k16.f32.f16.f16", f"{HEAD}.m64n8k32.s32.s8.s8", f"{HEAD}.m64n8k256.s32.b1.b1.and.popc"
ALL = warpgroup_instructions()

_BY_8 = list(range(8, 257, 8))
_BY_16 = [8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256]
PTXAS: list[tuple[tuple[int, int], int, list[int], str]] = [
    ((8, 0), 16, _BY_8, "f16.f16.f16 f32.f16.f16 f32.bf16.bf16"),
    ((8, 0), 8, _BY_8, "f32.tf32.tf32"),
    ((8, 0), 32, _BY_8, "f16.e4m3.e4m3 f16.e4m3.e5m2 f16.e5m2.e4m3 f16.e5m2.e5m2"),
    ((8, 0), 32, _BY_8, "f32.e4m3.e4m3 f32.e4m3.e5m2 f32.e5m2.e4m3 f32.e5m2.e5m2"),
    ((8, 0), 32, _BY_16, "s32.s8.s8 s32.u8.u8 satfinite.s32.s8.s8 satfinite.s32.u8.u8"),
    ((8, 4), 32, _BY_16, "s32.s8.u8 s32.u8.s8 satfinite.s32.s8.u8 satfinite.s32.u8.s8"),
    ((8, 0), 256, _BY_16, "s32.b1.b1.and.popc"),
]
"""What ptxas 13.0 said of every N from 1 to 299, every k and pair of types: first PTX version, k, legal N, types."""
SPARSE = HEAD.replace("async", "async.sp")
VERSIONS = {
    f"{head}.m64n{n}k{k * times}.{t}": max(ptx, first)
    for head, times, first in ((HEAD, 1, (8, 0)), (SPARSE, 2, (8, 2)))
    for ptx, k, ns, types in PTXAS
    for t in types.split()
    for n in ns
    if not (times == 2 and "b1" in t)
}


# The table.


def test_the_table_is_what_ptxas_takes() -> None:
    assert {str(i): i.ptx for i in ALL} == VERSIONS
    assert len(ALL) == len(VERSIONS) == 2 * (12 * 32 + 8 * 18) + 18


def test_they_are_of_one_target() -> None:
    assert [t for t in TARGETS if warpgroup_instructions(t)] == ["sm_90a"]
    assert warpgroup_instructions("sm_90a") == ALL and {i.targets for i in ALL} == {("sm_90a",)}
    with pytest.raises(TargetError, match="unknown target 'sm_91'"):
        warpgroup_instructions("sm_91")


def test_parse_and_print_are_inverse() -> None:
    for i in ALL:
        assert parse_warpgroup(str(i)) == parse_any(f" {i};\n") == i
        assert parse_any(i) is parse_warpgroup(i) is i


@settings(deadline=None, database=None, max_examples=200)
@given(st.sampled_from(ALL).flatmap(lambda i: st.tuples(st.just(i), st.permutations(str(i).split(".")[2:]))))
def test_qualifiers_are_read_in_any_order(case: tuple[WarpgroupInstruction, list[str]]) -> None:
    instruction, mixed = case
    ordered = {"type": [instruction.d_type, instruction.a_type, instruction.b_type], "bit": ["and", "popc"]}
    part = {word: name for name, words in ordered.items() for word in words}
    queues = {name: iter(words) for name, words in ordered.items()}
    words = [next(queues[part[w]]) if w in part else w for w in mixed]
    assert parse_warpgroup(".".join(["wgmma.mma_async", *words])) == instruction


def test_they_have_the_names_of_an_instruction() -> None:
    """All that arithmetic asks of a dense `mma`, and the layouts of fragments."""
    dense = wm.parse("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    names = {name for name in dir(dense) if not name.startswith("_")}
    ours = {name for name in dir(ALL[0]) if not name.startswith("_")}
    assert names - ours == {"a_layout", "b_layout"} and ours - names == {"signatures"}
    i = parse_warpgroup(F16)
    constant = ["sparse", "sparsity", "block_scale", "scales_per_row", "kind", "scale_vec", "stype", "rounding"]
    assert [getattr(i, name) for name in constant] == [getattr(dense, name) for name in constant]
    assert (i.shape, i.m, i.c_type, i.canonical, i.documented) == ("m64n8k16", 64, "f32", i, True)
    assert [i.type(x) for x in ("A", "B", "C", "D")] == ["f16", "f16", "f32", "f32"]
    assert i.format("A") == dense.format("A")
    with pytest.raises(OperandError, match="operand is 'E'"):
        i.type("E")  # type: ignore[arg-type]


# Errors.


@pytest.mark.parametrize(
    ("mnemonic", "message"),
    [
        (F16.replace(".mma_async", ""), "starts with 'wgmma.sync'; expected 'wgmma.mma_async'"),
        (F16.replace("mma_async.sync", "sync.mma_async"), "starts with 'wgmma.sync'; expected 'wgmma.mma_async'"),
        (F16.replace(".sync", ".mma_async.sync"), "takes one name at the most; got .mma_async, .mma_async"),
        (F16.replace(".sync", ""), "needs .sync; got none"),
        (F16.replace(".aligned", ""), "needs .aligned; got none"),
        (F16.replace(".m64n8k16", ""), "needs one shape, such as .m64n128k16; got none"),
        (F16 + ".f32", "needs the types of D, A and B, as .f32.f16.f16; got .f32, .f16, .f16, .f32"),
        (F16 + ".f33", "unknown qualifier '.f33', did you mean '.f32'"),
        (F16.replace("m64", "m064"), "unknown qualifier '.m064n8k16', did you mean '.m64n8k16'"),
        (F16.replace("k16", "k16.row.col"), "unknown qualifier '.row'"),
        (S8.replace("s8", "s4"), "unknown qualifier '.s4', did you mean '.s8'"),
        (S8 + ".satfinite.satfinite", "takes one satfinite at the most"),
        (B1.replace(".popc", ""), ".popc goes with .and, which comes first"),
        (B1.replace(".and", ""), ".popc goes with .and, which comes first"),
        (B1.replace("and.popc", "popc.and"), ".popc goes with .and, which comes first"),
        # Readable, but no instruction.
        (F16.replace("m64", "m16"), "m is 16 where 64 is legal"),
        (F16.replace("n8", "n12"), "n is 12 where 8 is legal"),
        (F16.replace("n8", "n264"), "n is 264 where 256 is legal"),
        (F16.replace("k16", "k32"), "k is 32 where 16 is legal"),
        (F16.replace("f16.f16", "bf16.f16"), "a_type is 'bf16' where 'f16' is legal"),
        (F16.replace("f32.f16.f16", "f16.bf16.bf16"), "d_type is 'f16' where 'f32' is legal"),
        (F16 + ".satfinite", "satfinite is True where False is legal"),
        (S8.replace("n8", "n40"), "n is 40 where 32 is legal"),
        (B1.replace("and", "xor"), "bit_op is 'xor' where 'and' is legal"),
        (B1.replace(".and.popc", ""), "bit_op is None where 'and' is legal"),
        (B1 + ".satfinite", "satfinite is True where False is legal"),
    ],
)
def test_bad_mnemonics_are_explained(mnemonic: str, message: str) -> None:
    with pytest.raises(MnemonicError) as caught:
        parse_any(mnemonic)
    assert message in str(caught.value)
    hint = re.fullmatch(r"(?s).*\. Nearest legal: (\S+)", str(caught.value))
    assert hint is not None and str(parse_warpgroup(hint[1])) == hint[1]


@pytest.mark.parametrize("value", [None, 3, b"wgmma", ["wgmma"], "wgmma." * 40, F16 + " {d}, a, b"])
def test_what_is_no_mnemonic_is_refused(value: Any) -> None:
    for use in (parse_any, parse_warpgroup):
        with pytest.raises(MnemonicError):
            use(value)


def test_records_that_are_no_instruction_are_refused() -> None:
    with pytest.raises(MnemonicError, match="n is 40 where 32 is legal"):
        parse_any(replace(parse_warpgroup(S8), n=40))


def test_each_parser_names_the_other_kind() -> None:
    with pytest.raises(MnemonicError, match=r"expected 'mma' \(wgmma is PTX, computed by warpmma.matmul\("):
        parse(F16)
    mma = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    with pytest.raises(MnemonicError, match=r"starts with 'mma.sync'; expected 'wgmma.mma_async'"):
        parse_warpgroup(mma)
    assert parse_any(mma) == parse(mma) == parse_any(parse(mma))


# Recipes and evidence.


@pytest.mark.parametrize(
    ("types", "k", "fraction_bits", "floor", "result_bits"),
    [  # docs/specification/h200.md 3; docs/specification/numerics.md 1.2
        ("f32.f16.f16", 16, 25, -133, 23),
        ("f16.f16.f16", 16, 25, -21, 10),
        ("f32.bf16.bf16", 16, 25, -133, 23),
        ("f32.tf32.tf32", 8, 25, -133, 23),
        *((f"f32.{a}.{b}", 32, 13, -133, 13) for a, b in product(("e4m3", "e5m2"), repeat=2)),
        *((f"f16.{a}.{b}", 32, 13, -21, 10) for a, b in product(("e4m3", "e5m2"), repeat=2)),
    ],
)
def test_floating_recipes(types: str, k: int, fraction_bits: int, floor: int, result_bits: int) -> None:
    """One step over the whole k, whatever N."""
    d, a, b = types.split(".")
    unit = FusedDotAdd(
        fraction_bits=fraction_bits, products=k, floor=floor, result_bits=result_bits,
        rounding="rn" if d == "f16" else "rz",
    )  # fmt: skip
    found = {recipe(i, "sm_90a") for i in ALL if (i.d_type, i.a_type, i.b_type) == (d, a, b)}
    assert found == {Recipe(d=d, a=a, b=b, c=d, unit=unit)}


def test_half_is_the_dense_mma_of_hopper() -> None:
    for types, k in (("f32.f16.f16", 16), ("f16.f16.f16", 16), ("f32.bf16.bf16", 16), ("f32.tf32.tf32", 8)):
        mma = wm.parse(f"mma.sync.aligned.m16n8k{k}.row.col.{types}.{types[:3]}")
        assert recipe(mma, "sm_90a") == recipe(parse_warpgroup(f"{HEAD}.m64n8k{k}.{types}"), "sm_90a")


def test_integer_recipes() -> None:
    exact = [i for i in ALL if i.d_type == "s32"]
    assert len(exact) == 17 * 18
    for i in exact:
        unit = Popcount(operation="and") if i.bit_op else IntegerSum(saturate=i.satfinite)
        assert recipe(i, "sm_90a") == Recipe(d="s32", a=i.a_type, b=i.b_type, c="s32", unit=unit)


def test_other_targets_have_none() -> None:
    with pytest.raises(TargetError, match=f"^{re.escape(F16)} is not legal on sm_90; legal on sm_90a$"):
        recipe(parse_warpgroup(F16), "sm_90")
    with pytest.raises(TargetError, match="is not legal on sm_100a; legal on sm_90a"):
        wm.evidence(F16, target="sm_100a")


def test_all_is_measured() -> None:
    for instruction in ALL:
        how = evidence(instruction, "sm_90a")
        assert (how.kind, how.compared) == ("measured", "1,006,632,960 outputs, 0 differences") and "H200" in how.device
        assert not how.assumption
    assert "as HGMMA.SP" in str(evidence(parse_warpgroup(f"{SPARSE}.m64n8k32.f32.f16.f16"), "sm_90a"))
    assert "as BGMMA" in str(wm.evidence(B1, target="sm_90a"))
    assert str(wm.evidence(parse_warpgroup(f"{HEAD}.m64n8k16.f32.f16.f16"), target="sm_90a")) == (
        "measured: this project; on H200, driver 580.159, CUDA 13.0; 1,006,632,960 outputs, 0 differences; as HGMMA"
    )


def test_every_row_of_wgmma_is_used() -> None:
    rows = {id(next(row for row in EVIDENCE if row.fits(i, "sm_90a"))) for i in ALL}
    assert rows == {id(row) for row in EVIDENCE if row.group.startswith("wgmma")}
    assert {path(i, "sm_90a").group for i in ALL} == {p.group for p in PATHS if p.group.startswith("wgmma")}


# Arithmetic.


DISTINCT = {recipe(i, "sm_90a"): i.k for i in ALL}


def test_recipes_are_as_many_as_types() -> None:
    assert len(DISTINCT) == 21


@pytest.mark.parametrize("own", DISTINCT, ids=lambda r: f"{r.d}.{r.a}.{r.b}{'.sat' * getattr(r.unit, 'saturate', 0)}")
def test_numpy_equals_reference(own: Recipe) -> None:
    for seed, style in product((1, 2), styles(own)):
        given = operands(own, DISTINCT[own], max(2, 256 // DISTINCT[own]), style, np.random.default_rng(seed))
        assert np.array_equal(compute(own, **given), by_reference(own, **given)), style


@pytest.mark.parametrize(
    ("exponents", "c", "d"),
    [  # docs/specification/numerics.md 1.6: W9 and W10 for wgmma, and the last bit that is kept
        ([0, 0, -13], 0x00000000, 0x40000000),
        ([0, 0, -12], 0x00000000, 0x40000400),
        ([], 0x3F800200, 0x3F800000),  # C = 1 + 2^-14
        ([], 0x00000001, 0x00000000),
    ],
)
def test_fp8_keeps_13_fraction_bits(exponents: list[int], c: int, d: int) -> None:
    """Products that are powers of two, each of two factors with half the exponent."""
    fmt = wm.FORMATS["e4m3"]
    assert isinstance(fmt, FloatFormat)
    a, b = np.zeros((2, 32, 1), np.uint8)
    for i, exponent in enumerate(exponents):
        a[i], b[i] = fmt.encode(2.0 ** (exponent // 2)), fmt.encode(2.0 ** (exponent - exponent // 2))
    own = recipe(parse_warpgroup(f"{HEAD}.m64n8k32.f32.e4m3.e4m3"), "sm_90a")
    assert hex(compute(own, a, b, np.array([c], np.uint32))[0]) == hex(d)


def test_the_floor_of_fp8_cannot_be_observed() -> None:
    """Products are multiples of 2^-32 and exponents of C lie above Z: Z one higher or lower changes nothing."""
    for own in DISTINCT:
        if own.a in ("e4m3", "e5m2"):
            assert isinstance(own.unit, FusedDotAdd)
            for step, style in product((-1, 1), styles(own)):
                given = operands(own, 32, 50, style, np.random.default_rng(5))
                changed = replace(own, unit=replace(own.unit, floor=own.unit.floor + step))
                assert np.array_equal(compute(own, **given), compute(changed, **given))
