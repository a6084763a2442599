"""Arrays in the layout of Numba kernels' arguments."""

from __future__ import annotations

import numpy as np
import pytest

import warpmma as wm
from warpmma.kernel import Output
from warpmma.ptx import numba_arguments


def test_arrays_are_laid_out() -> None:
    x, device = np.zeros((2, 3, 4), np.float16), wm.Device("sm_80")
    y, out, point = device.zeros((5,), np.float64), Output(np.zeros((2, 2), np.int8)), np.zeros((), np.int32)
    found = numba_arguments(x, 7, y, (out, 1.5), point)
    assert found[:11] == [None, None, 24, 2, found[4], 2, 3, 4, 24, 8, 2] and found[4] is x
    assert found[11:19] == [7, None, None, 5, 8, y, 5, 8]
    assert found[19:28] == [None, None, 4, 1, out, 2, 2, 2, 1] and found[28] == 1.5
    assert found[29:33] == [None, None, 1, 4] and np.shares_memory(found[33], point) and len(found) == 34


def test_what_is_not_contiguous_is_refused() -> None:
    """Its strides would not be those of the copy on the device."""
    with pytest.raises(wm.OperandError, match=r"argument 1 is an array of shape \(2, 2\) that is not C-contiguous"):
        numba_arguments(1, np.zeros((4, 4))[::2, ::2])
