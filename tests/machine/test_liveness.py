"""Dead registers are released, and only these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.machine import Branch, Constant, Guard, InstructionStep, Inverted, Program, Return, Site, Slot, dead_slots
from warpmma.operations import row

SITE = Site("k", 1, "x")
ADD, NOT = row("add.u32"), row("not.pred")


def add(to: int, *of: int, guard: Guard | None = None) -> InstructionStep:
    return InstructionStep(site=SITE, row=ADD, operands=tuple(map(Slot, of)), results=(Slot(to),), guard=guard)


def program(*steps: Any) -> Program:
    return Program(name="k", steps=steps, registers=("b32",) * 9, names=tuple("abcdefghi"))


def test_after_its_last_use() -> None:
    found = dead_slots(program(add(2, 0, 1), add(3, 2, 0), add(4, 3, 3), Return(site=SITE)))
    assert found == {0: (1,), 1: (2, 0), 2: (3, 4)}


def test_what_a_loop_reads_again_lives() -> None:
    guard = Guard(Slot(8))
    found = dead_slots(program(add(1, 0, 0), add(2, 1, 0), Branch(site=SITE, to=0, guard=guard), Return(site=SITE)))
    assert found == {1: (1, 2)}


def test_a_guarded_step_ends_no_life() -> None:
    guarded, plain = ([add(1, 0, 0, guard=g), add(2, 1, 0), Return(site=SITE)] for g in (Guard(Slot(8)), None))
    before = add(1, 3, 3)
    assert 1 not in dead_slots(program(before, *guarded)).get(0, ())
    assert 1 in dead_slots(program(before, *plain)).get(0, ())


def test_either_way_counts() -> None:
    found = dead_slots(
        program(Branch(site=SITE, to=2, guard=Guard(Slot(8))), add(2, 0, 0), add(3, 1, 1), Return(site=SITE))
    )
    assert found == {1: (0, 2), 2: (1, 3)}


def test_converging_steps_leave_the_release_to_later_steps() -> None:
    shuffle = InstructionStep(
        site=SITE, row=row("shfl.sync.idx.b32"),
        operands=(Slot(0), Constant(1, "b32"), Constant(31, "b32"), Constant(0xFFFFFFFF, "b32")),
        results=(Slot(1), None),
    )  # fmt: skip
    assert dead_slots(program(shuffle, add(2, 1, 1), Return(site=SITE))) == {1: (0, 1, 2)}
    assert dead_slots(program(shuffle, add(0, 1, 1), add(2, 0, 1), Return(site=SITE))) == {2: (0, 1, 2)}
    inverted = InstructionStep(site=SITE, row=NOT, operands=(Inverted(Slot(0)),), results=(Slot(1),))
    assert dead_slots(program(inverted, Return(site=SITE))) == {0: (0, 1)}


@pytest.mark.parametrize("hazards", ["error", "off"])
def test_lanes_elsewhere_keep_their_registers(hazards: Any) -> None:
    """Half of the lanes read %r3 last in one way, the others later in another."""
    text = """.version 8.0
    .target sm_80
    .address_size 64
    .visible .entry k(.param .u64 y) {
    .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<5>;
    ld.param.u64 %d1, [y]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
    mul.lo.u32 %r3, %r1, 7; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;
    @%p1 bra EVEN; add.u32 %r4, %r3, 1; mov.u32 %r5, 0;
    LOOP: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %r1; @%p2 bra LOOP; bra DONE;
    EVEN: mov.u32 %r6, 1000; sub.u32 %r4, %r6, %r3;
    DONE: st.global.u32 [%d1], %r4; ret; }"""
    y = np.zeros(64, np.uint32)
    wm.ptx.load(text)["k"].launch(wm.Device("sm_80"), 1, 64, [y], hazards=hazards)
    lanes = np.arange(64)
    assert (y == np.where(lanes % 2 == 0, 1000 - lanes * 7, lanes * 7 + 1)).all()
