"""Recipes and the units that they name: the parameters of an instruction's arithmetic.

A `Recipe` defines how one element of D is computed from a row of A, a column of B and an element of C; for a sparse
instruction, from the stored elements of the row and the matching ones of the column. What its numbers mean
is specified in `reference`; the symbols F, L and Z are those of the literature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..._arguments import check_choice
from ..._records import Shown
from ..._rounding import check_rounding


@dataclass(frozen=True, kw_only=True)
class FusedDotAdd(Shown):
    """Several products and an accumulator, aligned, truncated, added exactly and rounded once.

    Attributes
    ----------
    fraction_bits : int
        F, the fraction bits that every addend keeps below the largest exponent.
    products : int
        L, the products of one step; a longer k takes several steps, each from the rounded result of the one before.
    floor : int
        Z, the least value of the largest exponent.
    result_bits : int
        Fraction bits of the result: 23 for f32, 13 for the 13-bit results of some fp8 units, 10 for f16.
    rounding : {"rz", "rn"}
        Of the result: toward zero, or to nearest even.
    """

    fraction_bits: int
    products: int
    floor: int
    result_bits: int
    rounding: Literal["rz", "rn"]

    def __post_init__(self) -> None:
        check_choice("rounding", self.rounding, ("rz", "rn"))


@dataclass(frozen=True, kw_only=True)
class GroupedDotAdd(Shown):
    """Groups of scaled products, each summed exactly before it is aligned; and an accumulator.

    Attributes
    ----------
    group : int
        Products in a group, whatever the block that shares a scale.
    fraction_bits, floor, result_bits, rounding
        As of `FusedDotAdd`.
    """

    group: int
    fraction_bits: int
    floor: int
    result_bits: int
    rounding: Literal["rz", "rn"]

    def __post_init__(self) -> None:
        check_choice("rounding", self.rounding, ("rz", "rn"))


@dataclass(frozen=True, kw_only=True)
class FmaChain(Shown):
    """IEEE fused multiply-adds in the format of D, f32 or f64, k ascending, beginning with C.

    Attributes
    ----------
    rounding : {"rn", "rz", "rm", "rp"}
    """

    rounding: Literal["rn", "rz", "rm", "rp"] = "rn"

    def __post_init__(self) -> None:
        check_rounding(self.rounding)


@dataclass(frozen=True, kw_only=True)
class FloatChains(Shown):
    """Chains of IEEE fused multiply-adds in f32, k ascending, whose results are added to C one after the other.

    Attributes
    ----------
    length : int
        Products in one chain.
    seed : {"zero", "product"}
        What a chain begins with: +0, or its first product.
    """

    length: int
    seed: Literal["zero", "product"]

    def __post_init__(self) -> None:
        check_choice("seed", self.seed, ("zero", "product"))


@dataclass(frozen=True, kw_only=True)
class IntegerSum(Shown):
    """Exact sum of integer products and C, brought to 32 bits once at the end.

    Attributes
    ----------
    saturate : bool
        Clamp to the range of s32; otherwise wrap.
    """

    saturate: bool


@dataclass(frozen=True, kw_only=True)
class Popcount(Shown):
    """Number of ones in the bitwise combination of A and B, plus C, wrapping.

    Attributes
    ----------
    operation : {"xor", "and"}
    """

    operation: Literal["xor", "and"]

    def __post_init__(self) -> None:
        check_choice("operation", self.operation, ("xor", "and"))


Unit = FusedDotAdd | GroupedDotAdd | FmaChain | FloatChains | IntegerSum | Popcount


@dataclass(frozen=True, kw_only=True)
class Recipe(Shown):
    """The arithmetic of an instruction on a target.

    Attributes
    ----------
    d, a, b, c : str
        Formats of the operands.
    unit : Unit
    convert : str, optional
        Format that the elements of A and B are converted to first, exactly.
    order : {"ascending", "halves"}
        Which products make up a fused step: runs of consecutive k, or first those with k mod 4 in {0, 1} and then those
        with k mod 4 in {2, 3}.
    accumulate : {"within", "after"}
        C is an addend of the first step; or the steps begin at +0 and C is added to their result, to nearest even.
    scale : str, optional
        Format of the block scales of A and B.
    """

    d: str
    a: str
    b: str
    c: str
    unit: Unit
    convert: str | None = None
    order: Literal["ascending", "halves"] = "ascending"
    accumulate: Literal["within", "after"] = "within"
    scale: str | None = None

    def __post_init__(self) -> None:
        check_choice("order", self.order, ("ascending", "halves"))
        check_choice("accumulate", self.accumulate, ("within", "after"))


def steps(order: str, products: int, k: int) -> Sequence[Sequence[int]]:
    """Assign products to the steps of a fused dot-add.

    Examples
    --------
    >>> steps("ascending", 4, 8)
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    >>> steps("halves", 16, 8)
    [[0, 1, 4, 5], [2, 3, 6, 7]]
    """
    check_choice("order", order, ("ascending", "halves"))
    runs = [list(range(k))]
    if order == "halves":
        runs = [[i for i in range(k) if i % 4 in half] for half in ((0, 1), (2, 3))]
    return [run[i : i + products] for run in runs for i in range(0, len(run), products)]
