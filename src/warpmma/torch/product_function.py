"""A product of tensors as a function, in compiled functions too.

Dynamo traces this module and no other of the package: it calls only what Dynamo knows, or does not look into.
"""

from __future__ import annotations

from typing import Any

from ..arithmetic import Engine
from ..products import Float32
from .custom_operators import operators
from .differentiable import product
from .settings import Accumulator


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
    if not _compiling():
        return product(
            a, b, target, out_dtype, instruction, float32, accumulate, split_k, promote_every, engine, threads
        )
    import torch

    _define()
    several = [instruction] if isinstance(instruction, str) else instruction
    x, y = a[None] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b
    d = torch.ops.warpmma.matmul(
        x, y, target, out_dtype, several, float32, accumulate, split_k, promote_every, engine, threads
    )
    d = d.squeeze(-1) if b.ndim == 1 else d
    return d.squeeze(-1 if b.ndim == 1 else -2) if a.ndim == 1 else d


def _compiling() -> bool:
    """Return whether Dynamo traces this."""
    try:
        import torch
    except ImportError:
        return False
    return hasattr(torch, "compiler") and torch.compiler.is_compiling()


def _define() -> bool:
    """Define the operators, while Dynamo compiles."""
    operators()
    return True


_define._dynamo_marked_constant = True  # type: ignore[attr-defined]  # as torch.compiler.assume_constant_result does
