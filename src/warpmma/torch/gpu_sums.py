"""Sums of products that lie on a GPU, and the rules of their epilogues in PyTorch's operations there.

The rules are those of `sums`. Each operation of PyTorch's that is taken rounds once, to nearest even, as PTX does:
products and sums of f32 and f64, conversions to f16 and bf16, which are instructions of the GPU. A fused multiply-add
is not among them, so it is made of exact parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import OperandError, UnsupportedError
from ..formats import floating
from .sums import Sums
from .tensors import dtype_for, pytorch


@dataclass(frozen=True, kw_only=True, eq=False)
class GpuSums(Sums):
    """Sums as a tensor on a GPU, of the type of the sums."""

    def multiplied(self, factor: Any) -> GpuSums:
        """Multiply by numbers, a tensor of f32."""
        return self.with_codes(self.codes * factor)

    def added(self, addend: Any) -> GpuSums:
        """Add numbers, a tensor of f32."""
        return self.with_codes(self.codes + addend)

    def scaled_and_added(self, alpha: float, beta: float, c: Any, out: str) -> Sums:
        """Return alpha x sums + beta x C (rules 1 and 2)."""
        if (alpha == 1 and (c is None or beta == 0)) or self.codes.numel() == 0:
            return self
        if self.type == "s32":
            raise OperandError(f"{self.instruction}: sums of integers are not scaled")
        x, fmt = self.codes, floating(self.type)

        def number(value: float) -> float:
            return float(fmt.decode(fmt.encode(np.asarray(float(value)), "rn")))

        factor = number(alpha)
        if beta == 1 and c is not None and c.ndim != 1 and out != self.type:  # rule 2
            x, factor = self.with_codes(x * factor).rounded(out).to(x.dtype), 1.0
        if c is None or beta == 0:
            return self.with_codes(x * factor)
        one, other = (x, factor), (c.to(x.dtype), number(beta))
        (y, by), (z, first) = (other, one) if self.slices > 1 else (one, other)
        return self.with_codes(_fused(y, by, z * first if first != 1 else z))

    def rounded(self, to: str) -> Any:
        """Round to the type of an output (rule 3)."""
        torch, x, wanted = pytorch(), self.codes, dtype_for(to)
        if to == self.type:
            return x
        if self.type not in ("f32", "f16") or to in ("f64", "s32"):
            raise OperandError(f"{self.instruction}: D is {self.type}, which is not rounded to {to}")
        if to in ("f16", "bf16", "f32"):
            return x.to(wanted)
        fmt = floating(to)  # PyTorch makes NaN of what is too large, PTX the largest number
        most = float(fmt.decode(fmt.max_code))
        return torch.where(x.isnan(), torch.nan, x.clamp(-most, most)).to(wanted)


def _fused(x: Any, factor: float, z: Any) -> Any:
    """Compute x factor + z, rounded once: exactly in two numbers of f64, rounded to odd, and then to f32."""
    torch = pytorch()
    if factor == 1:
        return x + z
    if x.dtype != torch.float32:
        raise UnsupportedError(f"alpha and beta of sums of {x.dtype} on a GPU; expected 1, or sums of float32")
    product, addend = x.double() * factor, z.double()
    total = product + addend
    part = total - product
    lost = (product - (total - part)) + (addend - part)  # by the addition (Knuth)
    whole = total.view(torch.int64)
    away = torch.where((lost > 0) == (total > 0), 1, -1)
    odd = torch.where((lost != 0) & (whole % 2 == 0) & total.isfinite(), whole + away, whole)
    return odd.view(torch.float64).float()
