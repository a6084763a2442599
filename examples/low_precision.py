"""A small transformer with products in bf16, fp8 or NVFP4 and a GPU's sums; `train_low_precision.py` trains it.

* Linear layers are in the format, forward and both gradients. fp8 has one scale for each tensor, and is e4m3 forward
  and e5m2 for gradients. NVFP4 has blocks of 16 along k and a scale for each tensor, rounded to nearest: there is no
  stochastic rounding and no Hadamard transform, which long trainings in NVFP4 need.
* The products of attention and the last layer are bf16 with the same GPU's sums, as recipes for fp8 and NVFP4 have it.
* Weights, and everything between products, are float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

import warpmma as wm

HEADS = 4
NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
E2M1 = torch.tensor([s * x for s in (1.0, -1.0) for x in (0, 0.5, 1, 1.5, 2, 3, 4, 6)], dtype=torch.bfloat16)
LARGEST = {torch.float8_e4m3fn: 448.0, torch.float8_e5m2: 57344.0}


@dataclass(frozen=True)
class Arithmetic:
    """A format of operands, and the GPU whose sums are taken: None for sums in float64."""

    format: str  # "f32", "bf16", "fp8", "NVFP4", or "NVFP4 in bf16" for GPUs without NVFP4
    target: str | None = None
    options: dict[str, Any] = field(default_factory=dict)  # of warpmma.torch.matmul


# Products


def product(a: Any, b: Any, how: Arithmetic, gradient: str = "") -> Any:
    """Multiply float32 `[..., m, k]` by `[..., k, n]`; `gradient` says which of A and B is one, if any."""
    if how.format == "NVFP4" and how.target:
        x, y = wm.scaling.quantize(a, NVFP4, "A"), wm.scaling.quantize(b, NVFP4, "B")
        return torch.as_tensor(wm.matmul(x, y, instruction=NVFP4, target=how.target))
    (x, of_x), (y, of_y) = rounded(a, "A", how.format, gradient == "A"), rounded(b, "B", how.format, gradient == "B")
    if how.target is None:
        return (wm.torch.matmul(x.double(), y.double(), target="sm_90") * (of_x * of_y)).float()
    return wm.torch.matmul(x, y, target=how.target, out_dtype=torch.float32, **how.options) * (of_x * of_y)


def rounded(x: Any, operand: Any, form: str, is_gradient: bool) -> tuple[Any, Any]:
    """Round a tensor to a format; return it and its scale."""
    if form == "fp8":
        dtype = torch.float8_e5m2 if is_gradient else torch.float8_e4m3fn
        largest = x.new_tensor(LARGEST[dtype])  # PyTorch on a GPU divides by a number less exactly than by a tensor
        scale = x.abs().amax().clamp(min=1e-30) / largest
        return (x / scale).to(dtype), scale
    if form.startswith("NVFP4"):  # element x block scale has at most 6 significant bits: bf16 holds it
        q = wm.scaling.quantize(x, NVFP4, operand)
        codes, scales = (
            y if isinstance(y, torch.Tensor) else torch.from_numpy(y.view(np.uint8)) for y in (q.elements, q.scales)
        )
        of_each = scales.view(torch.float8_e4m3fn).bfloat16().repeat_interleave(16, -1 if operand == "A" else -2)
        return E2M1.to(x.device)[codes.int()] * of_each, torch.as_tensor(q.tensor_scale)
    return x.to(torch.bfloat16 if form == "bf16" else torch.float32), torch.ones((), device=x.device)


class LowPrecisionMatmul(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """A B and its gradients in one arithmetic.

    `note(name, what, result, exact)` is called with each product; `exact()` is the same with sums in float64.
    """

    @staticmethod
    def forward(ctx: Any, a: Any, b: Any, how: Arithmetic, name: str, note: Any) -> Any:
        """Return A B."""
        ctx.save_for_backward(a, b)
        ctx.about = how, name, note
        return LowPrecisionMatmul.noted(ctx, "result", a.detach(), b.detach(), "")

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> tuple[Any, ...]:
        """Return G B^T and A^T G."""
        a, b = ctx.saved_tensors
        of_b = LowPrecisionMatmul.noted(ctx, "gradient of the weights", a.detach().mT, gradient, "B")
        of_a = LowPrecisionMatmul.noted(ctx, "gradient of the input", gradient, b.detach().mT, "A")
        return of_a, of_b, None, None, None

    @staticmethod
    def noted(ctx: Any, what: str, a: Any, b: Any, gradient: str) -> Any:
        """Multiply, and tell."""
        how, name, note = ctx.about
        d = product(a, b, how, gradient)
        note(name, what, d, lambda: product(a, b, Arithmetic(how.format), gradient))
        return d


# The model


class Transformer(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """Predict the next byte; `multiply(name, a, b, wide=False)` computes every product."""

    def __init__(self, width: int, layers: int, context: int) -> None:
        super().__init__()
        seed = torch.Generator().manual_seed(0)

        def matrix(rows: int, columns: int) -> Any:
            return torch.nn.Parameter(torch.randn(rows, columns, generator=seed) * rows**-0.5)

        def block() -> Any:
            shapes = {"qkv": (1, 3), "out": (1, 1), "up": (1, 4), "down": (4, 1)}  # in widths
            return torch.nn.ParameterDict({name: matrix(m * width, n * width) for name, (m, n) in shapes.items()})

        self.bytes, self.places, self.head = matrix(256, width), matrix(context, width), matrix(width, 256)
        self.blocks: Any = torch.nn.ModuleList(block() for _ in range(layers))

    def forward(self, given: Any, multiply: Callable[..., Any]) -> Any:
        """Return scores of the next byte, `[batch, context, 256]`, of bytes `[batch, context]`."""
        x = torch.nn.functional.embedding(given, self.bytes) + self.places
        later = torch.ones(2 * (given.shape[1],), dtype=torch.bool, device=x.device).triu(1)
        for number, weights in enumerate(self.blocks, 1):
            name = f"block {number}, {{}}".format
            three = multiply(name("qkv"), norm(x), weights["qkv"]).chunk(3, -1)
            q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in three)
            scores = multiply(name("scores"), q * q.shape[-1] ** -0.5, k.mT, wide=True)
            mixed = multiply(name("mixture"), scores.masked_fill(later, -torch.inf).softmax(-1), v, wide=True)
            x = x + multiply(name("out"), mixed.transpose(1, 2).flatten(2), weights["out"])
            up = multiply(name("up"), norm(x), weights["up"])
            x = x + multiply(name("down"), torch.nn.functional.gelu(up), weights["down"])
        return multiply("head", norm(x), self.head, wide=True)


def norm(x: Any) -> Any:
    """Divide by the root mean square."""
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()


def loss_of(model: Transformer, text: Any, how: Arithmetic, note: Any = lambda *told: None) -> Any:
    """Return the cross entropy of the next byte, in nats, with every product in an arithmetic."""
    apply: Any = LowPrecisionMatmul.apply
    wider = how if how.format == "f32" else replace(how, format="bf16")

    def multiply(name: str, a: Any, b: Any, *, wide: bool = False) -> Any:
        rows = a.flatten(0, -2) if b.ndim == 2 else a
        d = apply(rows, b, wider if wide else how, name, note)
        return d.unflatten(0, a.shape[:-1]) if b.ndim == 2 else d

    scores = model(text[:, :-1], multiply)
    return torch.nn.functional.cross_entropy(scores.flatten(0, 1), text[:, 1:].flatten())
