"""`warpmma.torch.compile`: calls, reports, configurations, shapes, graphs, kernels of the user's, hazards, caches."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import pytest
from oracles import skip_without

pytest.importorskip("triton.language")
skip_without("PyTorch")

from compile_cases import beyond, own_caches, state, twice  # noqa: E402, F401
from torch_cases import torch  # noqa: E402

import warpmma as wm  # noqa: E402
from warpmma.torch.inductor import SimulatedGpu, folder_of  # noqa: E402


def softmax(x: Any) -> Any:
    return torch.softmax(2 * x, -1)


def launching(kernel: Any) -> Any:
    """Return a function that launches a kernel of Triton on its argument, and adds 1."""

    def function(x: Any) -> Any:
        y = torch.zeros_like(x)
        kernel[((x.numel() + 127) // 128,)](x, y, x.numel(), BLOCK=128)
        return y + 1

    return function


def test_forward_and_backward_are_reported() -> None:
    made = wm.torch.compile(softmax, target="sm_90")
    x = torch.randn(8, 100, requires_grad=True)
    y = made(x)
    (first,) = made.launches
    y.square().sum().backward()
    (second,) = made.launches
    expected = x.detach().clone().requires_grad_()
    softmax(expected).square().sum().backward()
    torch.testing.assert_close(x.grad, expected.grad)
    assert [(k.graph, k.launches, k.ptx_target) for k in made.report.kernels] == [
        ("forward 0", 1, "sm_90"), ("backward 0", 1, "sm_90"),
    ]  # fmt: skip
    assert (first.name, second.name) == tuple(k.name for k in made.report.kernels)
    assert made.report.kernels[0].instructions == sum(first.report.costs.instructions.values()) > 0
    assert 0 < first.seconds <= made.report.seconds and made.report.target == "sm_90a"
    assert repr(made) == "<CompiledModel for sm_90a: 2 launches>"
    assert made.device.launches == []  # those of a call are kept, not those of all calls


def test_a_module_a_decorator_and_training() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.LayerNorm(16), torch.nn.GELU())
    twin = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.LayerNorm(16), torch.nn.GELU())
    twin.load_state_dict(model.state_dict())
    made = wm.torch.compile(target="sm_80")(model)
    x = torch.randn(4, 16)
    for each in (made, twin):
        steps = torch.optim.SGD(each.parameters(), lr=0.1)
        for _ in range(3):
            steps.zero_grad()
            each(x).square().sum().backward()
            steps.step()
    for mine, other in zip(made.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine, other)
    assert made.report.aten == {"addmm": 3, "mm": 3} and {k.launches for k in made.report.kernels} == {3}


def test_kernels_whose_bits_the_order_of_atomics_decides() -> None:
    made = wm.torch.compile(lambda x, i: torch.zeros(20, 8).index_add(0, i, x.exp()), target="sm_90")
    made(torch.randn(50, 8), torch.arange(50) % 20)
    (*before, last), (launch, *_) = made.report.kernels, reversed(made.launches)
    assert last.order == sum(launch.report.order.values()) > 0 and not any(kernel.order for kernel in before)
    assert str(made.report).endswith(f"which CUDA leaves open, decides bits of: {last.name}")


def test_no_configuration_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transposing kernel has several; the first is compiled and launched, once."""
    tuner = torch._inductor.runtime.triton_heuristics.CachingAutotuner
    listed, compiled, make = [], [], tuner._precompile_config
    start = tuner.__init__

    def precompiled(self: Any, configuration: Any) -> Any:
        compiled.append(configuration)
        return make(self, configuration)

    def init(self: Any, *args: Any, **options: Any) -> None:
        start(self, *args, **options)
        listed.append(list(self.configs))

    monkeypatch.setattr(tuner, "_precompile_config", precompiled)
    monkeypatch.setattr(tuner, "__init__", init)
    made = wm.torch.compile(lambda x, y: (x.t() + y).contiguous(), target="sm_90", options={"max_autotune": True})
    made(torch.randn(70, 50), torch.randn(50, 70))
    ((first, *others),) = listed
    assert others and compiled == [first] and made.report.launches == 1


def test_the_first_configuration_that_can_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    tuner = torch._inductor.runtime.triton_heuristics.CachingAutotuner
    tried, load = [], tuner._make_launchers

    def loaded(self: Any) -> None:
        tried.append(self.compile_results[0].config)
        if len(tried) == 1:
            raise RuntimeError("No valid triton configs. OutOfResources: shared memory")
        load(self)

    monkeypatch.setattr(tuner, "_make_launchers", loaded)
    made = wm.torch.compile(lambda x, y: (x.t() * y).contiguous(), target="sm_90", options={"max_autotune": True})
    made(torch.randn(70, 50), torch.randn(50, 70))
    assert len(tried) == 2 and tried[0] != tried[1] and made.report.launches == 1


def test_dynamic_shapes() -> None:
    made = wm.torch.compile(softmax, target="sm_90", dynamic=True)
    for n in (5, 100, 1500):
        x = torch.randn(3, n)
        torch.testing.assert_close(made(x), softmax(x))
    assert [kernel.launches for kernel in made.report.kernels] == [3]


