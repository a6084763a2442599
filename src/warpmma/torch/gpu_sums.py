"""Sums of products that lie on a GPU, and the rules of their epilogues in PyTorch's operations there.

The rules are those of `sums`. Each operation of PyTorch's that is taken rounds once, to nearest even, as PTX does:
products and sums of f32 and f64, conversions to f16 and bf16, which are instructions of the GPU. A fused multiply-add
is not among them, so it has a kernel, `gpu.scale_and_add`, which writes into the sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import OperandError
from ..formats import floating
from ..gpu import scale_and_add
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
        x = self.codes.contiguous()
        if c is None or beta == 0:
            scale_and_add(x, None, alpha, 0)
        elif beta == 1 and c.ndim != 1 and out != self.type:  # rule 2
            scale_and_add(x, None, alpha, 0)
            x = self.with_codes(x).rounded(out).to(x.dtype)
            scale_and_add(x, c, 1, 1)
        else:
            scale_and_add(x, c, alpha, beta, fuse_c=self.slices > 1)
        return self.with_codes(x)

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
