"""Batches of warps: the parts of their operands, few enough at a time that a chunk's temporaries stay in cache."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import Array
from ..errors import OperandError
from ..isa import Instruction

# Elements of D in one chunk: enough to hide the cost of a NumPy call, few enough to stay in cache.
CHUNK = 1 << 15
# The native engine keeps to its cache by itself: few enough to share among threads, and to stop soon if interrupted.
NATIVE_CHUNK = 1 << 18


def broadcast(instruction: Instruction, operands: dict[str, Array]) -> tuple[int, ...]:
    """Return the broadcast shape of the leading dimensions."""
    own = {x.shape[:-2] if name in "ABC" else x.shape[:-1] for name, x in operands.items()}
    if len(own) == 1:  # as it mostly is; NumPy takes a while to find that
        return own.pop()
    try:
        return np.broadcast_shapes(*own)
    except ValueError:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in operands.items())
        raise OperandError(f"{instruction}: batches do not broadcast: {shapes}") from None


def reader(operand: Array, own: int, batch: tuple[int, ...]) -> Callable[[slice], Array]:
    """Return a function from a range of warps, counted through the batch, to their part of an operand.

    `own` is the number of dimensions that one warp's part has. No more than that part is copied.
    """
    part = operand.shape[operand.ndim - own :]
    if operand.flags.c_contiguous and operand.shape == (*batch, *part):
        flat = operand.reshape(-1, *part)
        return lambda chunk: flat[chunk]
    full = np.broadcast_to(operand, (*batch, *part))
    if len(batch) <= 1:
        one = full if batch else full[None]
        return lambda chunk: one[chunk]

    def read(chunk: slice) -> Array:
        return full[np.unravel_index(np.arange(chunk.start, chunk.stop), batch)]

    return read


def cut(warps: int, outputs: int, most: int) -> list[slice]:
    """Cut a batch of warps into ranges with at most `most` outputs each, of at least one warp."""
    size = max(1, most // outputs)
    if 0 < warps <= size:
        return [slice(0, warps)]
    return [slice(start, min(start + size, warps)) for start in range(0, warps, size)]


def in_chunks(function: Callable[[Array], Array], warps: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Apply a function to warps, few enough at a time that its temporaries stay in cache; to a few at once."""
    chunks = cut(len(warps), math.prod(shape), CHUNK)
    if len(chunks) == 1:
        return function(warps).astype(dtype, copy=False)
    out = np.empty((len(warps), *shape), dtype)
    for chunk in chunks:
        out[chunk] = function(warps[chunk])
    return out
