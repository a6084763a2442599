"""What `warpmma.torch` says: each error is one line that says what to do. The first tests need no PyTorch."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest
from messages import exactly
from oracles import absent

import warpmma as wm
from warpmma.errors import OperandError, TargetError, UnsupportedError, WarpmmaError

pytestmark = pytest.mark.quick

SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
TF32 = "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32"
SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
needs_torch = pytest.mark.skipif(bool(absent("PyTorch")), reason=absent("PyTorch"))


@pytest.mark.parametrize("call", ["arithmetic('sm_90')", "matmul([[1.0]], [[1.0]], target='sm_90')"])
def test_no_pytorch(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UnsupportedError, match=exactly("warpmma.torch needs PyTorch, pip install torch: ~")) as caught:
        eval(f"wm.torch.{call}")
    assert "\n" not in str(caught.value)


def test_a_folder_of_that_name_is_no_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    with pytest.raises(UnsupportedError, match=exactly("warpmma.torch needs PyTorch, ~ is another module")):
        wm.torch.arithmetic("sm_90")


def test_the_module_is_imported_without_pytorch() -> None:
    code = "import sys; sys.modules['torch'] = None; import warpmma; print(*warpmma.torch.__all__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"arithmetic", "matmul"} <= set(done.stdout.split())


def refused() -> list[tuple[dict[str, Any], str]]:
    return [
        ({"target": "sm_9"}, "unknown target 'sm_9'; did you mean 'sm_90'? ~"),
        ({"instruction": "wgmma"}, "sm_100a has no wgmma; sm_90a has"),
        ({"instruction": "wgmme"}, "~wgmme~"),
        ({"instruction": ["mma", SCALED]}, "~sm_100a~"),
        ({"instruction": SPARSE}, "~: products of tensors are dense and have no block scales; ~"),
        ({"instruction": TF32}, "~: float32='ieee' uses no tensor cores; expected 'tf32' or 'tf32-truncated', ~"),
        ({"float32": "3xtf32"}, "float32 is '3xtf32'; expected 'ieee', 'tf32' or 'tf32-truncated'; ~"),
        ({"accumulate": "bf16"}, "accumulate is 'bf16'; expected 'f32' or 'f16'~"),
        ({"split_k": 0}, "split_k is 0; expected a positive number of slices"),
        ({"promote_every": -1}, "promote_every is -1; expected a length of k, 0 for never, or None"),
        ({"threads": 1.5}, "threads is 1.5; expected a positive integer or None"),
        ({"engine": "cuda"}, "engine is 'cuda'; expected ~"),
        ({"others": "drop"}, "others is 'drop'; expected 'leave' or 'refuse'"),
    ]  # fmt: skip


@needs_torch
@pytest.mark.parametrize(("given", "message"), refused(), ids=lambda x: str(x)[:40])
def test_options(given: dict[str, Any], message: str) -> None:
    with pytest.raises(WarpmmaError, match=exactly(message)):
        wm.torch.arithmetic(**{"target": "sm_100a", **given})


@needs_torch
def test_operands_of_matmul() -> None:
    import torch

    one = torch.ones(3, 4)

    def call(a: Any, b: Any, **more: Any) -> None:
        wm.torch.matmul(a, b, **{"target": "sm_80", **more})

    fp8 = one.to(torch.float8_e4m3fn)
    cases: list[tuple[Any, Any, str]] = [
        (one.to("meta"), one.T, "A is on the device meta, where tensors have no numbers; give one on the CPU"),
        (one, one.T.to_sparse(), "B is sparse_coo; expected a dense tensor: .to_dense()"),
        (one.numpy(), one.T, "A is ndarray; expected a tensor of PyTorch"),
        (one.to(torch.complex64), one.T, "A is complex64, which no product takes; expected one of float16, ~"),
        (one, one.T.half(), "A is float32 and B is float16; expected one type"),
        (one, one, "A is (3, 4) and B is (3, 4); expected [..., m, k] and [..., k, n]"),
        (one[None].expand(2, 3, 4), one.T[None].expand(3, 4, 3), "batches do not broadcast: A (2, 3, 4), B (3, 4, 3)"),
        (fp8, fp8.T, "sm_80 has no mma for e4m3 x e4m3; the nearest that has one is sm_89"),
    ]
    for a, b, message in cases:
        with pytest.raises(WarpmmaError, match=exactly(message)):
            call(a, b)
    with pytest.raises(OperandError, match=exactly("8-bit operands have no gradients; ~")):
        call(fp8.requires_grad_(), fp8.detach().T, target="sm_90")
    with pytest.raises(OperandError, match=exactly("out_dtype is torch.int8; expected one of float32, ~")):
        call(one, one.T, out_dtype=torch.int8)


@needs_torch
def test_a_tensor_on_another_device() -> None:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True):
        there = torch.empty(3, 3, device="mps")
    with pytest.raises(OperandError, match=exactly("A is on mps:0; expected the CPU or an NVIDIA GPU: give ~ .cpu()")):
        wm.torch.matmul(there, torch.ones(3, 3), target="sm_90")


@needs_torch
def test_inside_of_an_override() -> None:
    import torch

    there = torch.ones(2, 2, device="meta")
    with wm.torch.arithmetic("sm_70"):
        with pytest.raises(OperandError, match=exactly("aten::mm: A is on the device meta, ~")):
            there @ there
        with pytest.raises(TargetError, match=exactly("sm_70 has no mma for bf16 x bf16; the nearest ~ is sm_80")):
            torch.ones(2, 2).bfloat16() @ torch.ones(2, 2).bfloat16()
        torch.ones(2, 2) @ torch.ones(2, 2)


@needs_torch
def test_torch_func() -> None:
    import torch

    def product(a: Any) -> Any:
        return wm.torch.matmul(a, torch.eye(8), target="sm_90")

    said = "A is inside torch.func; take torch.matmul there, in arithmetic(...)"
    for call in (torch.func.vmap(product), torch.func.grad(lambda a: product(a).sum())):
        with pytest.raises(UnsupportedError, match=exactly(said)):
            call(torch.ones(2, 8, 8))
    with wm.torch.arithmetic("sm_90") as report:
        assert torch.func.vmap(lambda a: a @ torch.eye(8))(torch.ones(2, 8, 8)).sum() == 128
    assert sum(report.instructions.values()) == 1
