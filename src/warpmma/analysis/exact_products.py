"""The exact results of a product, a tile of D at a time: the operands of `matmul`, multiplied and added exactly.

1. Operands are what the instruction reads: of tf32 the 19 bits that count, of a sparse A what is stored, where it
   stands, of a block-scaled operand the elements times their scales. Each is exactly a float64.
2. The exact result is the sum of all products and C, over all of k, however k is split. Tensor scales multiply
   it unrounded. Of single bits it is the number of ones in A and B, or A xor B.
3. Where an operand is infinite or NaN the exact result is the sum by IEEE 754: NaN, if an addend is, or
   infinity times zero, or infinities of both signs are; else that infinity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Array
from ..arithmetic import Popcount
from ..formats import FORMATS
from ..products import Product
from .fixed_point import DIGIT_BITS, NOTHING, Factor, FixedPoint, exact_product, extent

Float64 = npt.NDArray[np.float64]

_DIGITS = 1 << 22  # of a tile of D, of 8 bytes each


@dataclass(frozen=True, eq=False)
class ExactOperands:
    """Values of the operands of a product, as float64 (rule 1): `[batch, m, k]`, `[batch, k, n]`, `[batch, m, n]`.

    One matrix A or B may be for all of the batch. `factors` are tensor scales, `[batch]` each.
    """

    a: Float64
    b: Float64
    c: Float64
    factors: tuple[Float64, ...] = ()

    @classmethod
    def of(cls, product: Product) -> ExactOperands:
        """Decode the operands of a product."""
        given, chain = product.given, product.chain
        record = chain.instruction
        a, b, c = (_values(name, x) for name, x in zip((record.a_type, record.b_type, record.c_type),
                                                        (given.a, given.b, product.c), strict=True))  # fmt: skip
        if given.chosen is not None:
            stored = record.k // chain.packed
            first = np.arange(a.shape[-1]) // stored * record.k
            dense = np.zeros((*a.shape[:-1], chain.k))
            np.put_along_axis(dense, first + given.chosen.astype(np.intp), a, -1)
            a = dense
        if given.scale_a is not None and given.scale_b is not None:
            name = str(chain.recipe.scale)
            with np.errstate(invalid="ignore"):
                a = a * np.repeat(_values(name, given.scale_a), chain.block, axis=-1)[..., : chain.k]
                b = b * np.repeat(_values(name, given.scale_b), chain.block, axis=-2)[..., : chain.k, :]
        if isinstance(chain.recipe.unit, Popcount) and chain.recipe.unit.operation == "xor":
            a, b = np.concatenate([a, 1 - a], -1), np.concatenate([1 - b, b], -2)
        batch, shape = product.flat[0], product.shape[:-2]
        factors = (np.broadcast_to(x.astype(np.float64), shape).reshape(batch) for x in product.tensor_scales)
        return cls(a, b, c, tuple(factors))

    @cached_property
    def digits(self) -> int:
        """Number of digits of an exact result in `fixed_point`, approximately."""
        found = [extent(_finite(x)) for x in (self.a, self.b, self.c)]
        of_a, of_b, of_c = (0 if x is None else x[1] - x[0] for x in found)
        return 3 + max(of_a + of_b, of_c) // DIGIT_BITS

    def same(self, other: ExactOperands) -> bool:
        """Return True if these are the same numbers, and so the exact results."""
        mine, theirs = ((x.a, x.b, x.c, *x.factors) for x in (self, other))
        return len(mine) == len(theirs) and all(
            np.array_equal(x, y, equal_nan=True) for x, y in zip(mine, theirs, strict=True)
        )


def _values(name: str, codes: Array) -> Float64:
    return FORMATS[name].decode(codes).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class ExactTile:
    """Exact results of some rows of one matrix of D, by its number in the batch.

    `total` is the sum of the finite operands; `special` has NaN and infinities of exact results (rule 3), and 0 where
    they are finite; `magnitude` is the sum of the magnitudes of all addends, to some 12 digits.
    """

    matrix: int
    rows: slice
    total: FixedPoint
    special: Float64
    magnitude: Float64

    @cached_property
    def finite(self) -> npt.NDArray[np.bool_]:
        """Mask of the exact results that are finite."""
        return np.equal(self.special, 0)

    @cached_property
    def leading(self) -> npt.NDArray[np.int64]:
        """Exponents of the leading bits of exact results."""
        return self.total.leading()

    @cached_property
    def expected(self) -> Float64:
        """Exact results, rounded to float64."""
        return np.where(self.finite, self.total.nearest(), self.special)


def exact_tiles(operands: ExactOperands) -> list[tuple[int, slice]]:
    """Cut D into tiles: which matrix of the batch, and which of its rows."""
    batch, m, n = operands.c.shape
    rows = max(1, _DIGITS // operands.digits // max(1, n))
    return [(i, slice(start, min(start + rows, m))) for i in range(batch) for start in range(0, m, rows)]


def exact(operands: ExactOperands) -> Iterator[ExactTile]:
    """Compute the exact results, tile by tile."""
    of_b: tuple[int, Factor] | None = None
    for matrix, rows in exact_tiles(operands):
        a, b = (x[matrix if len(x) > 1 else 0] for x in (operands.a, operands.b))
        a, c = a[rows], operands.c[matrix, rows]
        which = matrix if len(operands.b) > 1 else 0
        if of_b is None or of_b[0] != which:
            of_b = which, Factor(_finite(b))
        total = exact_product(Factor(_finite(a)), of_b[1]).plus(_finite(c))
        special = _special(a, b, c)
        with np.errstate(all="ignore"):
            magnitude = np.abs(a) @ np.abs(b) + np.abs(c)
            for factor in (float(x[matrix]) for x in operands.factors):
                total = total.times(factor if np.isfinite(factor) else 0.0)
                magnitude = magnitude * abs(factor)
                if not np.isfinite(factor):
                    sign = np.where(special != 0, special, np.where(total.signs(), -1.0, total.leading() > NOTHING))
                    special = sign * factor
                elif special.any():
                    special = np.where(special != 0, special * factor, 0.0)
        yield ExactTile(matrix, rows, total, special, magnitude)


def _finite(x: Float64) -> Float64:
    return np.where(np.isfinite(x), x, 0.0)


def _special(a: Float64, b: Float64, c: Float64) -> Float64:
    """Rule 3, by counting addends that are NaN or infinite."""
    if np.isfinite(a).all() and np.isfinite(b).all():
        return np.where(np.isfinite(c), 0.0, c)
    kinds: dict[str, Callable[[Float64], Any]] = {
        "nan": np.isnan, "plus": lambda x: x == np.inf, "minus": lambda x: x == -np.inf, "zero": lambda x: x == 0,
        "positive": lambda x: (x > 0), "negative": lambda x: (x < 0), "any": lambda x: x == x,
    }  # fmt: skip
    of_a, of_b = ({name: test(x).astype(np.float64) for name, test in kinds.items()} for x in (a, b))

    def count(*pairs: tuple[str, str]) -> npt.NDArray[np.bool_]:
        found = sum((of_a[x] @ of_b[y] for x, y in pairs), np.zeros((len(a), b.shape[1])))
        return np.asarray(found > 0)

    ones = {"nan": np.ones_like(a), "other": np.ones_like(b)}
    nan = (of_a["nan"] @ ones["other"] + ones["nan"] @ of_b["nan"]) > 0
    nan |= count(("plus", "zero"), ("minus", "zero"), ("zero", "plus"), ("zero", "minus")) | np.isnan(c)
    plus = count(("plus", "positive"), ("minus", "negative"), ("positive", "plus"), ("negative", "minus"))
    minus = count(("plus", "negative"), ("minus", "positive"), ("positive", "minus"), ("negative", "plus"))
    plus, minus = plus | (c == np.inf), minus | (c == -np.inf)
    return np.where(nan | (plus & minus), np.nan, np.where(plus, np.inf, np.where(minus, -np.inf, 0.0)))
