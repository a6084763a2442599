"""Functions that the machine provides to programs, such as vprintf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt

from .batch import Batch
from .site import Site

__all__ = ["Provided"]

Array = npt.NDArray[Any]

Provided = Callable[[Batch, Site, tuple[Array, ...], Array], tuple[Array, ...]]
"""From the batch, the site of the call, the bytes of each argument, uint8 `[block, warp, lane, n]`, and the lanes that
call it, to the bytes of each result."""
