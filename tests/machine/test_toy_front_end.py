"""A front end of a toy language: words on a stack become a program of the machine, and its launch is bytes."""

from __future__ import annotations

import struct

import numpy as np

from warpmma import machine
from warpmma.machine import Argument, Constant, Grid, InstructionStep, ReadOnly, Site, Slot, StepOperand
from warpmma.operations import RegisterType, row

OPERATIONS = {"+": "add.u32", "-": "sub.u32", "*": "mul.lo.u32", "max": "max.u32", "^": "xor.b32"}


def compiled(words: str) -> machine.Program:
    """Compile `x y + 3 *`: per thread, x and y are elements of the first two arrays; the result goes to the third."""
    steps: list[InstructionStep] = []
    kinds: list[RegisterType] = []
    stack: list[Slot | Constant] = []

    def emit(mnemonic: str, operands: tuple[StepOperand, ...], *result: RegisterType) -> Slot:
        kinds.extend(result)
        slot = Slot(len(kinds) - 1)
        site, results = Site("toy", len(steps) + 1, mnemonic), (slot,) * len(result)
        steps.append(InstructionStep(site=site, row=row(mnemonic, "sm_90"), operands=operands, results=results))
        return slot

    def element(array: int) -> Slot:
        return emit("add.u64", (Argument(8 * array, 8, False, "b64"), offset), "b64")

    number = emit("mad.lo.u32", tuple(ReadOnly(x, "b32") for x in ("ctaid.x", "ntid.x", "tid.x")), "b32")
    offset = emit("mul.wide.u32", (number, Constant(4, "b32")), "b64")
    for word in words.split():
        if word in OPERATIONS:
            second, first = stack.pop(), stack.pop()
            stack.append(emit(OPERATIONS[word], (first, second), "b32"))
        elif word in "xy":
            stack.append(emit("ld.global.u32", (element("xy".index(word)),), "b32"))
        else:
            stack.append(Constant(int(word), "b32"))
    emit("st.global.u32", (element(2), stack.pop()))
    names = tuple(f"slot{i}" for i in range(len(kinds)))
    return machine.Program(name="toy", steps=tuple(steps), registers=tuple(kinds), names=names)


def test_a_front_end_that_knows_bytes_alone() -> None:
    device, grid = machine.Device("sm_90"), Grid.checked(4, 64, 0, "sm_90")
    x, y = (np.random.default_rng(seed).integers(0, 1 << 32, 256, dtype=np.uint32) for seed in (0, 1))
    at = [device.allocate(1024) for _ in range(3)]
    device.write(at[0], x.tobytes())
    device.write(at[1], y.tobytes())
    report = machine.launch_program(compiled("x y + 3 * x max"), device, grid, struct.pack("<3Q", *at))
    assert np.array_equal(np.frombuffer(device.read(at[2], 1024), np.uint32), np.maximum((x + y) * np.uint32(3), x))
    assert report.costs.instructions[Site("toy", 1, "mad.lo.u32")] == 4 * 2
