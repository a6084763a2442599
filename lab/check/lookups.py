"""Check that `where` is the inverse of `what`: every element of every operand, metadata and scales of all instructions.

    python -m lab.check.lookups            # mma, wgmma, ldmatrix, stmatrix, movmatrix, wmma: some minutes
    python -m lab.check.lookups --step 37  # every 37th element of each

The exit status is 1 if a position is not found again, or if an element has no position or several.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import product

from warpmma.isa import (
    FragmentHolder,
    FragmentInstruction,
    Instruction,
    fragment_instructions,
    instructions,
    warpgroup_instructions,
)
from warpmma.lookup import Cell, ids_of, operand_layout, what, where

__all__ = ["differences", "every_operand", "main", "operands"]


Asked = tuple[FragmentHolder, str, str | None]
"""An instruction, an operand of it, and a target where layouts differ between targets."""


def operands(instruction: FragmentHolder) -> tuple[str, ...]:
    """Name the operands that an instruction has in registers."""
    if isinstance(instruction, FragmentInstruction):
        return instruction.operands
    if not isinstance(instruction, Instruction):
        return "A", "C", "D"
    metadata, scales = ("metadata",) * instruction.sparse, ("scale_a", "scale_b") * instruction.block_scale
    return ("A", "B", "C", "D", *metadata, *scales)


def every_operand() -> list[Asked]:
    """List the operands that all instructions have in registers, on one target for each layout."""
    every: tuple[FragmentHolder, ...] = (*instructions(), *warpgroup_instructions(), *fragment_instructions())
    return [
        (each, operand, target) for each in every for operand in operands(each) for target in _targets(each, operand)
    ]


def _targets(instruction: FragmentHolder, operand: str) -> list[str | None]:
    if not isinstance(instruction, FragmentInstruction):
        return [None]
    groups = list(instruction.fragments(operand).values())
    return [None] if len(groups) == 1 else [targets[-1] for targets in groups]


def differences(
    instruction: FragmentHolder, operand: str, step: int = 1, target: str | None = None
) -> Iterator[str]:  # fmt: skip
    """Yield a line for each of some elements that is not at its position, or that is at several positions."""
    layout = operand_layout(instruction, operand, target)
    (rows, columns), ids = layout.shape[-2:], ids_of(instruction, operand, target)
    name, size = f"{operand} of {instruction}", len(ids) * rows * columns
    held: dict[tuple[int, int], tuple[Cell, ...]] = {}
    if step == 1:
        places = product(range(layout.lanes), range(layout.registers))
        held = {(lane, y): what(instruction, operand, lane=lane, register=y, target=target) for lane, y in places}
        found = [(x.matrix, x.row, x.column) for cells in held.values() for x in cells]
        if not len(set(found)) == len(found) == size:
            yield f"{name}: {len(found)} places hold {len(set(found))} of {size} elements"
    for number in range(0, size, step):
        matrix, place = divmod(number, rows * columns)
        row, column = divmod(place, columns)
        cell = where(instruction, operand, row, column, target=target, **ids[matrix])
        at = cell.lane, cell.register
        if (cell.matrix, cell.row, cell.column) != (matrix, row, column):
            yield f"{name}: where of {row}, {column} in {matrix} is {cell}"
        elif cell not in (held.get(at) or what(instruction, operand, lane=at[0], register=at[1], target=target)):
            yield f"{name}: {cell} is not what is there"


def main(arguments: list[str] | None = None) -> int:
    """Run the check; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step", type=int, default=1, help="every so many elements; 1 by default, which is all")
    options = parser.parse_args(arguments)
    asked = every_operand()
    wrong = 0
    for instruction, operand, target in asked:
        for line in differences(instruction, operand, options.step, target):
            print(line)
            wrong += 1
    print(f"{len(asked)} operands of {len({str(i) for i, *_ in asked})} instructions: {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
