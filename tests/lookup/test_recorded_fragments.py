"""Look-ups of fragments against registers and memory of an H200, without the simulated machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import Array

from warpmma.isa import FragmentInstruction, FragmentMove, WmmaTransfer, fragment_instructions
from warpmma.lookup import Cell, ids_of, operand_layout, where

pytestmark = pytest.mark.quick

DATA = Path(__file__).parents[1] / "data"
TARGET = "sm_90"
GENERIC = {str(i): i for i in fragment_instructions(TARGET) if isinstance(i, WmmaTransfer) and not i.space}
SHARED = {str(i): i for i in fragment_instructions(TARGET) if isinstance(i, FragmentMove) and ".shared." in str(i)}


def recorded(name: str) -> dict[str, dict[str, Array]]:
    found: dict[str, dict[str, Array]] = {}
    with np.load(DATA / name) as archive:
        for key in archive:
            mnemonic, _, part = key.partition("|")
            found.setdefault(mnemonic, {})[part] = archive[key]
    return found


def bits_at(data: Array, bit: int, count: int) -> int:
    """Read some bits of an array's bytes."""
    first, last = bit // 8, (bit + count + 7) // 8
    return int.from_bytes(data[first:last].tobytes(), "little") >> bit % 8 & ((1 << count) - 1)


def held(registers: Array, instruction: FragmentInstruction, operand: str, *place: int, **given: Any) -> int:
    """Read an element where `where` finds it, in registers `[register, lane]`."""
    cell: Cell = where(instruction, operand, *place, target=TARGET, **given)
    return int(registers[cell.register, cell.lane]) >> cell.low & ((1 << (cell.high - cell.low + 1)) - 1)


WMMA = recorded("h200_wmma.npz")


@pytest.mark.parametrize("name", GENERIC)
def test_wmma_registers_of_an_h200_hold_what_where_says(name: str) -> None:
    move, given = GENERIC[name], WMMA[name]
    rows, columns = move.rows_columns
    registers, memory = (given["out"], given["memory"])
    if move.direction == "store":
        registers, memory = given["fragment"], given["out"]
    line = memory.shape[-1] // move.lines * 8
    copies = ids_of(move, move.operand, TARGET)
    for warp in range(len(memory)):
        for row in range(rows):
            for column in range(columns):
                along, across = (column, row) if move.order == "row" else (row, column)
                expected = bits_at(memory[warp], across * line + along * move.bits, move.bits)
                for copy in copies:
                    assert held(registers[warp], move, move.operand, row, column, **copy) == expected
    assert set(GENERIC) == {key for key in WMMA if key.startswith(("wmma.load", "wmma.store"))}


MATRICES = recorded("h200_fragments.npz")


@pytest.mark.parametrize("name", SHARED)
def test_matrices_of_an_h200_are_where_where_says(name: str) -> None:
    move, given = SHARED[name], MATRICES[name]
    operand, other = move.operands
    for warp in range(4):
        memory, addresses = given["memory"][warp], given["addresses"][warp]
        registers = given["out"][warp]
        if move.direction == "store":
            registers, memory = given["registers"][warp], given["out"][warp]
        matrices, rows, columns = (move.matrices, *operand_layout(move, operand).shape[-2:])
        for matrix in range(matrices):
            for row in range(rows):
                start = int(addresses[where(move, other, row, 0, matrix=matrix).lane])
                for column in range(columns):
                    expected = bits_at(memory, 8 * start + column * move.bits, move.bits)
                    assert held(registers, move, operand, row, column, matrix=matrix) == expected
    assert set(SHARED) == {key for key in MATRICES if "matrix" in key}
