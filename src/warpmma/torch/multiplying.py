"""Products of arrays as a GPU's kernels compute them, and the rules of their epilogues.

1. Sums are what `warpmma.matmul` gives for the chosen instruction, from +0. A k that is split, or promoted, is added in
   f32 as `warpmma.matmul` says.
2. f32 is multiplied as the option `float32` says: `products.float32` has the rules. Libraries round to tf32.
3. With C, or a factor alpha, D = fma(alpha, sum, beta x C) in the type of the sums, where beta x C is rounded first; so
   an alpha of 1 is an addition. Where k is split, it is fma(beta, C, alpha x sum), as the kernel does that adds slices.
   Where beta is 0, C is not read. alpha and beta are rounded to the type of the sums.
4. Where beta is 1, alpha x sum is rounded to the type of the output before C is added; but if C is a vector, the bias
   of `linear`, that is added to the sum itself.
5. D is rounded once to the type of the output, to nearest even, as PTX `cvt` does.

Source of rules 2 to 5: PyTorch 2.11 on an H200, cuBLAS of CUDA 13.0, bit for bit (`python -m lab.record.torch_rules`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._arrays import Array
from ..arithmetic import Resolved, resolve, runs_elements
from ..errors import OperandError
from ..formats import FORMATS, floating
from ..operations import operation
from ..products import ChainInstruction, FloatFma, boundaries, matmul
from .settings import ProductSettings, chosen, promoted

_TILE = 512  # above which matmul has more than one task


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums:
    """The sums of a product's chains."""

    codes: Array  # `[..., m, n]`
    type: str  # PTX type of the sums: f32, f16, f64 or s32
    record: ChainInstruction  # what computed them
    promote_every: int  # after how much of k sums were promoted; 0 for never
    slices: int  # of k
    engine: Resolved

    def with_codes(self, codes: Array) -> Sums:
        """Return the same with other codes."""
        return replace(self, codes=codes)

    @cached_property
    def instruction(self) -> str:
        """Mnemonic."""
        return str(self.record)


def summed(
    a: Array, b: Array, types: tuple[str, str], given: ProductSettings, *, exact_sums: bool = False,
    scales: tuple[Array, Array] | None = None, stype: str = "",
) -> Sums:  # fmt: skip
    """Multiply `[..., m, k]` by `[..., k, n]` of some PTX types (rules 1 and 2).

    With `exact_sums` narrow sums of 8-bit numbers are promoted; `scales` are block scales of the format `stype`,
    `[m, S]` and `[S, n]`.
    """
    record, engine = chosen(*types, given, stype), resolve(given.engine)
    named = None if isinstance(record, FloatFma) else record
    every = promoted(record, given, exact_sums=exact_sums)
    large = max(a.shape[-2], b.shape[-1]) > _TILE or math.prod(a.shape[:-2]) > 1
    of_a, of_b = scales or (None, None)
    split = given.split_k if record.d_type == "f32" else 1
    slices = len(boundaries(a.shape[-1], record.k, split)) - 1
    codes = matmul(
        a, b, instruction=named, float32=given.float32, target=given.target, split_k=split,
        promote_every=every or None, scale_a=of_a, scale_b=of_b, engine=engine,
        threads=given.threads if large else None,
    ).view(record.format("D").code_dtype)  # fmt: skip
    return Sums(codes=codes, type=record.d_type, record=record, promote_every=every, slices=slices, engine=engine)


def row_of(mnemonic: str, engine: Resolved, *x: Array) -> Array:
    """Compute an operation on codes, which broadcast."""
    row = operation(mnemonic)
    if engine == "native" and runs_elements() and row.native is not None:
        return row.native(*x)[0]
    return row.compute(*np.broadcast_arrays(*x))[0]


def scaled_and_added(sums: Sums, alpha: float, beta: float, c: Array | None, out: str) -> Sums:
    """Return alpha x sums + beta x C (rules 3 and 4)."""
    if (alpha == 1 and (c is None or beta == 0)) or sums.codes.size == 0:
        return sums
    if sums.type == "s32":
        raise OperandError(f"{sums.instruction}: sums of integers are not scaled")
    fmt, name = floating(sums.type), f"rn.{sums.type}"

    def number(value: float) -> Array:
        return fmt.encode(np.asarray(float(value)), "rn")

    codes, factor = sums.codes, number(alpha)
    if beta == 1 and c is not None and c.ndim != 1 and out != sums.type:  # rule 4
        product = sums.with_codes(row_of(f"mul.{name}", sums.engine, codes, factor))
        codes, factor = fmt.codes(rounded(product, out).astype(fmt.dtype)), number(1)
    if c is None or beta == 0:
        codes = row_of(f"mul.{name}", sums.engine, codes, factor)
    else:
        one, other = (codes, factor), (np.broadcast_to(fmt.codes(c.astype(fmt.dtype)), codes.shape), number(beta))
        fused, rounded_first = (other, one) if sums.slices > 1 else (one, other)
        addend = row_of(f"mul.{name}", sums.engine, *rounded_first)  # exact where the factor is 1, as is then the fma
        codes = row_of(f"fma.{name}", sums.engine, *fused, addend)
    return sums.with_codes(codes)


def rounded(sums: Sums, to: str) -> Array:
    """Round to the type of an output (rule 5)."""
    fmt, wanted = FORMATS[sums.type], FORMATS[to]
    if to == sums.type:
        return fmt.array(sums.codes)
    if sums.type == "f32" and to in ("f16", "bf16"):
        return wanted.array(row_of(f"cvt.rn.{to}.f32", sums.engine, sums.codes))
    if sums.type not in ("f32", "f16") or to in ("f64", "s32"):
        raise OperandError(f"{sums.instruction}: D is {sums.type}, which is not rounded to {to}")
    return wanted.array(floating(to).encode(floating(sums.type).decode(sums.codes), "rn"))
