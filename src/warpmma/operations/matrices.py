"""`ldmatrix`, `stmatrix` and `movmatrix`: matrices between rows of shared memory and fragments of a warp.

The rules (PTX ISA 9.1: `ldmatrix`, `stmatrix`, `movmatrix`; docs/specification/ptx.md 5):

1. Memory has rows of 16 bytes, each at an address of its own, a multiple of 16. Row p of matrix q, of matrices with R
   rows each, is where lane R q + p points; addresses of other lanes do not count (before sm_80 they must be valid).
2. A row holds 8 elements of 16 bits or 16 of fewer, lowest first. Of `.b6x16_p32` it holds 96 bits of elements and then
   32 of padding, of `.b4x16_p64` 64 bits and 64; they become bytes, with 0 above the element. Padding does not count.
3. M[p][x] being element x of row p, where an element stands in the fragment is a renaming of bits. The law is that of
   `mma`'s multiplicands (`layouts`): across the rows go l2 l3 l4, along them the bits inside the register, then l0 l1.
   With `.trans` rows and columns change places: a lane's register holds elements of several rows.
4. The element bits that are left name, lowest first, the upper 8 of 16 columns, then the matrix: its registers come
   after those of the matrix before. The exception is `stmatrix.m16n8.trans.b8`, whose register is a fragment of an
   accumulator, c0 to c3, as bytes: inside it are two rows of memory, then two columns 8 apart.
5. `movmatrix` transposes one m8n8 matrix of 16 bits: its source has the layout of `ldmatrix` without `.trans`, its
   result holds the same matrix in the layout with it.

`stmatrix` promises nothing where rows overlap. All lanes of a warp take part: under divergence these instructions have
no meaning. `ldmatrix...m8n16...s8.s4` (PTX 9.4) is not here: there is no text of what it does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import as_array
from ..errors import OperandError
from ..layouts import Layout
from ..registers import LANES, Packing
from .records import Direction, Operation, Row, known

__all__ = ["OPERATIONS", "MatrixMove", "moves"]

Array = npt.NDArray[Any]

ROW_BYTES = 16
_SPACES = (".shared", ".shared::cta", "")
_B16, _B8 = Packing(slot=16, bits=16), Packing(slot=8, bits=8)


@dataclass(frozen=True, kw_only=True)
class MatrixMove(Row):
    """One `ldmatrix` or `stmatrix`. Without `.shared` the addresses are generic ones that fall into shared memory.

    Attributes
    ----------
    direction : {"load", "store"}
    layout : Layout
        Where element `[matrix, row, column]` stands in the fragment; rows are those of memory.
    bits : int
        Bits of an element in memory: 16, 8, 6 or 4. In registers, 6 and 4 become 8.
    """

    direction: Direction
    layout: Layout
    bits: int

    @property
    def matrices(self) -> int:
        """How many matrices it moves."""
        return self.layout.matrices

    @property
    def rows_per_matrix(self) -> int:
        """Rows of memory of one matrix."""
        return 1 << len(self.layout.row)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of memory, padding included."""
        return ROW_BYTES

    @property
    def alignment(self) -> int:
        """What an address must be a multiple of."""
        return ROW_BYTES

    @property
    def address_lanes(self) -> int:
        """How many lanes, from lane 0 on, have addresses that count."""
        return self.matrices * self.rows_per_matrix

    @property
    def registers(self) -> int:
        """Registers of a lane's fragment."""
        return self.layout.registers

    @property
    def syntax(self) -> str:
        """Operands as PTX writes them: `d0`, ... are outputs, `a0`, ... inputs, `p` the address."""
        letter = "d" if self.direction == "load" else "a"
        fragment = f"{{{', '.join(f'{letter}{i}' for i in range(self.registers))}}}"
        return f"{fragment}, [p]" if self.direction == "load" else f"[p], {fragment}"

    def rows(self, addresses: npt.ArrayLike) -> Array:
        """Addresses of every row: `[..., matrix, row]` of those of the lanes, `[..., 32]`.

        Raises
        ------
        OperandError
            No integers, another number of lanes, or addresses that count and are no multiple of 16.
        """
        array = self._array(addresses, "addresses", "iu", (LANES,))
        counted = array[..., : self.address_lanes]
        if (bad := counted % self.alignment != 0).any():
            *place, lane = (int(i) for i in np.argwhere(bad)[0])
            address = int(counted[(*place, lane)])
            raise OperandError(f"{self.mnemonic}: lane {lane}: address {address:#x} is no multiple of {self.alignment}")
        return counted.reshape(*counted.shape[:-1], self.matrices, self.rows_per_matrix)

    def distribute(self, data: npt.ArrayLike) -> Array:
        """Load: from the bytes of the rows, uint8 `[..., matrix, row, 16]`, to registers, uint32 `[..., register, 32]`.

        Raises
        ------
        OperandError
            It stores, or the array has another shape or dtype.
        """
        self._check_direction("load", "collect")
        array = self._array(data, "data", "u1", (self.matrices, self.rows_per_matrix, self.row_bytes))
        codes = self._codes(array).reshape(*array.shape[:-3], self.layout.flat.size)
        return self.layout.packing.join(codes[..., self.layout.flat])

    def collect(self, registers: npt.ArrayLike) -> Array:
        """Store: from registers, uint32 `[..., register, 32]`, to the rows' bytes, uint8 `[..., matrix, row, 16]`.

        Raises
        ------
        OperandError
            It loads, or the array has another shape or dtype.
        """
        self._check_direction("store", "distribute")
        array = self._array(registers, "registers", "u4", (self.registers, LANES))
        codes = self.layout.packing.unpack(array)
        word, position = self.layout.slots
        codes = codes.reshape(*array.shape[:-2], self.registers * LANES, codes.shape[-1])[..., word, position]
        if self.bits == 16:
            codes = np.stack([codes & 0xFF, codes >> 8], axis=-1)  # low byte first
        return codes.astype(np.uint8).reshape(*array.shape[:-2], self.matrices, self.rows_per_matrix, self.row_bytes)

    def _codes(self, data: Array) -> Array:
        """Elements of rows of bytes."""
        if self.bits == 16:
            return data[..., 0::2].astype(np.uint16) | data[..., 1::2].astype(np.uint16) << 8
        columns = 1 << len(self.layout.column)
        # As a list of rows: what packs bits knows no more than 32 dimensions.
        bits = np.unpackbits(data.reshape(-1, ROW_BYTES), axis=-1, count=columns * self.bits, bitorder="little")
        codes = np.packbits(bits.reshape(-1, columns, self.bits), axis=-1, bitorder="little")
        return codes.reshape(*data.shape[:-1], columns)

    def _check_direction(self, wanted: str, other: str) -> None:
        if self.direction != wanted:
            raise OperandError(f"{self.mnemonic} is a {self.direction}; use {other}")

    def _array(self, x: npt.ArrayLike, name: str, kind: str, shape: tuple[int, ...]) -> Array:
        array = as_array(x, f"{self.mnemonic}: {name}")
        if array.shape[-len(shape) :] != shape or (
            array.dtype.kind not in kind if kind == "iu" else array.dtype != np.dtype(kind)
        ):
            dtype = "integers" if kind == "iu" else str(np.dtype(kind))
            raise OperandError(
                f"{self.mnemonic}: {name} are {array.dtype} {array.shape}; "
                f"expected {dtype} [..., {', '.join(str(n) for n in shape)}]"
            )
        return array


