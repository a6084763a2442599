"""Fragment layouts: which element sits in which lane and register, and back.

Every layout of the ISA renames bits. An element's place is a lane (bits l0 to l4) and an index i in the lane's
fragment (bits e0, e1, ...; PTX's `ai`, `bi`, `ci`), low registers and low bits first; its coordinates are a row and a
column. A `Layout` lists, for each coordinate and from the lowest bit up, the place bit that stands there.

The law (PTX ISA 9.1, 9.7.14.5; docs/specification/ptx.md 2.1): with P elements to a register,

* A: the column's bits are the bits inside the register, then l0 l1, then the register pairs; the row's are l2 l3 l4,
  then, for m16, the low register bit. B is the same with k in the column's place, and n is l2 l3 l4.
* C and D: the column is (e0, l0, l1), the row (l2, l3, l4, e1).
* A sparse A is the A of the stored elements, k/2 of them; B, C and D are as ever.

The exceptions are `mma.m8n8k4` with f16 operands, where l2 l3 name one of four matrices, and its f32 accumulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

from ._arguments import check_choice, is_integer
from ._lazy import later
from ._records import Record
from .errors import OperandError, shown
from .registers import LANES, Packing

__all__ = ["OPERANDS", "Layout", "accumulator", "multiplicand", "quad_pair"]

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from . import _arrays

    Array = npt.NDArray[Any]
else:  # only a layout's arrays need NumPy
    np, _arrays = later("numpy"), later("._arrays", __package__)

Operand = Literal["A", "B", "C", "D"]
OPERANDS: tuple[Operand, ...] = ("A", "B", "C", "D")
_LANE_BITS = tuple(f"l{i}" for i in range(5))


def _bits(first: int, count: int) -> tuple[str, ...]:
    return tuple(f"e{i}" for i in range(first, first + count))


def _is_bits(names: object) -> bool:
    return isinstance(names, tuple) and all(isinstance(name, str) for name in names)


@dataclass(frozen=True, kw_only=True)
class Layout(Record):
    """One operand's layout, as a renaming of bits.

    The arrays that are derived from it are read-only.

    Attributes
    ----------
    row, column : tuple of str
        Place bits ("l0".."l4", "e0"..) of each coordinate, lowest first.
    matrix : tuple of str
        Place bits that name one of several matrices; empty but for m8n8k4 f16.
    packing : Packing
        How elements share registers.

    Raises
    ------
    OperandError
        When the place bits are not each used once: such a record is no layout.
    """

    row: tuple[str, ...]
    column: tuple[str, ...]
    matrix: tuple[str, ...] = ()
    packing: Packing

    def __post_init__(self) -> None:
        coordinates = (self.row, self.column, self.matrix)
        named = sum(coordinates, ()) if all(map(_is_bits, coordinates)) else ()
        expected = _LANE_BITS + _bits(0, len(named) - len(_LANE_BITS))
        bijective = isinstance(self.packing, Packing) and sorted(named) == sorted(expected)
        if not bijective or self.elements % self.packing.per_register:
            came = f"row {shown(self.row)}, column {shown(self.column)}"
            raise OperandError(f"no bijection, or registers left half full: {came}")

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of the operand's matrix, with a dimension of matrices before it where there are several."""
        return (*((self.matrices,) if self.matrix else ()), 1 << len(self.row), 1 << len(self.column))

    @property
    def matrices(self) -> int:
        """How many matrices one instruction works on."""
        return 1 << len(self.matrix)

    @cached_property
    def elements(self) -> int:
        """Elements in a lane's fragment."""
        return 1 << (len(self.row) + len(self.column) + len(self.matrix) - len(_LANE_BITS))

    @cached_property
    def registers(self) -> int:
        """Registers in a lane's fragment."""
        return self.elements // self.packing.per_register

    @cached_property
    def places(self) -> tuple[Array, Array, Array]:
        """Matrix, row and column of every place: three arrays `[lane, i]`."""
        lane, i = np.arange(LANES)[:, None], np.arange(self.elements)[None, :]

        def coordinate(names: tuple[str, ...]) -> Array:
            value = np.zeros((LANES, self.elements), np.intp)
            for weight, name in enumerate(names):
                source = lane if name[0] == "l" else i
                value |= ((source >> int(name[1:])) & 1) << weight
            return _arrays.frozen(value)

        return coordinate(self.matrix), coordinate(self.row), coordinate(self.column)

    @cached_property
    def flat(self) -> Array:
        """Index into the flattened matrices of the element at `[register, lane, position in the register]`."""
        index = np.ravel_multi_index(self.places, (self.matrices, 1 << len(self.row), 1 << len(self.column)))
        return _arrays.frozen(index.reshape(LANES, self.registers, -1).swapaxes(0, 1))

    @cached_property
    def slots(self) -> tuple[Array, Array]:
        """Where each element sits: word `register * 32 + lane`, and position in the register, both shaped `shape`."""
        place = np.empty(self.flat.size, np.intp)
        place[self.flat.ravel()] = np.arange(self.flat.size)
        word, position = np.divmod(place.reshape(self.shape), self.packing.per_register)
        return _arrays.frozen(word), _arrays.frozen(position)

    @cached_property
    def order(self) -> Array:
        """Where each element sits among the codes `[register, lane, position]`, flattened: the inverse of `flat`."""
        word, position = self.slots
        return _arrays.frozen(word * self.packing.per_register + position)

    def locate(self, row: int, column: int, matrix: int = 0) -> tuple[int, int, int]:
        """Lane, register and lowest bit of one element; one that does not exist is an `OperandError`.

        Examples
        --------
        >>> multiplicand("A", 16, 16, Packing(slot=16, bits=16)).locate(3, 5)
        (14, 0, 16)
        """
        most = {"matrix": self.matrices, "row": 1 << len(self.row), "column": 1 << len(self.column)}
        came = dict(zip(most, (matrix, row, column), strict=True))
        for name, value in came.items():
            if not is_integer(value) or not 0 <= value < most[name]:
                given = [
                    f"{key} {shown(x)}" for key, x in came.items() if self.matrix or key != "matrix" or key == name
                ]
                expected = f"expected a {name} of 0 to {most[name] - 1}"
                raise OperandError(f"{', '.join(given)} is outside {self.shape}; {expected}")
        lane = i = 0
        for names, value in ((self.matrix, matrix), (self.row, row), (self.column, column)):
            for weight, name in enumerate(names):
                bit = ((int(value) >> weight) & 1) << int(name[1:])
                lane, i = (lane | bit, i) if name[0] == "l" else (lane, i | bit)
        register, position = divmod(i, self.packing.per_register)
        return lane, register, position * self.packing.slot + self.packing.shift

    def words(self) -> Layout:
        """Return the layout of whole registers, as elements of the coordinate that their elements run along.

        It is how single bits are multiplied: 32 values of k at a time.
        """
        inside = _bits(0, self.packing.per_register.bit_length() - 1)

        def rest(names: tuple[str, ...]) -> tuple[str, ...]:
            kept = [n for n in names if n not in inside]
            return tuple(n if n[0] == "l" else f"e{int(n[1:]) - len(inside)}" for n in kept)

        width = self.packing.width
        return Layout(
            row=rest(self.row), column=rest(self.column), matrix=rest(self.matrix),
            packing=Packing(slot=width, bits=width),
        )  # fmt: skip

    def formulas(self) -> dict[str, str]:
        """Write closed formulas in PTX's words, in both directions, as expressions that Python and C read alike.

        Returns
        -------
        dict
            "row", "col" (and "matrix") in `groupID`, `threadID_in_group` and `i`; and "laneid", "i" in `row`, `col`.

        Examples
        --------
        >>> f = multiplicand("A", 16, 16, Packing(slot=16, bits=16)).formulas()
        >>> print(f["row"], "|", f["col"])
        groupID + ((i >> 1) & 0x1) * 8 | (i & 0x1) + threadID_in_group * 2 + (i >> 2) * 8
        >>> print(f["laneid"], "|", f["i"])
        ((col >> 1) & 0x3) + (row & 0x7) * 4 | (col & 0x1) + (row >> 3) * 2 + (col >> 3) * 4
        """
        coordinates = {"matrix": self.matrix, "row": self.row, "col": self.column}
        sizes = {"groupID": 3, "threadID_in_group": 2, "i": self.elements.bit_length() - 1}
        forward = {
            name: _sum_of_terms([_ptx(bit) for bit in bits], sizes) for name, bits in coordinates.items() if bits
        }
        back = {bit: (name, weight) for name, bits in coordinates.items() for weight, bit in enumerate(bits)}
        lengths = {name: len(bits) for name, bits in coordinates.items()}
        lane = _sum_of_terms([back[bit] for bit in _LANE_BITS], lengths)
        index = _sum_of_terms([back[bit] for bit in _bits(0, sizes["i"])], lengths)
        return {**forward, "laneid": lane, "i": index}


