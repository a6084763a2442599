"""What the texts of kernels share: sources, which lie in `kernels`, and the pattern of a sparse A."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Literal

from ..formats import FORMATS, FloatFormat
from ..sparsity import Pattern, nibble_of

SparseAs = Literal["rows", "indices", "dense"]
GIVEN_AS: Mapping[SparseAs, int] = MappingProxyType({"rows": 1, "indices": 2, "dense": 3})
"""How a sparse A is given, by the numbers of `kernels/sparse.cuh`."""


@cache
def source(name: str) -> str:
    """Return the text of a source."""
    return (files(__package__) / "kernels" / name).read_text(encoding="utf-8")


def sparse_text(width: int, a_type: str) -> str:
    """Return what kernels know of a pattern and of zeros among the codes of A."""
    pattern, fmt = Pattern(width=width), FORMATS[a_type]
    counted = fmt.sign_bit - (1 << fmt.padding) if isinstance(fmt, FloatFormat) else (1 << fmt.bits) - 1
    nibbles = sum(int(nibble) << 4 * units for units, nibble in enumerate(nibble_of(pattern)))
    numbers = {"WIDTH": width, "UNITS": pattern.units, "COUNTED": f"{counted}u", "NIBBLES": f"{nibbles}ull"}
    return "\n".join([*(f"#define {name} {value}" for name, value in numbers.items()), source("sparse.cuh")])
