"""Fragment layouts: bijections, PTX's own formulas for every shape, and CuTe's atoms."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from arrays import Array
from oracles import skip_without

from warpmma import layouts
from warpmma.errors import OperandError
from warpmma.isa import Instruction, instructions, parse
from warpmma.layouts import Layout, Operand
from warpmma.registers import LANES, Packing

Formula = Callable[[Array, Array, Array], tuple[Array, ...]]

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SP = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
QUAD = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
HALVES = Packing(slot=16, bits=16)
OPERANDS: tuple[Operand, ...] = ("A", "B", "C", "D")
LANE = np.arange(LANES)[:, None]
G, T = LANE >> 2, LANE & 3  # PTX's groupID and threadID_in_group
DISTINCT: dict[Layout, str] = {i.layout(o): f"{i.shape} {i.type(o)} {o}" for i in instructions() for o in OPERANDS}
each_instruction = pytest.mark.parametrize("instruction", instructions(), ids=str)
each_layout = pytest.mark.parametrize("layout", list(DISTINCT), ids=list(DISTINCT.values()))


def shape_of(instruction: Instruction, operand: Operand) -> tuple[int, ...]:
    m, n, k = instruction.m, instruction.n, instruction.k
    stored = k // 2 if instruction.sparse else k
    shape = {"A": (m, stored), "B": (k, n)}.get(operand, (m, n))
    return (4, *shape) if quad_pair(instruction) else shape


def quad_pair(instruction: Instruction) -> bool:
    return (instruction.shape, instruction.a_type) == ("m8n8k4", "f16")


# What every layout is.


@each_instruction
def test_every_element_has_one_place(instruction: Instruction) -> None:
    for operand in OPERANDS:
        layout = instruction.layout(operand)
        assert layout.shape == shape_of(instruction, operand)
        size = int(np.prod(layout.shape))
        assert layout.elements * LANES == size
        assert layout.registers * layout.packing.per_register == layout.elements
        assert layout.flat.shape == (layout.registers, LANES, layout.packing.per_register)
        np.testing.assert_array_equal(np.sort(layout.flat, axis=None), np.arange(size))
        # flat, [register, lane, position], and places, [lane, i], say the same.
        expected = np.ravel_multi_index(layout.places[-len(layout.shape) :], layout.shape)
        np.testing.assert_array_equal(layout.flat.swapaxes(0, 1).reshape(LANES, -1), expected)


@pytest.mark.parametrize(
    ("row", "column", "slot"),
    [
        (("l0", "l1", "l2"), ("l3", "l3"), 32),  # l4 is missing
        (("l0", "l1", "l2", "e1"), ("l3", "l4"), 32),  # e0 is missing
        (("l0", "l1", "l2"), ("l3",), 32),  # fewer places than lanes
        (("l0", "l1", "l2", "x0"), ("l3", "l4"), 32),
        (("l0", "l1", "l2", "e0"), ("l3", "l4"), 8),  # two bytes in a register of four
    ],
)
def test_what_is_no_bijection_is_refused(row: tuple[str, ...], column: tuple[str, ...], slot: int) -> None:
    with pytest.raises(OperandError, match="not a bijection, or registers are not filled: row"):
        Layout(row=row, column=column, packing=Packing(slot=slot, bits=slot))


@each_layout
def test_locate_finds_every_element(layout: Layout) -> None:
    packing = layout.packing
    for matrix in range(layout.matrices):
        for row, column in np.ndindex(layout.shape[-2:]):
            lane, register, bit = layout.locate(row, column, matrix)
            position, rest = divmod(bit - packing.shift, packing.slot)
            i = register * packing.per_register + position
            assert rest == 0
            assert tuple(int(x[lane, i]) for x in layout.places) == (matrix, row, column)


@pytest.mark.parametrize(
    ("mnemonic", "element", "message"),
    [
        (F16, (16, 0), "row 16, column 0 is outside (16, 16); expected a row of 0 to 15"),
        (F16, (3, 40), "row 3, column 40 is outside (16, 16); expected a column of 0 to 15"),
        (F16, (-1, 0), "row -1, column 0 is outside (16, 16); expected a row of 0 to 15"),
        (F16, (1.0, 0), "row 1.0, column 0 is outside (16, 16); expected a row of 0 to 15"),
        (F16, (0, 0, 1), "matrix 1, row 0, column 0 is outside (16, 16); expected a matrix of 0 to 0"),
        (QUAD, (0, 0, 4), "matrix 4, row 0, column 0 is outside (4, 8, 4); expected a matrix of 0 to 3"),
        (QUAD, (0, 4, 3), "matrix 3, row 0, column 4 is outside (4, 8, 4); expected a column of 0 to 3"),
        # eight of sixteen are stored
        (SP, (0, 8), "row 0, column 8 is outside (16, 8); expected a column of 0 to 7"),
    ],
)
def test_elements_outside_the_matrix_are_refused(mnemonic: str, element: tuple[Any, ...], message: str) -> None:
    with pytest.raises(OperandError, match=f"^{re.escape(message)}$"):
        parse(mnemonic).layout("A").locate(*element)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: layouts.multiplicand("C", 16, 16, HALVES), "operand is 'C'; expected 'A' or 'B'"),
        (lambda: layouts.multiplicand("A", 32, 16, HALVES), "outer is 32; expected one of 8, 16"),
        (lambda: layouts.multiplicand("A", 16, 12, HALVES), "k is 12; expected one of 1, 2, 4, "),
        (lambda: layouts.multiplicand("A", 16, 16, None), "packing is None; expected a Packing"),  # type: ignore[arg-type]
        (lambda: layouts.accumulator(17, HALVES), "m is 17; expected one of 8, 16"),
        (lambda: layouts.quad_pair("A", "rows", HALVES), "layout is 'rows'; expected 'row' or 'col'; did you mea"),
        (lambda: Layout(row=None, column=("l0",), packing=HALVES),  # type: ignore[arg-type]
         "not a bijection, or registers are not filled: row None, column ('l0',)"),
    ],
)  # fmt: skip
def test_layouts_that_do_not_exist_are_refused(build: Callable[[], Layout], message: str) -> None:
    with pytest.raises(OperandError, match=f"^{re.escape(message)}"):
        build()


@each_layout
def test_formulas_are_the_places_in_both_directions(layout: Layout) -> None:
    formulas = layout.formulas()
    coordinates = ("matrix", "row", "col") if layout.matrix else ("row", "col")
    assert set(formulas) == {*coordinates, "laneid", "i"}
    i = np.arange(layout.elements)
    names: dict[str, Array] = {"groupID": G, "threadID_in_group": T, "i": i}
    for name, places in zip(("matrix", "row", "col"), layout.places, strict=True):
        if name in coordinates:
            value = np.broadcast_to(eval(formulas[name], names.copy()), places.shape)
            np.testing.assert_array_equal(value, places, err_msg=name)
    known = dict(zip(("matrix", "row", "col"), layout.places, strict=True))
    for name, expected in (("laneid", LANE), ("i", i)):
        value = np.broadcast_to(eval(formulas[name], known.copy()), layout.places[0].shape)
        np.testing.assert_array_equal(value, np.broadcast_to(expected, value.shape), err_msg=name)


@each_layout
def test_words_are_runs_of_elements(layout: Layout) -> None:
    words, run = layout.words(), layout.packing.per_register
    assert (words.packing.per_register, words.registers) == (1, layout.registers)
    position = np.arange(layout.elements) % run
    for word, element in zip(words.places, layout.places, strict=True):
        # One coordinate is that which a register's elements run along.
        along = run > 1 and element[0, 1] != element[0, 0]
        expected = np.repeat(word, run, 1)
        np.testing.assert_array_equal(expected * run + position if along else expected, element)


# The formulas of the manual, shape by shape: PTX ISA 9.1, 9.7.14.5.1 to .13 and 9.7.14.6.2, as collected in
# docs/specification/ptx.md 2.2 and 3.1. None of what follows is the law of `layouts`.


class Rule(NamedTuple):
    """Registers of A and B and coordinates of their element i; of a sparse A: row, its chunk, rank in it."""

    a_registers: int
    a: Formula
    b_registers: int
    b: Formula


# By shape and elements in a register: 1 of tf32 or f64, 2 of f16 or bf16, 4 bytes, 8 nibbles, 32 bits.
DENSE: dict[tuple[str, int], Rule] = {
    ("m8n8k4", 1): Rule(1, lambda g, t, i: (g, t), 1, lambda g, t, i: (t, g)),
    ("m8n8k16", 4): Rule(1, lambda g, t, i: (g, 4 * t + i), 1, lambda g, t, i: (4 * t + i, g)),
    ("m8n8k32", 8): Rule(1, lambda g, t, i: (g, 8 * t + i), 1, lambda g, t, i: (8 * t + i, g)),
    ("m8n8k128", 32): Rule(1, lambda g, t, i: (g, 32 * t + i), 1, lambda g, t, i: (32 * t + i, g)),
    ("m16n8k4", 1): Rule(2, lambda g, t, i: (g + 8 * i, t), 1, lambda g, t, i: (t, g)),
    ("m16n8k8", 1): Rule(
        4, lambda g, t, i: (g + 8 * (i & 1), t + 4 * (i >> 1)), 2, lambda g, t, i: (t + 4 * i, g)
    ),
    ("m16n8k8", 2): Rule(
        2, lambda g, t, i: (g + 8 * (i >> 1), 2 * t + (i & 1)), 1, lambda g, t, i: (2 * t + i, g)
    ),
    ("m16n8k16", 1): Rule(
        8, lambda g, t, i: (g + 8 * (i & 1), t + 4 * (i >> 1)), 4, lambda g, t, i: (t + 4 * i, g)
    ),
    ("m16n8k16", 2): Rule(
        4, lambda g, t, i: (g + 8 * ((i >> 1) & 1), 2 * t + (i & 1) + 8 * (i >> 2)),
        2, lambda g, t, i: (2 * t + (i & 1) + 8 * (i >> 1), g),
    ),
    ("m16n8k16", 4): Rule(
        2, lambda g, t, i: (g + 8 * (i >> 2), 4 * t + (i & 3)), 1, lambda g, t, i: (4 * t + i, g)
    ),
    ("m16n8k32", 4): Rule(
        4, lambda g, t, i: (g + 8 * ((i >> 2) & 1), 4 * t + (i & 3) + 16 * (i >> 3)),
        2, lambda g, t, i: (4 * t + (i & 3) + 16 * (i >> 2), g),
    ),
    ("m16n8k32", 8): Rule(
        2, lambda g, t, i: (g + 8 * (i >> 3), 8 * t + (i & 7)), 1, lambda g, t, i: (8 * t + i, g)
    ),
    ("m16n8k64", 8): Rule(
        4, lambda g, t, i: (g + 8 * ((i >> 3) & 1), 8 * t + (i & 7) + 32 * (i >> 4)),
        2, lambda g, t, i: (8 * t + (i & 7) + 32 * (i >> 3), g),
    ),
    ("m16n8k128", 32): Rule(
        2, lambda g, t, i: (g + 8 * (i >> 5), 32 * t + (i & 31)), 1, lambda g, t, i: (32 * t + i, g)
    ),
    ("m16n8k256", 32): Rule(
        4, lambda g, t, i: (g + 8 * ((i >> 5) & 1), 32 * t + (i & 31) + 128 * (i >> 6)),
        2, lambda g, t, i: (32 * t + (i & 31) + 128 * (i >> 5), g),
    ),
}  # fmt: skip

SPARSE: dict[tuple[str, int], Rule] = {
    ("m16n8k8", 1): Rule(
        2, lambda g, t, i: (g + 8 * i, 2 * t, 0 * i), 2, lambda g, t, i: (t + 4 * i, g)
    ),
    ("m16n8k16", 1): Rule(
        4, lambda g, t, i: (g + 8 * (i & 1), 2 * t + 8 * (i >> 1), 0 * i), 4, lambda g, t, i: (t + 4 * i, g)
    ),
    ("m16n8k16", 2): Rule(
        2, lambda g, t, i: (g + 8 * (i >> 1), 4 * t, i & 1),
        2, lambda g, t, i: (2 * t + (i & 1) + 8 * (i >> 1), g),
    ),
    ("m16n8k32", 2): Rule(
        4, lambda g, t, i: (g + 8 * ((i >> 1) & 1), 4 * t + 16 * (i >> 2), i & 1),
        4, lambda g, t, i: (2 * t + (i & 1) + 8 * (i >> 1), g),
    ),
    ("m16n8k32", 4): Rule(
        2, lambda g, t, i: (g + 8 * (i >> 2), 8 * t + 4 * ((i >> 1) & 1), i & 1),
        2, lambda g, t, i: (4 * t + (i & 3) + 16 * (i >> 2), g),
    ),
    ("m16n8k64", 4): Rule(
        4, lambda g, t, i: (g + 8 * ((i >> 2) & 1), 8 * t + 4 * ((i >> 1) & 1) + 32 * (i >> 3), i & 1),
        4, lambda g, t, i: (4 * t + (i & 3) + 16 * (i >> 2), g),
    ),
    ("m16n8k64", 8): Rule(  # pairs: (i >> 1) & 1 is the pair, i & 1 its member
        2, lambda g, t, i: (g + 8 * (i >> 3), 16 * t + 8 * ((i >> 2) & 1), 2 * ((i >> 1) & 1) + (i & 1)),
        2, lambda g, t, i: (8 * t + (i & 7) + 32 * (i >> 3), g),
    ),
    ("m16n8k128", 8): Rule(
        4,
        lambda g, t, i: (
            g + 8 * ((i >> 3) & 1), 16 * t + 8 * ((i >> 2) & 1) + 64 * (i >> 4), 2 * ((i >> 1) & 1) + (i & 1)
        ),
        4, lambda g, t, i: (8 * t + (i & 7) + 32 * (i >> 3), g),
    ),
}  # fmt: skip

PER_REGISTER = {"f64": 1, "tf32": 1, "f16": 2, "bf16": 2, "s4": 8, "u4": 8, "b1": 32}
PLAIN = [i for i in instructions() if not quad_pair(i)]
QUADS = [i for i in instructions() if quad_pair(i)]


def check(layout: Layout, *coordinates: Array) -> None:
    """Compare row and column (after the matrix, if there are several) with the layout's places."""
    for mine, theirs in zip(layout.places[-len(coordinates) :], coordinates, strict=True):
        np.testing.assert_array_equal(mine, np.broadcast_to(theirs, mine.shape))


