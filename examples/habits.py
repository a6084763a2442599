"""Correct kernels of unusual habits, and some classics: what a simulator must let pass, and compute.

`habits_warps.py`, `habits_barriers.py`, `habits_memory.py`, `habits_copies.py` and `classics.py` have `KERNELS`, by
name: each a kernel, the launch that it is written for, and what its last array holds afterwards. None has a hazard, on
any of CUDA's machines since sm_80.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from twins import TARGET, Array
from twins import words as long_words

from warpmma.kernel import Launch, Output, launch

__all__ = ["EMPTY", "EVERY", "Habit", "habit", "words"]

EVERY = 0xFFFFFFFF  # a membermask: all lanes
EMPTY = 0xA5  # every byte of an output before the kernel runs


@dataclass(frozen=True, kw_only=True)
class Habit:
    """A kernel, how it is launched, and what comes of it.

    Attributes
    ----------
    kernel : callable
    inputs : callable
        Makes the arrays that it gets first.
    size, dtype
        Of the output, which it gets last; without a size, it writes its last input in place.
    expected : callable
        What the last array holds afterwards, of all arrays as they were before.
    grid, block, shared
        As for `launch`.
    """

    kernel: Callable[..., None]
    inputs: Callable[[], Sequence[Array]]
    size: int | None
    dtype: Any
    expected: Callable[..., Array]
    grid: int
    block: int
    shared: int

    def arrays(self) -> list[Array]:
        """Make the arrays of a launch, the output last."""
        made = [x.copy() for x in self.inputs()]
        if self.size is not None:
            made.append(np.full(self.size * np.dtype(self.dtype).itemsize, EMPTY, np.uint8).view(self.dtype))
        return made

    def simulate(self, **options: Any) -> tuple[Launch, list[Array]]:
        """Run it on simulated blocks; return the report, and what the arrays hold."""
        arrays = self.arrays()
        args = arrays if self.size is None else [*arrays[:-1], Output(arrays[-1])]
        result = launch(self.kernel, self.grid, self.block, args, target=TARGET, shared=self.shared, **options)
        return result, arrays

    def right(self) -> Array:
        """Return what the last array must hold."""
        return self.expected(*self.arrays())


def habit(
    kernels: dict[str, Habit], *, expected: Callable[..., Array], inputs: Callable[[], Sequence[Array]] = list,
    size: int | None = None, dtype: Any = np.uint32, grid: int = 1, block: int = 32, shared: int = 0,
) -> Callable[[Callable[..., None]], Callable[..., None]]:  # fmt: skip
    """Enter a kernel under its name."""

    def enter(kernel: Callable[..., None]) -> Callable[..., None]:
        kernels[kernel.__name__] = Habit(
            kernel=kernel, inputs=inputs, size=size, dtype=dtype, expected=expected, grid=grid, block=block,
            shared=shared,
        )  # fmt: skip
        return kernel

    return enter


def words(number: int, seed: int = 1) -> Array:
    """Random words of 32 bits, the same on every machine and for ever."""
    return long_words(seed, number).astype(np.uint32)
