"""Which rows of A and B meet, in runs of k that fit in cache.

Both passes over a sum of products may cut k anywhere, for a maximum and an exact sum do not care. So however many
outputs there are, what is in flight stays small.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._arrays import Array

# Products in flight: as float64 they take 1 MiB, which second-level caches hold.
_RUN = 1 << 17


def take_rows(b: Array, chosen: Array | None) -> Array:
    """Choose rows of `b`, `[k, ..., n]`, or take all of it.

    `chosen` has the shape `[k of a, ..., 1]`, and what is between broadcasts: all n values of a row go together, which
    costs a fraction of choosing each.
    """
    if chosen is None:
        return b
    between = b.shape[1:-1]
    each = int(np.prod(between))
    index = chosen[..., 0] * each + np.arange(each).reshape(between)
    return b.reshape(-1, b.shape[-1]).take(index, axis=0)


class Pairs:
    """Rows of A and of B that are multiplied in one step, under several aspects (values, exponents).

    Parameters
    ----------
    k : int
        How many rows.
    part : slice or list of int
        Which rows of A; of B too, unless they are chosen.
    a, b : tuple of ndarray
        `[k, ...]`, one array for each aspect; what follows k broadcasts.
    chosen : ndarray of intp, optional
        Which row of B each row of A meets, `[k of a, ..., 1]`; see `take_rows`.
    """

    def __init__(
        self, k: int, part: slice | list[int], a: tuple[Array, ...], b: tuple[Array, ...], chosen: Array | None = None
    ) -> None:
        self._a = tuple(x[part] for x in a)
        self._b = tuple(x[part] for x in b) if chosen is None else b
        self._chosen = None if chosen is None else chosen[part]
        shape = b[0].shape[1:] if chosen is None else np.broadcast_shapes(b[0].shape[1:], chosen.shape[1:])
        outputs = int(np.prod(np.broadcast_shapes(a[0].shape[1:], shape)))
        size = max(1, _RUN // max(1, outputs))
        self._runs = [slice(i, i + size) for i in range(0, k, size)]

    def runs(self, aspect: int) -> Iterator[tuple[Array, Array]]:
        """Yield rows of A and the rows of B that they meet, run by run."""
        a, b = self._a[aspect], self._b[aspect]
        for run in self._runs:
            yield a[run], b[run] if self._chosen is None else take_rows(b, self._chosen[run])
