"""Code that says "cuda", as tests of Triton kernels do, with the CPU in place of the GPU."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, name-defined, misc"

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import skip_without

import warpmma as wm
from warpmma import _cuda_as_cpu

tl: Any = pytest.importorskip("triton.language")
triton: Any = pytest.importorskip("triton")
skip_without("PyTorch")
torch: Any = importlib.import_module("torch")
if torch.cuda.is_available():
    pytest.skip("PyTorch has a GPU", allow_module_level=True)


@triton.jit
def scaled(x, y, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) * factor, at < n)


def launched(x: Any, factor: float) -> Any:
    """As wrappers of kernels have it: look where the tensor is, allocate there, launch."""
    assert x.is_cuda and x.device.type == "cuda" and x.is_contiguous()
    y = torch.empty_like(x)
    with torch.cuda.device(x.device):
        scaled[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), factor, BLOCK=64)
    return y


class Scaled(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x, factor):
        ctx.factor = factor
        return launched(x, factor)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, dy):
        ones = torch.ones(dy.shape, device="cuda")  # which would be an error were it not for the option
        return launched((dy * ones).contiguous(), ctx.factor), None


@pytest.fixture
def gpu() -> Iterator[Any]:
    with wm.triton.device("sm_90", cuda="cpu") as device:
        yield device


def test_a_test_of_a_kernel_as_projects_have_it(gpu: Any) -> None:
    torch.manual_seed(0)
    if not torch.cuda.is_available():
        pytest.skip("CUDA not available")
    x = torch.randn(100, device="cuda", requires_grad=True)
    reference = x.detach().clone().requires_grad_()
    y, expected = Scaled.apply(x, 3.0), reference * 3.0
    torch.testing.assert_close(y, expected)
    gradient = torch.randn_like(y)
    y.backward(gradient)
    expected.backward(gradient)
    torch.cuda.synchronize()
    torch.testing.assert_close(x.grad, reference.grad)
    (other,) = torch.autograd.grad(Scaled.apply(x, 2.0).sum(), x)
    assert other.is_cuda and (other == 2).all()
    assert len(gpu.launches) == 4


def test_what_is_made_there_says_so(gpu: Any) -> None:
    cuda = torch.device("cuda")
    made = [
        torch.zeros(3, device="cuda"), torch.empty(3, device=cuda), torch.arange(3, device="cuda:0"),
        torch.tensor([1.0], device=0), torch.as_tensor(np.ones(3), device="cuda"), torch.ones(3).cuda(),
        torch.ones(3).to("cuda"), torch.ones(3).to(0), torch.ones(3).to(device=cuda, dtype=torch.float16),
        torch.nn.Linear(2, 3, device="cuda").weight, torch.nn.Linear(2, 3).cuda().bias,
        torch.randn(3, generator=torch.Generator(device="cuda").manual_seed(1), device="cuda"),
    ]  # fmt: skip
    made += [made[0] + 1, made[0][1:], made[0].half(), torch.cat([made[0], made[1]]), torch.ones_like(made[0])]
    made += [torch.zeros(3).to(made[0]), torch.zeros(2, device=made[0].device), *made[0].split(1)]
    assert all(str(x.device) == "cuda:0" and x.is_cuda and not x.is_cpu and x.get_device() == 0 for x in made)
    host = [
        torch.zeros(3),
        made[0].cpu(),
        made[0].to("cpu"),
        torch.ones(3) + 1,
        torch.zeros_like(made[0], device="cpu"),
    ]
    host += [torch.zeros(3).copy_(made[0])]
    assert all(x.device.type == "cpu" and not x.is_cuda and x.get_device() == -1 for x in host)
    assert str(torch.device("cuda")) == "cuda"


def test_default_devices(gpu: Any) -> None:
    with torch.device("cuda"):
        assert torch.zeros(2).is_cuda and torch.nn.Linear(2, 3).weight.is_cuda
    torch.set_default_device("cuda")
    try:
        assert torch.ones(2).is_cuda and not torch.ones(2, device="cpu").is_cuda
    finally:
        torch.set_default_device(None)
    assert not torch.ones(2).is_cuda


def test_the_two_memories_share_nothing(gpu: Any) -> None:
    host = torch.zeros(3)
    moved = host.cuda()
    moved += 1
    back = moved.cpu()
    moved += 1
    assert host.tolist() == [0, 0, 0] and back.tolist() == [1, 1, 1] and moved.tolist() == [2, 2, 2]
    assert moved.cuda() is moved and moved.to("cuda") is moved and host.cpu() is host
    array = np.zeros(3)
    torch.as_tensor(array, device="cuda").add_(1)
    assert not array.any()
    model = torch.nn.Linear(2, 2)
    weight = model.weight
    assert model.to("cuda").weight is weight and weight.is_leaf and weight.is_cuda


def test_questions_that_are_answered(gpu: Any) -> None:
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
    assert torch.cuda.get_device_capability() == (9, 0) and torch.cuda.get_device_name() == "simulated sm_90a"
    assert torch.cuda.get_device_properties("cuda").total_memory == torch.cuda.mem_get_info()[1] > 0
    assert torch.accelerator.is_available() and torch.accelerator.current_accelerator().type == "cuda"
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(torch.cuda.Stream()):
        start.record()
        launched(torch.zeros(64, device="cuda"), 1.0)
        end.record()
    torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
    end.synchronize()
    assert start.elapsed_time(end) >= 100
    torch.cuda.manual_seed(5)
    first = torch.rand(3, device="cuda")
    torch.cuda.manual_seed_all(5)
    assert (torch.rand(3, device="cuda") == first).all()
    assert triton.runtime.driver.active.get_active_torch_device() == torch.device("cuda", 0)


def test_what_is_not_answered_is_an_error(gpu: Any) -> None:
    message = (
        r"^torch.cuda.memory_allocated is not answered where cuda='cpu'.*; answered are Event, Stream, current_device"
    )
    with pytest.raises(wm.UnsupportedError, match=message):
        torch.cuda.memory_allocated()
    with pytest.raises(wm.UnsupportedError, match=r"torch.cuda.seed_alt?|did you mean 'reset_peak_memory_stats'"):
        torch.cuda.reset_peak_host_memory_stats()


def test_the_page_lists_what_is_answered(gpu: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "triton.md").read_text()
    answers = _cuda_as_cpu._answers(torch, wm.triton.current)["cuda"]
    named = {name for name in answers if "seed" not in name and "rng" not in name}
    assert [name for name in sorted(named) if f"`{name}`" not in page] == []


def test_autocast_is_the_cpus_in_float16(gpu: Any) -> None:
    model, x = torch.nn.Linear(4, 4).cuda(), torch.ones(2, 4, device="cuda")
    with torch.autocast("cuda"):
        assert model(x).dtype == torch.float16 == torch.get_autocast_dtype("cuda") and torch.is_autocast_enabled("cuda")
        assert Scaled.apply(x, 2.0).dtype == torch.float32
    with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
        assert model(x).dtype == torch.bfloat16
    assert not torch.is_autocast_enabled("cuda")


def test_everything_is_put_back() -> None:
    names = [(torch.cuda, name) for name in torch.cuda.__all__] + [(torch.accelerator, "is_available")]
    names += [(torch, "Generator"), (torch, "get_autocast_dtype"), (torch.autograd, "has_torch_function")]
    before = [getattr(*each) for each in names]
    with wm.triton.device("sm_90"), wm.triton.device("sm_90", cuda="cpu"):
        x = torch.zeros(2, device="cuda")
    assert all(getattr(*each) is was for each, was in zip(names, before, strict=True))
    assert x.device.type == "cpu" and not x.is_cuda
    with pytest.raises((AssertionError, RuntimeError), match="CUDA"):
        torch.zeros(2, device="cuda")


def test_without_the_option_nothing_changes() -> None:
    with wm.triton.device("sm_90"):
        assert not torch.cuda.is_available() and not torch.zeros(2).is_cuda
        with pytest.raises((AssertionError, RuntimeError), match="CUDA"):
            torch.zeros(2, device="cuda")


def test_the_option_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(wm.OperandError, match="cuda is 'gpu'"):
        wm.triton.device("sm_90", cuda="gpu")  # type: ignore[arg-type]
    monkeypatch.setattr(torch._C, "_cuda_getDeviceCount", lambda: 1, raising=False)
    with pytest.raises(wm.OperandError, match="cuda='cpu' is for machines without a GPU"):
        wm.triton.device("sm_90", cuda="cpu")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(wm.UnsupportedError, match="cuda='cpu' is for PyTorch, which is not installed"):
        wm.triton.device("sm_90", cuda="cpu")


TEST = """
import torch

SKIPPED = not torch.cuda.is_available()  # when the module is imported, as many have it

def test_it():
    assert not SKIPPED and torch.zeros(2, device="cuda").is_cuda
"""


@pytest.mark.parametrize(
    ("start", "environment"),
    [
        (["warpmma.triton", "--device", "sm_90,cuda=cpu", "-m", "pytest"], ""),
        (["pytest", "-p", "warpmma.testing.plugin"], "sm_90,cuda=cpu"),
        (["pytest", "-p", "warpmma.testing.plugin", "--warpmma-triton", "sm_90,cuda=cpu"], "sm_80"),
    ],
)
def test_the_shell_and_pytest_take_it(start: list[str], environment: str, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import torch\nassert torch.cuda.is_available()\n")
    (tmp_path / "test_it.py").write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", *start, "-p", "no:cacheprovider"], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "WARPMMA_TRITON": environment}, check=False,
    )  # fmt: skip
    assert "= 1 passed in" in done.stdout, done.stdout + done.stderr
    assert "<TritonDevice sm_90a, PTX for sm_90: 0 launches>" in done.stdout + done.stderr
