"""Look-ups of fragments against the simulated machine: every form moves elements that are their own numbers.

Elements have fewer bits than their numbers: several rounds move a digit each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arrays import Array

from warpmma.isa import (
    FragmentInstruction,
    FragmentMove,
    FragmentTranspose,
    WmmaProduct,
    WmmaTransfer,
    fragment_instructions,
    parse_fragments,
)
from warpmma.kernel import launch
from warpmma.lookup import ids_of, operand_layout, where

EVERY = fragment_instructions()
TRANSFERS = {str(i): i for i in EVERY if isinstance(i, WmmaTransfer) and not i.space}
MOVES = {str(i): i for i in EVERY if isinstance(i, FragmentMove) and ".shared." in str(i)}
SLOTS = 64  # of 16 bytes, in shared memory


def packed(codes: Array, bits: int) -> Array:
    """Bytes of codes that follow each other, the lowest bits first; rows of codes begin at whole bytes."""
    wide = (codes[..., None].astype(np.uint64) >> np.arange(bits, dtype=np.uint64)) & 1
    return np.packbits(wide.reshape(*codes.shape[:-1], -1).astype(np.uint8), axis=-1, bitorder="little")


def unpacked(data: Array, bits: int) -> Array:
    wide = np.unpackbits(data, axis=-1, bitorder="little").reshape(*data.shape[:-1], -1, bits)
    codes: Array = (wide.astype(np.uint64) << np.arange(bits, dtype=np.uint64)).sum(axis=-1)
    return codes


def rounds(count: int, bits: int) -> list[int]:
    """Shifts of the digits of numbers below a count, in the bits of an element."""
    return list(range(0, max(1, (count - 1).bit_length()), bits))


def expected(i: FragmentInstruction, operand: str, numbers: Array, target: str) -> Array:
    """Numbers by register, lane and element of the register: where `where` says that each is; -1 where none is."""
    layout = operand_layout(i, operand, target)
    per = layout.packing.per_register
    out = np.full((layout.registers, 32, per), -1)
    matrices, ids = numbers.reshape(-1, *numbers.shape[-2:]), ids_of(i, operand, target)
    for n, given in enumerate(ids):
        codes = matrices[n % len(matrices)]  # copies are of the one matrix
        for row, column in np.ndindex(codes.shape):
            cell = where(i, operand, row, column, target=target, **given)
            assert out[cell.register, cell.lane, cell.index % per] == -1
            out[cell.register, cell.lane, cell.index % per] = codes[row, column]
    assert (out >= 0).all()
    return out


def elements(registers: Array, i: FragmentInstruction, operand: str, target: str) -> Array:
    """Codes of registers, `[register, lane, element]`; what is beside them must be 0."""
    packing = operand_layout(i, operand, target).packing
    codes = packing.unpack(registers)
    np.testing.assert_array_equal(packing.pack(codes), registers)
    return codes.astype(np.int64)


def loaded(i: WmmaTransfer, memory: Array, registers: int, width: int, target: str) -> Array:
    out = np.zeros((registers, 32), f"u{width // 8}")

    def kernel(t: Any, at: Any, to: Any) -> None:
        made = t(str(i), at)
        for r, value in enumerate(made if isinstance(made, tuple) else (made,)):
            t(f"st.global.b{width}", to + t("mul.wide.u32", t.laneid, width // 8) + r * 32 * width // 8, value)

    launch(kernel, 1, 32, (memory, out), target=target)
    return out


def stored(i: WmmaTransfer, registers: Array, size: int, target: str) -> Array:
    out, width = np.zeros(size, np.uint8), registers.itemsize * 8

    def kernel(t: Any, at: Any, to: Any) -> None:
        lane = at + t("mul.wide.u32", t.laneid, width // 8)
        t(str(i), to, [t(f"ld.global.b{width}", lane + r * 32 * width // 8) for r in range(len(registers))])

    launch(kernel, 1, 32, (registers, out), target=target)
    return out


@pytest.mark.parametrize("name", TRANSFERS)
def test_wmma_moves_elements_where_where_says(name: str) -> None:
    i = TRANSFERS[name]
    rows, columns = i.rows_columns
    numbers = np.arange(rows * columns).reshape(rows, columns)
    for layout, targets in i.fragments(i.operand).items():
        target = targets[-1]
        places = expected(i, i.operand, numbers, target)
        seen = np.zeros_like(places if i.direction == "load" else numbers)
        for shift in rounds(numbers.size, i.bits):
            mask = (1 << min(i.bits, 32)) - 1
            lines = (numbers if i.order == "row" else numbers.T) >> shift & mask
            if i.direction == "load":
                made = loaded(i, packed(lines, i.bits).ravel(), layout.registers, layout.packing.width, target)
                seen |= elements(made, i, i.operand, target) << shift
            else:
                registers = layout.packing.pack((places >> shift & mask).astype(np.uint64))
                made = stored(i, registers, numbers.size * i.bits // 8, target)
                codes = unpacked(made.reshape(lines.shape[0], -1), i.bits).astype(np.int64)
                seen |= (codes if i.order == "row" else codes.T) << shift
        np.testing.assert_array_equal(seen, places if i.direction == "load" else numbers)


@pytest.mark.parametrize("name", MOVES)
def test_rows_are_at_addresses_and_elements_in_registers_where_where_says(name: str) -> None:
    """Rows lie in a random order; lanes that point to no row point to other memory."""
    i, target = MOVES[name], MOVES[name].targets[-1]
    operand, address = i.operands
    layout = operand_layout(i, operand)
    numbers = np.arange(i.matrices * i.rows_per_matrix * layout.shape[-1]).reshape(i.matrices, i.rows_per_matrix, -1)
    places = expected(i, operand, numbers, target)
    slots = np.random.default_rng(0).permutation(SLOTS)[:32]  # of each lane
    where_rows = np.array([
        [slots[where(i, address, row, 0, matrix=matrix).lane] for row in range(i.rows_per_matrix)]
        for matrix in range(i.matrices)
    ])  # fmt: skip
    seen = np.zeros_like(places if i.direction == "load" else numbers)
    for shift in rounds(numbers.size, i.bits):
        rows = packed(numbers >> shift & ((1 << i.bits) - 1), i.bits)
        memory = np.full((SLOTS, 16), 0xFF, np.uint8)
        registers = layout.packing.pack((places >> shift & ((1 << i.bits) - 1)).astype(np.uint32))
        if i.direction == "load":
            memory[where_rows, : rows.shape[-1]] = rows
        memory, registers = moved(i, memory, registers, (slots * 16).astype(np.uint32), target)
        if i.direction == "load":
            seen |= elements(registers, i, operand, target) << shift
        else:
            seen |= unpacked(memory[where_rows], i.bits).astype(np.int64) << shift
            assert (np.delete(memory, where_rows.ravel(), axis=0) == 0xFF).all()
    np.testing.assert_array_equal(seen, places if i.direction == "load" else numbers)


def moved(i: FragmentMove, memory: Array, registers: Array, addresses: Array, target: str) -> tuple[Array, Array]:
    """Fill shared memory, move once, and return shared memory and registers."""
    memory, registers = memory.copy(), registers.astype(np.uint32)

    def kernel(t: Any, data: Any, held: Any, at: Any) -> None:
        lane = t("mul.wide.u32", t.laneid, 4)
        for word in range(0, SLOTS * 4, 32):
            t("st.shared.b32", t.laneid * 4 + word * 4, t("ld.global.b32", data + lane + word * 4))
        t("bar.sync", 0)
        pointer = t("ld.global.b32", at + lane)
        if i.direction == "load":
            made = t(str(i), pointer)
            for r, value in enumerate(made if isinstance(made, tuple) else (made,)):
                t("st.global.b32", held + lane + r * 128, value)
        else:
            t(str(i), pointer, [t("ld.global.b32", held + lane + r * 128) for r in range(len(registers))])
            t("bar.sync", 0)
            for word in range(0, SLOTS * 4, 32):
                t("st.global.b32", data + lane + word * 4, t("ld.shared.b32", t.laneid * 4 + word * 4))

    launch(kernel, 1, 32, (memory, registers, addresses), target=target, shared=SLOTS * 16)
    return memory, registers


def test_movmatrix_transposes_from_where_to_where() -> None:
    (i,) = (each for each in EVERY if isinstance(each, FragmentTranspose))
    numbers = np.arange(64).reshape(8, 8)
    before, after = (expected(i, operand, numbers, "sm_80") for operand in "AD")
    packing = operand_layout(i, "A").packing
    given, out = packing.pack(before.astype(np.uint32)), np.zeros((1, 32), np.uint32)

    def kernel(t: Any, at: Any, to: Any) -> None:
        lane = t("mul.wide.u32", t.laneid, 4)
        t("st.global.b32", to + lane, t(str(i), t("ld.global.b32", at + lane)))

    launch(kernel, 1, 32, (given, out), target="sm_80")
    np.testing.assert_array_equal(packing.unpack(out), after)


def test_products_have_the_fragments_that_are_loaded() -> None:
    for i in EVERY:
        if isinstance(i, WmmaProduct):
            orders = {"A": i.a_layout, "B": i.b_layout, "C": "row", "D": "row"}
            for operand in i.operands:
                action = "store" if operand == "D" else "load"
                move = parse_fragments(
                    f"wmma.{action}.{operand.lower()}.sync.aligned.{orders[operand]}.{i.shape_name}."
                    f"{i.element_type(operand)}"
                )
                for target in i.targets:
                    assert i.fragment(operand, target) == move.fragment(operand, target)
