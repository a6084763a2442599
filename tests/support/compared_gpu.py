"""A GPU that `warpmma compare` runs on, simulated: PTX and CUDA C++ on a device, memory at any address of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any

import numpy as np
import pytest
from arrays import Array

import warpmma as wm
from warpmma import cuda
from warpmma.cli.commands import gpu_commands
from warpmma.gpu import OPTIONS, ProductLaunch, TextLaunch


class ComparedGpu:
    """Launches on a simulated device of a target, whose arithmetic is that of the model.

    `launches` lists what ran.
    """

    name = "simulated"
    driver = 13000

    def __init__(self, target: str = "sm_90a", capability: tuple[int, int] = (9, 0)) -> None:
        self.device, self.target, self.capability = wm.Device(target), target, capability
        self.launches: list[Any] = []
        self.lock = RLock()

    def launch(self, what: ProductLaunch | TextLaunch, stream: int = 0) -> None:
        """Run a kernel at once."""
        with self.lock:
            self.launches.append(what)
            if not what.grid:
                return
            name, text = what.kernel.name, what.kernel.text
            given: list[Any] = [what.argument()]
            if text.startswith(".version"):
                kernel = _ptx(text)[name]
                if ".b8 given[" not in text:
                    given = [int(x) for x in np.frombuffer(given[0], np.uint64)]
            else:
                kernel = _cuda(text, self.target)[name]
            kernel.launch(self.device, what.grid, what.threads, given, hazards="off")

    @contextmanager
    def copies(self) -> Iterator[_Copies]:
        """Give room for copies."""
        yield _Copies(self)


@cache
def _ptx(text: str) -> Any:
    return wm.ptx.load(text)


@cache
def _cuda(text: str, target: str) -> Any:
    arch = target.rstrip("af")
    return cuda.load(text, arch=arch, options=(*OPTIONS, "-DUNROLLED=1"), compiler="nvrtc", name="product.cu")


class _Copies:
    def __init__(self, gpu: ComparedGpu) -> None:
        self._gpu = gpu

    def empty(self, size: int) -> int:
        with self._gpu.lock:
            return int(self._gpu.device.array(np.full(max(1, size), 0xA5, np.uint8)).address)

    def put(self, array: Array) -> int:
        address = self.empty(array.nbytes)
        self.write(address, array)
        return address

    def write(self, address: int, array: Array) -> None:
        with self._gpu.lock:
            self._gpu.device.write(address, np.ascontiguousarray(array).tobytes())

    def clear(self, address: int, size: int) -> None:
        with self._gpu.lock:
            self._gpu.device.write(address, bytes(size))

    def get(self, address: int, into: Array) -> None:
        with self._gpu.lock:
            octets = self._gpu.device.read(address, into.nbytes)
        into[...] = np.frombuffer(octets, into.dtype).reshape(into.shape)


def found_by_commands(monkeypatch: pytest.MonkeyPatch) -> ComparedGpu:
    """Let the commands of `warpmma` find one."""
    simulated = ComparedGpu()
    monkeypatch.setattr(gpu_commands, "first_gpu", lambda: simulated)
    monkeypatch.setattr(gpu_commands, "why_no_gpu", lambda: "")
    return simulated
