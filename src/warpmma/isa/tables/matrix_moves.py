"""`ldmatrix`, `stmatrix` and `movmatrix`: rows of 16 bytes in shared memory, and the fragments of a warp.

The rules (PTX ISA 9.1: `ldmatrix`, `stmatrix`, `movmatrix`; docs/specification/ptx.md 5):

1. Memory has rows of 16 bytes, each with its own address. The address of row p of matrix q, if a matrix has R rows,
   comes from lane R q + p; addresses of other lanes are ignored.
2. A row holds 8 elements of 16 bits or 16 of fewer, lowest first. Those of 6 and 4 bits become bytes, with 0 above.
3. With M[p][x] as element x of row p, the position of an element in the fragment is a permutation of its index bits, as
   for `mma`'s multiplicands (`layouts`): l2 l3 l4 select the row; the bits inside the register, then l0 l1, select the
   column. `.trans` exchanges rows and columns: a lane's register holds elements of several rows.
4. The remaining element bits select, lowest first, the upper 8 of 16 columns, then the matrix: its registers follow
   those of the previous matrix. The exception is `stmatrix.m16n8.trans.b8`, whose register is a fragment of an
   accumulator, c0 to c3, as bytes: it holds two rows of memory, then two columns 8 apart.
5. `movmatrix` transposes one m8n8 matrix of 16 bits: its source A has the layout of `ldmatrix` without `.trans`, its
   result D holds the same matrix, by the same rows and columns, in the layout with it.

`ldmatrix...m8n16...s8.s4` (PTX 9.4) is missing: its semantics are not documented.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from typing import Any, Literal

from ...layouts import Layout
from ...registers import LANES, Packing
from ..grammar import Signature, Version, Words, address, numbered, value
from .fragment_record import FragmentForm, FragmentInstruction, form_of

# tests/data/h200_compare.json, by `warpmma compare`; `movmatrix` is one of the operations on registers.
MATRICES = "3,612,868,608 registers and bytes of all 36 forms of sm_90a"
TRANSPOSED = "617,179,476,190 lanes of 6,489 operations of sm_90a"


@dataclass(frozen=True, kw_only=True)
class FragmentMove(FragmentInstruction):
    """One `ldmatrix` or `stmatrix`. Without `.shared` the addresses are generic addresses of shared memory.

    Its operands are the fragment, D of a load and A of a store, and the lanes' addresses: `address` has an element for
    each row.

    Attributes
    ----------
    direction : {"load", "store"}
    layout : Layout
        Position of element `[matrix, row, column]` in the fragment; rows are those of memory.
    bits : int
        Bits of an element in memory: 16, 8, 6 or 4. In registers, elements of 6 and 4 bits take a byte.
    space : {"generic", "shared"}
        State space of the addresses: generic ones lie in shared memory, and may have 32 bits.

    Examples
    --------
    >>> from warpmma.isa import parse_fragments
    >>> move = parse_fragments("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16")
    >>> move.fragment("D").locate(3, 5, 2)  # lane, register and lowest bit of M[3][5] of matrix 2
    (21, 2, 16)
    >>> move.fragment("address").locate(3, 0, 2)
    (19, 0, 0)
    """

    direction: Literal["load", "store"]
    layout: Layout
    bits: int
    space: Literal["generic", "shared"] = field(repr=False, compare=False)

    @property
    def form(self) -> FragmentForm:
        """The row of the table that it comes from."""
        return form_of(MATRIX_MOVES, self.mnemonic)

    @property
    def shape_name(self) -> str:
        """Shape of a matrix as PTX spells it: in registers, where lanes 4 apart have different rows."""
        sides = self.layout.row, self.layout.column  # in memory
        rows, columns = sides if _ACROSS[0] in sides[0] else sides[::-1]
        return f"m{1 << len(rows)}n{1 << len(columns)}"

    @property
    def operands(self) -> tuple[str, ...]:
        """D of a load and A of a store, and the addresses."""
        return "D" if self.direction == "load" else "A", "address"

    @property
    def matrices(self) -> int:
        """How many matrices it moves."""
        return self.layout.matrices

    @property
    def rows_per_matrix(self) -> int:
        """Rows of memory of one matrix."""
        return 1 << len(self.layout.row)

    @property
    def address_lanes(self) -> int:
        """How many lanes, from lane 0 on, supply addresses."""
        return self.matrices * self.rows_per_matrix

    @property
    def registers(self) -> int:
        """Registers of a lane's fragment."""
        return self.layout.registers

    @cached_property
    def signature(self) -> Signature:
        """Its operands: `p` is the address."""
        load = self.direction == "load"
        where = address("p", self.space, other="b32" if self.space == "generic" else "b64")
        packing = self.layout.packing
        type_ = f"b{packing.slot}x{packing.per_register}"
        fragment = numbered(
            "d" if load else "a", self.registers, type_, kind="b32", braces="always",
            role="result" if load else "source", sink="element" if load else "",
        )  # fmt: skip
        return (fragment, where) if load else (where, fragment)

    def _element_type(self, operand: str) -> str:
        """PTX type of an operand's elements in registers: bits, or an address."""
        return "address" if operand == "address" else f"b{min(self.layout.packing.slot, 16)}"

    def counted(self, operand: str, target: str | None = None) -> int:
        """Return how many matrices it moves: addresses of further lanes are ignored."""
        self.fragment(operand, target)
        return self.matrices

    def _fragment(self, operand: str, target: str) -> Layout:
        return self.layout if operand != "address" else _addresses(self.rows_per_matrix, self.space == "shared")


