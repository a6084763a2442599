"""Launches of the CuTe DSL's kernels: memory, what is recorded, hazards, and what is put back."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, attr-defined, name-defined"

from __future__ import annotations

import gc
import inspect
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import needs

import warpmma as wm
from warpmma.machine import HazardError
from warpmma.testing import Gpu, assert_same_bits

pytest.importorskip("cutlass.cute")

import cuda.bindings.driver as driver
import cuda.bindings.runtime as runtime
import cutlass
from cute_kernels import add
from cutlass import cute
from cutlass.cute.runtime import from_dlpack, make_ptr
from cutlass.memory import SmemAllocator

X, Y = np.arange(300, dtype=np.float32), np.full(300, 0.5, np.float32)


@cute.kernel
def reversing(x: cute.Tensor, waits: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    tile = SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(64), 16)
    tile[thread] = x[thread]
    if cutlass.const_expr(waits):
        cute.arch.barrier()
    x[thread] = tile[63 - thread]


@cute.jit
def reverse(x: cute.Tensor, waits: cutlass.Constexpr):
    reversing(x, waits).launch(grid=(1, 1, 1), block=(64, 1, 1))


@cute.kernel
def doubling(x: cute.Pointer, n: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    if thread < n:
        tensor = cute.make_tensor(x, cute.make_layout(64))
        tensor[thread] = tensor[thread] * 2.0


@cute.jit
def double(x: cute.Pointer, n: cutlass.Int32):
    doubling(x, n).launch(grid=(1, 1, 1), block=(64, 1, 1))


def line_of(function: Any, text: str) -> int:
    """Return the line in which a function has a text."""
    lines, first = inspect.getsourcelines(getattr(function, "__wrapped__", function))
    return first + next(i for i, line in enumerate(lines) if text in line)


def test_a_compiled_function_and_a_direct_call() -> None:
    x, y, z = X.copy(), Y.copy(), np.zeros(300, np.float32)
    with wm.cute.device("sm_80") as gpu:
        compiled = cute.compile(add, from_dlpack(x), from_dlpack(y), from_dlpack(z))
        compiled(from_dlpack(x), from_dlpack(y), from_dlpack(z))
        assert_same_bits(z, X + Y)
        z[:] = 0
        add(from_dlpack(x), from_dlpack(y), from_dlpack(z))
        assert_same_bits(z, X + Y)
        first, second = gpu.launches
    assert (first.grid, first.block, first.cluster) == ((3, 1, 1), (128, 1, 1), (1, 1, 1))
    assert first.shared == 0 and not first.cooperative and second.name.startswith("kernel_")
    assert np.frombuffer(first.params, np.uint64).tolist() == [v.ctypes.data for v in (x, y, z)]
    assert f".entry {first.name}" in first.ptx and ".target sm_80" in first.ptx
    assert repr(gpu) == "<CuteDevice sm_80: 2 launches>" and gpu.instructions > 0


def test_ptx_that_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of the user's, where there may be older files of the same function."""
    monkeypatch.setattr(cutlass.cutlass_dsl.CuTeDSL._get_dsl().envar, "dump_dir", str(tmp_path))
    for target in ("sm_80", "sm_90"):
        z = np.zeros(300, np.float32)
        with wm.cute.device(target) as gpu:
            compiled = cute.compile(add, from_dlpack(X), from_dlpack(Y), from_dlpack(z), options="--keep-ptx")
            compiled(from_dlpack(X), from_dlpack(Y), from_dlpack(z))
        assert_same_bits(z, X + Y)
        assert f".target {gpu.arch}" in gpu.launches[0].ptx
    assert len([*tmp_path.iterdir()]) == 2


def test_a_view_and_a_dynamic_layout() -> None:
    """The whole array is mapped, whatever view of it the DSL was given."""
    x, z = np.arange(64, dtype=np.float32).reshape(8, 8), np.zeros(8, np.float32)
    with wm.cute.device("sm_90"):
        add(from_dlpack(x[:, 3]), from_dlpack(x[2]), from_dlpack(z).mark_layout_dynamic())
    assert_same_bits(z, x[:, 3] + x[2])


@needs("PyTorch")
def test_tensors_of_pytorch() -> None:
    import torch

    x, y, z = torch.arange(300.0), torch.full((300,), 0.5), torch.zeros(300)
    with wm.cute.device("sm_90") as gpu:
        add(from_dlpack(x), from_dlpack(y), from_dlpack(z))
        double(make_ptr(cutlass.Float32, z.data_ptr(), cute.AddressSpace.gmem), 64)
    assert_same_bits(z[64:].numpy(), (X + Y)[64:])
    assert_same_bits(z[:64].numpy(), 2 * (X + Y)[:64])
    assert gpu.target == "sm_90a"


