"""A product of tensors as a function whose gradients use the same arithmetic."""

from __future__ import annotations

from functools import cache
from typing import Any

from ..arithmetic import Engine
from ..products import Float32
from .multiplying import summed
from .operators import define_while_compiling, output_type
from .settings import Accumulator, ProductSettings, checked_settings
from .tensors import array_of, pytorch, tensor_of, type_of


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

    Inside of a function that `torch.compile` compiles it is the operator `warpmma::matmul` of `operators()`.

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
    if torch.compiler.is_compiling():
        return _compiled(
            a, b, target, out_dtype, instruction, float32, accumulate, split_k, promote_every, engine, threads
        )
    given = checked_settings(target, instruction, float32, accumulate, split_k, promote_every, engine, threads)
    for name, x in (("A", a), ("B", b)):
        array_of(x, name)
    out = output_type(a, b, out_dtype)
    return _with_vectors(a, b, lambda x, y: _function(torch).apply(x, y, given, out))


def _with_vectors(a: Any, b: Any, product: Any) -> Any:
    """Multiply matrices, or vectors as matrices of one row or column."""
    d = product(a[None] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b)
    d = d.squeeze(-1) if b.ndim == 1 else d
    return d.squeeze(-1 if b.ndim == 1 else -2) if a.ndim == 1 else d


def _compiled(a: Any, b: Any, target: str, out_dtype: Any, instruction: Any, *others: Any) -> Any:
    """Multiply inside of a function that `torch.compile` compiles, by the operator."""
    define_while_compiling()
    several = [instruction] if isinstance(instruction, str) else instruction
    operator = pytorch().ops.warpmma.matmul
    return _with_vectors(a, b, lambda x, y: operator(x, y, target, out_dtype, several, *others))


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
