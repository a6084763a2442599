"""Code that says "cuda", as NVIDIA's examples do, with the CPU in place of the GPU."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np
import pytest
from oracles import skip_without

import warpmma as wm
from warpmma.machine import HazardError
from warpmma.testing import Gpu

pytest.importorskip("cutlass.cute")

import cuda.bindings.driver as driver
from cute_kernels import add
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

skip_without("PyTorch")
torch: Any = importlib.import_module("torch")
if torch.cuda.is_available():
    pytest.skip("PyTorch has a GPU", allow_module_level=True)


def test_an_example_as_nvidia_writes_it() -> None:
    with wm.cute.device("sm_90", cuda="cpu") as gpu:
        if not torch.cuda.is_available():
            raise RuntimeError("a GPU is required to run this example")
        torch.manual_seed(1)
        a, b = (torch.randn(300, device=torch.device("cuda")) for _ in "ab")
        c = torch.zeros_like(a)
        stream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
        compiled = cute.compile(add, from_dlpack(a), from_dlpack(b), from_dlpack(c))
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        compiled(from_dlpack(a), from_dlpack(b), from_dlpack(c))
        end.record()
        torch.cuda.synchronize()
        assert int(stream) == 0 and start.cuda_event != end.cuda_event != 0 and c.is_cuda and not c.cpu().is_cuda
        torch.testing.assert_close(c, a + b, rtol=0, atol=0)
        assert start.elapsed_time(end) == gpu.instructions >= 100
    assert c.device.type == "cpu" and len(gpu.launches) == 1


def test_questions_are_answered_for_the_active_device() -> None:
    before = [getattr(torch.cuda, name) for name in torch.cuda.__all__]
    with wm.cute.device("sm_80", cuda="cpu"):
        x = torch.ones(2, device="cuda")
        assert torch.cuda.get_device_name() == "simulated sm_80" and torch.cuda.get_device_capability() == (8, 0)
        with wm.cute.device("sm_90", cuda="cpu"):
            properties = torch.cuda.get_device_properties("cuda")
            assert (properties.major, properties.regs_per_multiprocessor) == (9, 65536) and x.is_cuda
        with pytest.raises(wm.UnsupportedError, match=r"memory_allocated is not answered where cuda='cpu'"):
            torch.cuda.memory_allocated()
        with pytest.raises(wm.UnsupportedError, match=r"torch\.cuda\.CUDAGraph is not answered where cuda='cpu'"):
            torch.cuda.CUDAGraph()
    assert [getattr(torch.cuda, name) for name in torch.cuda.__all__] == before


@cute.kernel
def reading(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    y[thread] = x[thread]


@cute.jit
def read(x: cute.Tensor, y: cute.Tensor):
    reading(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def printed(x: cute.Tensor):
    cute.print_tensor(x)


def test_what_is_on_the_cpu_is_the_hosts(capfd: pytest.CaptureFixture[str]) -> None:
    """Host code reads it, and kernels do not."""
    with wm.cute.device("sm_90", cuda="cpu"):
        y = torch.zeros(32, device="cuda")
        for x in (torch.arange(32.0), np.arange(32, dtype=np.float32)):
            printed(from_dlpack(x))
            with pytest.raises(HazardError, match="bounds") as caught:
                read(from_dlpack(x), from_dlpack(y))
            (note,) = caught.value.__notes__
            assert (
                note == "the array float32[32] is memory of the host: with cuda='cpu', kernels take tensors on \"cuda\""
            )
        read(from_dlpack(torch.arange(32.0).cuda()), from_dlpack(y))
        assert y.tolist() == list(range(32))
    assert capfd.readouterr().out.count("31.000000") == 2


def test_without_the_option_nothing_changes() -> None:
    with wm.cute.device("sm_90"):
        assert not torch.cuda.is_available() and not torch.zeros(2).is_cuda
    with Gpu("sm_90").cute(cuda="cpu"):
        assert torch.zeros(2, device="cuda").is_cuda


def test_a_device_of_triton_inside() -> None:
    """Each answers for its own launches, and what the inner one replaced is put back."""
    pytest.importorskip("triton")
    with wm.cute.device("sm_80", cuda="cpu"):
        x = torch.ones(2, device="cuda")
        with wm.triton.device("sm_90", cuda="cpu"):
            assert x.is_cuda and torch.cuda.get_device_capability() == (9, 0)
        assert x.is_cuda and torch.cuda.get_device_capability() == (8, 0)
    assert not x.is_cuda


def test_the_option_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(wm.OperandError, match="cuda is 'gpu'"):
        wm.cute.device("sm_90", cuda="gpu")  # type: ignore[arg-type]
    monkeypatch.setattr(torch._C, "_cuda_getDeviceCount", lambda: 1, raising=False)
    with pytest.raises(wm.OperandError, match="cuda='cpu' is for machines without a GPU"):
        wm.cute.device("sm_90", cuda="cpu")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(wm.UnsupportedError, match="cuda='cpu' is for PyTorch, which is not installed"):
        wm.cute.device("sm_90", cuda="cpu")
