"""Products as operators of PyTorch's, which `torch.compile` and `torch.export` know: `warpmma::matmul`.

1. `operators()` defines them, once for a process, and so does the first `matmul` that is compiled.
2. `warpmma::matmul` is `matmul` of matrices and of batches that broadcast; its settings are strings and numbers.
3. Its gradients are products by the same operator, in the operands' types; 8-bit operands have none.
4. Shapes and types are checked when a graph is made, with the messages of `matmul`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ..errors import OperandError, shown
from .multiplying import summed
from .settings import checked_settings
from .tensors import array_of, dtype_for, dtype_name, pytorch, tensor_of, type_of

EIGHT_BITS = ("e4m3", "e5m2")
_OUTPUTS = {"e4m3": "f32", "e5m2": "f32", "s8": "s32"}
_WIDER = {"f64": ("f64",), "s8": ("s32",)}

_SCHEMA = (
    "(Tensor a, Tensor b, str target, ScalarType? out_dtype=None, str[]? instruction=None, str float32='ieee', "
    "str accumulate='f32', int split_k=1, int? promote_every=None, str engine='auto', int? threads=None) -> Tensor"
)


def operators() -> Any:
    """Define PyTorch's operator `warpmma::matmul`, and return their namespace, `torch.ops.warpmma`.

    A function that `torch.compile` compiles, with `fullgraph=True` too, can call it then: by that name, or as
    `warpmma.torch.matmul`. Results and gradients have the same bits as without `torch.compile`, on the CPU and on a
    GPU.

    Returns
    -------
    namespace
        `torch.ops.warpmma`. `matmul(a, b, target, out_dtype=None, instruction=None, float32="ieee", accumulate="f32",
        split_k=1, promote_every=None, engine="auto", threads=None)` is `warpmma.torch.matmul` of matrices and batches
        of them; `instruction` is a list of "mma", "wgmma" or mnemonics.

    Raises
    ------
    UnsupportedError
        No PyTorch.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> product = operators().matmul  # doctest: +SKIP
    >>> f = torch.compile(lambda a, b: product(a, b, "sm_90").relu(), fullgraph=True)  # doctest: +SKIP
    """
    torch = pytorch()
    _define(torch)
    return torch.ops.warpmma


def output_type(a: Any, b: Any, wanted: Any) -> str:
    """Check types and shapes of the factors of a product, and return the PTX type of the result."""
    types = type_of(a, "A"), type_of(b, "B")
    if types[0] != types[1] and not set(types) <= set(EIGHT_BITS):
        raise OperandError(f"A is {dtype_name(a.dtype)} and B is {dtype_name(b.dtype)}; expected one type")
    if (a.requires_grad or b.requires_grad) and set(types) & set(EIGHT_BITS):
        raise OperandError("8-bit operands have no gradients; multiply in a torch.autograd.Function, or detach them")
    if a.ndim < 1 or b.ndim < 1 or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise OperandError(f"A is {tuple(a.shape)} and B is {tuple(b.shape)}; expected [..., m, k] and [..., k, n]")
    _batch(a, b)
    return _output(types[0], wanted)


def _batch(a: Any, b: Any) -> Any:
    try:
        return pytorch().broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except (ValueError, RuntimeError):
        raise OperandError(f"batches do not broadcast: A {tuple(a.shape)}, B {tuple(b.shape)}") from None


def _output(a: str, wanted: Any) -> str:
    """Return the PTX type of the result."""
    usual = _OUTPUTS.get(a, a)
    if wanted is None:
        return usual
    known = _WIDER.get(a, ("f32", "f16", "bf16", *EIGHT_BITS))
    for x in known:
        if wanted is dtype_for(x):
            return x
    names = ", ".join(dtype_name(dtype_for(x)) for x in known)
    raise OperandError(f"out_dtype is {shown(wanted)}; expected one of {names} for this type of A")


@cache
def _define(torch: Any) -> None:
    """Define the operators: what they compute, the shapes of results, and gradients."""

    def checked(a: Any, b: Any, out_dtype: Any) -> str:
        for name, x in (("A", a), ("B", b)):
            if x.ndim < 2:
                raise OperandError(f"{name} is {tuple(x.shape)}; expected a matrix: warpmma.torch.matmul takes vectors")
        return output_type(a, b, out_dtype)

    def settings(
        target: str, instruction: Any, float32: Any, accumulate: Any, split_k: int, promote_every: int | None,
        engine: Any, threads: int | None,
    ) -> Any:  # fmt: skip
        return checked_settings(target, instruction, float32, accumulate, split_k, promote_every, engine, threads)

    @torch.library.custom_op("warpmma::matmul", mutates_args=(), schema=_SCHEMA)  # type: ignore[untyped-decorator]
    def product(
        a: Any, b: Any, target: Any, out_dtype: Any = None, instruction: Any = None, float32: Any = "ieee",
        accumulate: Any = "f32", split_k: Any = 1, promote_every: Any = None, engine: Any = "auto", threads: Any = None,
    ) -> Any:  # fmt: skip
        out = checked(a, b, out_dtype)
        given = settings(target, instruction, float32, accumulate, split_k, promote_every, engine, threads)
        types = type_of(a, "A"), type_of(b, "B")
        return tensor_of(summed(array_of(a, "A"), array_of(b, "B"), types, given).rounded(out))

    @product.register_fake  # type: ignore[untyped-decorator]
    def shape(
        a: Any, b: Any, target: Any, out_dtype: Any = None, instruction: Any = None, float32: Any = "ieee",
        accumulate: Any = "f32", split_k: Any = 1, promote_every: Any = None, engine: Any = "auto", threads: Any = None,
    ) -> Any:  # fmt: skip
        out = checked(a, b, out_dtype)
        settings(target, instruction, float32, accumulate, split_k, promote_every, engine, threads)
        return a.new_empty((*_batch(a, b), a.shape[-2], b.shape[-1]), dtype=dtype_for(out))

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        a, b, target, _, *others = inputs
        ctx.save_for_backward(a, b)
        ctx.target, ctx.others = target, others

    def gradients(ctx: Any, gradient: Any) -> Any:
        a, b = ctx.saved_tensors

        def of(x: Any, y: Any, like: Any) -> Any:
            d = torch.ops.warpmma.matmul(x.to(like.dtype), y.to(like.dtype), ctx.target, None, *ctx.others)
            return d.sum_to_size(like.shape)

        of_a = of(gradient, b.mT, a) if ctx.needs_input_grad[0] else None
        of_b = of(a.mT, gradient, b) if ctx.needs_input_grad[1] else None
        return of_a, of_b, *[None] * (2 + len(ctx.others))

    product.register_autograd(gradients, setup_context=keep)