@cache
def _addresses(rows: int, shared: bool) -> Layout:
    """Return the layout of the lanes' addresses (rule 1), one per register, for as many matrices as lanes allow."""
    lanes = tuple(f"l{i}" for i in range(LANES.bit_length() - 1))
    bits, width = rows.bit_length() - 1, 32 if shared else 64
    return Layout(row=lanes[:bits], column=(), matrix=lanes[bits:], packing=Packing(slot=width, bits=width))


@dataclass(frozen=True, kw_only=True)
class FragmentTranspose(FragmentInstruction):
    """`movmatrix`: the same matrix in two layouts (rule 5)."""

    @property
    def form(self) -> FragmentForm:
        """The row of the table that it comes from."""
        return MATRIX_TRANSPOSE

    @property
    def shape_name(self) -> str:
        """Shape of the matrix as PTX spells it."""
        return "m8n8"

    @property
    def operands(self) -> tuple[str, ...]:
        """A, the source, and D, the result."""
        return "A", "D"

    @cached_property
    def signature(self) -> Signature:
        """Its operands: a register of the matrix, and one of its transpose."""
        return value("d0", "b32", role="result"), value("a0", "b32")

    def _element_type(self, operand: str) -> str:
        """PTX type of the elements: bits."""
        return "b16"

    def _fragment(self, operand: str, target: str) -> Layout:
        return BEFORE if operand == "A" else AFTER


def _along(inside: int) -> tuple[str, ...]:
    return (*(f"e{i}" for i in range(inside)), "l0", "l1")


_ACROSS = ("l2", "l3", "l4")


@cache
def _layout(row: tuple[str, ...], column: tuple[str, ...], packing: Packing, matrices: int) -> Layout:
    """Return the fragment of some matrices with this permutation of the bits of rows and columns (rule 4)."""
    elements = len(row) + len(column) - 5  # bits of a matrix's elements in a lane
    matrix = tuple(f"e{i}" for i in range(elements, elements + matrices.bit_length() - 1))
    return Layout(row=row, column=column, matrix=matrix, packing=packing)


_B16 = Packing(slot=16, bits=16)
BEFORE, AFTER = _layout(_ACROSS, _along(1), _B16, 1), _layout(_along(1), _ACROSS, _B16, 1)


_SHARED = frozenset(("shared", "shared::cta"))


def _moved(row: tuple[str, ...], column: tuple[str, ...], bits: int, words: Words) -> Mapping[str, Any]:
    """Return the fields of a record that the words of a mnemonic determine."""
    (count,) = (int(word[1:]) for word in words if word in ("x1", "x2", "x4"))
    packing = _B16 if bits == 16 else Packing(slot=8, bits=bits)
    return {
        "direction": "load" if words[0] == "ldmatrix" else "store", "bits": bits,
        "layout": _layout(row, column, packing, count), "space": "generic" if _SHARED.isdisjoint(words) else "shared",
    }  # fmt: skip


def _form(
    shape: str, types: str, row: tuple[str, ...], column: tuple[str, ...], bits: int, since: str, ptx: Version
) -> FragmentForm:
    return FragmentForm(
        spelling=f"{shape}{{.<shared shared::cta>}}.{types}", kind=FragmentMove,
        fields=partial(_moved, row, column, bits), since=since, ptx=ptx, section=shape.partition(".")[0],
        compared=MATRICES if bits == 16 else "",
    )  # fmt: skip


_LOAD, _STORE = "ldmatrix.sync.aligned.", "stmatrix.sync.aligned."
_NEW: tuple[str, Version] = ("sm_100f", (8, 6))
_SQUARE = (_along(2), (*_ACROSS, "e2"))

MATRIX_MOVES: tuple[FragmentForm, ...] = (
    _form(_LOAD + "m8n8.<x1 x2 x4>", "b16", _ACROSS, _along(1), 16, "sm_75", (6, 5)),
    _form(_LOAD + "m8n8.<x1 x2 x4>.trans", "b16", _along(1), _ACROSS, 16, "sm_75", (6, 5)),
    _form(_LOAD + "m16n16.<x1 x2>.trans", "b8", *_SQUARE, 8, *_NEW),
    _form(_LOAD + "m16n16.<x1 x2>.trans", "b8x16.b6x16_p32", *_SQUARE, 6, *_NEW),
    _form(_LOAD + "m16n16.<x1 x2>.trans", "b8x16.b4x16_p64", *_SQUARE, 4, *_NEW),
    _form(_LOAD + "m8n16.<x1 x2 x4>", "b8x16.b6x16_p32", _ACROSS, _along(2), 6, *_NEW),
    _form(_LOAD + "m8n16.<x1 x2 x4>", "b8x16.b4x16_p64", _ACROSS, _along(2), 4, *_NEW),
    _form(_STORE + "m8n8.<x1 x2 x4>", "b16", _ACROSS, _along(1), 16, "sm_90", (7, 8)),
    _form(_STORE + "m8n8.<x1 x2 x4>.trans", "b16", _along(1), _ACROSS, 16, "sm_90", (7, 8)),
    _form(_STORE + "m16n8.<x1 x2 x4>.trans", "b8", _along(1), (*_ACROSS, "e1"), 8, *_NEW),
)
"""Forms of `ldmatrix` and `stmatrix`."""

MATRIX_TRANSPOSE = FragmentForm(
    spelling="movmatrix.sync.aligned.m8n8.trans.b16", kind=FragmentTranspose, fields=lambda words: {}, since="sm_75",
    ptx=(7, 8), section="movmatrix", compared=TRANSPOSED,
)  # fmt: skip
"""The form of `movmatrix`."""
