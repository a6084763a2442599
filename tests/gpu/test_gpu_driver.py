"""The driver as `warpmma.gpu` uses it: kernels belong to the context of one GPU. A driver that only takes notes."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpmma.errors import UnsupportedError
from warpmma.gpu import cuda_driver
from warpmma.gpu.cuda_driver import CudaGpu

pytestmark = pytest.mark.quick


class Driver:
    """Two GPUs, contexts that are pushed and popped, functions that know the context of their module."""

    def __init__(self) -> None:
        self.stack: list[str] = []
        self.done: list[tuple[Any, ...]] = []
        self.capturing = 0
        self.CUdevice_attribute = SimpleNamespace(
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=9, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=0
        )

    def cuDeviceGet(self, number: int) -> Any:
        return 0, number

    def cuDeviceGetName(self, size: int, which: int) -> Any:
        return 0, f"GPU {which}".encode().ljust(size, b"\0")

    def cuDeviceGetAttribute(self, kind: int, which: int) -> Any:
        return 0, kind

    def cuDriverGetVersion(self) -> Any:
        return 0, 13000

    def cuDevicePrimaryCtxRetain(self, which: int) -> Any:
        return 0, f"context {which}"

    def cuCtxPushCurrent(self, context: str) -> Any:
        self.stack.append(context)
        return (0,)

    def cuCtxPopCurrent(self) -> Any:
        return 0, self.stack.pop()

    def cuModuleLoadData(self, image: bytes) -> Any:
        self.done.append(("load", self.stack[-1], image))
        return 0, self.stack[-1]

    def cuModuleGetFunction(self, module: str, name: bytes) -> Any:
        return 0, (module, name)

    def cuLaunchKernel(self, function: tuple[str, bytes], *given: Any) -> Any:
        assert function[0] == self.stack[-1], "a function of another context"
        self.done.append(("launch", self.stack[-1], given[7]))
        return (0,)

    def cuStreamIsCapturing(self, stream: int) -> Any:
        return 0, self.capturing

    def cuMemcpyDtoHAsync(self, to: int, address: int, size: int, stream: int) -> Any:
        self.done.append(("copy", self.stack[-1], stream))
        ctypes.memset(to, address, size)
        return (0,)

    def cuStreamSynchronize(self, stream: int) -> Any:
        self.done.append(("wait", self.stack[-1], stream))
        return (0,)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    monkeypatch.setattr(cuda_driver, "_driver", lambda: made)
    monkeypatch.setattr(cuda_driver, "_compiled", lambda text, arch: f"{text} for {arch}".encode())
    return made


def launch(grid: int = 1) -> Any:
    kernel = SimpleNamespace(text="text", name="product", arch="")
    return SimpleNamespace(kernel=kernel, grid=grid, threads=256, argument=lambda: b"argument")


def test_a_kernel_is_loaded_into_the_context_of_each_gpu(driver: Driver) -> None:
    one, two = CudaGpu(0), CudaGpu(1)
    for gpu, stream in ((one, 11), (two, 22), (two, 23), (one, 12)):
        gpu.launch(launch(), stream)
    image = b"text for sm_90"
    assert (one.name, two.name, two.capability) == ("GPU 0", "GPU 1", (9, 0))
    assert driver.done == [
        ("load", "context 0", image), ("launch", "context 0", 11), ("load", "context 1", image),
        ("launch", "context 1", 22), ("launch", "context 1", 23), ("launch", "context 0", 12),
    ]  # fmt: skip
    assert not driver.stack


def test_what_waits_waits_for_its_stream(driver: Driver) -> None:
    gpu, found = CudaGpu(1), np.zeros(4, np.uint8)
    gpu.fetch(7, found, 33)
    assert driver.done == [("copy", "context 1", 33), ("wait", "context 1", 33)] and (found == 7).all()
    driver.capturing = 1
    with pytest.raises(UnsupportedError, match="the stream is being captured"):
        gpu.fetch(7, found, 33)
    assert len(driver.done) == 2 and not driver.stack


def test_nothing_is_launched_for_no_tiles(driver: Driver) -> None:
    CudaGpu(0).launch(launch(0))
    assert not driver.done
    with pytest.raises(UnsupportedError, match="2,147,483,648 tiles"):
        CudaGpu(0).launch(launch(1 << 31))
