"""The explanation of one element of a product of batches: its matrices are taken out, and explained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._arrays import as_array
from ..products import Choice, FloatFma
from ..scaling import Quantized
from .explaining import explain
from .explanation import Explanation

# What `explain` takes of what `matmul` does, with the dimensions of one matrix.
_MATRICES = {"indices": 3, "scale_a": 2, "scale_b": 2}
_PLAIN = ("target", "float32", "split_k", "promote_every", "epilogue")


def explain_one(
    operands: tuple[Any, Any, Any], options: Mapping[str, Any], choice: Choice, batch: tuple[int, ...], row: int,
    column: int, *, against: str | None = None,
) -> Explanation:  # fmt: skip
    """Explain an element of D.

    Parameters
    ----------
    operands, options
        As `matmul` takes them.
    choice : Choice
        What it does with them.
    batch : tuple of int
        Which matrix of the batch.
    row, column : int
    against : str, optional
        Another target.
    """
    shape = choice.shape[:-2]
    a, b, c = (_matrix(x, shape, batch, 2) for x in operands)
    more = {name: _matrix(x, shape, batch, _MATRICES[name]) for name, x in options.items() if name in _MATRICES}
    more |= {name: options[name] for name in _PLAIN if name in options}
    named = None if isinstance(choice.instruction, FloatFma) else choice.instruction
    return explain(named, a, b, c, row=row, column=column, against=against, **more)


def _matrix(x: Any, shape: tuple[int, ...], batch: tuple[int, ...], dimensions: int) -> Any:
    """Take one matrix of a batch, or of what broadcasts to it."""
    if x is None:
        return None
    if isinstance(x, Quantized):
        scale = x.tensor_scale if x.tensor_scale is None else np.broadcast_to(x.tensor_scale, shape)[batch]
        return replace(
            x, elements=_matrix(x.elements, shape, batch, 2), scales=_matrix(x.scales, shape, batch, 2),
            tensor_scale=scale,
        )  # fmt: skip
    array = as_array(x, "operand")
    last = array.shape[array.ndim - dimensions :] if array.ndim >= dimensions else array.shape
    whole = (*shape, *last) if array.ndim >= dimensions else (*shape, *(1,) * (dimensions - array.ndim), *last)
    return np.broadcast_to(array, whole)[batch]