_LOAD, _STORE = "ldmatrix.sync.aligned.", "stmatrix.sync.aligned."


def _along(inside: int) -> tuple[str, ...]:
    return (*(f"e{i}" for i in range(inside)), "l0", "l1")


_ACROSS = ("l2", "l3", "l4")


@dataclass(frozen=True)
class _Form:
    """Forms that differ in the number of matrices: what stands before and after `.xN`, and the renaming of bits."""

    before: str
    after: str  # with {space}
    counts: str
    row: tuple[str, ...]
    column: tuple[str, ...]
    bits: int
    since: str
    ptx: tuple[int, int]


def _wide(shape: str, trans: str, counts: str, row: tuple[str, ...], column: tuple[str, ...]) -> tuple[_Form, ...]:
    """Make the forms of padded elements."""
    return tuple(
        _Form(_LOAD + shape, f"{trans}{{space}}.b8x16.{name}", counts, row, column, bits, "sm_100f", (8, 6))
        for bits, name in ((6, "b6x16_p32"), (4, "b4x16_p64"))
    )


_FORMS = (
    _Form(_LOAD + "m8n8", "{space}.b16", "124", _ACROSS, _along(1), 16, "sm_75", (6, 5)),
    _Form(_LOAD + "m8n8", ".trans{space}.b16", "124", _along(1), _ACROSS, 16, "sm_75", (6, 5)),
    _Form(_LOAD + "m16n16", ".trans{space}.b8", "12", _along(2), (*_ACROSS, "e2"), 8, "sm_100f", (8, 6)),
    *_wide("m16n16", ".trans", "12", _along(2), (*_ACROSS, "e2")),
    *_wide("m8n16", "", "124", _ACROSS, _along(2)),
    _Form(_STORE + "m8n8", "{space}.b16", "124", _ACROSS, _along(1), 16, "sm_90", (7, 8)),
    _Form(_STORE + "m8n8", ".trans{space}.b16", "124", _along(1), _ACROSS, 16, "sm_90", (7, 8)),
    _Form(_STORE + "m16n8", ".trans{space}.b8", "124", _along(1), (*_ACROSS, "e1"), 8, "sm_100f", (8, 6)),
)


