"""PTX kernels of `ldmatrix` and `stmatrix`: a block is one warp with its own shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from warpmma.hardware import row_statement
from warpmma.operations import MatrixMove
from warpmma.registers import LANES

from .runner import KernelGpu

__all__ = ["MoveGpu", "move_kernel"]

Array = npt.NDArray[Any]

_MEMORY, _REGISTERS, _ADDRESSES, _OUT = "memory", "registers", "addresses", "out"
_CHUNK = 16 * LANES  # bytes that a warp moves at once between global and shared memory


def move_kernel(move: MatrixMove, name: str, size: int = 1024) -> str:
    """Return a kernel that fills shared memory, executes a form once, and outputs what it wrote.

    Parameters
    ----------
    move : MatrixMove
    name : str
        Name of the entry point.
    size : int
        Bytes of shared memory, a multiple of 512.

    Returns
    -------
    str
        PTX, without the module's header. Parameters are addresses of memory `[warp, size]`, registers
        `[warp, register, lane]`, addresses `[warp, lane]`, and of the output: registers for a load, memory for a store.
    """
    load, letter = move.direction == "load", "d" if move.direction == "load" else "a"
    statement = row_statement(move, pointer=f"%{move.space}")
    four, width = "{%v0, %v1, %v2, %v3}", 4 * LANES * move.registers
    fill, read, into, out = [], [], [], []
    for offset in range(0, size, _CHUNK):
        fill += [f"ld.global.v4.b32 {four}, [%at+{offset}];", f"st.shared.v4.b32 [%here+{offset}], {four};"]
        read += [f"ld.shared.v4.b32 {four}, [%here+{offset}];", f"st.global.v4.b32 [%at+{offset}], {four};"]
    for i in range(move.registers):
        into.append(f"ld.global.b32 %{letter}{i}, [%at+{i * 4 * LANES}];")
        out.append(f"st.global.b32 [%at+{i * 4 * LANES}], %{letter}{i};")
    return "\n".join([
        f".visible .entry {name}({', '.join(f'.param .u64 {x}' for x in (_MEMORY, _REGISTERS, _ADDRESSES, _OUT))}) {{",
        f".shared .align 16 .b8 smem_{name}[{size}];", ".reg .u64 %at, %offset, %generic;",
        f".reg .b32 %lane, %warp, %here, %shared, %v<4>, %{letter}<{move.registers}>;",
        f"mov.u32 %lane, %tid.x; mov.u32 %warp, %ctaid.x; mov.u32 %shared, smem_{name};",
        "mad.lo.u32 %here, %lane, 16, %shared;",
        *_point(_MEMORY, size, 16), *fill, *([] if load else [*_point(_REGISTERS, width, 4), *into]),
        *_point(_ADDRESSES, 4 * LANES, 4), "ld.global.b32 %v0, [%at];", "add.u32 %shared, %shared, %v0;",
        "cvt.u64.u32 %generic, %shared;", "cvta.shared.u64 %generic, %generic;", "bar.sync 0;",
        statement, "bar.sync 0;", *([*_point(_OUT, width, 4), *out] if load else [*_point(_OUT, size, 16), *read]),
        "ret;", "}",
    ])  # fmt: skip


def _point(parameter: str, stride: int, size: int) -> list[str]:
    """Point `%at` to this lane's position in this warp's part."""
    return [
        f"ld.param.u64 %at, [{parameter}];", f"mul.wide.u32 %offset, %warp, {stride};", "add.u64 %at, %at, %offset;",
        f"mul.wide.u32 %offset, %lane, {size};", "add.u64 %at, %at, %offset;",
    ]  # fmt: skip


class MoveGpu(KernelGpu[str]):
    """The kernels of forms of `ldmatrix` and `stmatrix`.

    Parameters
    ----------
    moves : sequence of MatrixMove
    target : str
    size : int
        Bytes of shared memory, a multiple of 512.
    """

    def __init__(self, moves: Sequence[MatrixMove], target: str, size: int = 1024) -> None:
        kernels = {move.mnemonic: partial(move_kernel, move, size=size) for move in moves}
        super().__init__(kernels, target, max((8, 0), *(move.ptx for move in moves)))

    def run(self, move: MatrixMove, memory: Array, registers: Array, addresses: Array) -> Array:
        """Execute a form, a warp to a block.

        Parameters
        ----------
        move : MatrixMove
        memory : ndarray of uint8
            `[warp, size]`.
        registers : ndarray of uint32
            `[warp, register, lane]`; a load reads none of them.
        addresses : ndarray of uint32
            `[warp, lane]`, within the memory.

        Returns
        -------
        ndarray
            Registers for a load, memory for a store.
        """
        out = np.zeros_like(registers if move.direction == "load" else memory)
        return self.launch(move.mnemonic, len(memory), LANES, (memory, registers, addresses, out), [3])[0]
