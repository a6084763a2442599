"""Fragments of a warpgroup: its 128 threads, accumulators whose n is no power of two, and CuTe's atoms."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from arrays import Array
from oracles import skip_without

from warpmma.errors import OperandError
from warpmma.isa import WarpgroupInstruction, parse_warpgroup, warpgroup_instructions
from warpmma.layouts import Layout, Operand, warpgroup
from warpmma.registers import Packing

THREAD = np.arange(128)[:, None]
W, G, T = THREAD >> 5, (THREAD & 31) >> 2, THREAD & 3  # the warp's rank in the group, PTX's groupID, threadID_in_group
WORDS = Packing(slot=32, bits=32)
HELD: tuple[Operand, ...] = ("A", "C", "D")
DISTINCT: dict[Layout, str] = {
    i.layout(o): f"{i.shape} {i.type(o)} {o}" for i in warpgroup_instructions() for o in HELD
}
each_layout = pytest.mark.parametrize("layout", list(DISTINCT), ids=list(DISTINCT.values()))


def check(layout: Layout, row: Array, column: Array) -> None:
    for mine, theirs in zip(layout.places[1:], (row, column), strict=True):
        np.testing.assert_array_equal(mine, np.broadcast_to(theirs, mine.shape))


def test_accumulators_are_where_cutlass_has_them() -> None:
    """PTX ISA 9.1, 9.7.15.5.1.1 has pictures alone; their formulas are CUTLASS's CLayout, which an H200 confirmed."""
    for instruction, operand in product(warpgroup_instructions(), HELD[1:]):
        layout = instruction.layout(operand)
        i = np.arange(instruction.n // 2)
        assert layout.shape == (64, instruction.n) and layout.elements == i.size and layout.lanes == 128
        assert layout.registers == instruction.n // (4 if instruction.d_type == "f16" else 2)
        check(layout, 16 * W + G + 8 * ((i >> 1) & 1), 8 * (i >> 2) + 2 * T + (i & 1))


@pytest.mark.parametrize(
    ("types", "k", "per_register"),
    [("f16.f16.f16", 16, 2), ("f32.bf16.bf16", 16, 2), ("f32.tf32.tf32", 8, 1), ("f32.e4m3.e5m2", 32, 4),
     ("s32.u8.s8", 32, 4), ("s32.b1.b1.and.popc", 256, 32)],
)  # fmt: skip
def test_a_in_registers_is_where_cutlass_has_it(types: str, k: int, per_register: int) -> None:
    layout = parse_warpgroup(f"wgmma.mma_async.sync.aligned.m64n8k{k}.{types}").layout("A")
    register, j = np.divmod(np.arange(4 * per_register), per_register)
    assert (layout.registers, layout.packing.per_register) == (4, per_register)
    check(layout, 16 * W + G + 8 * (register & 1), per_register * T + j + 4 * per_register * (register >> 1))


@pytest.mark.parametrize(
    ("n", "slot", "element", "place"),
    [
        # Worked out by hand: d0 to d3 of thread 0, what begins warp 1 and d4, and the last element.
        (8, 32, (0, 0), (0, 0, 0)), (8, 32, (0, 1), (0, 1, 0)), (8, 32, (8, 0), (0, 2, 0)), (8, 32, (8, 1), (0, 3, 0)),
        (256, 32, (16, 0), (32, 0, 0)), (256, 32, (0, 8), (0, 4, 0)), (256, 32, (63, 255), (127, 127, 0)),
        (24, 16, (0, 1), (0, 0, 16)), (24, 16, (8, 0), (0, 1, 0)), (24, 16, (63, 23), (127, 5, 16)),
    ],
)  # fmt: skip
def test_places_worked_out_by_hand(
    n: int, slot: int, element: tuple[int, int], place: tuple[int, int, int]
) -> None:  # fmt: skip
    layout = warpgroup("D", n, Packing(slot=slot, bits=slot))
    assert layout.locate(*element) == place
    assert element in [(x.row, x.column) for x in layout.holds(*place[:2])]


@each_layout
def test_every_element_has_one_place(layout: Layout) -> None:
    np.testing.assert_array_equal(np.sort(layout.flat, axis=None), np.arange(64 * layout.shape[1]))
    word, position = layout.slots
    for row, column in [(0, 0), (9, 5), (17, layout.shape[1] - 1), (63, layout.shape[1] // 2)]:
        found = layout.cell(row, column)
        per, slot = layout.packing.per_register, layout.packing.slot
        assert word[row, column] == found.register * 128 + found.lane
        assert (position[row, column], found.index) == (found.low // slot, found.register * per + found.low // slot)
        assert found in layout.holds(found.lane, found.register)


@each_layout
def test_formulas_are_the_places_in_both_directions(layout: Layout) -> None:
    formulas, i = layout.formulas(), np.arange(layout.elements)
    assert set(formulas) == {"row", "col", "warpid", "laneid", "i"}
    names: dict[str, Any] = {"groupID": G, "threadID_in_group": T, "warpid": W, "i": i}
    _, row, column = layout.places
    check(layout, eval(formulas["row"], names.copy()), eval(formulas["col"], names.copy()))
    for name, expected in (("warpid", W), ("laneid", THREAD & 31), ("i", i)):
        value = eval(formulas[name], {"row": row, "col": column})
        np.testing.assert_array_equal(np.broadcast_to(value, row.shape), np.broadcast_to(expected, row.shape))


def test_words_of_accumulators_are_pairs() -> None:
    words = warpgroup("D", 24, Packing(slot=16, bits=16)).words()
    assert (words.shape, words.registers, words.packing, words.lanes) == ((64, 12), 6, WORDS, 128)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: warpgroup("B", 8, WORDS), "operand is 'B'; expected 'A', 'C' or 'D'"),
        (lambda: warpgroup("D", 12, WORDS), "n is 12; expected one of 8, 16, 24, "),
        (lambda: warpgroup("A", 12, WORDS), "k is 12; expected one of 1, 2, 4, "),
        (lambda: Layout(row=("l0",), column=("l1",), packing=WORDS, lanes=64), "lanes is 64; expected one of 32, 128"),
        (lambda: Layout(row=("l0",), column=("l1",), packing=WORDS, repeats=0), "repeats is 0; expected one of 1, 2"),
        (lambda: warpgroup("D", 24, WORDS).locate(0, 24), "row 0, column 24 is outside (64, 24); expected a column of"),
        (lambda: warpgroup("D", 24, WORDS).holds(128), "lane 128 is out of range; expected 0 to 127"),
        (lambda: warpgroup("D", 24, WORDS).holds(0, 12), "register 12 is out of range; expected 0 to 11"),
        (lambda: warpgroup("D", 24, WORDS).cells("column"), "by is 'column'; expected 'element' or 'lane'"),
        (lambda: warpgroup_instructions()[0].layout("B"), "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16: B lies "),
        (lambda: warpgroup_instructions()[0].layout("E"),  # type: ignore[arg-type]
         "operand is 'E'; expected 'A', 'B', 'C' or 'D'"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused(build: Any, message: str) -> None:
    with pytest.raises(OperandError, match=f"^{re.escape(message)}"):
        build()


def test_cells_go_by_element_or_by_lane() -> None:
    layout = warpgroup("D", 24, Packing(slot=16, bits=16))
    by_element, by_lane = list(layout.cells()), list(layout.cells("lane"))
    assert [(x.row, x.column) for x in by_element] == [(r, c) for r in range(64) for c in range(24)]
    assert [(x.lane, x.index) for x in by_lane] == [(lane, i) for lane in range(128) for i in range(12)]
    assert set(by_element) == set(by_lane)


# CuTe's atoms, as the package tensor-layouts transcribes them.


def atoms() -> Iterator[tuple[Any, WarpgroupInstruction]]:
    """Yield atoms with the dense instruction that has such an accumulator: a sparse one has half of its k."""
    skip_without("tensor-layouts")
    package: Any = importlib.import_module("tensor_layouts.atoms_nv")
    for name, atom in vars(package).items():
        if getattr(atom, "ptx", "").startswith("wgmma.mma_async."):
            m, n, k = atom.shape_mnk
            types = map(str.lower, re.findall(r"(F16|F32|S32|BF16|TF32|S8|E4M3|E5M2)", name.split("_")[2]))
            shape = f"m{m}n{n}k{k // 2 if name.endswith('SPARSE') else k}"
            yield atom, parse_warpgroup(".".join(["wgmma.mma_async.sync.aligned", shape, *types]))


def test_accumulators_are_those_of_cute() -> None:
    compared = 0
    for atom, instruction in atoms():
        layout = instruction.layout("D")
        # (thread, value) -> offset in a column-major matrix of 64 rows
        offsets = np.array([[atom.c_layout(t, v) for v in range(layout.elements)] for t in range(128)])
        column, row = np.divmod(offsets, 64)
        check(layout, row, column)
        compared += 1
    assert compared >= 46
