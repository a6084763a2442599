"""What a simulated GPU does not have: errors that name it, and what is nearest."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma._arrays import DlpackRecord
from warpmma.cute import compiled_hosts, dlpack, launch_configs, runtime_functions
from warpmma.cute.active_gpu import failures
from warpmma.cute.dlpack import as_gpu_memory

pytest.importorskip("cutlass.cute")

import cuda.bindings.driver as driver
import cuda.bindings.runtime as runtime
from cute_kernels import add
from cutlass import cute, testing
from cutlass.cute.runtime import from_dlpack

X = np.arange(300, dtype=np.float32)


def raised(function: Any, *args: Any) -> BaseException:
    """Call a function as host code does, and return what it raised."""
    failures.clear()
    assert function(*args) == 999
    return failures.pop()


def test_functions_of_the_runtime() -> None:
    error = raised(runtime_functions._shared("_cudaMallocAsync"))
    assert isinstance(error, wm.UnsupportedError)
    assert str(error).startswith("the DSL's host code calls cudaMallocAsync, which a simulated GPU does not have")
    assert "cudaLaunchKernelEx" in str(error)


def test_attributes_of_devices_and_kernels() -> None:
    value = ctypes.c_int32()
    with wm.cute.device("sm_90"):
        at = ctypes.addressof(value)
        assert runtime_functions._shared("_cudaDeviceGetAttribute")(at, 97, 0) == 0 and value.value == 232448
        assert "attribute 38 of a device is not answered" in str(
            raised(runtime_functions._shared("_cudaDeviceGetAttribute"), at, 38, 0)
        )
        error = raised(runtime_functions._shared("_cuKernelGetAttribute"), at, 4, None, 0)
        assert "attribute 4 of a kernel is not answered; its shared memory is (1)" in str(error)
    error = raised(runtime_functions._shared("_cudaDeviceGetAttribute"), at, 97, 0)
    assert "no simulated device is active" in str(error)


def test_attributes_of_launches() -> None:
    attributes = (launch_configs._Attribute * 4)()
    for each, (number, value) in zip(attributes, [(4, 2), (2, 1), (6, 1), (13, 0)], strict=True):
        each.id, each.value[:3] = number, [value, 1, 1]
    attributes[3].value[:] = [0] * 16
    config = launch_configs._Config(
        (ctypes.c_uint32 * 3)(4, 1, 1), (ctypes.c_uint32 * 3)(128, 1, 1), 64, None, ctypes.addressof(attributes), 4
    )
    found = launch_configs.launch_config(ctypes.addressof(config))
    assert (found.grid, found.block, found.shared) == ((4, 1, 1), (128, 1, 1), 64)
    assert found.cluster == (2, 1, 1) and found.cooperative
    attributes[3].value[0] = 1
    with pytest.raises(wm.UnsupportedError, match=r"attribute 13 of a launch is not simulated; clusters \(4\)"):
        launch_configs.launch_config(ctypes.addressof(config))


def test_functions_of_cuda_bindings() -> None:
    with wm.cute.device("sm_90"):
        with pytest.raises(wm.UnsupportedError, match=r"cuda\.bindings\.driver\.cuMemAlloc is not answered by a simul"):
            driver.cuMemAlloc(1024)
        with pytest.raises(wm.UnsupportedError, match=r"did you mean 'cudaStreamCreate'"):
            runtime.cudaStreamCreateWithFlags(0)


def test_answers_of_cuda_bindings() -> None:
    z = np.zeros(300, np.float32)
    with wm.cute.device("sm_90") as gpu:
        assert driver.cuInit(0)[0] == driver.CUresult.CUDA_SUCCESS
        assert driver.cuDeviceGetName(64, 0)[1] == b"simulated sm_90a" and runtime.cudaGetDeviceCount()[1] == 1
        major = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
        assert driver.cuDeviceGetAttribute(major, 0)[1] == runtime.cudaDeviceGetAttribute(major, 0)[1] == 9
        _, stream = driver.cuStreamCreate(0)
        (_, start), (_, end) = driver.cuEventCreate(0), driver.cuEventCreate(0)
        driver.cuEventRecord(start, stream)
        add(from_dlpack(X), from_dlpack(X), from_dlpack(z))
        driver.cuEventRecord(end, stream)
        assert driver.cuEventElapsedTime(start, end)[1] == gpu.instructions / 1000
        assert driver.cuEventDestroy(start) == driver.cuStreamSynchronize(stream)
        with pytest.raises(wm.OperandError, match=r"event \d+ is not known: create it where the device is active"):
            driver.cuEventElapsedTime(start, end)


def test_benchmarks_count_instructions() -> None:
    z = np.zeros(300, np.float32)
    with wm.cute.device("sm_90") as gpu:
        compiled = cute.compile(add, from_dlpack(X), from_dlpack(X), from_dlpack(z))
        given = testing.JitArguments(from_dlpack(X), from_dlpack(X), from_dlpack(z))
        counted = testing.benchmark(compiled, kernel_arguments=given, iterations=50)
        assert counted == gpu.instructions > 0 and len(gpu.launches) == 1
        again = testing.benchmark(compiled, workspace_generator=lambda: given, workspace_count=3)
        assert again == counted and testing.get_workspace_count(64, 2, 3) == 1


def test_machine_code_is_not_exported(tmp_path: Path) -> None:
    with wm.cute.device("sm_90"):
        compiled = cute.compile(add, from_dlpack(X), from_dlpack(X), from_dlpack(X.copy()))
        with pytest.raises(
            wm.UnsupportedError, match=r"export_to_c writes machine code for a GPU.*export it outside of"
        ):
            compiled.export_to_c(file_path=str(tmp_path), file_name="add", function_prefix="add")
    assert [*tmp_path.iterdir()] == []


def test_clusters_that_fit() -> None:
    from cutlass.utils import HardwareInfo

    with wm.cute.device("sm_90"):
        assert HardwareInfo().get_max_active_clusters(2) == 66
        with pytest.raises(wm.OperandError, match="a cluster of 64 blocks; expected 1 to 32"):
            HardwareInfo().get_max_active_clusters(64)


def test_tvm_ffi() -> None:
    with wm.cute.device("sm_90"), pytest.raises(wm.UnsupportedError, match="enable_tvm_ffi: functions for TVM FFI are"):
        from_dlpack(X, enable_tvm_ffi=True)
    asked = SimpleNamespace(compile_options=SimpleNamespace(enable_tvm_ffi=True))
    with pytest.raises(wm.UnsupportedError, match="--enable-tvm-ffi: functions for TVM FFI are not supported"):
        compiled_hosts.refusing(lambda self: None)(asked)


def test_errors_in_the_compiler_are_not_the_dsls(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise wm.PtxError("the DSL's PTX:1:1: refused")

    monkeypatch.setattr(compiled_hosts, "load", refuse)
    with wm.cute.device("sm_90"), pytest.raises(wm.PtxError, match=r"^the DSL's PTX:1:1: refused$"):
        add(from_dlpack(X), from_dlpack(X), from_dlpack(X.copy()))


def test_what_was_compiled_elsewhere() -> None:
    z = np.zeros(300, np.float32)
    compiled = cute.compile(add, from_dlpack(X), from_dlpack(X), from_dlpack(z), options="--gpu-arch sm_100")
    with wm.cute.device("sm_90"), pytest.raises(wm.OperandError, match="was compiled outside of `with warpmma"):
        compiled(from_dlpack(X), from_dlpack(X), from_dlpack(z))


def test_a_tensor_that_lies_elsewhere() -> None:
    capsule = X.__dlpack__()
    described = as_gpu_memory(capsule)
    assert described is not None and described.shape == (300,)
    assert (described.start, described.stop) == (X.ctypes.data, X.ctypes.data + X.nbytes)
    with pytest.raises(wm.OperandError, match="a tensor lies on device 0 of DLPack's type 2; expected an array"):
        as_gpu_memory(capsule)
    assert as_gpu_memory(object()) is None


def test_the_bytes_of_a_tensor() -> None:
    """Of one whose rows run backwards, and of one with elements of four bits."""
    x = np.zeros((4, 6), np.float32)
    described = as_gpu_memory(x[::-1, ::2].__dlpack__())
    assert described is not None and described.shape == (4, 3)
    assert (described.start, described.stop) == (x.ctypes.data, x.ctypes.data + x.nbytes - 4)
    shape, strides = (ctypes.c_int64 * 2)(3, 5), (ctypes.c_int64 * 2)(8, 1)
    record = DlpackRecord(4096, 1, 0, 2, 17, 4, 1, shape, None, 2)
    assert dlpack._described(record) == dlpack.DlpackTensor(4098, 4106, (3, 5))  # 15 elements
    record.strides = strides
    assert dlpack._described(record) == dlpack.DlpackTensor(4098, 4109, (3, 5))  # the last is the 21st


def test_devices_of_another_target() -> None:
    with pytest.raises(wm.TargetError, match="compiles for sm_90a, which a device of sm_90 does not run"):
        wm.cute.device(wm.Device("sm_90"))
    assert wm.cute.device(wm.Device("sm_90a")).arch == "sm_90a"
