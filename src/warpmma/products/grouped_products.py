"""Products of groups on a GPU: rows of A, or parts of k, that end where an array on the GPU says.

The host does not read where groups end, so it does not wait; the kernel does. A group of rows is multiplied by its own
matrix B. A group along k is a product of its own, whose chain begins at the group's first element.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..arithmetic import FmaChain
from ..errors import OperandError, UnsupportedError
from ..gpu import NOTHING, GroupedLaunch, Matrices, ProductLaunch, empty_like, gpu, kernel_of, read, stream_of
from .chain import ProductOptions
from .choice import decide, outline
from .gpu_products import form_of
from .results import output_format


def grouped_product_on_gpu(a: Any, b: Any, ends: Any, options: ProductOptions) -> Any:
    """Multiply groups of matrices on a GPU.

    Parameters
    ----------
    a : array on a GPU
        `[m, k]`.
    b : array on a GPU
        `[group, k, n]`, each for the rows of its group; or `[k, n]`, where groups are parts of k.
    ends : array of int32 on a GPU
        `[group]`: where each ends, ascending.
    options : ProductOptions

    Returns
    -------
    array of A's library
        `[m, n]`, with zeros in rows of no group; or `[group, m, n]`.

    Raises
    ------
    OperandError
        Shapes or types that do not go together.
    UnsupportedError
        Slices of parts of k.
    """
    along_k = len(b.shape) == 2
    if len(a.shape) != 2 or len(ends.shape) != 1 or not (along_k or b.shape[0] == ends.shape[0]):
        came = f"A is {tuple(a.shape)}, B {tuple(b.shape)} and ends are {tuple(ends.shape)}"
        raise OperandError(f"{came}; expected [m, k], [group, k, n] or [k, n], and [group]")
    chain = decide(outline(a, "A"), outline(b, "B"), None, options, stored=False)
    record = chain.instruction
    if along_k and chain.partial:
        raise UnsupportedError(
            f"{record}: split_k or promote_every of groups along k, which end where a GPU says; expected ends and "
            "operands on the CPU"
        )
    stream = stream_of(a)
    result = output_format(record, options.epilogue)
    form = form_of(chain, result.name)
    if along_k and isinstance(chain.recipe.unit, FmaChain):
        form = replace(form, k=1)  # a group may have any length
    x, y, places = read(a, "A", stream), read(b, "B", stream), read(ends, "ends", stream)
    if places.dtype != np.int32 or places.strides not in ((1,), (0,)):
        raise OperandError(f"ends are {places.dtype}, {places.strides[0]} apart; expected contiguous int32")
    m, n = x.shape[0], y.shape[-1]
    groups = places.shape[0]
    d = empty_like(a, (groups, m, n) if along_k else (m, n), result)
    (rows, along), (group, *of_b) = x.strides, (0, *y.strides) if along_k else y.strides
    product = ProductLaunch(
        kernel=kernel_of(form), shape=(1, m, n, x.shape[1]), a=Matrices(x.address, (0, rows, along)),
        b=Matrices(y.address, (group, of_b[0], of_b[1])), c=NOTHING, d=read(d, "D", stream).address,
        slices=chain.slices, promote=chain.promote,
    )  # fmt: skip
    what = GroupedLaunch(product=product, form=form, ends=places.address, groups=groups, along_k=along_k)
    gpu(x.device).launch(what, stream)
    return d
