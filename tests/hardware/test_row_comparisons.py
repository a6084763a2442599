"""What `warpmma compare` has of matrix instructions, operations, functions and fragments: all; operands; kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import same
from compared_gpu import ComparedGpu
from oracles import needs
from ptxas_cases import assembled, verdict

from warpmma.hardware import (
    Found,
    LaneDifference,
    Room,
    compared_lanes,
    comparisons,
    every_variant,
    move_kernel,
    not_compared,
    ptx_module,
    row_immediates,
    row_kernel,
    row_simulated,
    variant_inputs,
)
from warpmma.hardware import function_plan as plan
from warpmma.hardware.comparing import row_cases
from warpmma.isa import instructions, warpgroup_instructions
from warpmma.operations import matrix_moves, operation, operations
from warpmma.operations.arithmetic import approximations, divisions

FUNCTIONS = [mnemonic for form in approximations.FORMS for mnemonic in form.mnemonics]
KINDS = ("mma", "wgmma", "operation", "function", "fragment")


def names(target: str, outputs: int, kinds: tuple[str, ...] = KINDS) -> list[str]:
    return [name for x in comparisons(target, "*", outputs, 0) if x.kind in kinds for name in x.names]


@pytest.mark.parametrize("target", ["sm_75", "sm_90a", "sm_120a"])
def test_everything_is_compared_once(target: str) -> None:
    found, others = names(target, 64), not_compared(target, "*")
    every = [row.mnemonic for row in operations(target) if row.mnemonic.partition(".")[0] not in others]
    every += [str(x) for x in (*instructions(target), *warpgroup_instructions(target))]
    every += [move.mnemonic for move in matrix_moves(target)]
    assert sorted(found) == sorted([*every, *dict(every_variant(target))])


def test_functions_are_those_that_ptx_calls_approximate() -> None:
    assert set(names("sm_90a", 64, ("function",))) == {x for x in FUNCTIONS if "sm_90a" in operation(x).targets}


def test_every_operand_of_a_rounded_root_is_compared_if_there_should_be_many() -> None:
    few, many = (names("sm_90a", outputs, ("function",)) for outputs in (10**9 - 1, 10**9))
    rows = [name for form in divisions.FORMS for name in form.mnemonics if name.endswith("f32") and "div" not in name]
    assert set(many) - set(few) == {f"{name} of all operands" for name in rows} and len(rows) == 16
    for group in comparisons("sm_90a", "sqrt.rm.f32", 10**9, 0):
        assert group.wanted(10**9) == (1 << 32 if group.kind == "function" else 10**8)


def test_a_root_of_all_operands_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a place far into the operands, as a run that goes on has them."""
    (group,) = (x for x in comparisons("sm_90a", "sqrt.rp.ftz.f32", 10**9, 0) if x.kind == "function")
    done = (1 << 32) - 256
    wrong = int(plan(operation("sqrt.rp.ftz.f32"), 32)[1](done + 100, 1)[0][0])

    def other(row: Any, given: Any, immediates: Any, native: bool) -> Any:
        (d,) = row_simulated(row, given, immediates, native)
        return (d ^ (given[0] == wrong).astype(d.dtype),)

    with Room(ComparedGpu(), "sm_90a") as room:
        ((name, right),) = group.run(room, 0, done)
        assert isinstance(right, Found) and (right.outputs, right.differences) == (256, 0)
        monkeypatch.setattr(row_cases, "row_simulated", other)
        ((name, found),) = group.run(room, 1, done)
    assert isinstance(found, Found) and (found.outputs, found.differences) == (256, 1)
    assert name == "sqrt.rp.ftz.f32 of all operands"
    assert isinstance(found.first, LaneDifference) and found.first.given == (wrong,)
    assert found.first.gpu[0] ^ found.first.model[0] == 1


def test_variants_are_the_same_in_either_engine() -> None:
    """Which take turns; and their operands are as many lanes as are asked for."""
    for name, row in every_variant("sm_90a"):
        given = variant_inputs(name, row, 64, 1)
        assert [x.shape for x in given] == [(2, 32)] * len(row.inputs)
        for one, other in zip(*(row_simulated(row, given, native=way) for way in (False, True)), strict=True):
            same(one, other)


