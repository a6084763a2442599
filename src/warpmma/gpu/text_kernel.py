"""Kernels that are a text with constants in front, their launches, and strides as they take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._records import Shown
from ..errors import UnsupportedError

MOST_DIMENSIONS = 16
"""Strides that a structure has room for."""


@dataclass(frozen=True, kw_only=True)
class TextKernel(Shown):
    """A kernel: CUDA C++ or PTX, the name of its entry, and the target of NVRTC where it is not the GPU's own."""

    text: str
    name: str
    arch: str = ""


@dataclass(frozen=True, kw_only=True)
class TextLaunch(Shown):
    """A launch of a kernel that takes one structure, or words of 64 bits: blocks, their threads, and the bytes."""

    kernel: TextKernel
    grid: int
    threads: int
    given: bytes

    def argument(self) -> bytes:
        """Return the structure that the kernel takes."""
        return self.given


def put_strides(given: Any, sizes: Sequence[int], strides: Sequence[int], what: str) -> None:
    """Put dimensions, merged, into the fields `dimensions`, `sizes` and `strides` of a structure.

    Raises
    ------
    UnsupportedError
        Too many of them; `what` has these, such as "C has {} strides".
    """
    dimensions = merged(sizes, strides)
    if len(dimensions) > MOST_DIMENSIONS:
        raise UnsupportedError(f"{what.format(len(dimensions))}; expected a contiguous copy")
    given["dimensions"] = len(dimensions)
    for i, (length, stride) in enumerate(dimensions):
        given["sizes"][i], given["strides"][i] = length, stride


def merged(sizes: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Merge dimensions that follow each other in memory: lengths and strides, the outermost first.

    Examples
    --------
    >>> merged((2, 3, 1, 4), (24, 8, 8, 1)), merged((5, 4), (0, 0))
    ([(6, 8), (4, 1)], [(20, 0)])
    """
    found: list[tuple[int, int]] = []
    for length, stride in zip(sizes, strides, strict=True):
        if length == 1:
            continue
        if found and found[-1][1] == length * stride:
            found[-1] = found[-1][0] * length, stride
        else:
            found.append((length, stride))
    return found
