"""Products of groups whose ends lie on the GPU: nothing waits for them, the kernel reads them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from .._records import Shown
from .kernel_text import source
from .product_kernel import THREADS, ProductForm, kernel_of
from .product_launch import ProductLaunch
from .text_kernel import TextKernel

_GROUPS = np.dtype([("ends", "<u8"), ("groups", "<i4"), ("along_k", "<i4")])


@cache
def grouped_kernel(form: ProductForm) -> TextKernel:
    """Return the kernel of a form for groups."""
    kernel = kernel_of(form)
    text = "\n".join(["#define GROUPED", kernel.text, source("groups.cuh")])
    return TextKernel(text=text, name=kernel.name)


@dataclass(frozen=True, kw_only=True)
class GroupedLaunch(Shown):
    """A launch over groups.

    Attributes
    ----------
    product : ProductLaunch
        Of all rows of A, with the first group's B and the stride of the others as that of a batch; or of all of k.
    form : ProductForm
    ends : int
        Address of where each group ends, as int32.
    groups : int
    along_k : bool
        Whether groups are parts of k, and D is a matrix for each; or rows, and D has all.
    """

    product: ProductLaunch
    form: ProductForm
    ends: int
    groups: int
    along_k: bool

    threads = THREADS

    @property
    def kernel(self) -> TextKernel:
        """The kernel."""
        return grouped_kernel(self.form)

    @property
    def grid(self) -> int:
        """Blocks, in one dimension: enough for any ends."""
        _, m, n, _ = self.product.shape
        tile = self.product.kernel
        rows, columns = -(-m // tile.rows), -(-n // tile.columns)
        return self.groups * rows * columns if self.along_k else (rows + self.groups + 1) * columns

    def argument(self) -> bytes:
        """Return the structure that the kernel takes, `Groups` of `kernels/groups.cuh`."""
        given = np.zeros((), _GROUPS)
        given["ends"], given["groups"], given["along_k"] = self.ends, self.groups, self.along_k
        return self.product.argument() + given.tobytes()
