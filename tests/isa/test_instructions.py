"""The instruction table: the catalogue both ways, parsing in any order, and errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isa_cases import B1, F8F6F4, F16, F64, NVF4, ORDERS

from warpmma.errors import MnemonicError, OperandError, TargetError
from warpmma.isa import TARGET_NAMES as TARGETS
from warpmma.isa import Instruction, check_target, instructions, parse
from warpmma.layouts import Operand
from warpmma.registers import Packing

pytestmark = pytest.mark.quick

CATALOGUE: dict[str, dict[str, Any]] = {
    row["mnemonic"]: row
    for row in map(json.loads, (Path(__file__).parents[1] / "data" / "catalogue.jsonl").read_text().splitlines())
}
"""Every mnemonic that ptxas 12.9 to 13.5 compiles to something, with its targets, as asked of ptxas."""

MXF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4"

each_instruction = pytest.mark.parametrize("instruction", instructions(), ids=str)


# The catalogue.


def test_the_table_is_the_catalogue() -> None:
    assert len(CATALOGUE) == 420
    mine = {(str(i), target) for target in TARGETS for i in instructions(target)}
    assert mine == {(mnemonic, target) for mnemonic, row in CATALOGUE.items() for target in row["targets"]}
    assert {str(i) for i in instructions()} == CATALOGUE.keys()
    assert len(instructions()) == len(CATALOGUE)


@each_instruction
def test_an_instruction_is_its_catalogue_row(instruction: Instruction) -> None:
    row = CATALOGUE[str(instruction)]
    assert list(instruction.targets) == row["targets"]
    assert instruction.targets[0] == row["min_target"]
    assert "{}.{}".format(*instruction.ptx) == row["min_ptx"]
    assert instruction.documented == row["documented"]


@pytest.mark.parametrize(
    ("targets", "count"),
    [  # docs/specification/ptx.md 1.2, less the four bf16 forms of m8n8k4 from sm_80 on
        ("sm_70 sm_72", 12),
        ("sm_75", 31),
        ("sm_80 sm_86 sm_87 sm_88", 163 - 4),
        ("sm_89", 187 - 4),
        ("sm_90 sm_90a sm_100 sm_103 sm_110 sm_120 sm_121", 202 - 4),
        ("sm_100a sm_100f sm_103a sm_103f sm_110a sm_110f", 222 - 4),
        ("sm_120f sm_121f", 419 - 4),
        ("sm_120a sm_121a", 424 - 4),
    ],
)
def test_counts_per_target(targets: str, count: int) -> None:
    assert {len(instructions(target)) for target in targets.split()} == {count}


def test_counts_of_documented_spellings_and_of_operations() -> None:
    """docs/specification/ptx.md 1.2: 408 documented spellings, 56 of them aliases; and 12 that ptxas takes besides."""
    documented = [i for i in instructions() if i.documented]
    assert [sum(i.sparsity == s for i in documented) for s in (None, "sp", "sp::ordered_metadata")] == [215, 44, 149]
    assert len({i.canonical for i in documented}) == 352
    assert len(instructions()) == 408 + 12


# Printing, parsing, and spellings of one operation.


@each_instruction
def test_parse_and_print_are_inverse(instruction: Instruction) -> None:
    assert parse(str(instruction)) == instruction
    assert parse(instruction) is instruction
    assert parse(f"  {instruction};\n") == instruction


@st.composite
def shuffled(draw: st.DrawFn) -> tuple[Instruction, str]:
    """An instruction and its qualifiers in any order, but types among types and layouts among layouts."""
    instruction = draw(st.sampled_from(instructions()))
    head, *words = str(instruction).split(".")
    types = [instruction.d_type, instruction.a_type, instruction.b_type, instruction.c_type]
    ordered = {"type": types, "layout": [instruction.a_layout, instruction.b_layout]}
    part = {word: name for name, group in ordered.items() for word in group}
    mixed = draw(st.permutations(words))
    queues = {name: iter(group) for name, group in ordered.items()}
    return instruction, ".".join([head, *(next(queues[part[w]]) if w in part else w for w in mixed)])


@settings(deadline=None, database=None, max_examples=300)
@given(shuffled())
def test_qualifiers_are_read_in_any_order(case: tuple[Instruction, str]) -> None:
    instruction, mnemonic = case
    assert parse(mnemonic) == instruction


@pytest.mark.parametrize(("written", "printed"), ORDERS)
def test_orders_in_use_elsewhere_are_read(written: str, printed: str) -> None:
    assert str(parse(written)) == printed


@each_instruction
def test_canonical_leaves_out_defaults(instruction: Instruction) -> None:
    canonical = instruction.canonical
    assert canonical.family is not None
    assert canonical.canonical == canonical
    assert canonical.rounding != "rn"
    assert (canonical.kind, canonical.scale_vec) not in {("mxf8f6f4", "1X"), ("mxf4", "2X")}
    assert (canonical.ptx, canonical.targets) == (instruction.ptx, instruction.targets)
    operands: tuple[Operand, ...] = ("A", "B", "C", "D")
    assert all(canonical.layout(o) == instruction.layout(o) for o in operands)
    default = re.sub(r"\.rn$|\.scale_vec::1X|(?<=mxf4\.block_scale)\.scale_vec::2X", "", str(instruction))
    assert str(canonical) == default


@pytest.mark.parametrize(
    ("mnemonic", "scales"),
    [
        (F16, 0),
        ("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0", 1),
        ("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0", 1),
        (MXF4 + ".block_scale.f32.e2m1.e2m1.f32.ue8m0", 2),
        (MXF4 + ".block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", 2),
        (NVF4 + ".block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", 2),
        (NVF4 + ".block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", 4),
    ],
)
def test_scales_per_row(mnemonic: str, scales: int) -> None:
    """PTX ISA 9.1, 9.7.14.3: scale_vec::NX are N scales to a row of A."""
    instruction = parse(mnemonic)
    assert (instruction.scales_per_row, instruction.block_scale) == (scales, scales > 0)


@pytest.mark.parametrize(
    ("mnemonic", "operand", "slot", "bits", "shift"),
    [
        (F8F6F4 + ".f32.e2m1.e3m2.f32", "A", 8, 4, 2),  # bits 5:2 of a byte
        (F8F6F4 + ".f32.e2m1.e3m2.f32", "B", 8, 6, 0),  # bits 5:0
        (F8F6F4 + ".f16.e2m3.e2m1.f16", "B", 8, 4, 2),
        (F8F6F4 + ".f16.e2m3.e2m1.f16", "D", 16, 16, 0),
        (F8F6F4.replace("f8", "mxf8") + ".block_scale.f32.e2m1.e2m3.f32.ue8m0", "A", 8, 4, 2),
        (MXF4 + ".block_scale.f32.e2m1.e2m1.f32.ue8m0", "A", 4, 4, 0),  # packed: no padding
        (F16, "A", 16, 16, 0),
        (F16, "D", 32, 32, 0),
        (F64, "B", 64, 64, 0),
        (B1 + ".xor.popc", "A", 1, 1, 0),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "A", 32, 32, 0),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s4.u4.s32", "B", 4, 4, 0),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "B", 8, 8, 0),
    ],
)
def test_elements_sit_in_their_containers(mnemonic: str, operand: Operand, slot: int, bits: int, shift: int) -> None:
    """PTX ISA 9.1, 9.7.14.5.10 and .11."""
    assert parse(mnemonic).packing(operand) == Packing(slot=slot, bits=bits, shift=shift)


# Errors.


@pytest.mark.parametrize(
    ("mnemonic", "message"),
    [
        (F16.replace("mma", "mmma"), "starts with 'mmma'; expected 'mma'"),
        (F16 + ".f33", "unknown qualifier '.f33', did you mean '.f32'"),
        (F16.replace("k16", "k61"), "unknown qualifier '.m16n8k61', did you mean '.m16n8k16'"),
        (F16.replace("col", "cal"), "unknown qualifier '.cal', did you mean '.col'"),
        (F16.replace("16.row", "16..row"), "unknown qualifier '.'"),
        (F8F6F4.replace("::", ":") + ".f32.e2m1.e2m1.f32", "'.kind:f8f6f4', did you mean '.kind::f8f6f4'"),
        (F16.replace("mma", "mma.sp::orderd_metadata"), "did you mean '.sp::ordered_metadata'"),
        (F16.replace(".sync", ""), "needs .sync; got none"),
        (F16.replace(".aligned", ""), "needs .aligned; got none"),
        (F16.replace(".m16n8k16", ""), "needs one shape, such as .m16n8k16; got none"),
        (F16.replace(".row.col", ""), "needs the layouts of A and B, as .row.col; got none"),
        (F16.replace(".row", ""), "needs the layouts of A and B, as .row.col; got .col"),
        (F16.removesuffix(".f32"), "the types of D, A, B and C, as .f32.f16.f16.f32; got .f32, .f16, .f16."),
        (F16 + ".f32", "the types of D, A, B and C, as .f32.f16.f16.f32; got .f32, .f16, .f16, .f32, .f32."),
        (F16 + ".sync", "needs .sync; got .sync, .sync"),
        (F16 + ".m16n8k8", "needs one shape, such as .m16n8k16; got .m16n8k16, .m16n8k8"),
        (F16 + ".row", "needs the layouts of A and B, as .row.col; got .row, .col, .row"),
        (F16 + ".sp.sp::ordered_metadata", "takes one sparsity at the most; got .sp, .sp::ordered_metadata"),
        (F16 + ".satfinite.satfinite", "takes one satfinite at the most; got .satfinite, .satfinite"),
        (F64 + ".rn.rz", "takes one rounding at the most; got .rn, .rz"),
        (B1 + ".xor.and.popc", "takes one bit_op at the most; got .xor, .and"),
        (MXF4 + ".kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "takes one kind at the most"),
        (NVF4 + ".scale_vec::2X.scale_vec::4X.f32.e2m1.e2m1.f32", "takes one scale_vec at the most"),
        (MXF4 + ".f32.e2m1.e2m1.f32.ue8m0.ue4m3", "takes one stype at the most; got .ue8m0, .ue4m3"),
        (B1 + ".xor", ".popc goes with .xor or .and"),
        (B1 + ".popc", ".popc goes with .xor or .and"),
        (MXF4 + ".block_scale.f32.e2m1.e2m1.f32", ".block_scale goes with .ue8m0 or .ue4m3"),
        (MXF4 + ".f32.e2m1.e2m1.f32.ue8m0", ".block_scale goes with .ue8m0 or .ue4m3"),
        # Readable, but no instruction.
        (B1, "bit_op is None where 'xor' is legal"),
        (MXF4 + ".scale_vec::2X.f32.e2m1.e2m1.f32", "stype is None where 'ue8m0' is legal"),
        (NVF4 + ".block_scale.f32.e2m1.e2m1.f32.ue8m0", "scale_vec is None where '2X' is legal"),
        (NVF4 + ".block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue4m3", "stype is 'ue4m3' where 'ue8m0'"),
        (F16 + ".satfinite", "satfinite is True where False is legal"),
        (F16 + ".rn", "rounding is 'rn' where None is legal"),
        (F16.replace("row.col", "col.row"), "a_layout is 'col' where 'row' is legal, b_layout is 'row'"),
        (F16.replace("f16.f16", "f16.bf16"), "b_type is 'bf16' where 'f16' is legal"),
        (F16.replace("f16.f32", "f16.f16"), "c_type is 'f16' where 'f32' is legal"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e4m3.f32", "kind is None where 'f8f6f4' is legal"),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s4.s32", "b_type is 's4' where 's8' is legal"),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "k is 32 where 64 is legal"),
        ("mma.sp.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64", "sparsity is 'sp' where None is legal"),
    ],
)  # fmt: skip
def test_bad_mnemonics_are_explained(mnemonic: str, message: str) -> None:
    with pytest.raises(MnemonicError) as caught:
        parse(mnemonic)
    assert message in str(caught.value)
    assert mnemonic in str(caught.value) or "is not an instruction" in str(caught.value)
    assert_hint_is_legal(str(caught.value))


def assert_hint_is_legal(message: str) -> None:
    hint = re.fullmatch(r"(?s).*\. Nearest legal: (\S+)", message)
    assert hint is not None, message
    assert str(parse(hint[1])) == hint[1]


@pytest.mark.parametrize("a_layout", ["row", "col"])
@pytest.mark.parametrize("b_layout", ["row", "col"])
def test_m8n8k4_bf16_is_refused_although_ptxas_takes_it(a_layout: str, b_layout: str) -> None:
    with pytest.raises(
        MnemonicError, match="ptxas assembles the bf16 forms of m8n8k4 to no instruction at all"
    ) as caught:
        parse(f"mma.sync.aligned.m8n8k4.{a_layout}.{b_layout}.f32.bf16.bf16.f32")
    assert_hint_is_legal(str(caught.value))


@pytest.mark.parametrize("value", [None, 3, b"mma", ["mma"]])
def test_what_is_no_string_is_no_mnemonic(value: Any) -> None:
    with pytest.raises(MnemonicError, match=f"a mnemonic is a string, .* got {type(value).__name__}"):
        parse(value)


def test_records_that_are_no_instruction_are_refused() -> None:
    record = Instruction(m=16, n=8, k=16, d_type="f32", a_type="f16", b_type="f16", c_type="f16")
    with pytest.raises(MnemonicError, match="c_type is 'f16' where 'f32' is legal"):
        parse(record)
    with pytest.raises(MnemonicError, match="is not an instruction"):
        _ = record.targets


@pytest.mark.parametrize(
    ("target", "near"), [("sm_99", "sm_90"), ("SM_90", "sm_90"), ("90a", "sm_90a"), ("sm_120b", "sm_120")]
)
def test_unknown_targets_are_refused(target: str, near: str) -> None:
    for use in (instructions, lambda t: check_target(parse(F16), t)):
        with pytest.raises(
            TargetError, match=rf"unknown target '{target}'; did you mean '{near}\w?'\? Known are sm_70, "
        ):
            use(target)


def test_targets_without_the_instruction_are_refused() -> None:
    check_target(parse(F16), "sm_80")
    with pytest.raises(TargetError, match=f"^{F16} is not legal on sm_75; legal on sm_80, sm_86, .*, sm_121a$"):
        check_target(parse(F16), "sm_75")


@pytest.mark.parametrize("operand", ["E", "d", "", "CD"])
def test_unknown_operands_are_refused(operand: Any) -> None:
    for use in (parse(F16).type, parse(F16).format, parse(F16).packing, parse(F16).layout):
        with pytest.raises(OperandError, match=f"operand is '{operand}'; expected 'A', 'B', 'C' or 'D'"):
            use(operand)
