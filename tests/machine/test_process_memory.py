"""Memory of the process: which numbers may be addresses."""

from __future__ import annotations

import numpy as np
import pytest

from warpmma.machine import likely_addresses

pytestmark = pytest.mark.quick


def test_likely_addresses() -> None:
    """Small objects may lie low: the heap of an executable with a fixed place begins behind it."""
    small, large = object(), np.zeros(1 << 20)
    there = np.array([id(small), large.ctypes.data, 0, 1000, 1 << 60], np.uint64)
    assert likely_addresses(there).tolist() == [id(small), large.ctypes.data]
