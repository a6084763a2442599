"""The launch of a product's kernel: the structure that it takes, and its grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._records import Shown
from ..errors import UnsupportedError
from .product_kernel import MOST_SLICES, THREADS, ProductKernel

_MOST_LENGTH = 1 << 30
_STRIDES = np.dtype([("batch", "<i8"), ("outer", "<i8"), ("along", "<i8")])
_POINTERS = ("a", "b", "c", "chosen", "scale_a", "scale_b", "alpha", "other_alpha", "d")
_MATRICES = ("of_a", "of_b", "of_c", "of_chosen", "of_scale_a", "of_scale_b")
_NUMBERS = ("m", "n", "k", "blocks", "instructions", "promote", "slices")

ARGUMENT = np.dtype(
    [
        *((name, "<u8") for name in _POINTERS), *((name, _STRIDES) for name in _MATRICES),
        ("of_alpha", "<i8"), ("of_other_alpha", "<i8"), ("of_index", "<i8"),
        *((name, "<i4") for name in _NUMBERS), ("lengths", "<i4", MOST_SLICES),
    ],
    align=True,
)  # fmt: skip
"""`struct Product` of `kernels/product.cuh`."""


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
    """

    kernel: ProductKernel
    shape: tuple[int, int, int, int]
    a: Matrices
    b: Matrices
    c: Matrices
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
            raise UnsupportedError(
                f"engine='cuda': m, n and k are {self.shape[1:]}; expected less than {_MOST_LENGTH:,}"
            )
        if len(lengths) > MOST_SLICES:
            raise UnsupportedError(f"engine='cuda' takes at most {MOST_SLICES} slices of k; got {len(lengths)}")
        given = np.zeros((), ARGUMENT)
        for name in ("a", "c", "chosen", "scale_a"):
            given[name], (batch, rows, columns) = getattr(self, name)
            given[f"of_{name}"] = batch, rows, columns
        for name in ("b", "scale_b"):
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
