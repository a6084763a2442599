"""`scaled_dot_product_attention`: its products by the target's instruction, in the order of a fused kernel.

1. Where PyTorch takes its fused kernel for CPUs, this is computed instead. S = Q K^T stays in the type of the sums;
   scale and mask are applied to it. P = exp(S - max of a row), which is rounded to the operands' type; O = P V, divided
   by the row's sum of P before rounding, and rounded once.
2. Gradients, with P = exp(S - logsumexp): dV = P^T dO, dP = dO V^T, dS = P (dP - sum of dO O along a row),
   dQ = scale dS K, dK = scale dS^T Q. P and dS are rounded to the operands' type before they are multiplied.
3. Everything but products (exp, maximum, sums of rows) is computed by PyTorch in float32, or float64 for float64
   operands. GPU kernels differ: they process the keys in blocks, and rescale. Only the products have a GPU's bits.
4. Where PyTorch takes no fused kernel (with dropout, say), attention uses `bmm`, in float32 for 16-bit operands.
5. On a GPU attention is not fused: two `bmm` in the operands' type, with PyTorch's softmax between them, whose results
   are rounded to that type.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from .replaced import LEFT, OperatorCall
from .tensors import array_of, pytorch, tensor_of


@dataclass(frozen=True, kw_only=True, eq=False)
class _Heads:
    """Operands of attention, `[batch, heads, rows, columns]`, keys and values repeated for groups of heads."""

    call: OperatorCall
    type: str
    query: Any
    key: Any
    value: Any

    @property
    def scale(self) -> float:
        given = self.call.x["scale"]
        return float(self.query.shape[-1] ** -0.5 if given is None else given)

    def product(self, a: Any, b: Any) -> Any:
        """Multiply; the result stays in f32, or f64."""
        x, y = (array_of(t.to(self.query.dtype), self.call.op) for t in (a, b))
        wide = "f64" if self.type == "f64" else "f32"
        return tensor_of(self.call.summed(x, y, (self.type, self.type), wide).rounded(wide))

    def scores(self) -> Any:
        """Return S, scaled and masked."""
        torch = pytorch()
        scores = self.product(self.query, self.key.mT) * self.scale
        if self.call.x["is_causal"]:
            seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
            scores = scores.masked_fill(~seen, -torch.inf)
        if (mask := self.call.x["attn_mask"]) is not None:
            scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
        return scores


def _heads(call: OperatorCall) -> _Heads | None:
    """Return what there is to compute; None for what PyTorch must see."""
    type_ = call.float_type("query", "key", "value")
    q, k, v = (call.x[name] for name in ("query", "key", "value"))
    if type_ is None or q.ndim != 4 or not k.shape[1] or q.shape[1] % k.shape[1] or call.x["dropout_p"]:
        return None
    groups = q.shape[1] // k.shape[1]
    k, v = (x if groups == 1 else x.repeat_interleave(groups, 1) for x in (k, v))
    return _Heads(call=call, type=type_, query=q, key=k, value=v)


def fused_attention(call: OperatorCall) -> Any:
    """Compute `_scaled_dot_product_flash_attention_for_cpu`: O, and the logarithm of each row's sum."""
    if (heads := _heads(call)) is None:
        return LEFT
    scores = heads.scores()
    most = scores.amax(-1, keepdim=True).clamp(min=-3e38)  # of a row without keys, so that its P is 0
    weights = (scores - most).exp()
    total = weights.sum(-1, keepdim=True)
    d = heads.product(weights, heads.value) / total.where(total > 0, total.new_ones(()))
    return d.to(heads.query.dtype), (most + total.log()).squeeze(-1)


def attention_gradients(call: OperatorCall) -> Any:
    """Compute `_scaled_dot_product_flash_attention_for_cpu_backward`: gradients of Q, K and V."""
    if (heads := _heads(call)) is None:
        return LEFT
    gradient, out, logarithm = (call.x[name] for name in ("grad_out", "out", "logsumexp"))
    scores = heads.scores()
    weights = (scores - logarithm.to(scores.dtype)[..., None]).exp().nan_to_num(0, 0, 0)
    of_value = heads.product(weights.mT, gradient)
    of_weights = heads.product(gradient, heads.value.mT)
    rows = (gradient.to(scores.dtype) * out.to(scores.dtype)).sum(-1, keepdim=True)
    of_scores = weights * (of_weights - rows)
    of_query = heads.product(of_scores, heads.key) * heads.scale
    of_key = heads.product(of_scores.mT, heads.query) * heads.scale

    def grouped(x: Any, like: Any) -> Any:
        if x.shape[1] != like.shape[1]:
            x = x.unflatten(1, (like.shape[1], -1)).sum(2)
        return x.to(like.dtype)

    return tuple(grouped(x, call.x[name]) for x, name in ((of_query, "query"), (of_key, "key"), (of_value, "value")))


@cache
def unfused_on_gpu(torch: Any) -> Any:
    """Make the mode of PyTorch's functions that follows rule 5; the class needs PyTorch."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.overrides import TorchFunctionMode

    class Mode(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            given = kwargs or {}
            attention = func is torch.nn.functional.scaled_dot_product_attention
            if not attention or (args or tuple(given.values()))[0].device.type != "cuda":
                return func(*args, **given)
            before = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
            torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)  # products in the operands' type
            try:
                with sdpa_kernel(SDPBackend.MATH):
                    return func(*args, **given)
            finally:
                torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(before)

    return Mode
