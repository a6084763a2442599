"""A product that is checked and ready to compute: operands as codes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Array, as_array
from .._records import Shown
from ..formats import Format
from .chain import Chain, Operands, ProductOptions
from .choice import decide, tensor_scales
from .operands import Given, Multiplicand, codes_of_c, codes_of_operands
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
    a: Multiplicand, b: Multiplicand, c: npt.ArrayLike | None = None, *, indices: npt.ArrayLike | None = None,
    scale_a: npt.ArrayLike | None = None, scale_b: npt.ArrayLike | None = None, **options: Any,
) -> Product:  # fmt: skip
    """Check the arguments of `matmul` and turn operands into codes; parameters and errors are those of `matmul`."""
    return prepared(Given.of(a, b, c, indices, scale_a, scale_b), ProductOptions(**options))


def prepared(given: Given, options: ProductOptions) -> Product:
    """Check operands and options of a product, once, and turn the operands into codes."""
    a, b = as_array(given.a, "A"), as_array(given.b, "B")
    c = None if given.c is None else as_array(given.c, "C")
    chain = decide(a, b, c, options, stored=given.indices is not None)
    record, target = chain.instruction, options.target
    batch, codes = codes_of_operands(chain, target, a, b, given.indices, given.scale_a, given.scale_b)
    shape = (*batch, a.shape[-2], b.shape[-1])
    factors = tensor_scales(record, c, batch, *given.alphas)
    of_c = np.broadcast_to(codes_of_c(record, c, shape), shape).reshape(math.prod(batch), *shape[-2:])
    return Product(
        chain=chain, target=target, shape=shape, given=codes, c=of_c, tensor_scales=tuple(factors),
        alpha=alpha_of(factors, batch), epilogue=options.epilogue, format=output_format(record, options.epilogue),
    )  # fmt: skip