def _ptx(bit: str) -> tuple[str, int]:
    """PTX's name for a place bit, and which bit of it this is."""
    number = int(bit[1:])
    if bit[0] == "e":
        return "i", number
    return ("threadID_in_group", number) if number < 2 else ("groupID", number - 2)


def _sum_of_terms(bits: list[tuple[str, int]], sizes: dict[str, int]) -> str:
    """Write the number whose bits, lowest first, are these bits of named variables of these sizes."""
    runs: list[tuple[str, int, int, int]] = []  # variable, its first bit, how many, and the weight of the first
    for weight, (name, bit) in enumerate(bits):
        last = runs[-1] if runs else None
        if last and last[0] == name and last[1] + last[2] == bit:
            runs[-1] = (name, last[1], last[2] + 1, last[3])
        else:
            runs.append((name, bit, 1, weight))
    terms = []
    for name, first, count, weight in runs:
        term = f"({name} >> {first})" if first else name
        if first + count < sizes[name]:
            term = f"({term} & {(1 << count) - 1:#x})"
        terms.append(f"{term} * {1 << weight}" if weight else term)
    return " + ".join(terms) or "0"


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
    high = outer.bit_length() - 4  # 1 where the low register bit tells rows 0-7 from 8-15
    along = k.bit_length() - 1 - inside - 2
    inner = (*_bits(0, inside), "l0", "l1", *_bits(inside + high, along))
    across = ("l2", "l3", "l4", *_bits(inside, high))
    if operand == "A":
        return Layout(row=across, column=inner, packing=packing)
    return Layout(row=inner, column=across, packing=packing)


def accumulator(m: int, packing: Packing) -> Layout:
    """Layout of C and D, m rows (8 or 16) by 8 columns; another m is an `OperandError`."""
    _check_shape("m", m, (8, 16))
    return _accumulator(int(m), _checked(packing))


@cache
def _accumulator(m: int, packing: Packing) -> Layout:
    return Layout(row=("l2", "l3", "l4", *_bits(1, m.bit_length() - 4)), column=("e0", "l0", "l1"), packing=packing)


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


def _check_shape(name: str, value: object, legal: Sequence[int]) -> None:
    if not is_integer(value) or value not in legal:
        raise OperandError(f"{name} is {shown(value)}; expected one of {', '.join(map(str, legal))}")


def _checked(packing: Packing) -> Packing:
    if not isinstance(packing, Packing):
        raise OperandError(f"packing is {shown(packing)}; expected a Packing")
    return packing
