"""Arrays that tests compare."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Rng = np.random.Generator
same = partial(np.testing.assert_array_equal, strict=True)  # shapes and dtypes too


def field_of_records(x: Array) -> Array:
    """Let elements lie in records, and so where elements of their size should not."""
    records = np.zeros(x.shape, [("before", "u1"), ("x", x.dtype)])
    records["x"] = x
    return records["x"]


VIEWS: dict[str, Callable[[Array], Array]] = {
    "transposed": np.asfortranarray,
    "strided": lambda x: np.repeat(np.repeat(x, 2, axis=-1), 3, axis=0)[::3, ..., ::2],
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder("S")) if x.dtype.kind in "fiu" else x,
    "reversed": lambda x: np.flip(np.flip(x).copy()),
    "read-only": lambda x: np.broadcast_to(x, x.shape),
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), "u1")[1:].view(x.dtype).reshape(x.shape),
    "field": field_of_records,
}
"""The same elements of an array of two dimensions or more, and other ways for them to lie in memory."""
