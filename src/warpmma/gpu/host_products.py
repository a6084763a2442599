"""Products of the host's arrays on a GPU: codes are copied there, and the result back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._arrays import Array
from ..errors import UnsupportedError
from ..formats import FORMATS
from .cuda_driver import CudaGpu
from .product_kernel import ProductForm, ProductKernel, kernel_of
from .product_launch import NOTHING, Matrices, ProductLaunch


def product_of_codes(
    gpu: CudaGpu, form: ProductForm, a: Array, b: Array, c: Array, *, slices: Sequence[int], promote: int = 0,
    chosen: Array | None = None, scale_a: Array | None = None, scale_b: Array | None = None,
    alpha: Array | None = None, out: Array | None = None, kernel: ProductKernel | None = None,
) -> Array:  # fmt: skip
    """Compute chains of one instruction over batches of matrices, as `arithmetic.product` does.

    Parameters
    ----------
    gpu : CudaGpu
    form : ProductForm
    a, b, c : ndarray of unsigned int
        Codes: A `[batch, m, k]`, of a sparse A what is stored, B `[batch, k, n]`, C `[batch, m, n]`. A batch of 1 is
        for all of C's.
    slices : sequence of int
        Where slices of k begin, and where the last one ends, of all of k and in whole instructions.
    promote : int
        After how much of k in a slice a chain ends; 0 for never.
    chosen : ndarray of uint8, optional
        Of a sparse A: which row of its instruction each element meets, `[batch, m, k]`; each of a group another one of
        the group's.
    scale_a, scale_b : ndarray of uint8, optional
        Codes of block scales, `[batch, m, blocks]` and `[batch, blocks, n]`.
    alpha : ndarray of float32, optional
        Factors of D, `[batch]`.
    out : ndarray, optional
        Where to write the result, contiguous.
    kernel : ProductKernel, optional
        By which, instead of that of the form.

    Returns
    -------
    ndarray of unsigned int
        Codes of the result, `[batch, m, n]`.

    Raises
    ------
    UnsupportedError
        What the GPU's driver refuses, such as more than its memory; a sparse A two of whose elements meet one row.
    """
    batch, m, n = c.shape
    if chosen is not None:
        _check_chosen(form, chosen)
    if out is None:
        out = np.empty(c.shape, FORMATS[form.result].code_dtype)
    with gpu.copies() as copies:

        def there(x: Array | None) -> Matrices:
            if x is None:
                return NOTHING
            if x.strides[0] == 0:  # one matrix for all
                x = x[:1]
            rows, columns = x.shape[1:]
            return Matrices(copies.put(x), (rows * columns if len(x) > 1 else 0, columns, 1))

        to = copies.empty(out.nbytes)
        gpu.launch(
            ProductLaunch(
                kernel=kernel or kernel_of(form), shape=(batch, m, n, a.shape[2]), a=there(a), b=there(b), c=there(c),
                d=to, chosen=there(chosen), scale_a=there(scale_a), scale_b=there(scale_b), slices=slices,
                promote=promote,
                alpha=(0, 0) if alpha is None else (copies.put(np.asarray(alpha, np.float32)), 1),
                blocks=0 if scale_a is None else scale_a.shape[2],
            )
        )  # fmt: skip
        copies.get(to, out)
    return out


def _check_chosen(form: ProductForm, chosen: Array) -> None:
    """Raise `UnsupportedError` unless the elements of each group meet different rows of it."""
    kept = form.width // 2
    groups = np.sort(chosen.reshape(*chosen.shape[:-1], -1, kept), axis=-1)
    own = np.arange(groups.shape[-2]) % (form.k // kept)  # of an instruction
    if (groups[..., 1:] == groups[..., :-1]).any() or (groups // form.width != own[:, None]).any():
        raise UnsupportedError(
            "engine='cuda': two stored elements of A meet one row of B, or one of another group; use engine='native'"
        )