def _moves(form: _Form) -> list[MatrixMove]:
    elements = len(form.row) + len(form.column) - 5  # bits of a matrix's elements in a lane
    made = []
    for count in map(int, form.counts):
        layout = Layout(
            row=form.row, column=form.column,
            matrix=tuple(f"e{i}" for i in range(elements, elements + count.bit_length() - 1)),
            packing=_B16 if form.bits == 16 else _B8,
        )  # fmt: skip
        made += [
            MatrixMove(
                mnemonic=f"{form.before}.x{count}{form.after.format(space=space)}", layout=layout, bits=form.bits,
                direction="load" if form.before.startswith("ld") else "store", since=form.since,
                ptx=max(form.ptx, (7, 8)) if space.endswith("cta") else form.ptx,
                evidence=known(
                    f"PTX ISA 9.1, {form.before[:8]}; {'not measured' if form.ptx > (8, 0) else 'measured on an H200'}"
                ),
            )
            for space in _SPACES
        ]  # fmt: skip
    return made


@cache
def moves() -> dict[str, MatrixMove]:
    """Every row of `ldmatrix` and `stmatrix`, by its mnemonic."""
    return {move.mnemonic: move for form in _FORMS for move in _moves(form)}


def _movmatrix(a: Array, active: Array) -> tuple[Array]:
    source = moves()["ldmatrix.sync.aligned.m8n8.x1.shared.b16"].layout
    result = moves()["ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16"].layout
    lane, position = source.slots
    codes = source.packing.unpack(a)[..., lane, position].reshape(*a.shape[:-1], -1)
    return (result.packing.join(codes[..., result.flat[0]]),)


def _partial_warp(a: Array, active: Array) -> Array:
    """`.aligned`: all lanes of a warp execute it, or none."""
    missing: Array = active & ~active.all(axis=-1, keepdims=True)
    return missing


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        mnemonic="movmatrix.sync.aligned.m8n8.trans.b16", inputs=("b32",), input_types=("b16x2",), outputs=("b32",),
        compute=_movmatrix, undefined=_partial_warp, lanes=True, since="sm_75", ptx=(7, 8),
        evidence=known("PTX ISA 9.1, movmatrix; measured on an H200"),
    ),
)  # fmt: skip
