"""Functions that the machine provides to programs, such as vprintf."""

from __future__ import annotations

from collections.abc import Callable

from ..._arrays import Array
from ..base import Site
from ..block import Batch

Provided = Callable[[Batch, Site, tuple[Array, ...], Array], tuple[Array, ...]]
"""From the batch, the site of the call, the bytes of each argument, uint8 `[block, warp, lane, n]`, and the lanes that
call it, to the bytes of each result."""