def test_graphs_between_breaks() -> None:
    def function(x: Any) -> Any:
        y = x.exp()
        torch._dynamo.graph_break()
        return y.sum()

    made = wm.torch.compile(function, target="sm_90")
    made(torch.randn(40))
    assert [kernel.graph for kernel in made.report.kernels] == ["forward 0", "forward 1"]
    with pytest.raises(torch._dynamo.exc.Unsupported):
        wm.torch.compile(function, target="sm_90", fullgraph=True)(torch.randn(40))


def test_templates_are_kernels_of_triton() -> None:
    a, b = torch.randn(64, 96).half(), torch.randn(96, 80).half()
    made = wm.torch.compile(torch.mm, target="sm_90", mode="max-autotune-no-cudagraphs")
    torch.testing.assert_close(made(a, b), a @ b)
    (launch,) = made.launches
    assert "triton_tem_fused" in launch.name and "mma.sync" in launch.entry.module.source.text
    assert not made.report.aten


def test_products_have_the_arithmetic_that_was_asked_for() -> None:
    a, b = torch.randn(32, 64).bfloat16().requires_grad_(), torch.randn(64, 16).bfloat16()
    products = wm.torch.arithmetic("sm_90a", instruction="wgmma")
    made = wm.torch.compile(lambda a, b: (a @ b).relu(), target="sm_90", products=products)
    d = made(a, b)
    assert torch.equal(d, wm.torch.matmul(a, b, target="sm_90a", instruction="wgmma").relu())
    d.float().sum().backward()
    assert made.report.products is products.report and len(products.report.products) == 2
    assert "wgmma" in str(made.report)


def test_random_numbers_of_eager() -> None:
    model, x = torch.nn.Dropout(0.4), torch.randn(50)
    made = wm.torch.compile(lambda x: model(x) + 0, target="sm_90", options={"fallback_random": True})
    torch.manual_seed(3)
    found = made(x)
    torch.manual_seed(3)
    assert torch.equal(found, model(x))


def test_kernels_of_the_user() -> None:
    x = torch.randn(300)
    made = wm.torch.compile(launching(twice), target="sm_90", fullgraph=True)
    assert torch.equal(made(x), 2 * x + 1)
    assert "twice" in [kernel.name for kernel in made.report.kernels]


def test_hazards() -> None:
    before, x = state(), torch.randn(300)
    made = wm.torch.compile(launching(beyond), target="sm_90")
    with pytest.raises(wm.kernel.HazardError, match="outside of all arrays"):
        made(x)
    assert state() == before
    warned = wm.torch.compile(launching(beyond), target="sm_90", hazards="warn")
    with pytest.warns(wm.kernel.HazardWarning):
        warned(x)
    assert {kernel.name: [x.kind for x in kernel.hazards] for kernel in warned.report.kernels if kernel.hazards} == {
        "beyond": ["bounds"]
    }


def test_the_backend_by_its_name() -> None:
    x = torch.randn(4, 30)
    made = torch.compile(softmax, backend="warpmma")
    with wm.triton.device("sm_90") as gpu:
        torch.testing.assert_close(made(x), softmax(x))
        assert len(gpu.launches) == 1
    with wm.triton.device("sm_90") as gpu:  # of the same targets
        made(x)
        assert len(gpu.launches) == 1
    with wm.triton.device("sm_80"), pytest.raises(wm.OperandError, match=r"compiled for .*sm_90a.*_dynamo\.reset"):
        made(x)
    with pytest.raises(wm.OperandError, match="no simulated device is active"):
        made(x)


@pytest.mark.warpmma_targets("sm_80", "sm_90")
def test_with_the_fixture(gpu: Any) -> None:
    x = torch.randn(4, 30)
    torch.testing.assert_close(wm.torch.compile(softmax, target=gpu.target)(x), softmax(x))
    with gpu.triton(hazards="strict") as device:
        made = wm.torch.compile(softmax)
        made(x)
        assert len(device.launches) == made.report.launches == 1 and made.device is device
    listed = wm.torch.compile(softmax, target=device)
    listed(x)
    assert len(device.launches) == 2  # a device that is given keeps its list


def test_each_target_has_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    x = torch.randn(4, 30)
    made = {target: wm.torch.compile(softmax, target=target) for target in ("sm_80", "sm_90")}
    for one in made.values():
        one(x)
    folders = {
        target: folder_of(SimulatedGpu(target=one.device.target, ptx_numbers=one.device.ptx_numbers))
        for target, one in made.items()
    }
    assert {str(path) for path in tmp_path.iterdir()} == set(folders.values()) and len(folders) == 2
    for target, one in made.items():
        (launch,) = one.launches
        assert f".target {target}" in launch.entry.module.source.text
        assert next(iter(launch.report.costs.instructions)).file.startswith(folders[target])
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path) and "TRITON_CACHE_DIR" not in os.environ


def test_what_was_compiled_before_is_found_again() -> None:
    counters = torch._dynamo.utils.counters["inductor"]
    x = torch.randn(4, 33)
    first = wm.torch.compile(softmax, target="sm_90")(x)
    torch._dynamo.reset()
    hits = counters["fxgraph_cache_hit"]
    again = wm.torch.compile(softmax, target="sm_90")
    assert torch.equal(again(x), first) and again.report.launches == 1
    assert counters["fxgraph_cache_hit"] == hits + 1


def test_memory_does_not_grow() -> None:
    made, x = wm.torch.compile(lambda x: x + 1, target="sm_90"), torch.randn(1)
    for _ in range(20):
        made(x)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(200):
        made(x)
    gc.collect()
    assert len(gc.get_objects()) < before + 50 and made.report.launches == 220
