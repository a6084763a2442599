"""Layouts as renamings of bits: the record, what follows from it, and its arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .._arguments import check_choice, is_integer
from .._lazy_numpy import Array, _arrays, np
from .._records import Record
from .._views import view
from ..errors import OperandError, shown
from ..registers import LANES, Packing


@dataclass(frozen=True, kw_only=True)
class Cell(Record):
    """One element of an operand, and where it sits.

    Attributes
    ----------
    operand : str
        "A", "B", "C", "D", "metadata", "scale_a", "scale_b" or "address"; empty for a cell of a plain layout.
    row, column : int
        Of the element; of metadata the row of A and the group, of scales the row (or column) and the block.
    matrix : int
        Which of several matrices: of m8n8k4 with f16 operands and of `.x4` one of four; of metadata the selector that
        reads it; of scales a number in `lookup.ids_of`, byte-id and thread-id; of `wmma` the copy; else 0.
    lane : int
        0 to 31; of a warpgroup the thread, 0 to 127.
    register : int
    low, high : int
        First and last bit of the register that it takes.
    index : int
        Which element of the lane's fragment it is: PTX's i of `ai`, `bi`, `ci`.
    """

    operand: str = ""
    row: int
    column: int
    matrix: int = 0
    lane: int
    register: int
    low: int
    high: int
    index: int


_WARPGROUP = 4 * LANES
ORDERS = ("element", "lane")
"""In which order tables of a layout go."""


def element_bits(first: int, count: int) -> tuple[str, ...]:
    """Name bits of an index into a fragment."""
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
        Place bits ("l0".."l4", "e0"..) of each coordinate, lowest first; a warpgroup's threads have "l5", "l6" too.
    matrix : tuple of str
        Place bits that name one of several matrices; empty except for m8n8k4 f16.
    packing : Packing
        How elements share registers.
    lanes : {32, 128}
        Threads that hold it: a warp's lanes, or a warpgroup's threads.
    repeats : int
        Number of copies of the layout side by side: columns and fragments are that many times as long, and later
        elements of the fragment are further right. More than 1 only in accumulators of a warpgroup.

    Raises
    ------
    OperandError
        When the place bits are not each used once: such a record is not a layout.
    """

    row: tuple[str, ...]
    column: tuple[str, ...]
    matrix: tuple[str, ...] = ()
    packing: Packing
    lanes: int = LANES
    repeats: int = 1

    def __post_init__(self) -> None:
        coordinates = (self.row, self.column, self.matrix)
        named = sum(coordinates, ()) if all(map(_is_bits, coordinates)) else ()
        sizes = {"lanes": (self.lanes, (LANES, _WARPGROUP)), "repeats": (self.repeats, range(1, 33))}
        for name, (size, legal) in sizes.items():
            if not is_integer(size) or size not in legal:
                raise OperandError(f"{name} is {shown(size)}; expected one of {', '.join(map(str, legal))}")
            object.__setattr__(self, name, int(size))
        expected = self._lane_bits + element_bits(0, len(named) - len(self._lane_bits))
        bijective = isinstance(self.packing, Packing) and sorted(named) == sorted(expected)
        if not bijective or (1 << self._index_bits) % self.packing.per_register:
            came = f"row {shown(self.row)}, column {shown(self.column)}"
            raise OperandError(f"not a bijection, or registers are not filled: {came}")

    @cached_property
    def _lane_bits(self) -> tuple[str, ...]:
        return tuple(f"l{i}" for i in range(self.lanes.bit_length() - 1))

    @property
    def _index_bits(self) -> int:
        """Bits of an index into what repeats."""
        return len(self.row) + len(self.column) + len(self.matrix) - len(self._lane_bits)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of the operand's matrix, with a dimension of matrices before it where there are several."""
        return (*((self.matrices,) if self.matrix else ()), *self._extents[1:])

    @cached_property
    def _extents(self) -> tuple[int, int, int]:
        """Numbers of matrices, rows and columns."""
        return self.matrices, 1 << len(self.row), self.repeats << len(self.column)

    @property
    def matrices(self) -> int:
        """Number of matrices that one instruction works on."""
        return 1 << len(self.matrix)

    @cached_property
    def elements(self) -> int:
        """Elements in a lane's fragment."""
        return self.repeats << self._index_bits

    @cached_property
    def registers(self) -> int:
        """Registers in a lane's fragment."""
        return self.elements // self.packing.per_register

    @cached_property
    def places(self) -> tuple[Array, Array, Array]:
        """Matrix, row and column of every place: three arrays `[lane, i]`."""
        lane, i = np.arange(self.lanes)[:, None], np.arange(self.elements)[None, :]
        found = (np.broadcast_to(x, (self.lanes, self.elements)) for x in self._coordinates(lane, i))
        matrix, row, column = (_arrays.frozen(x.astype(np.intp)) for x in found)
        return matrix, row, column

    def _coordinates(self, lane: Any, i: Any) -> tuple[Any, Any, Any]:
        """Return matrix, row and column of places, which are integers or arrays."""

        def coordinate(names: tuple[str, ...]) -> Any:
            bits = ((lane if name[0] == "l" else i) >> int(name[1:]) & 1 for name in names)
            return sum(bit << weight for weight, bit in enumerate(bits))

        column = coordinate(self.column) + (i >> self._index_bits << len(self.column))
        return coordinate(self.matrix), coordinate(self.row), column

    @cached_property
    def flat(self) -> Array:
        """Index into the flattened matrices of the element at `[register, lane, position in the register]`."""
        index = np.ravel_multi_index(self.places, self._extents)
        return _arrays.frozen(index.reshape(self.lanes, self.registers, -1).swapaxes(0, 1))

    @cached_property
    def slots(self) -> tuple[Array, Array]:
        """Place of each element: word `register * lanes + lane`, and position in the register, both of `shape`."""
        place = np.empty(self.flat.size, np.intp)
        place[self.flat.ravel()] = np.arange(self.flat.size)
        word, position = np.divmod(place.reshape(self.shape), self.packing.per_register)
        return _arrays.frozen(word), _arrays.frozen(position)

    @cached_property
    def order(self) -> Array:
        """Index of each element among the codes `[register, lane, position]`, flattened: the inverse of `flat`."""
        word, position = self.slots
        return _arrays.frozen(word * self.packing.per_register + position)

    def locate(self, row: int, column: int, matrix: int = 0) -> tuple[int, int, int]:
        """Lane, register and lowest bit of one element; one that does not exist is an `OperandError`.

        Examples
        --------
        >>> from warpmma.layouts import multiplicand
        >>> multiplicand("A", 16, 16, Packing(slot=16, bits=16)).locate(3, 5)
        (14, 0, 16)
        """
        found = self.cell(row, column, matrix)
        return found.lane, found.register, found.low

    def cell(self, row: int, column: int, matrix: int = 0) -> Cell:
        """Return where one element sits; one that does not exist is an `OperandError`.

        Examples
        --------
        >>> from warpmma.layouts import multiplicand
        >>> found = multiplicand("A", 16, 16, Packing(slot=16, bits=16)).cell(3, 5)
        >>> found.lane, found.register, found.low, found.high, found.index
        (14, 0, 16, 31, 1)
        """
        given = {"matrix": matrix, "row": row, "column": column}
        for (name, value), most in zip(given.items(), self._extents, strict=True):
            if not is_integer(value) or not 0 <= value < most:
                named = ("matrix", "row", "column") if self.matrix else (name, "row", "column")
                came = [f"{key} {shown(x)}" for key, x in given.items() if key in named]
                expected = f"expected a {name} of 0 to {most - 1}"
                raise OperandError(f"{', '.join(came)} is outside {self.shape}; {expected}")
        (x, i), (y, j), (z, k) = (part[int(v)] for part, v in zip(self._places_of, given.values(), strict=True))
        return self._cell(int(matrix), int(row), int(column), x | y | z, i | j | k)

    @cached_property
    def _places_of(self) -> tuple[list[tuple[int, int]], ...]:
        """Lane and index of each matrix, row and column where the others are 0: a place has the bits of all three."""
        found: list[list[tuple[int, int]]] = [[], [], []]
        for names, most, places in zip((self.matrix, self.row, self.column), self._extents, found, strict=True):
            for value in range(most):
                lane, i = 0, value >> len(names) << self._index_bits  # what repeats are columns
                for weight, name in enumerate(names):
                    bit = (value >> weight & 1) << int(name[1:])
                    lane, i = (lane | bit, i) if name[0] == "l" else (lane, i | bit)
                places.append((lane, i))
        return tuple(found)

    def _cell(self, matrix: int, row: int, column: int, lane: int, i: int) -> Cell:
        register, position = divmod(i, self.packing.per_register)
        low = position * self.packing.slot + self.packing.shift
        return Cell(
            matrix=matrix, row=row, column=column, lane=lane, register=register, index=i,
            low=low, high=low + self.packing.bits - 1,
        )  # fmt: skip

    def holds(self, lane: int, register: int = 0) -> tuple[Cell, ...]:
        """Return the contents of a lane's register, the lowest bits first; `OperandError` for one out of range.

        Parameters
        ----------
        lane : int
            0 to 31, or the thread of a warpgroup, 0 to 127.
        register : int

        Examples
        --------
        >>> from warpmma.layouts import multiplicand
        >>> layout = multiplicand("A", 16, 16, Packing(slot=16, bits=16))
        >>> [(x.row, x.column, x.low) for x in layout.holds(14, register=1)]
        [(11, 4, 0), (11, 5, 16)]
        """
        for name, value, most in (("lane", lane, self.lanes), ("register", register, self.registers)):
            if not is_integer(value) or not 0 <= value < most:
                raise OperandError(f"{name} {shown(value)} is out of range; expected 0 to {most - 1}")
        per, first = self.packing.per_register, int(register) * self.packing.per_register
        return tuple(self._at(int(lane), first + position) for position in range(per))

    def _at(self, lane: int, i: int) -> Cell:
        """Return the element of a place."""
        lanes, elements = self._parts
        (matrix, row, column), (x, y, z) = lanes[lane], elements[i]
        return self._cell(matrix | x, row | y, column | z, lane, i)

    @cached_property
    def _parts(self) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
        """Coordinates of each lane's first element, and of lane 0's elements: a place has the bits of both."""
        lanes = [self._coordinates(lane, 0) for lane in range(self.lanes)]
        return lanes, [self._coordinates(0, i) for i in range(self.elements)]

    def cells(self, by: str = "element") -> Iterator[Cell]:
        """Yield every element, in the order of rows and columns, or "lane" after "lane"; another order is refused.

        Parameters
        ----------
        by : {"element", "lane"}
        """
        check_choice("by", by, ORDERS)
        if by == "lane":
            return (self._at(lane, i) for lane in range(self.lanes) for i in range(self.elements))
        matrices, rows, columns = map(range, self._extents)
        return (self.cell(row, column, matrix) for matrix in matrices for row in rows for column in columns)

    def table(self, by: str = "element", format: str = "text") -> str:
        r"""Write it as a table; another order or format is an `OperandError`.

        Parameters
        ----------
        by : {"element", "lane"}
            A grid of rows and columns with lanes and elements of their fragments, or one of lanes and registers.
        format : {"text", "csv", "markdown", "json", "svg", "html"}

        Examples
        --------
        >>> from warpmma.layouts import accumulator
        >>> print("\n".join(accumulator(8, Packing(slot=32, bits=32)).table("lane").splitlines()[3:6]))
        lane  register 0  register 1
        0     [0, 0]      [0, 1]
        1     [0, 2]      [0, 3]
        """
        return view(self, "table", by, format)

    def svg(self, by: str = "element", *, theme: str = "auto") -> str:
        """Draw it.

        Parameters
        ----------
        by : {"element", "lane"}
        theme : {"auto", "light", "dark"}
            By the reader's system or page, or fixed.

        Raises
        ------
        OperandError
            Another order or theme.
        """
        return view(self, "svg", by, theme=theme)

    def words(self) -> Layout:
        """Return the layout of whole registers, as elements of the coordinate that their elements run along.

        It is how single bits are multiplied: 32 values of k at a time.
        """
        inside = element_bits(0, self.packing.per_register.bit_length() - 1)

        def rest(names: tuple[str, ...]) -> tuple[str, ...]:
            kept = [n for n in names if n not in inside]
            return tuple(n if n[0] == "l" else f"e{int(n[1:]) - len(inside)}" for n in kept)

        width = self.packing.width
        return Layout(
            row=rest(self.row), column=rest(self.column), matrix=rest(self.matrix),
            packing=Packing(slot=width, bits=width), lanes=self.lanes, repeats=self.repeats,
        )  # fmt: skip

    def formulas(self) -> dict[str, str]:
        """Write closed formulas in PTX's words, in both directions, as expressions that Python and C read alike.

        Returns
        -------
        dict
            "row", "col" (and "matrix") in `groupID`, `threadID_in_group` and `i`; and "laneid", "i" in `row`, `col`.
            Of a warpgroup there is `warpid` too, the warp's number in it, 0 to 3, and how to find it.

        Examples
        --------
        >>> from warpmma.layouts import multiplicand
        >>> f = multiplicand("A", 16, 16, Packing(slot=16, bits=16)).formulas()
        >>> print(f["row"], "|", f["col"])
        groupID + ((i >> 1) & 0x1) * 8 | (i & 0x1) + threadID_in_group * 2 + (i >> 2) * 8
        >>> print(f["laneid"], "|", f["i"])
        ((col >> 1) & 0x3) + (row & 0x7) * 4 | (col & 0x1) + (row >> 3) * 2 + (col >> 3) * 4
        """
        coordinates = {"matrix": self.matrix, "row": self.row, "col": self.column}
        further = (self.repeats - 1).bit_length()  # bits of a repeat's number: high ones of the index and of the column
        sizes = {"groupID": 3, "threadID_in_group": 2, "warpid": 2, "i": self._index_bits + further}
        repeated = [("i", self._index_bits + x) for x in range(further)]
        forward = {
            name: _sum_of_terms([_ptx(bit) for bit in bits] + repeated * (name == "col"), sizes)
            for name, bits in coordinates.items()
            if bits
        }
        back = {bit: (name, weight) for name, bits in coordinates.items() for weight, bit in enumerate(bits)}
        lengths = {name: len(bits) for name, bits in coordinates.items()}
        repeated = [("col", lengths["col"] + x) for x in range(further)]
        lengths["col"] += further
        lane = _sum_of_terms([back[bit] for bit in self._lane_bits[:5]], lengths)
        of_warp = [back[bit] for bit in self._lane_bits[5:]]
        warp = {"warpid": _sum_of_terms(of_warp, lengths)} if of_warp else {}
        index = _sum_of_terms([back[bit] for bit in element_bits(0, self._index_bits)] + repeated, lengths)
        return {**forward, **warp, "laneid": lane, "i": index}


def _ptx(bit: str) -> tuple[str, int]:
    """PTX's name for a place bit, and which bit of it this is."""
    number = int(bit[1:])
    if bit[0] == "e":
        return "i", number
    if number >= 5:
        return "warpid", number - 5
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