def test_lanes_that_skip_an_instruction_do_not_count() -> None:
    row = operation("shfl.sync.idx.b32")
    given = [np.zeros((2, 32), np.uint32) for kind in row.inputs if kind != "imm"]
    given[-1] = np.array([[0xF], [0xFFFFFFFF]], np.uint32) + given[-1]
    assert compared_lanes(row, given).sum(axis=1).tolist() == [4, 32]


# Operands


def test_how_many_operands_there_are() -> None:
    """All of every form, but for those with two and for rsqrt.approx.f64."""
    counts = {mnemonic: plan(operation(mnemonic), 96)[0] for mnemonic in FUNCTIONS}
    assert {mnemonic for mnemonic, count in counts.items() if count == 96} == {
        "div.approx.f32", "div.approx.ftz.f32", "div.full.f32", "div.full.ftz.f32", "rsqrt.approx.f64"
    }  # fmt: skip
    assert sum(count == 1 << 32 for count in counts.values()) == 17
    assert {counts[x] for x in FUNCTIONS if x.endswith("16")} == {1 << 16}
    assert {counts[x] for x in FUNCTIONS if x.endswith("x2")} == {1 << 20}


@pytest.mark.parametrize("mnemonic", ["ex2.approx.f16x2", "rcp.approx.ftz.f64", "div.full.f32", "rsqrt.approx.f64"])
def test_operands_are_the_same_however_they_are_cut(mnemonic: str) -> None:
    _, operands = plan(operation(mnemonic), 1 << 10)
    whole = operands(0, 1 << 10)
    for x, *parts in zip(whole, operands(0, 96), operands(96, 928), strict=True):
        assert x.dtype == parts[0].dtype and np.array_equal(x, np.concatenate(parts))


@pytest.mark.parametrize(
    ("mnemonic", "bits"),
    [("ex2.approx.f32", 32), ("rcp.approx.ftz.f64", 32), ("tanh.approx.f16", 16), ("sqrt.rn.f32", 32)],
)
@pytest.mark.parametrize("first", [0, 12345 << 4, (1 << 32) - 64])
def test_every_code_comes_once(mnemonic: str, bits: int, first: int) -> None:
    """They are numbers from 0 on, times an odd one: times its inverse, they are the numbers again."""
    count, operands = plan(operation(mnemonic), 32)
    assert count == 1 << bits
    first %= count
    (x,) = operands(first, 64)
    codes = x.astype(np.uint64) >> np.uint64(x.itemsize * 8 - bits)
    inverse = np.uint64(pow(0x9E3779B1, -1, 1 << 32))
    assert np.array_equal(codes * inverse & np.uint64(count - 1), np.arange(first, first + 64, dtype=np.uint64))


@pytest.mark.parametrize("mnemonic", FUNCTIONS)
def test_first_operands_are_of_every_sign_and_exponent(mnemonic: str) -> None:
    _, operands = plan(operation(mnemonic), 4096)
    given = operands(0, 4096)
    (first, *_) = operation(mnemonic)(*(x.reshape(-1, 32) for x in given))
    assert first.shape == (128, 32)
    if mnemonic.endswith(("f32", ".f16", ".bf16")) and "div" not in mnemonic:
        codes = given[-1]
        assert len(np.unique(codes)) == 4096
        assert len(np.unique(codes >> (codes.itemsize * 8 - 9))) == 512  # if it has 8 exponent bits


# Kernels


@needs("ptxas")
def test_kernels_of_variants_and_carries_assemble(tmp_path: Path) -> None:
    rows = [row for name, row in every_variant("sm_90a") if ".lt." in name or any(row.vectors)]
    rows += [row for row in operations("sm_90a") if row.reads_carry or row.writes_carry]
    assert assembled([row_kernel(row, f"k{i}") for i, row in enumerate(rows)], tmp_path) == ""


@needs("ptxas")
def test_kernels_of_moves_and_immediates_assemble() -> None:
    moves = [move_kernel(move, f"m{i}") for i, move in enumerate(matrix_moves("sm_100a"))]
    rows = [operation(name) for name in ("lop3.b32", "shfl.sync.up.b32", "vote.sync.ballot.b32")]
    kernels = [row_kernel(r, f"r{i}", x) for i, r in enumerate(rows) for x in row_immediates(r)[-1:]]
    assert verdict(ptx_module([*moves, *kernels], "sm_100a", (9, 0)), "sm_100a") == ""
