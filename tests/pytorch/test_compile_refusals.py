"""`warpmma.torch.compile` refuses what it does not support, names what it lacks, and leaves PyTorch as it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from oracles import skip_without

pytest.importorskip("triton.language")
skip_without("PyTorch")

from compile_cases import own_caches, state  # noqa: E402, F401
from torch_cases import torch  # noqa: E402

import warpmma as wm  # noqa: E402
from warpmma.torch import inductor  # noqa: E402


@pytest.fixture
def checked_again() -> Iterator[None]:
    inductor.check_version.cache_clear()
    yield
    inductor.check_version.cache_clear()


def refused(error: type[Exception], match: str, **options: Any) -> None:
    with pytest.raises(error, match=match):
        wm.torch.compile(lambda x: x + 1, **{"target": "sm_90", **options})


@pytest.mark.parametrize("each", inductor.REPLACED, ids=str)
def test_names_that_are_replaced(each: inductor.Replaced) -> None:
    """Each exists in this version of PyTorch, and takes the parameters that the replacement expects."""
    assert each.original() is not None
    assert str(each) not in inductor.lacking()


@pytest.mark.parametrize("path", [*inductor.CALLED, *inductor.CLEARED])
def test_names_that_are_called(path: str) -> None:
    assert path not in inductor.lacking()


@pytest.mark.parametrize("name", [*inductor.SETTINGS, *inductor.DEFAULTS])
def test_settings(name: str) -> None:
    assert name in torch._inductor.list_options()


@pytest.mark.usefixtures("checked_again")
@pytest.mark.parametrize("version", ["2.12.1", "2.14.0.dev2026", "3.0.0", "none"])
def test_other_versions(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    refused(wm.UnsupportedError, rf"PyTorch {version} is not supported: .* takes 2\.13.*pip install 'torch==2\.13\.\*'")


@pytest.mark.usefixtures("checked_again")
def test_another_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    each = inductor.REPLACED[0]
    holder, name = each.holder()
    monkeypatch.setattr(holder, name, lambda other: None)
    refused(wm.UnsupportedError, rf"PyTorch {torch.__version__.split('+')[0]}\S* has another {each}: .* takes 2\.13")
    monkeypatch.delattr(holder, name)
    refused(wm.UnsupportedError, str(each))


@pytest.mark.parametrize(
    ("mode", "nearest"),
    [("reduce-overhead", "the default mode"), ("max-autotune", "max-autotune-no-cudagraphs"), ("lite", "the default")],
)
def test_modes(mode: str, nearest: str) -> None:
    refused(wm.UnsupportedError, nearest, mode=mode)


def test_options() -> None:
    refused(wm.OperandError, "mode is 'max-autotune-no'; expected 'default' or", mode="max-autotune-no")
    refused(wm.OperandError, "did you mean 'fallback_random'", options={"fallback_randm": True})
    refused(wm.UnsupportedError, "triton.cudagraphs=True is not supported", options={"triton.cudagraphs": True})
    refused(wm.UnsupportedError, "cpp_wrapper=True is not supported; it is False", options={"cpp_wrapper": True})
    refused(wm.OperandError, "expected what warpmma.torch.arithmetic", products=True)
    refused(wm.TargetError, "sm_91", target="sm_91")
    refused(wm.OperandError, "no simulated device is active", target=None)
    refused(wm.OperandError, "hazards without a target", target=None, hazards="warn")
    refused(wm.OperandError, "the device has its options", target=wm.triton.device("sm_90"), hazards="warn")
    with pytest.raises(wm.OperandError, match="the model is 3; expected a function"):
        wm.torch.compile(3, target="sm_90")


def test_flex_attention() -> None:
    """On CPU tensors it has a lowering to C++ alone."""
    from torch.nn.attention.flex_attention import flex_attention

    before, x = state(), torch.randn(1, 2, 128, 16)
    made = wm.torch.compile(lambda x: flex_attention(x, x, x), target="sm_90")
    with pytest.raises(wm.UnsupportedError, match=r"flex_attention: .*scaled_dot_product_attention"):
        made(x)
    assert state() == before


def test_tensors_elsewhere() -> None:
    made = wm.torch.compile(lambda x: x + 1, target="sm_90")
    with pytest.raises(wm.UnsupportedError, match=r"on meta; kernels are simulated on the CPU: model.cpu\(\)"):
        made(torch.empty(3, device="meta"))


@pytest.mark.parametrize("module", ["compile_fx_inner", "compile_fx"])
def test_everything_is_restored_after_a_failure(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no")

    before = state()
    with monkeypatch.context() as patch:
        patch.setattr(torch._inductor.compile_fx, module, fail)
        made = wm.torch.compile(lambda x: x + 1, target="sm_90")
        with pytest.raises(Exception, match="no"):
            made(torch.ones(3))
    assert state() == before
    torch._dynamo.reset()
    assert torch.equal(made(torch.ones(3)), torch.full((3,), 2.0))
    assert state() == before and not torch.utils._triton.has_triton()


def test_errors_of_the_model_stay_what_they_are() -> None:
    def function(x: Any) -> Any:
        if x.sum() > 0:
            raise KeyError("mine")
        return x

    with pytest.raises(KeyError, match="mine"):
        wm.torch.compile(function, target="sm_90")(torch.ones(3))