def key(instruction: Instruction) -> tuple[str, int]:
    nibbles = instruction.a_type == "e2m1" and instruction.kind in ("mxf4", "mxf4nvf4")
    return instruction.shape, PER_REGISTER.get(instruction.a_type, 8 if nibbles else 4)


def test_every_rule_is_used() -> None:
    assert {key(i) for i in PLAIN if not i.sparse} == DENSE.keys()
    assert {key(i) for i in PLAIN if i.sparse} == SPARSE.keys()


@pytest.mark.parametrize("instruction", PLAIN, ids=str)
def test_multiplicands_are_where_the_manual_says(instruction: Instruction) -> None:
    rule = (SPARSE if instruction.sparse else DENSE)[key(instruction)]
    a, b = instruction.layout("A"), instruction.layout("B")
    assert (a.registers, b.registers) == (rule.a_registers, rule.b_registers)
    row, column, *rank = rule.a(G, T, np.arange(a.elements))
    check(a, row, column // 2 + rank[0] if rank else column)  # half of each chunk is stored
    check(b, *rule.b(G, T, np.arange(b.elements)))


@pytest.mark.parametrize("instruction", PLAIN, ids=str)
@pytest.mark.parametrize("operand", ["C", "D"])
def test_accumulators_are_where_the_manual_says(instruction: Instruction, operand: Operand) -> None:
    layout = instruction.layout(operand)
    i = np.arange(layout.elements)
    assert layout.elements == instruction.m // 4
    assert layout.registers == instruction.m // (8 if instruction.type(operand) == "f16" else 4)
    check(layout, G + 8 * (i >> 1) if instruction.m == 16 else G + 0 * i, 2 * T + (i & 1))


@pytest.mark.parametrize("instruction", QUADS, ids=str)
def test_quad_pairs_are_where_the_manual_says(instruction: Instruction) -> None:
    """PTX ISA 9.1, 9.7.14.5.1."""
    x, h, quad = LANE & 3, np.where(LANE >= 16, 4, 0), (LANE >> 2) & 3
    i = np.arange(4)
    a = {"row": (x + h, i), "col": (i + h, x)}[instruction.a_layout]
    b = {"col": (i, x + h), "row": (x, i + h)}[instruction.b_layout]
    check(instruction.layout("A"), quad, *a)
    check(instruction.layout("B"), quad, *b)
    assert [instruction.layout(o).registers for o in OPERANDS[:2]] == [2, 2]
    i = np.arange(8)
    f32 = ((LANE & 1) + (i & 2) + h, (i & 4) + (LANE & 2) + (i & 1))
    for operand in OPERANDS[2:]:
        wide = instruction.type(operand) == "f32"
        assert instruction.layout(operand).registers == (8 if wide else 4)
        check(instruction.layout(operand), quad, *(f32 if wide else (x + h, i)))


def test_the_manuals_m16n8k256_is_misprinted() -> None:
    """For i < 64 the manual prints column 32t + i, but 32 to 63 are the same 32 columns of rows 8 to 15."""
    layout = parse("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc").layout("A")
    i = np.arange(128)
    row = G + 8 * ((i >> 5) & 1)
    printed = 32 * T + np.where(i < 64, i, (i & 31) + 128)
    wrong = printed != layout.places[2]
    assert wrong.sum() == 1024
    assert (wrong == ((i >= 32) & (i < 64))).all()
    assert len(np.unique(row * 256 + printed)) < 16 * 256  # it cannot be right: elements without a place
    check(layout, row, 32 * T + (i & 31) + 128 * (i >> 6))


# CuTe's atoms, as the package tensor-layouts transcribes them: (thread, value) -> offset, column-major.

DEFECTS = {
    # tensor-layouts 0.3.2 has stride 32 where mma_traits_sm80.hpp has ((4,8),8):((64,1),8).
    ("SM80_16x8x32_S32S4S4S32_TN", "B")
}


def atoms() -> Iterator[tuple[str, Any, Instruction]]:
    skip_without("tensor-layouts")
    package: Any = importlib.import_module("tensor_layouts.atoms_nv")
    for name, atom in vars(package).items():
        if getattr(atom, "ptx", "").startswith("mma.sync."):  # the others are wgmma, tcgen05 and dp4a
            mnemonic, _, note = atom.ptx.partition(" ")
            k = atom.shape_mnk[2]
            if name.startswith("SM120") and k > 32:  # it names e4m3 for what is sparse containers or packed e2m1
                head = "mma.sp::ordered_metadata" if note else "mma"
                container = note and k == 64
                tail = "f8f6f4.f32.e4m3.e4m3.f32" if container else "mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
                mnemonic = f"{head}.sync.aligned.m16n8k{k}.row.col.kind::{tail}"
            yield name, atom, parse(mnemonic)


@lru_cache
def offsets(layout: Any, threads: int, values: int) -> Array:
    return np.array([[layout(t, v) for v in range(values)] for t in range(threads)])


def agrees(atom: Any, instruction: Instruction, operand: Operand) -> bool:
    """Whether each value of each thread is the same element."""
    layout = instruction.layout(operand)
    matrix, row, column = layout.places
    cute_layout = getattr(atom, f"{operand.lower()}_layout")
    if operand == "B":
        outer, inner, extent = column, row, instruction.n
    else:
        outer, inner, extent = row, column, instruction.m
    if quad_pair(instruction):
        inner_cute, outer_cute = np.divmod(offsets(cute_layout, 8, layout.elements), extent)
        lane = np.array([[atom.thr_id(t) + 4 * q for t in range(8)] for q in range(4)])
        same = (inner[lane] == inner_cute) & (outer[lane] == outer_cute)
        return bool((same & (matrix[lane] == np.arange(4)[:, None, None])).all())
    # CuTe's sparse A lists the values before compression, twice as many.
    ratio = 2 if instruction.sparse and operand == "A" else 1
    inner_cute, outer_cute = np.divmod(offsets(cute_layout, LANES, ratio * layout.elements), extent)
    same = (np.repeat(inner, ratio, 1) == inner_cute // ratio) & (np.repeat(outer, ratio, 1) == outer_cute)
    return bool(same.all())


def test_layouts_are_those_of_cute() -> None:
    compared = [(name, atom, i, operand) for name, atom, i in atoms() for operand in OPERANDS[:3]]
    assert len(compared) > 120
    wrong = [case for case in compared if not agrees(*case[1:])]
    assert {(name, operand) for name, _, _, operand in wrong} <= DEFECTS
    for _, atom, instruction, operand in wrong:  # not even a bijection
        size = int(np.prod(instruction.layout(operand).shape))
        cute = offsets(getattr(atom, f"{operand.lower()}_layout"), LANES, size // LANES)
        assert len(np.unique(cute)) < size
