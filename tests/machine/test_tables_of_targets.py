"""Another GPU's tables of the special-function unit: a row computes with the tables of its target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from warpmma.arithmetic import interpolators, special_function_reference
from warpmma.machine import (
    Batch,
    Costs,
    GlobalMemory,
    Grid,
    History,
    InstructionStep,
    Program,
    Reporter,
    Site,
    Slot,
    WarpRegister,
    execute,
    run_program,
)
from warpmma.operations import Operation, operation

SITE = Site("test.ptx", 1, "ex2.approx.ftz.f32")
MADE_UP = "sm_90f"  # whose first coefficient is made larger here
EX2 = operation("ex2.approx.ftz.f32")
X = np.linspace(0.01, 0.99, 32, dtype=np.float32).view(np.uint32)


def other_tables(name: str = "ex2") -> dict[str, Any]:
    table = interpolators()[name]
    rows = tuple((c0 + 64, c1, c2) for c0, c1, c2 in table.rows)
    return {**interpolators(), name: replace(table, rows=rows)}


def with_other_tables(codes: Any) -> Any:
    flat = [special_function_reference("ex2", x, other_tables()) for x in np.ravel(codes).tolist()]
    return (np.array(flat, np.uint32).reshape(np.shape(codes)),)


TARGETED = replace(EX2, on_target={MADE_UP: with_other_tables}.get)


def batch(target: str, engine: Any = "auto") -> Batch:
    reporter = Reporter()
    return Batch(
        blocks=range(1), threads=32, target=target, memory=GlobalMemory(reporter), shared=0, reporter=reporter,
        costs=Costs(), history=History(), engine=engine,
    )  # fmt: skip


def test_a_row_without_tables_of_its_own_is_itself_on_every_target() -> None:
    assert EX2.for_target("sm_90") is EX2 and EX2.for_target(MADE_UP) is EX2
    assert TARGETED.for_target("sm_90") is TARGETED and TARGETED.for_target(MADE_UP) is not TARGETED


@pytest.mark.parametrize("engine", ["auto", "numpy"])
def test_a_row_computes_with_the_tables_of_its_target(engine: Any) -> None:
    for target, function in (("sm_90", EX2.compute), (MADE_UP, with_other_tables)):
        b = batch(target, engine)
        (got,) = execute(b, SITE, TARGETED, [WarpRegister(np.broadcast_to(X, b.shape))], b.lanes.alive)
        np.testing.assert_array_equal(got.bits[0, 0], function(X)[0])
    assert (EX2.compute(X)[0] != with_other_tables(X)[0]).all()


def test_steps_that_were_prepared_for_one_target_are_not_used_for_another() -> None:
    """The same program, run on one target after the other and back."""
    program = Program(
        name="both", registers=("b32", "b32"), names=("%r0", "%r1"),
        steps=(
            InstructionStep(site=SITE, row=operation("mov.u32"), operands=(Slot(0),), results=(Slot(1),)),
            InstructionStep(site=SITE, row=TARGETED, operands=(Slot(1),), results=(Slot(0),)),
        ),
    )  # fmt: skip
    first = replace(
        program, steps=(InstructionStep(site=SITE, row=with_lanes(), results=(Slot(0),)), *program.steps),
    )  # fmt: skip
    for target in ("sm_90", MADE_UP, "sm_90"):
        grid = Grid(blocks=(1, 1, 1), threads=(32, 1, 1), shared=0)
        found = run_program(batch(target), first, grid, keep=True)
        wanted = with_other_tables(X) if target == MADE_UP else EX2.compute(X)
        np.testing.assert_array_equal(found[0].bits[0, 0], wanted[0])


def with_lanes() -> Operation:
    """Make a row without operands that gives the lanes' values."""
    return replace(operation("mov.u32"), inputs=(), input_types=(), compute=lambda: (X,), native=None)
