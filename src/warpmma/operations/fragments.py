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

import sys
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import as_array
from ..errors import OperandError
from ..layouts import Layout
from ..registers import LANES, Packing
from .forms import Form
from .measurements import MATRICES, derived, measured
from .records import Direction, Operation, Row

__all__ = ["FORMS", "MatrixMove"]

Array = npt.NDArray[Any]

ROW_BYTES = 16
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
        layout = self.layout
        codes = self._codes(array).reshape(*array.shape[:-3], layout.flat.size)
        if self._in_order:
            return layout.packing.join(codes.reshape(*codes.shape[:-1], *layout.flat.shape)).copy()
        return layout.packing.join(np.take(codes, layout.flat, axis=-1))

    @cached_property
    def _in_order(self) -> bool:
        """Whether registers have elements in the order of memory."""
        flat = self.layout.flat
        return bool((flat.ravel() == np.arange(flat.size)).all())

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
        if self.bits == 16 and sys.byteorder == "little" and data.flags.c_contiguous:
            return data.view(np.uint16)
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


# The forms


def _along(inside: int) -> tuple[str, ...]:
    return (*(f"e{i}" for i in range(inside)), "l0", "l1")


_ACROSS = ("l2", "l3", "l4")


def _layout(row: tuple[str, ...], column: tuple[str, ...], packing: Packing, matrices: int) -> Layout:
    """Return the fragment of some matrices whose bits of rows and columns are renamed so (rule 4)."""
    elements = len(row) + len(column) - 5  # bits of a matrix's elements in a lane
    matrix = tuple(f"e{i}" for i in range(elements, elements + matrices.bit_length() - 1))
    return Layout(row=row, column=column, matrix=matrix, packing=packing)


_BEFORE, _AFTER = _layout(_ACROSS, _along(1), _B16, 1), _layout(_along(1), _ACROSS, _B16, 1)


def _movmatrix(a: Array, active: Array) -> tuple[Array]:
    lane, position = _BEFORE.slots
    codes = _BEFORE.packing.unpack(a)[..., lane, position].reshape(*a.shape[:-1], -1)
    return (_AFTER.packing.join(codes[..., _AFTER.flat[0]]),)


def _partial_warp(a: Array, active: Array) -> Array:
    """`.aligned`: all lanes of a warp execute it, or none."""
    missing: Array = active & ~active.all(axis=-1, keepdims=True)
    return missing


def _transposed(words: tuple[str, ...]) -> dict[str, Any]:
    return {
        "inputs": ("b32",), "input_types": ("b16x2",), "outputs": ("b32",), "compute": _movmatrix,
        "undefined": _partial_warp, "lanes": True,
    }  # fmt: skip


def _moved(row: tuple[str, ...], column: tuple[str, ...], bits: int, words: tuple[str, ...]) -> dict[str, Any]:
    """Return what the words of a mnemonic say of a row."""
    (count,) = (int(word[1:]) for word in words if word in ("x1", "x2", "x4"))
    return {
        "direction": "load" if words[0] == "ldmatrix" else "store", "bits": bits,
        "layout": _layout(row, column, _B16 if bits == 16 else _B8, count),
    }  # fmt: skip


def _form(
    shape: str, types: str, row: tuple[str, ...], column: tuple[str, ...], bits: int, since: str, ptx: tuple[int, int]
) -> Form:  # fmt: skip
    section = shape.partition(".")[0]
    return Form(
        spelling=f"{shape}{{.<shared shared::cta>}}.{types}", kind=MatrixMove,
        fields=partial(_moved, row, column, bits), since=since, ptx=ptx,
        evidence=measured(section, MATRICES) if bits == 16 else derived(section, "PTX's text"),
    )  # fmt: skip


_LOAD, _STORE = "ldmatrix.sync.aligned.", "stmatrix.sync.aligned."
_NEW: tuple[str, tuple[int, int]] = ("sm_100f", (8, 6))
_SQUARE = (_along(2), (*_ACROSS, "e2"))

FORMS = (
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
    Form(
        spelling="movmatrix.sync.aligned.m8n8.trans.b16", kind=Operation, fields=_transposed,
        since="sm_75", ptx=(7, 8), evidence=measured("movmatrix"),
    ),
)  # fmt: skip
"""Every form of this module."""
