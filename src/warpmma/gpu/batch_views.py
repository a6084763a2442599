"""Views of arrays on a GPU, broadcast to a batch, and runs of a batch in which each array has one stride."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .device_arrays import GpuTensor


class BatchView(NamedTuple):
    """An address, the size of an element in bytes, and strides in elements: of the batch, and of what is in it."""

    address: int
    size: int
    batch: tuple[int, ...]
    own: tuple[int, ...]


def view(x: GpuTensor | None, batch: tuple[int, ...], own: int = 2) -> BatchView:
    """Broadcast an array, whose last `own` dimensions are not of the batch, to a batch; what is absent lies at 0."""
    if x is None:
        return BatchView(0, 0, (0,) * len(batch), (0,) * own)
    missing = len(batch) + own - len(x.shape)
    strides = (0,) * missing + tuple(0 if n == 1 else s for n, s in zip(x.shape, x.strides, strict=True))
    return BatchView(x.address, x.dtype.itemsize, strides[: len(batch)], strides[len(batch) :])


def runs(batch: tuple[int, ...], views: Sequence[BatchView]) -> Iterator[tuple[int, list[BatchView]]]:
    """Cut a batch into runs in which every array has one stride: their lengths, and the arrays as they begin."""
    found: list[tuple[int, tuple[int, ...]]] = []  # the innermost first
    for i in reversed([i for i, n in enumerate(batch) if n != 1]):
        strides = tuple(x.batch[i] for x in views)
        if found and strides == tuple(s * found[-1][0] for s in found[-1][1]):
            found[-1] = found[-1][0] * batch[i], found[-1][1]
        else:
            found.append((batch[i], strides))
    (size, strides), *outer = found or [(1, (0,) * len(views))]
    for place in np.ndindex(*(n for n, _ in outer)):
        offsets = [sum(i * of[v] for i, (_, of) in zip(place, outer, strict=True)) for v in range(len(views))]
        yield (
            size,
            [
                x._replace(address=x.address + offset * x.size, batch=(stride,))
                for x, offset, stride in zip(views, offsets, strides, strict=True)
            ],
        )
