"""The laws of fragments, as layouts: multiplicands and accumulators of a warp and of a warpgroup, and the exception."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

from .._arguments import check_choice, is_integer
from ..errors import OperandError, shown
from ..registers import LANES, Packing
from .bit_layout import Layout, element_bits

Operand = Literal["A", "B", "C", "D"]
OPERANDS: tuple[Operand, ...] = ("A", "B", "C", "D")


def multiplicand(operand: Operand, outer: int, k: int, packing: Packing) -> Layout:
    """Layout of A (outer = m, 8 or 16) or B (outer = n = 8) over k elements, by the law.

    Raises
    ------
    OperandError
        Another operand or shape.
    """
    check_choice("operand", operand, ("A", "B"))
    _check_shape("outer", outer, (8, 16))
    _check_shape("k", k, [1 << i for i in range(12)])
    return _multiplicand(operand, int(outer), int(k), _checked(packing))


@cache
def _multiplicand(operand: Operand, outer: int, k: int, packing: Packing) -> Layout:
    inside = packing.per_register.bit_length() - 1
    high = outer.bit_length() - 4  # 1 where the low register bit separates rows 0-7 from 8-15
    along = k.bit_length() - 1 - inside - 2
    inner = (*element_bits(0, inside), "l0", "l1", *element_bits(inside + high, along))
    across = ("l2", "l3", "l4", *element_bits(inside, high))
    if operand == "A":
        return Layout(row=across, column=inner, packing=packing)
    return Layout(row=inner, column=across, packing=packing)


def accumulator(m: int, packing: Packing) -> Layout:
    """Layout of C and D, m rows (8 or 16) by 8 columns; another m is an `OperandError`."""
    _check_shape("m", m, (8, 16))
    return _accumulator(int(m), _checked(packing))


@cache
def _accumulator(m: int, packing: Packing) -> Layout:
    return Layout(
        row=("l2", "l3", "l4", *element_bits(1, m.bit_length() - 4)), column=("e0", "l0", "l1"), packing=packing
    )


def quad_pair(operand: Operand, layout: str, packing: Packing) -> Layout:
    """Layouts of `mma.m8n8k4` with f16 operands (PTX ISA 9.1, 9.7.14.5.1).

    Matrix q of four belongs to lanes 4q to 4q+3 and 16+4q to 16+4q+3, so l2 l3 name it and l4 is the coordinate's bit
    2. `layout` is the qualifier of A or B, "row" or "col", and means nothing for C and D.

    Raises
    ------
    OperandError
        Another operand or layout.
    """
    check_choice("operand", operand, OPERANDS)
    check_choice("layout", layout, ("row", "col"))
    return _quad_pair(operand, layout, _checked(packing))


@cache
def _quad_pair(operand: Operand, layout: str, packing: Packing) -> Layout:
    matrix = ("l2", "l3")
    if operand in "CD":
        if packing.slot == 32:
            return Layout(row=("l0", "e1", "l4"), column=("e0", "l1", "e2"), matrix=matrix, packing=packing)
        return Layout(row=("l0", "l1", "l4"), column=("e0", "e1", "e2"), matrix=matrix, packing=packing)
    # A of `.row` and B of `.col` hold runs of k in each lane; the other two hold runs of m or n.
    along_k = layout == ("row" if operand == "A" else "col")
    outer, k = (("l0", "l1", "l4"), ("e0", "e1")) if along_k else (("e0", "e1", "l4"), ("l0", "l1"))
    row, column = (outer, k) if operand == "A" else (k, outer)
    return Layout(row=row, column=column, matrix=matrix, packing=packing)


def warpgroup(operand: Operand, size: int, packing: Packing) -> Layout:
    """Layout of a warpgroup's A in registers, 64 by k, or of its C and D, 64 by n (PTX ISA 9.1, 9.7.15.5.1.1).

    Parameters
    ----------
    operand : {"A", "C", "D"}
        B is in shared memory.
    size : int
        k of A; n of C and D, a multiple of 8 up to 256.
    packing : Packing

    Raises
    ------
    OperandError
        Another operand or size.

    Examples
    --------
    >>> layout = warpgroup("D", 24, Packing(slot=32, bits=32))
    >>> layout.shape, layout.registers, layout.locate(35, 21)
    ((64, 24), 12, (78, 9, 0))
    """
    check_choice("operand", operand, ("A", "C", "D"))
    if operand == "A":
        _check_shape("k", size, [1 << i for i in range(12)])
        return _warpgroup(_multiplicand("A", 16, int(size), _checked(packing)), 1)
    _check_shape("n", size, range(8, 257, 8))
    return _warpgroup(_accumulator(16, _checked(packing)), int(size) // 8)


@cache
def _warpgroup(warp: Layout, repeats: int) -> Layout:
    return Layout(
        row=(*warp.row, "l5", "l6"), column=warp.column, packing=warp.packing, lanes=4 * LANES, repeats=repeats
    )


def _check_shape(name: str, value: object, legal: Sequence[int]) -> None:
    if not is_integer(value) or value not in legal:
        raise OperandError(f"{name} is {shown(value)}; expected one of {', '.join(map(str, legal))}")


def _checked(packing: Packing) -> Packing:
    if not isinstance(packing, Packing):
        raise OperandError(f"packing is {shown(packing)}; expected a Packing")
    return packing
