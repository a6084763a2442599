"""A product before it is computed: everything checked, operands as codes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from .._arrays import Array, as_array
from .._records import Shown
from ..formats import Format
from ..isa import AnyInstruction
from .chain import Chain, Operands
from .choice import Lazy, Multiplicand, decide, quantized, tensor_scales
from .float32 import Float32
from .operands import codes_of_c, codes_of_operands
from .results import alpha_of, output_format


@dataclass(frozen=True, kw_only=True, eq=False)
class Product(Shown):
    """What `matmul` computes from.

    Attributes
    ----------
    chain : Chain
        The instruction, and what is done along k.
    target : str
    shape : tuple of int
        Of D.
    given : Operands
        Codes of A, B, indices and block scales; of their batch, which is flat, one matrix may stand for all.
    c : ndarray of unsigned int
        Codes of C, `[batch, m, n]`.
    tensor_scales : tuple of ndarray of float32
    alpha : ndarray of float64 or None
        Their product, rounded to f32, by which D is multiplied; one for each matrix of the batch.
    epilogue : str or None
    format : FloatFormat or IntegerFormat
        Of the result.
    """

    chain: Chain
    target: str
    shape: tuple[int, ...]
    given: Operands
    c: Array
    tensor_scales: tuple[Array, ...]
    alpha: Array | None
    epilogue: str | None
    format: Format

    @property
    def flat(self) -> tuple[int, int, int]:
        """Shape of D with one dimension for the batch."""
        return math.prod(self.shape[:-2]), self.shape[-2], self.shape[-1]


def prepare(
    a: Multiplicand, b: Multiplicand, c: npt.ArrayLike | None = None, *,
    instruction: str | AnyInstruction | None = None, float32: Float32 | None = None, target: str,
    split_k: int | Sequence[int] = 1, promote_every: int | None = None, epilogue: str | None = None,
    indices: npt.ArrayLike | None = None, scale_a: npt.ArrayLike | Lazy | None = None,
    scale_b: npt.ArrayLike | Lazy | None = None, engine: str = "auto",
) -> Product:  # fmt: skip
    """Check what `matmul` is given, and turn it into codes; parameters and errors are those of `matmul`."""
    a, scale_a, alpha_a = quantized("A", a, scale_a)
    b, scale_b, alpha_b = quantized("B", b, scale_b)
    a, b = (as_array(cast(npt.ArrayLike, x), name) for x, name in ((a, "A"), (b, "B")))
    c = None if c is None else as_array(c, "C")
    record, chain = decide(
        a, b, c, instruction, float32, target, engine, stored=indices is not None, split_k=split_k,
        promote_every=promote_every, epilogue=epilogue,
    )  # fmt: skip
    scales = [cast(npt.ArrayLike | None, x) for x in (scale_a, scale_b)]
    batch, given = codes_of_operands(chain, target, a, b, indices, *scales)
    shape = (*batch, a.shape[-2], b.shape[-1])
    factors = tensor_scales(record, c, batch, alpha_a, alpha_b)
    of_c = np.broadcast_to(codes_of_c(record, c, shape), shape).reshape(math.prod(batch), *shape[-2:])
    return Product(
        chain=chain, target=target, shape=shape, given=given, c=of_c, tensor_scales=tuple(factors),
        alpha=alpha_of(factors, batch), epilogue=epilogue, format=output_format(record, epilogue),
    )  # fmt: skip
