"""Launches of programs, for a GPU and for the simulator: arrays by name, steps, arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Argument", "Case", "Run", "Step", "Struct", "contents", "words"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Struct:
    """An argument of bytes: names of arrays become their addresses, numbers their bytes, an int so many zero bytes.

    A name with a number is an address that many bytes behind the array's.
    """

    parts: tuple[str | tuple[str, int] | np.generic | int | bytes, ...]

    def packed(self, address: Callable[[str], int]) -> bytes:
        """Return the bytes."""
        made = b""
        for part in self.parts:
            if isinstance(part, (str, tuple)):
                name, offset = (part, 0) if isinstance(part, str) else part
                made += (address(name) + offset).to_bytes(8, "little")
            elif isinstance(part, bytes):
                made += part
            else:
                made += bytes(part) if isinstance(part, int) else part.tobytes()
        return made


Argument = str | np.generic | Struct
"""The name of an array, for its address; a number; bytes."""


@dataclass(frozen=True)
class Step:
    """A launch of an entry; `shared` is the dynamic shared memory, `cluster` the blocks of a cluster along x, y, z."""

    entry: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Argument, ...]
    shared: int = 0
    cluster: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Run:
    """Arrays on a device, launches one after the other, and the names of the arrays that are compared afterwards.

    An array that is a `Struct` holds its bytes, as 64-bit words where they are so many: addresses of arrays before it.
    """

    arrays: Mapping[str, Any]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A run of a program.

    Attributes
    ----------
    program : str
        The text, by name.
    name : str
        Of this case, unique in the program.
    make : callable
        Makes the run; the same one every time.
    prints : bool
        Whether what is printed is compared, too: as sorted lines, since threads print in any order.
    """

    program: str
    name: str
    make: Callable[[], Run]
    prints: bool = False

    def __str__(self) -> str:
        return f"{self.program} {self.name}"


def contents(array: Any, address: Callable[[str], int]) -> Array:
    """Return the content of an array of a run."""
    if not isinstance(array, Struct):
        made: Array = array
        return made
    data = array.packed(address)
    return np.frombuffer(data, np.uint8 if len(data) % 8 else np.uint64)


def words(seed: int, *shape: int) -> npt.NDArray[np.uint64]:
    """Random words, always the same on every machine."""
    made: npt.NDArray[np.uint64] = np.random.Philox(key=seed).random_raw(int(np.prod(shape))).reshape(shape)
    return made
