"""A product of tensors as a function whose gradients use the same arithmetic."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..arithmetic import Engine
from ..errors import OperandError, shown
from ..products import Float32
from .multiplying import summed
from .settings import Accumulator, ProductSettings, checked_settings
from .tensors import array_of, dtype_for, dtype_name, pytorch, tensor_of, type_of

_EIGHT_BITS = ("e4m3", "e5m2")
_OUTPUTS = {"e4m3": "f32", "e5m2": "f32", "s8": "s32"}
_WIDER = {"f64": ("f64",), "s8": ("s32",)}


def matmul(
    a: Any, b: Any, *, target: str, out_dtype: Any = None, instruction: object = None, float32: Float32 = "ieee",
    accumulate: Accumulator = "f32", split_k: int = 1, promote_every: int | None = None, engine: Engine = "auto",
    threads: int | None = None,
) -> Any:  # fmt: skip
    """Multiply tensors as `torch.matmul` does, with the bits of a target's matrix instruction.

    Tensors on an NVIDIA GPU are multiplied there, by `engine="cuda"` of `warpmma.matmul`.

    Parameters
    ----------
    a, b : torch.Tensor
        As of `torch.matmul`: vectors, matrices, batches that broadcast. float16, bfloat16, float32, float64, int8,
        float8_e4m3fn or float8_e5m2, which mix; else both of one type.
    target : str
    out_dtype : torch.dtype, optional
        Of the result: the operands' by default, float32 of 8-bit floating point, int32 of int8.
    instruction, float32, accumulate, split_k, promote_every, engine, threads
        As of `arithmetic`.

    Returns
    -------
    torch.Tensor
        Differentiable, except for 8-bit operands: gradients are products by the same arithmetic, in the operands'
        types.

    Raises
    ------
    UnsupportedError
        No PyTorch.
    WarpmmaError
        A tensor on another device, such as meta; types or shapes that do not go together; no such target or
        instruction; 8-bit operands that require gradients.
    """
    torch = pytorch()
    given = checked_settings(target, instruction, float32, accumulate, split_k, promote_every, engine, threads)
    for name, x in (("A", a), ("B", b)):
        array_of(x, name)
    types = type_of(a, "A"), type_of(b, "B")
    if types[0] != types[1] and not set(types) <= set(_EIGHT_BITS):
        raise OperandError(f"A is {dtype_name(a.dtype)} and B is {dtype_name(b.dtype)}; expected one type")
    if (a.requires_grad or b.requires_grad) and set(types) & set(_EIGHT_BITS):
        raise OperandError("8-bit operands have no gradients; multiply in a torch.autograd.Function, or detach them")
    if a.ndim < 1 or b.ndim < 1 or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise OperandError(f"A is {tuple(a.shape)} and B is {tuple(b.shape)}; expected [..., m, k] and [..., k, n]")
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise OperandError(f"batches do not broadcast: A {tuple(a.shape)}, B {tuple(b.shape)}") from None
    out = _output(types[0], out_dtype)
    x, y = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    d = _function(torch).apply(x, y, given, out)
    d = d.squeeze(-1) if b.ndim == 1 else d
    return d.squeeze(-1 if b.ndim == 1 else -2) if a.ndim == 1 else d


def _output(a: str, wanted: Any) -> str:
    """Return the PTX type of the result."""
    usual = _OUTPUTS.get(a, a)
    if wanted is None:
        return usual
    known = _WIDER.get(a, ("f32", "f16", "bf16", *_EIGHT_BITS))
    for x in known:
        if wanted is dtype_for(x):
            return x
    names = ", ".join(dtype_name(dtype_for(x)) for x in known)
    raise OperandError(f"out_dtype is {shown(wanted)}; expected one of {names} for this type of A")


@cache
def _function(torch: Any) -> Any:
    """Make the function that PyTorch differentiates; the class needs PyTorch."""

    class Product(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, given: ProductSettings, out: str) -> Any:
            ctx.save_for_backward(a, b)
            ctx.given = given
            types = type_of(a, "A"), type_of(b, "B")
            return tensor_of(summed(array_of(a, "A"), array_of(b, "B"), types, given).rounded(out))

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> tuple[Any, Any, None, None]:
            a, b = ctx.saved_tensors

            def product(x: Any, y: Any, like: Any) -> Any:
                d = Product.apply(x.to(like.dtype), y.to(like.dtype), ctx.given, type_of(like, "A"))
                return d.sum_to_size(like.shape)

            of_a = product(gradient, b.mT, a) if ctx.needs_input_grad[0] else None
            return of_a, product(a.mT, gradient, b) if ctx.needs_input_grad[1] else None, None, None

    return Product
