"""Sums of a product's chains, and the rules of its epilogue.

1. With C, or a factor alpha, D = fma(alpha, sum, beta x C) in the type of the sums, where beta x C is rounded first; so
   an alpha of 1 is an addition. Where k is split, it is fma(beta, C, alpha x sum), as the kernel does that adds slices.
   Where beta is 0, C is not read. alpha and beta are rounded to the type of the sums.
2. Where beta is 1, alpha x sum is rounded to the type of the output before C is added; but if C is a vector, the bias
   of `linear`, that is added to the sum itself.
3. D is rounded once to the type of the output, to nearest even, as PTX `cvt` does.

Source: PyTorch 2.11 on an H200, cuBLAS of CUDA 13.0, bit for bit (`python -m lab.record.torch_rules`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from .._arrays import Array
from ..arithmetic import runs_elements
from ..errors import OperandError
from ..formats import FORMATS, floating
from ..operations import operation
from ..products import ChainInstruction, ProductEngine


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums:
    """The sums of a product's chains."""

    codes: Any  # `[..., m, n]`
    type: str  # PTX type of the sums: f32, f16, f64 or s32
    record: ChainInstruction  # what computed them
    promote_every: int  # after how much of k sums were promoted; 0 for never
    slices: int  # of k
    engine: ProductEngine  # never "auto"

    def with_codes(self, codes: Any) -> Self:
        """Return the same with other codes."""
        return replace(self, codes=codes)

    @cached_property
    def instruction(self) -> str:
        """Mnemonic."""
        return str(self.record)

    def multiplied(self, factor: Array) -> Sums:
        """Multiply by numbers of f32."""
        return self.with_codes(row_of("mul.rn.f32", self.engine, self.codes, _f32_codes(factor)))

    def added(self, addend: Array) -> Sums:
        """Add numbers of f32."""
        return self.with_codes(row_of("add.rn.f32", self.engine, self.codes, _f32_codes(addend)))

    def scaled_and_added(self, alpha: float, beta: float, c: Array | None, out: str) -> Sums:
        """Return alpha x sums + beta x C (rules 1 and 2)."""
        if (alpha == 1 and (c is None or beta == 0)) or self.codes.size == 0:
            return self
        if self.type == "s32":
            raise OperandError(f"{self.instruction}: sums of integers are not scaled")
        fmt, name = floating(self.type), f"rn.{self.type}"

        def number(value: float) -> Array:
            return fmt.encode(np.asarray(float(value)), "rn")

        codes, factor = self.codes, number(alpha)
        if beta == 1 and c is not None and c.ndim != 1 and out != self.type:  # rule 2
            product = self.with_codes(row_of(f"mul.{name}", self.engine, codes, factor))
            codes, factor = fmt.codes(product.rounded(out).astype(fmt.dtype)), number(1)
        if c is None or beta == 0:
            codes = row_of(f"mul.{name}", self.engine, codes, factor)
        else:
            one, other = (codes, factor), (np.broadcast_to(fmt.codes(c.astype(fmt.dtype)), codes.shape), number(beta))
            fused, rounded_first = (other, one) if self.slices > 1 else (one, other)
            addend = row_of(f"mul.{name}", self.engine, *rounded_first)  # of a factor of 1 exact
            codes = row_of(f"fma.{name}", self.engine, *fused, addend)
        return self.with_codes(codes)

    def rounded(self, to: str) -> Array:
        """Round to the type of an output (rule 3)."""
        fmt, wanted = FORMATS[self.type], FORMATS[to]
        if to == self.type:
            return fmt.array(self.codes)
        if self.type == "f32" and to in ("f16", "bf16"):
            return wanted.array(row_of(f"cvt.rn.{to}.f32", self.engine, self.codes))
        if self.type not in ("f32", "f16") or to in ("f64", "s32"):
            raise OperandError(f"{self.instruction}: D is {self.type}, which is not rounded to {to}")
        return wanted.array(floating(to).encode(floating(self.type).decode(self.codes), "rn"))


def _f32_codes(x: Array) -> Array:
    return np.ascontiguousarray(x, np.float32).view(np.uint32)


def row_of(mnemonic: str, engine: ProductEngine, *x: Array) -> Array:
    """Compute an operation on codes, which broadcast."""
    row = operation(mnemonic)
    if engine == "native" and runs_elements() and row.native is not None:
        return row.native(*x)[0]
    return row.compute(*np.broadcast_arrays(*x))[0]
