"""Recipes and evidence: complete, consistent with what ptxas emits, and honest about what was measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import warpmma as wm
from warpmma.arithmetic import GENERATIONS, FusedDotAdd, group, recipe
from warpmma.arithmetic import evidence_of as evidence
from warpmma.arithmetic.recipes.evidence import EVIDENCE
from warpmma.arithmetic.recipes.lowerings import LOWERINGS as PATHS
from warpmma.isa import Instruction, MatrixInstruction, warpgroup_instructions

pytestmark = pytest.mark.quick

DATA = Path(__file__).parents[1] / "data"
PAIRS = [(i, target) for i in wm.instructions() for target in i.targets]
EVERY: list[tuple[MatrixInstruction, str]] = [*PAIRS, *((i, t) for i in warpgroup_instructions() for t in i.targets)]
FLOATING = ("quad pair", "half", "fp8", "f8f6f4", "f64", "mxf8f6f4", "mxf4", "mxf4nvf4")


def test_every_pair_of_the_catalogue_has_a_recipe_and_evidence() -> None:
    rows = [json.loads(line) for line in (DATA / "catalogue.jsonl").read_text().splitlines()]
    catalogue = {(row["mnemonic"], target) for row in rows for target in row["targets"]}
    answered = {(str(i), t) for i, t in PAIRS if recipe(i, t) and evidence(i, t)}
    assert answered == catalogue and len(rows) == 420


def test_generations_partition_the_targets() -> None:
    named = [target for targets in GENERATIONS.values() for target in targets]
    assert sorted(named) == sorted(wm.TARGETS)


def test_every_row_of_the_tables_is_used() -> None:
    used = {id(next(row for row in EVIDENCE if row.fits(i, t))) for i, t in EVERY}
    assert [row for row in EVIDENCE if id(row) not in used] == []
    machines = {evidence(i, t).machine.replace(".SP", "{sp}") for i, t in EVERY}
    assert all(path.machine in machines or path.machine.replace("{sp}", "") in machines for path in PATHS)


def test_spellings_of_one_operation_share_recipe_and_evidence() -> None:
    for i, target in EVERY:
        assert recipe(i, target) == recipe(i.canonical, target)
        assert evidence(i, target) == evidence(i.canonical, target)


@pytest.mark.parametrize("target", GENERATIONS["Hopper"])
def test_hopper_is_measured(target: str) -> None:
    assert {evidence(i, target).kind for i in wm.instructions(target)} == {"measured"}
    assert all("H200" in evidence(i, target).device for i in wm.instructions(target))


def test_only_hopper_is_measured() -> None:
    assert {t for i, t in EVERY if evidence(i, t).kind == "measured"} == set(GENERATIONS["Hopper"])


@pytest.mark.parametrize(
    "target", [t for t in wm.TARGETS if t[3:].rstrip("af") in ("72", "87", "88", "103", "110", "121")]
)
def test_where_nobody_measured_floating_point_is_derived(target: str) -> None:
    floating = [i for i in wm.instructions(target) if group(i) in FLOATING]
    assert floating and {evidence(i, target).kind for i in floating} == {"derived"}


def test_labels_say_what_they_must() -> None:
    for i, target in EVERY:
        how = evidence(i, target)
        assert how.source and how.machine
        assert how.kind != "derived" or how.assumption, (str(i), target)
        assert how.kind != "measured" or (how.device and how.compared), (str(i), target)
        assert str(how).startswith(f"{how.kind}: ")


def test_one_source_knows_one_rounding() -> None:
    """Xie et al. model f64 in `.rn` alone, so where they are the only source the other modes are derived."""
    for i, target in PAIRS:
        if i.rounding in ("rz", "rm", "rp") and evidence(i, target).kind == "published":
            assert "Khattak" in evidence(i, target).source


def test_every_assumption_is_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text()
    assumptions = {evidence(i, t).assumption for i, t in EVERY} - {""}
    assert sorted(a for a in assumptions if a not in " ".join(text.split())) == []


def test_sparse_arithmetic_is_published_by_nobody() -> None:
    kinds = {
        evidence(i, t).kind for i, t in PAIRS if i.sparse and group(i) in FLOATING and t not in GENERATIONS["Hopper"]
    }
    assert kinds == {"derived"}


def _lowering() -> list[tuple[str, str, Instruction]]:
    """What ptxas 13.0 emits (docs/specification/lowering.md 1): counts of matrix instructions, target, instruction."""
    document = json.loads((DATA / "lowering.json").read_text())
    return [
        (emitted, target, wm.parse(mnemonic))
        for emitted, targets in document.items()
        for names, mnemonics in targets.items()
        for target in names.split()
        for mnemonic in mnemonics
    ]


def test_paths_agree_with_the_machine_code() -> None:
    """One matrix instruction is native; none, or several that are no steps of one, are software."""
    for emitted, target, i in _lowering():
        machine = evidence(i, target).machine
        if emitted == "none":
            assert machine.startswith("software: F")
            continue
        count, opcode = emitted.split("x")
        assert opcode in machine, (emitted, machine, str(i), target)
        steps = opcode == "DMMA" or machine == "HMMA.884" or machine.startswith("BMMA")
        assert machine.startswith("software") == (int(count) > 1 and not steps), (emitted, machine, str(i), target)


def test_lowering_covers_the_generations() -> None:
    assert {target for _, target, _ in _lowering()} >= {"sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"}


@pytest.mark.parametrize(
    ("target", "mnemonic", "fraction_bits", "products", "floor", "result_bits"),
    [  # docs/specification/numerics.md 1.2, row by row
        ("sm_70", "m8n8k4.row.col.f32.f16.f16.f32", 23, 4, -131, 23),
        ("sm_70", "m8n8k4.row.col.f16.f16.f16.f16", 23, 4, -19, 10),
        ("sm_75", "m16n8k8.row.col.f32.f16.f16.f32", 24, 8, -132, 23),
        ("sm_75", "m16n8k8.row.col.f16.f16.f16.f16", 24, 8, -20, 10),
        ("sm_75", "m8n8k4.row.col.f32.f16.f16.f32", 23, 4, -131, 23),
        ("sm_80", "m16n8k16.row.col.f32.f16.f16.f32", 24, 8, -132, 23),
        ("sm_86", "m16n8k16.row.col.f32.bf16.bf16.f32", 24, 8, -132, 23),
        ("sm_80", "m16n8k8.row.col.f32.tf32.tf32.f32", 24, 4, -132, 23),
        ("sm_89", "m16n8k16.row.col.f16.f16.f16.f16", 24, 8, -20, 10),
        ("sm_89", "m16n8k32.row.col.f32.e4m3.e5m2.f32", 13, 16, -132, 13),
        ("sm_89", "m16n8k32.row.col.f16.e4m3.e4m3.f16", 13, 16, -20, 10),
        ("sm_90", "m16n8k16.row.col.f32.f16.f16.f32", 25, 16, -133, 23),
        ("sm_90", "m16n8k16.row.col.f16.f16.f16.f16", 25, 16, -21, 10),
        ("sm_90", "m16n8k8.row.col.f32.tf32.tf32.f32", 25, 8, -133, 23),
        ("sm_100", "m16n8k16.row.col.f32.bf16.bf16.f32", 25, 16, -133, 23),
        ("sm_120", "m16n8k32.row.col.f32.e5m2.e5m2.f32", 25, 32, -133, 23),
        ("sm_120a", "m16n8k32.row.col.kind::f8f6f4.f16.e2m3.e3m2.f16", 25, 32, -21, 10),
    ],
)
def test_published_parameters(
    target: str, mnemonic: str, fraction_bits: int, products: int, floor: int, result_bits: int
) -> None:
    unit = recipe(wm.parse(f"mma.sync.aligned.{mnemonic}"), target).unit
    assert unit == FusedDotAdd(
        fraction_bits=fraction_bits, products=products, floor=floor, result_bits=result_bits,
        rounding="rz" if result_bits != 10 else "rn",
    )  # fmt: skip


def test_the_import_is_light() -> None:
    """What takes time to import and is not always needed is not imported."""
    code = "import sys, warpmma; print(*{'ml_dtypes', 'concurrent.futures', 'warpmma.hardware'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
