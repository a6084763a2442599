"""Arguments of kernels that Numba compiled: an array is several parameters.

    array = meminfo, parent, elements, bytes of an element, data, shape[0], ..., strides[0], ...

1. All are 64 bits. meminfo and parent are null on a device; strides are bytes.
2. Tuples are their members, one after the other. Numbers are what they are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import OperandError
from ...kernel import Output
from ...machine import DeviceArray


def numba_arguments(*args: Any) -> list[Any]:
    """Lay out arguments of a launch as kernels of Numba take them.

    Parameters
    ----------
    *args : arrays, Output, numbers or tuples of them
        As the function in Python takes them; arrays of NumPy, C-contiguous, or of a device.

    Returns
    -------
    list
        Arguments of `PtxEntry.launch`.

    Raises
    ------
    OperandError
        An array that is not C-contiguous.

    Examples
    --------
    >>> x = np.zeros((3, 5), np.float32)
    >>> [a for a in numba_arguments(x, 2.5) if a is not x]
    [None, None, 15, 4, 3, 5, 20, 4, 2.5]
    """
    laid_out: list[Any] = []
    for i, x in enumerate(args):
        held = x.array if isinstance(x, Output) else x
        if isinstance(x, tuple):
            laid_out += numba_arguments(*x)
        elif isinstance(held, np.ndarray | DeviceArray):
            if isinstance(held, np.ndarray) and not held.flags.c_contiguous:
                raise OperandError(
                    f"argument {i} is an array of shape {held.shape} that is not C-contiguous; use "
                    "np.ascontiguousarray, and copy back what the kernel has written"
                )
            itemsize = held.dtype.itemsize
            strides = [itemsize * math.prod(held.shape[axis + 1 :]) for axis in range(len(held.shape))]
            data = x.reshape(1) if isinstance(x, np.ndarray) and not x.ndim else x
            laid_out += [None, None, math.prod(held.shape), itemsize, data, *held.shape, *strides]
        else:
            laid_out.append(x)
    return laid_out
