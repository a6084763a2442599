"""Carriage: which bits of a result are poison if some bits of the operands are.

The rules:

1. Poison is a bit whose value depends on luck. Beside a register, a mask of its dtype has 1 for each poison bit.
2. `whole`, for most operations: one poison bit of an operand makes all bits of all results poison.
3. `moved`: once some operands (`control`) are clean, each bit of a result depends on one bit of each other operand at
   most: logic, shifts, permutations, fields, selections, extensions. The result is computed with the poison bits of
   each operand all 0 and all 1, in every combination: bits that differ are poison. So `and` with a clean 0 is clean.
   A poison bit of a control operand makes everything poison, and so does any poison bit a predicate made of words.
4. `per_element`: each element of a packed result depends on one element of each operand.
5. `decided`: like `whole`, but an operand that is clean and has a certain value decides the result alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from .._arrays import Array, all_ones

Compute = Callable[..., tuple[Array, ...]]
Masks = Sequence[Array | None]
"""For each operand its poison bits; None for an operand without poison, and for an immediate."""

Carriage = Callable[[Compute, Sequence[Any], Masks, Sequence[Any]], list[Array]]
"""From what computes an operation, its operands, their masks (at least one is not None) and the dtypes of its results
to the poison bits of each result."""


def _any(masks: Masks) -> Array:
    found = [mask != 0 for mask in masks if mask is not None]
    return np.asarray(np.logical_or.reduce(np.broadcast_arrays(*found)))


def whole(compute: Compute, operands: Sequence[Any], masks: Masks, dtypes: Sequence[Any]) -> list[Array]:
    """Rule 2."""
    some = _any(masks)
    return [all_ones(some, dtype) for dtype in dtypes]


def moved(*control: int) -> Carriage:
    """Return rule 3 with the numbers of some control operands."""
    return partial(_moved, control)


def _moved(
    control: tuple[int, ...], compute: Compute, operands: Sequence[Any], masks: Masks, dtypes: Sequence[Any]
) -> list[Array]:
    steering = [None if i not in control else mask for i, mask in enumerate(masks)]
    steered = [None if i in control else mask for i, mask in enumerate(masks)]
    found = _differing(compute, operands, steered, dtypes)
    if any(mask is not None for mask in steering):
        found = [x | y for x, y in zip(found, whole(compute, operands, steering, dtypes), strict=True)]
    return found


def _differing(compute: Compute, operands: Sequence[Any], masks: Masks, dtypes: Sequence[Any]) -> list[Array]:
    """Return the bits of results that differ among the combinations of rule 3."""
    poisoned = [(i, mask) for i, mask in enumerate(masks) if mask is not None]
    tried: list[list[Array]] = []
    for ones in product((False, True), repeat=len(poisoned)):
        given = list(operands)
        for (i, mask), one in zip(poisoned, ones, strict=True):
            given[i] = given[i] | mask if one else given[i] & ~mask
        tried.append([np.asarray(x, dtype) for x, dtype in zip(compute(*given), dtypes, strict=True)])
    found = [np.bitwise_or.reduce([x ^ results[0] for x in results]) for results in zip(*tried, strict=True)]
    words = [mask for _, mask in poisoned if mask.dtype != np.bool_]
    if words:
        found = [x | _any(words) if np.dtype(dtype).kind == "b" else x for x, dtype in zip(found, dtypes, strict=True)]
    return found


def per_element(bits: int) -> Carriage:
    """Return rule 4 for elements of some bits."""
    return partial(_per_element, bits)


def _per_element(
    bits: int, compute: Compute, operands: Sequence[Any], masks: Masks, dtypes: Sequence[Any]
) -> list[Array]:
    (dtype,) = map(np.dtype, dtypes)
    number: Any = dtype.type
    some = np.bitwise_or.reduce(np.broadcast_arrays(*(x.astype(dtype) for x in masks if x is not None)))
    ones, found = number((1 << bits) - 1), np.zeros_like(some)
    for shift in map(number, range(0, dtype.itemsize * 8, bits)):
        found |= all_ones(some >> shift & ones != 0, dtype) & ones << shift
    return [found]


def decided(*by: tuple[int, int]) -> Carriage:
    """Return rule 5 for some operands and the value of each that decides."""
    return partial(_decided, by)


def _decided(
    by: tuple[tuple[int, int], ...], compute: Compute, operands: Sequence[Any], masks: Masks, dtypes: Sequence[Any]
) -> list[Array]:
    found = whole(compute, operands, masks, dtypes)
    for i, value in by:
        mask = masks[i]
        decides = operands[i] == value if mask is None else (operands[i] == value) & (mask == 0)
        found = [np.where(decides, np.zeros_like(x), x) for x in found]
    return found
