"""Matrices of codes compared on a GPU: how many differ, and where the first difference is."""

from __future__ import annotations

from functools import cache

import numpy as np

from .kernel_text import source
from .text_kernel import TextKernel, TextLaunch

_CODES = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}
_MOST_BLOCKS, _EACH = 1024, 8  # blocks; codes of a thread, where there are fewer


@cache
def difference_kernel(itemsize: int) -> TextKernel:
    """Return the kernel for codes of so many bytes."""
    return TextKernel(text=f"typedef {_CODES[itemsize]} Code;\n{source('differences.cu')}", name="differences")


def difference_launch(
    itemsize: int, got: int, expected: int, found: int, shape: tuple[int, int], pitches: tuple[int, int]
) -> TextLaunch:
    """Launch a comparison.

    Parameters
    ----------
    itemsize : int
        Bytes of a code.
    got, expected, found : int
        Addresses: of the matrices, and of two words of 64 bits, to which the number of differences is added, and whose
        second becomes the place of the first one, `row * columns + column`, if that is less.
    shape : (int, int)
        Rows and columns.
    pitches : (int, int)
        Codes of a row in memory, of both matrices.

    Returns
    -------
    TextLaunch
    """
    rows, columns = shape
    threads = 256
    blocks = min(_MOST_BLOCKS, -(-rows * columns // (threads * _EACH)))
    given = np.array([got, expected, found, rows, columns, *pitches], np.uint64).tobytes()
    return TextLaunch(kernel=difference_kernel(itemsize), grid=blocks, threads=threads, given=given)
