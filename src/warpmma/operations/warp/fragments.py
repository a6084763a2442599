"""`ldmatrix`, `stmatrix` and `movmatrix`: rows of shared memory to fragments of a warp, and back.

`isa.tables.matrix_moves` has the rules for the position of each element. The others (PTX ISA 9.1;
docs/specification/ptx.md 5):

1. An address is a multiple of 16. Addresses of lanes without a row are ignored (before sm_80 they must be valid).
2. A row is 16 bytes. With `.b6x16_p32` it holds 96 bits of elements, then 32 of padding; with `.b4x16_p64` 64 bits of
   each. Elements become bytes, with 0 above the element. Padding is ignored.

The result of `stmatrix` is undefined where rows overlap. All lanes of a warp take part: under divergence these
instructions are undefined.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._arrays import Array, as_array
from ...errors import OperandError
from ...isa import MATRIX_MOVES, MATRIX_TRANSPOSE, FragmentForm, FragmentMove
from ...registers import LANES
from ..forms import Form
from ..measurements import derived, measured
from ..records import InstructionRow, Operation

ROW_BYTES = 16


@dataclass(frozen=True, kw_only=True)
class MatrixMove(FragmentMove, InstructionRow):
    """One `ldmatrix` or `stmatrix`, for the machine."""

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of memory, padding included."""
        return ROW_BYTES

    @property
    def alignment(self) -> int:
        """Alignment of an address in bytes."""
        return ROW_BYTES

    def rows(self, addresses: npt.ArrayLike) -> Array:
        """Addresses of every row, `[..., matrix, row]`, from those of the lanes, `[..., 32]`.

        Raises
        ------
        OperandError
            Not integers, another number of lanes, or used addresses that are not a multiple of 16.
        """
        array = self._array(addresses, "addresses", "iu", (LANES,))
        counted = array[..., : self.address_lanes]
        if (bad := counted % self.alignment != 0).any():
            *place, lane = (int(i) for i in np.argwhere(bad)[0])
            address = int(counted[(*place, lane)])
            raise OperandError(
                f"{self.mnemonic}: lane {lane}: address {address:#x} is not a multiple of {self.alignment}"
            )
        return counted.reshape(*counted.shape[:-1], self.matrices, self.rows_per_matrix)

    def distribute(self, data: npt.ArrayLike) -> Array:
        """Load: from the bytes of the rows, uint8 `[..., matrix, row, 16]`, to registers, uint32 `[..., register, 32]`.

        Raises
        ------
        OperandError
            It is a store, or the array has another shape or dtype.
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
            It is a load, or the array has another shape or dtype.
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
        # As a list of rows: packing supports at most 32 dimensions.
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

_BEFORE, _AFTER = (MATRIX_TRANSPOSE.record(MATRIX_TRANSPOSE.spelling).fragment(operand) for operand in "AD")


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


def _row_form(form: FragmentForm) -> Form:
    return Form(
        spelling=form.spelling, kind=MatrixMove, fields=form.fields, since=form.since, ptx=form.ptx,
        evidence=measured(form.section, form.compared) if form.compared else derived(form.section, "PTX's text"),
    )  # fmt: skip


FORMS = (
    *map(_row_form, MATRIX_MOVES),
    Form(
        spelling=MATRIX_TRANSPOSE.spelling, kind=Operation, fields=_transposed, since=MATRIX_TRANSPOSE.since,
        ptx=MATRIX_TRANSPOSE.ptx, evidence=measured(MATRIX_TRANSPOSE.section, MATRIX_TRANSPOSE.compared),
    ),
)  # fmt: skip
"""Every form of this module."""
