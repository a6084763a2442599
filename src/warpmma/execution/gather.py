"""From registers to arrays of codes and back: the index arithmetic of execution, made once for each instruction."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .._arrays import Array, frozen
from ..isa import Instruction
from ..layouts import Layout


class Gather:
    """How an instruction's registers become arrays of codes for the units, and the other way round.

    A comes out as `[k, (matrix,) m, 1, warp]`, B as `[k, (matrix,) 1, n, warp]`, C and D as `[(matrix,) m, n, warp]`.
    """

    def __init__(self, instruction: Instruction, words: bool) -> None:
        shapes = {name: instruction.layout(name) for name in ("A", "B", "C", "D")}
        if words:  # single bits are combined a register at a time
            shapes |= {name: shapes[name].words() for name in ("A", "B")}
        dtype = {name: instruction.format(name).code_dtype for name in ("A", "B", "C")}
        self.codes = {
            "A": _gather(shapes["A"], dtype["A"], lambda x: np.moveaxis(x, -1, 0)[..., None]),
            "B": _gather(shapes["B"], dtype["B"], lambda x: np.moveaxis(x, -2, 0)[..., None, :]),
            "C": _gather(shapes["C"], dtype["C"], lambda x: x),
        }
        self._d = shapes["D"]

    @staticmethod
    @cache
    def of(instruction: Instruction, words: bool) -> Gather:
        """Return the one of an instruction, made once."""
        return Gather(instruction, words)

    def registers(self, codes: Array) -> Array:
        """Pack codes of D into registers `[warp, register, lane]`."""
        packing = self._d.packing
        flat = codes.reshape(-1, codes.shape[-1]).astype(packing.dtype, copy=False)
        registers = flat.take(self._d.flat[..., 0], axis=0)  # position 0 begins at bit 0
        for position in range(1, packing.per_register):
            registers |= flat.take(self._d.flat[..., position], axis=0) << packing.shifts[position]
        return np.moveaxis(registers, -1, 0)


def _gather(layout: Layout, dtype: np.dtype[Any], arrange: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a function from registers `[warp, register, lane]` to codes, arranged, with the warps last."""
    packing = layout.packing
    word, position = (arrange(x) for x in layout.slots)
    shift = frozen(packing.shifts[position])[..., None]
    whole = packing.per_register == 1
    mask = packing.dtype.type(packing.mask)

    def gather(registers: Array) -> Array:
        words = np.ascontiguousarray(registers.reshape(len(registers), -1).T).take(word, axis=0)
        return words if whole else ((words >> shift) & mask).astype(dtype)

    return gather
