"""PyTorch's tensors as operands. PyTorch is in no extra; where it is absent these tests skip: see docs/matmul.md."""

from __future__ import annotations

import importlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array, same
from messages import exactly
from oracles import skip_without

import warpmma as wm
from warpmma import sparsity
from warpmma._arrays import as_array
from warpmma.errors import OperandError
from warpmma.testing import assert_same_bits

skip_without("PyTorch")
torch: Any = importlib.import_module("torch")


# Of each format the instructions that take it, by the types of A and B.
FLOATS = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
OTHERS = {
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu, "int8": np.int8, "uint8": np.uint8, "int32": np.int32,
    "uint16": np.uint16, "uint32": np.uint32, "int64": np.int64, "bool": np.bool_, "complex64": np.complex64,
}  # fmt: skip


def drawn(name: str, shape: tuple[int, ...]) -> tuple[Any, Array]:
    """A tensor of any bits, and the array of the same bits."""
    kind = np.dtype({**FLOATS, **OTHERS}[name])
    most = 2 if name == "bool" else 256
    octets = np.random.default_rng(0).integers(0, most, (*shape, kind.itemsize), np.uint8)
    return torch.from_numpy(octets).view(getattr(torch, name))[..., 0], octets.view(kind)[..., 0]


def bits(x: Array) -> Array:
    return np.ascontiguousarray(x).view(np.uint8)


@pytest.mark.parametrize("name", [*FLOATS, *OTHERS])
def test_every_type_and_layout(name: str) -> None:
    tensor, array = drawn(name, (4, 6, 10))
    for x, y in (
        (tensor, array), (tensor.mT, array.swapaxes(1, 2)), (tensor[1:, ::2, 3:], array[1:, ::2, 3:]),
        (tensor[2, 3, 4], array[2, 3, 4]), (tensor[:0], array[:0]), (tensor[0].expand(3, 6, 10),
        np.broadcast_to(array[0], (3, 6, 10))),
    ):  # fmt: skip
        found = as_array(x, "A")
        assert found.dtype == array.dtype and found.shape == y.shape
        same(bits(found), bits(np.asarray(y)))


@pytest.mark.parametrize("name", FLOATS)
def test_products_of_tensors(name: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(FLOATS[name]) for shape in ((33, 70), (70, 20)))
    width = f"i{a.itemsize}"
    x, y = (torch.from_numpy(z.view(width)).view(getattr(torch, name)) for z in (a, b))
    d = wm.matmul(x, y, target="sm_90", float32="tf32")
    assert type(d) is np.ndarray
    same(d, wm.matmul(a, b, target="sm_90", float32="tf32"))
    same(wm.matmul(y.T, x.T, target="sm_90", float32="ieee"), wm.matmul(b.T, a.T, target="sm_90", float32="ieee"))
    assert_same_bits(x, a)
    assert (bits(as_array(x.clone(), "A")) == bits(a)).all()  # whose memory nobody else holds


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_fp8_of_older_versions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which do not export it."""
    export = torch.Tensor.__dlpack__

    def older(x: Any, **more: Any) -> Any:
        if "float8" in str(x.dtype):
            raise BufferError("float8 types are not supported by dlpack")
        return export(x, **more)

    monkeypatch.setattr(torch.Tensor, "__dlpack__", older)
    tensor, array = drawn(name, (6, 8))
    found = as_array(tensor[1:, ::2].T, "A")
    assert found.dtype == array.dtype
    same(bits(found), bits(array[1:, ::2].T))
    with pytest.raises(OperandError, match="float8 types are not supported by dlpack"):
        as_array(tensor.to(torch.float32).requires_grad_().to(tensor.dtype), "A")


def test_a_tensor_outlives_its_name() -> None:
    x = as_array(torch.full((1000, 1000), 3.0, dtype=torch.bfloat16), "A")
    torch.full((1000, 1000), 5.0, dtype=torch.bfloat16)
    assert (x == 3).all()


def test_registers_sparsity_and_scales() -> None:
    i = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32"
    weights, x = torch.randn(40, 96, dtype=torch.bfloat16), torch.randn(96, 5, dtype=torch.bfloat16)
    pruned = sparsity.prune(weights, i)
    assert pruned.dtype == ml_dtypes.bfloat16
    stored, indices = sparsity.compress(torch.from_numpy(pruned.view(np.int16)).view(torch.bfloat16), i)
    d = wm.matmul(stored, x, instruction=i, target="sm_90", indices=torch.from_numpy(indices))
    same(d, wm.matmul(pruned, x, instruction=i, target="sm_90"))
    i = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
    scales = torch.full((40, 3), 2.0).to(torch.float8_e8m0fnu)
    e4m3 = weights.to(torch.float8_e4m3fn), x.to(torch.float8_e4m3fn)
    d = wm.matmul(*e4m3, instruction=i, target="sm_120a", scale_a=scales, scale_b=scales[:5].T)
    plain = wm.matmul(*e4m3, instruction=i, target="sm_120a", scale_a=np.full((40, 3), 127, np.uint8),
                      scale_b=np.full((3, 5), 127, np.uint8))  # fmt: skip
    same(d, 4 * plain)


def refused() -> list[tuple[Any, str]]:
    bf16 = torch.ones(3, dtype=torch.bfloat16)
    of_complex = torch.conj(torch.tensor([1 + 2j, 3 + 4j]))
    return [
        (torch.ones(3, requires_grad=True), "A: not an array: ~ require gradient, use tensor.detach()"),
        (torch.ones(3, dtype=torch.bfloat16, requires_grad=True), "A: not an array: ~ require gradient, use ~"),
        (torch.nn.Parameter(bf16), "A: not an array: ~ require gradient, use tensor.detach()"),
        (torch.ones(3, dtype=torch.bfloat16, device="meta"), "A: not an array: ~meta~"),
        (torch.eye(3).to_sparse(), "A: not an array: ~ layout other than torch.strided"),
        (torch._neg_view(bf16), "A: not an array: it is negated on reading; pass x.resolve_neg()"),
        (of_complex.imag, "A: not an array: it is negated on reading; pass x.resolve_neg()"),
        (of_complex, "A: not an array: ~conj~"),
        (torch.zeros(2, 3, dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
         "A: not an array: elements are float4_e2m1fn, 2 in one; expected int8, ~ each in bytes of its own"),
    ]  # fmt: skip


@pytest.mark.parametrize(("x", "message"), refused(), ids=lambda x: x[:40] if isinstance(x, str) else "")
def test_what_is_refused(x: Any, message: str) -> None:
    with pytest.raises(OperandError, match=exactly(message)):
        as_array(x, "A")


def test_what_resolves_it() -> None:
    x = torch.conj(torch.tensor([1 + 2j, 3 + 4j])).imag
    same(as_array(x.resolve_neg(), "A"), np.array([-2, -4], np.float32))
    x = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
    same(as_array(x.detach(), "A"), np.ones(3, ml_dtypes.bfloat16))
