"""What a thread has on the GPU: memory that is used again, launches and copies."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Protocol, Self

from ..._arrays import Array
from ...gpu import ProductLaunch, TextLaunch

__all__ = ["AnyGpu", "Room", "ptx_of"]


class AnyGpu(Protocol):
    """A GPU as `warpmma.gpu` has it."""

    name: str
    capability: tuple[int, int]
    driver: int

    def launch(self, what: ProductLaunch | TextLaunch, stream: int = 0) -> None:
        """Launch a kernel."""

    def copies(self) -> AbstractContextManager[Any]:
        """Give memory for copies."""


def ptx_of(driver: int) -> tuple[int, int]:
    """Return the newest version of PTX that a driver compiles, from its version of CUDA.

    Examples
    --------
    >>> ptx_of(13000), ptx_of(12080), ptx_of(11080)
    ((9, 0), (8, 7), (7, 8))
    """
    major, minor = driver // 1000, driver % 1000 // 10
    if major == 12:  # CUDA 12.6 has the PTX of 12.5
        return 8, minor if minor <= 5 else minor - 1
    return major - 4, minor


class Room:
    """Memory by name, which grows where more is needed, and launches.

    Parameters
    ----------
    gpu : AnyGpu
    target : str
        For which kernels are written.
    note : callable, optional
        Takes what is worth telling.
    """

    def __init__(self, gpu: AnyGpu, target: str, note: Callable[[str], object] = lambda text: None) -> None:
        self._gpu, self.target, self.note, self.ptx = gpu, target, note, ptx_of(gpu.driver)
        self._memory: dict[str, tuple[AbstractContextManager[Any], Any, int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free all memory."""
        for name in list(self._memory):
            self._free(name)

    def _free(self, name: str) -> None:
        held, *_ = self._memory.pop(name)
        held.__exit__(None, None, None)

    def reserve(self, name: str, size: int) -> int:
        """Return the address of at least so many bytes."""
        if name in self._memory and self._memory[name][3] < size:
            self._free(name)
        if name not in self._memory:
            held = self._gpu.copies()
            copies = held.__enter__()
            self._memory[name] = held, copies, copies.empty(size), size
        return int(self._memory[name][2])

    def put(self, name: str, array: Array) -> int:
        """Copy an array, and return its address."""
        address = self.reserve(name, array.nbytes)
        self._memory[name][1].write(address, array)
        return address

    def cleared(self, name: str, size: int) -> int:
        """Return the address of so many bytes of zeros."""
        address = self.reserve(name, size)
        self._memory[name][1].clear(address, size)
        return address

    def get(self, address: int, into: Array) -> None:
        """Wait, and copy from a place in memory of this room."""
        next(iter(self._memory.values()))[1].get(address, into)

    def launch(self, what: ProductLaunch | TextLaunch) -> None:
        """Launch a kernel."""
        self._gpu.launch(what)
