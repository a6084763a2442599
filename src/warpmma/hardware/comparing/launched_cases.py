"""Kernels of PTX on a GPU beside the simulator, which runs the same text on the same arrays at the same addresses.

1. For each piece of work a form makes a kernel, whose one instruction of interest is the form's, and arrays, whose
   addresses are its parameters. Row i of each array is that of block i.
2. The arrays that the form names are compared whole, element by element, after the launch.
3. A form's arrays depend on the seed, the number of the piece and the form's name. They may hold addresses, which are
   the same on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from ...errors import UnsupportedError, WarpmmaError
from ...gpu import TextKernel, TextLaunch
from ...machine import Device
from ...operations import InstructionRow
from ...ptx import load
from ...registers import LANES
from ..emitting import ptx_module
from .findings import Found, PlaceDifference, Refused
from .rooms import Room

__all__ = ["ENTRY", "LaunchComparison", "LaunchedForm", "LaunchedWork", "Place", "RowForm", "launched_in_simulator"]

ENTRY = "compared"
"""Name of the entry of each kernel."""

_HEAD = 64  # bytes of addresses before a tail

Place = Callable[[str, int], int]
"""From the name of an array and its bytes to its address on the GPU."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LaunchedWork(Shown):
    """A kernel and what it gets.

    Attributes
    ----------
    text : str
        PTX without the module's header; the entry is `ENTRY`.
    arrays : dict of str to ndarray
        In the order of the parameters, which are their addresses.
    compared : tuple of str
        The arrays that are compared.
    operands : dict of str to tuple of ndarray
        Of a compared array, others of its shape: their elements explain a difference at their place.
    outputs : int or None
        How many elements the kernel writes, if fewer than are compared.
    tail : bytes
        What the kernel's one parameter has behind the addresses, from byte 64 on.
    threads : int
        Of a block.
    """

    text: str
    arrays: Mapping[str, Array]
    compared: tuple[str, ...]
    operands: Mapping[str, Sequence[Array]] = field(default_factory=dict)
    outputs: int | None = None
    tail: bytes = b""
    threads: int = LANES

    @property
    def blocks(self) -> int:
        """Return how many there are."""
        return len(next(iter(self.arrays.values())))

    def given(self, addresses: Mapping[str, int]) -> bytes:
        """Return the bytes of the parameters."""
        words = b"".join(addresses[name].to_bytes(8, "little") for name in self.arrays)
        return words.ljust(_HEAD, b"\0") + self.tail if self.tail else words


class LaunchedForm(Protocol):
    """One instruction, and kernels that execute it."""

    @property
    def name(self) -> str:
        """Its mnemonic."""

    @property
    def ptx(self) -> tuple[int, int]:
        """The oldest version of PTX that has it."""

    def work(self, target: str, blocks: int, number: int, rng: np.random.Generator, place: Place) -> LaunchedWork:
        """Make the kernel and the arrays of piece of work `number`."""


Row = TypeVar("Row", bound=InstructionRow)


@dataclass(frozen=True, kw_only=True, eq=False)
class RowForm(Shown, Generic[Row]):
    """A form that is one row; its classes have `work`."""

    row: Row

    @property
    def name(self) -> str:
        """Return the mnemonic."""
        return self.row.mnemonic

    @property
    def ptx(self) -> tuple[int, int]:
        """Return the version that has it."""
        return self.row.ptx


def launched_in_simulator(text: str, target: str, work: LaunchedWork, addresses: Mapping[str, int]) -> dict[str, Array]:
    """Run a module on copies of the arrays, at these addresses; return what they become."""
    device = Device(target)
    placed = {name: device.map(np.ascontiguousarray(x).copy(), addresses[name]) for name, x in work.arrays.items()}
    load(text)[ENTRY].launch(device, work.blocks, work.threads, params=work.given(addresses), hazards="off")
    return {name: placed[name].numpy() for name in work.compared}


@dataclass(frozen=True, kw_only=True, eq=False)
class LaunchComparison(Shown):
    """One form.

    Attributes
    ----------
    form : LaunchedForm
    kind : str
        For the report.
    part : int
        The number of outputs that the user wants is divided by this.
    blocks : int
        Of a piece of work.
    seed : int
    """

    form: LaunchedForm
    kind: str
    part: int
    blocks: int
    seed: int
    names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", [self.form.name])

    def wanted(self, outputs: int) -> int:
        """Return how many registers or bytes there should be."""
        return max(1, outputs // self.part)

    def run(self, room: Room, number: int, done: int = 0) -> Iterator[tuple[str, Found | Refused]]:
        """Do a piece of work."""
        try:
            if self.form.ptx > room.ptx:
                raise UnsupportedError(f"the driver compiles PTX {room.ptx[0]}.{room.ptx[1]}, and it is newer")
            yield self.form.name, self._compared(room, number)
        except UnsupportedError as error:
            yield self.form.name, Refused(why=str(error))

    def _compared(self, room: Room, number: int) -> Found:
        rng = np.random.default_rng([self.seed, number, *self.form.name.encode()])
        work = self.form.work(room.target, self.blocks, number, rng, room.reserve)
        text = ptx_module([work.text], room.target, room.ptx)
        addresses = {name: room.put(name, x) for name, x in work.arrays.items()}
        try:
            expected = launched_in_simulator(text, room.target, work, addresses)
        except WarpmmaError as error:
            raise UnsupportedError(f"not simulated: {str(error).splitlines()[0]}") from error
        kernel, given = TextKernel(text=text, name=ENTRY), work.given(addresses)
        room.launch(TextLaunch(kernel=kernel, grid=work.blocks, threads=work.threads, given=given))
        outputs = differences = 0
        first = None
        for name, ours in expected.items():
            theirs = np.empty_like(ours)
            room.get(addresses[name], theirs)
            unequal = theirs != ours
            outputs, differences = outputs + unequal.size, differences + int(unequal.sum())
            if first is None and unequal.any():
                place = tuple(int(x) for x in np.argwhere(unequal)[0])
                there = tuple(int(x[place]) for x in work.operands.get(name, ()))
                first = PlaceDifference(
                    array=name, immediates=place, given=there, gpu=(int(theirs[place]),), model=(int(ours[place]),)
                )
        return Found(outputs=work.outputs or outputs, differences=differences, first=first)
