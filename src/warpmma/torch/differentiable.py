"""A product of tensors whose gradients use the same arithmetic."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..arithmetic import Engine
from ..products import Float32
from .custom_operators import output_type
from .multiplying import summed
from .settings import Accumulator, ProductSettings, checked_settings
from .tensors import array_of, pytorch, tensor_of, type_of


def product(
    a: Any, b: Any, target: str, out_dtype: Any, instruction: object, float32: Float32, accumulate: Accumulator,
    split_k: int, promote_every: int | None, engine: Engine, threads: int | None,
) -> Any:  # fmt: skip
    """Multiply as `warpmma.torch.matmul` does, outside of compiled functions."""
    torch = pytorch()
    given = checked_settings(target, instruction, float32, accumulate, split_k, promote_every, engine, threads)
    for name, x in (("A", a), ("B", b)):
        array_of(x, name)
    out = output_type(a, b, out_dtype)
    x, y = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    d = _function(torch).apply(x, y, given, out)
    d = d.squeeze(-1) if b.ndim == 1 else d
    return d.squeeze(-1 if b.ndim == 1 else -2) if a.ndim == 1 else d


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