def test_pointers() -> None:
    """To arrays that the DSL was given, that were mapped, and of the device."""
    x = np.arange(64, dtype=np.float32)
    with wm.cute.device("sm_80") as gpu:
        told = from_dlpack(x)
        double(make_ptr(cutlass.Float32, x.ctypes.data, cute.AddressSpace.gmem), 64)
        del told
        y = np.arange(64, dtype=np.float32)
        pointer = make_ptr(cutlass.Float32, y.ctypes.data, cute.AddressSpace.gmem)
        with pytest.raises(HazardError, match="bounds"):
            double(pointer, 64)
        placed = gpu.map(y)
        double(pointer, 64)
        z = gpu.device.array(np.arange(64, dtype=np.float32))
        double(make_ptr(cutlass.Float32, z.address, cute.AddressSpace.gmem), 32)
        placed.free()
        with pytest.raises(wm.OperandError, match="is not a NumPy array"):
            gpu.map([1.0])
    doubled = 2 * np.arange(64, dtype=np.float32)
    assert_same_bits(x, doubled)
    assert_same_bits(y, doubled)
    assert_same_bits(z.numpy(), np.where(np.arange(64) < 32, doubled, doubled / 2).astype(np.float32))


def test_a_hazard_names_the_line_of_python() -> None:
    x = np.arange(64, dtype=np.float32)
    with wm.cute.device("sm_90"):
        reverse(from_dlpack(x), True)
    assert_same_bits(x, np.arange(64, dtype=np.float32)[::-1].copy())
    with wm.cute.device("sm_90"), pytest.raises(HazardError) as caught:
        reverse(from_dlpack(x), False)
    hazard = caught.value.hazard
    assert hazard.kind == "race" and hazard.site.line == line_of(reversing, "tile[63 - thread]")
    assert hazard.site.file.endswith("test_cute_launches.py")
    assert len(caught.traceback) == 2  # this line, and the DSL's function that stands for `reverse`


def test_a_hazard_of_a_compiled_function_ends_at_its_call() -> None:
    with wm.cute.device("sm_80"):
        x, y, z = from_dlpack(X), from_dlpack(Y[:200].copy()), from_dlpack(np.zeros(300, np.float32))
        compiled = cute.compile(add, x, y, z)
        with pytest.raises(HazardError, match=r"bounds: .*the array float32\[200\]") as caught:
            compiled(x, y, z)
    assert str(caught.traceback[-1].path).endswith("test_cute_launches.py")


def test_hazards_can_be_counted() -> None:
    gpu, x = Gpu("sm_90"), np.arange(64, dtype=np.float32)
    with gpu.cute(hazards={"race": "count"}) as device:
        reverse(from_dlpack(x), False)
    assert device.launches[0].report.counts["race"] > 0 and device.target == "sm_90a"


def test_devices_nest_and_all_is_put_back() -> None:
    before = [driver.cuInit, runtime.cudaGetDeviceCount, cutlass.testing.benchmark]
    cache = cute.compile, cutlass.cutlass_dsl.CuTeDSL._get_dsl().jit_cache
    z = np.zeros(300, np.float32)
    with wm.cute.device("sm_80") as outer:
        compiled = cute.compile(add, from_dlpack(X), from_dlpack(Y), from_dlpack(z))
        with wm.cute.device("sm_90") as inner:
            compiled(from_dlpack(X), from_dlpack(Y), from_dlpack(z))
            with pytest.raises(wm.OperandError, match="is not the innermost device"):
                outer.__exit__()
        add(from_dlpack(X), from_dlpack(Y), from_dlpack(z))
    assert [len(x.launches) for x in (outer, inner)] == [1, 1]
    assert before == [driver.cuInit, runtime.cudaGetDeviceCount, cutlass.testing.benchmark]
    assert cache == (cute.compile, cutlass.cutlass_dsl.CuTeDSL._get_dsl().jit_cache)
    with pytest.raises(wm.OperandError, match="no simulated device is active"):
        compiled(from_dlpack(X), from_dlpack(Y), from_dlpack(z))


def test_one_thread_at_a_time() -> None:
    errors: list[wm.WarpmmaError] = []

    def enter() -> None:
        try:
            with wm.cute.device("sm_80"):
                pass
        except wm.WarpmmaError as error:
            errors.append(error)

    with wm.cute.device("sm_80"):
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    assert len(errors) == 1 and "is active in another thread" in str(errors[0])


def test_memory_is_forgotten() -> None:
    """Tensors, and what compiled functions loaded."""
    from warpmma.cute import runtime_functions

    before = set(runtime_functions._libraries)
    made: list[int] = []
    with wm.cute.device("sm_80") as gpu:
        z = np.zeros(300, np.float32)
        for _ in range(3):
            compiled = cute.compile(add, from_dlpack(X), from_dlpack(Y), from_dlpack(z))
            for _ in range(20):
                compiled(from_dlpack(X), from_dlpack(Y), from_dlpack(z))
            gpu.launches.clear()
            made += set(runtime_functions._libraries) - before - set(made)
        gc.collect()
        assert len(gpu.memory) == 0 and len(made) == 3
        assert not {*made[:2]} & set(runtime_functions._libraries)  # the DSL itself keeps the last
