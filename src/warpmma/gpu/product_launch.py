"""The launch of a product's kernel: the structure that it takes, and its grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._records import Shown
from ..errors import UnsupportedError
from .gathered import GATHERED, TARGET, GatheredProduct
from .product_kernel import MOST_SLICES, THREADS, ProductKernel

_MOST_LENGTH = 1 << 30
_STRIDES = np.dtype([("batch", "<i8"), ("outer", "<i8"), ("along", "<i8")])
_POINTERS = ("a", "b", "c", "chosen", "scale_a", "scale_b", "alpha", "other_alpha", "d")
_MATRICES = ("of_a", "of_b", "of_c", "of_chosen", "of_scale_a", "of_scale_b")
_NUMBERS = ("m", "n", "k", "blocks", "instructions", "promote", "slices")


def _argument(of_factors: np.dtype[np.void], *more: tuple[str, object]) -> np.dtype[np.void]:
    of = {"of_a": of_factors, "of_b": of_factors}
    return np.dtype(
        [
            *((name, "<u8") for name in _POINTERS), *((name, of.get(name, _STRIDES)) for name in _MATRICES),
            ("of_alpha", "<i8"), ("of_other_alpha", "<i8"), ("of_index", "<i8"),
            *((name, "<i4") for name in _NUMBERS), ("lengths", "<i4", MOST_SLICES), *more,
        ],
        align=True,
    )  # fmt: skip


ARGUMENT = _argument(_STRIDES)
"""`struct Product` of `kernels/product.cuh`."""
_OF_GATHERED = _argument(GATHERED, ("bias", "<u8"), ("of_d", TARGET))


class Matrices(NamedTuple):
    """Matrices of codes on a device: an address, and strides in elements of the batch, of rows and of columns."""

    address: int
    strides: tuple[int, int, int]


NOTHING = Matrices(0, (0, 0, 0))
"""An operand that is not given."""


@dataclass(frozen=True, kw_only=True)
class ProductLaunch(Shown):
    """A launch of a kernel.

    Attributes
    ----------
    kernel : ProductKernel
    shape : (int, int, int, int)
        Batch, m, n, and k: of a sparse A how many elements are stored.
    a, b, c, chosen, scale_a, scale_b : Matrices
        The strides of B's scales are those of blocks and of columns, as of B those of k and of columns.
    d : int
        Address of D, contiguous.
    alpha, other_alpha : (int, int)
        Addresses and strides of the factors, and of others by which they are multiplied.
    index : int
        Of a sparse A whose indices are read in place: bytes between the two of a group. The strides of `chosen` are
        those of rows and groups then, in bytes.
    slices : sequence of int
        Where slices of k begin, and where the last one ends, in products of all of k.
    promote : int
        After how many products in a slice a chain ends; 0 for never.
    blocks : int
        Block scales of a row.
    gathered : GatheredProduct, optional
        Of an implicit product, in place of `a` and `b`: what is gathered, and where D lies.
    """

    kernel: ProductKernel
    shape: tuple[int, int, int, int]
    a: Matrices = NOTHING
    b: Matrices = NOTHING
    c: Matrices = NOTHING
    d: int
    slices: Sequence[int]
    promote: int = 0
    chosen: Matrices = NOTHING
    scale_a: Matrices = NOTHING
    scale_b: Matrices = NOTHING
    alpha: tuple[int, int] = (0, 0)
    other_alpha: tuple[int, int] = (0, 0)
    index: int = 0
    blocks: int = 0
    gathered: GatheredProduct | None = None

    threads = THREADS

    @property
    def grid(self) -> int:
        """Blocks, in one dimension."""
        batch, m, n, _ = self.shape
        return self.kernel.blocks(batch, m, n)

    def argument(self) -> bytes:
        """Return the structure that the kernel takes."""
        each = self.kernel.instruction
        lengths = [-(-(stop - start) // each) for start, stop in pairwise(self.slices)]
        if max(self.shape[1:]) >= _MOST_LENGTH:
            raise UnsupportedError(f"m, n and k are {self.shape[1:]}; expected less than {_MOST_LENGTH:,} on a GPU")
        if len(lengths) > MOST_SLICES:
            raise UnsupportedError(f"a product on a GPU takes at most {MOST_SLICES} slices of k; got {len(lengths)}")
        given = np.zeros((), ARGUMENT if self.gathered is None else _OF_GATHERED)
        if (of := self.gathered) is not None:
            for name, factor in (("a", of.a), ("b", of.b)):
                given[name], given[f"of_{name}"] = factor.address, factor.argument()
            given["bias"], given["of_d"] = of.bias, of.d
        for name in ("a", "c", "chosen", "scale_a") if of is None else ("c",):
            given[name], (batch, rows, columns) = getattr(self, name)
            given[f"of_{name}"] = batch, rows, columns
        for name in ("b", "scale_b") if of is None else ():
            given[name], (batch, rows, columns) = getattr(self, name)
            given[f"of_{name}"] = batch, columns, rows
        given["d"], (given["alpha"], given["of_alpha"]) = self.d, self.alpha
        (given["other_alpha"], given["of_other_alpha"]), given["of_index"] = self.other_alpha, self.index
        _, given["m"], given["n"], given["k"] = self.shape
        given["blocks"], given["instructions"] = self.blocks, sum(lengths)
        given["promote"] = self.promote // each or max(1, *lengths)
        given["slices"] = len(lengths)
        given["lengths"][: len(lengths)] = lengths
        return given.tobytes()
