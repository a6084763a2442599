"""`ldmatrix` and `stmatrix` of a GPU beside the simulator.

A block is one warp with 1024 bytes of shared memory, filled with random bytes; its lanes address random rows, for
`stmatrix` different ones. Every second piece of work has invalid addresses in lanes whose addresses are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from ...errors import UnsupportedError
from ...gpu import TextKernel, TextLaunch
from ...operations import MatrixMove
from ...registers import LANES
from ..emitting import ptx_module
from .findings import Found, LaneDifference, Refused
from .rooms import Room
from .row_kernels import row_statement

__all__ = ["MOVED_BYTES", "MoveComparison", "move_inputs", "move_kernel", "move_launched", "move_simulated"]

MOVED_BYTES = 1024
"""Shared memory of a warp."""

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


def move_simulated(move: MatrixMove, memory: Array, registers: Array, addresses: Array) -> Array:
    """Do what a form does with NumPy: registers of a load, memory of a store."""
    bytes_ = move.rows(addresses)[..., None] + np.arange(move.row_bytes)
    warp = np.arange(len(memory)).reshape(-1, 1, 1, 1)
    if move.direction == "load":
        return move.distribute(memory[warp, bytes_])
    out = memory.copy()
    out[warp, bytes_] = move.collect(registers)
    return out


def move_inputs(move: MatrixMove, warps: int, rng: np.random.Generator, wild: bool) -> tuple[Array, Array, Array]:
    """Make memory, registers and addresses; invalid addresses in lanes whose addresses are ignored."""
    memory = rng.integers(0, 256, (warps, MOVED_BYTES), np.uint8)
    registers = rng.integers(0, 2**32, (warps, move.registers, LANES), np.uint32)
    rows = MOVED_BYTES // move.row_bytes
    if move.direction == "load":
        addresses = rng.integers(0, rows, (warps, LANES))
    else:
        addresses = np.argsort(rng.random((warps, rows)), axis=-1)[:, :LANES]
    addresses = (addresses * move.row_bytes).astype(np.uint32)
    if wild:
        addresses[:, move.address_lanes :] = rng.integers(0, 2**32, (warps, LANES - move.address_lanes), np.uint32)
    return memory, registers, addresses


def move_launched(room: Room, move: MatrixMove, memory: Array, registers: Array, addresses: Array) -> Array:
    """Execute a form on a GPU, a warp to a block: registers of a load, memory of a store.

    Raises
    ------
    UnsupportedError
        The driver refuses.
    """
    got = np.zeros_like(registers if move.direction == "load" else memory)
    arrays = dict(zip((_MEMORY, _REGISTERS, _ADDRESSES, _OUT), (memory, registers, addresses, got), strict=True))
    places = [room.put(name, x) for name, x in arrays.items()]
    text = ptx_module([move_kernel(move, "moved", MOVED_BYTES)], room.target, room.ptx)
    words = np.array(places, np.uint64).tobytes()
    room.launch(TextLaunch(kernel=TextKernel(text=text, name="moved"), grid=len(memory), threads=LANES, given=words))
    room.get(places[3], got)
    return got


@dataclass(frozen=True, kw_only=True, eq=False)
class MoveComparison(Shown):
    """One form; `warps` is how many there are in a piece of work."""

    move: MatrixMove
    warps: int
    seed: int

    @property
    def kind(self) -> str:
        """Return "fragment"."""
        return "fragment"

    @property
    def names(self) -> list[str]:
        """Return the mnemonic."""
        return [self.move.mnemonic]

    def wanted(self, outputs: int) -> int:
        """Return how many registers or bytes there should be: a tenth."""
        return max(1, outputs // 10)

    def run(self, room: Room, number: int, done: int = 0) -> Iterator[tuple[str, Found | Refused]]:
        """Do a piece of work."""
        move = self.move
        try:
            if move.ptx > room.ptx:
                raise UnsupportedError(f"the driver compiles PTX {room.ptx[0]}.{room.ptx[1]}, and it is newer")
            yield move.mnemonic, self._compared(room, number)
        except UnsupportedError as error:
            yield move.mnemonic, Refused(why=str(error))

    def _compared(self, room: Room, number: int) -> Found:
        move = self.move
        rng = np.random.default_rng([self.seed, number, *move.mnemonic.encode()])
        given = move_inputs(move, self.warps, rng, wild=bool(number % 2))
        expected, got = move_simulated(move, *given), move_launched(room, move, *given)
        places = np.argwhere(got != expected)
        first = None
        if len(places):
            place = tuple(int(x) for x in places[0])
            lanes = tuple(int(x) for x in given[2][place[0]])
            one, other = int(got[place]), int(expected[place])
            first = LaneDifference(immediates=place, given=lanes, gpu=(one,), model=(other,))
        return Found(outputs=got.size, differences=len(places), first=first)
