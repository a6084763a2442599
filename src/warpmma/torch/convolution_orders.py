"""The order of k of convolutions: what the option `convolution_k` says.

1. An order has each letter once, the last is the fastest; "-" before a letter makes it descend. For "forward" the
   letters are r, s (rows and columns of the kernel) and c (input channels), for "data" r, s and k (output channels),
   for "weight" n (images), p and q (rows and columns of the output). All channels are those of a group.
2. In three dimensions t and z, the depth, go before r and p, in the same direction, where an order does not name them.
   In one dimension r and p have one value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import permutations
from typing import Any

from .._arguments import suggestion
from ..errors import OperandError, shown

_LETTERS = {"forward": ("rsc", "t"), "data": ("rsk", "t"), "weight": ("npq", "z")}


@dataclass(frozen=True, kw_only=True)
class ConvolutionOrders:
    """The order of k of each product of a convolution (rule 1)."""

    forward: str = "rsc"
    data: str = "-r-sk"
    weight: str = "npq"

    @classmethod
    def of(cls, given: object) -> ConvolutionOrders:
        """Check the option: a mapping of some of the three names to orders, or None."""
        if given is None:
            return cls()
        if not isinstance(given, Mapping):
            raise OperandError(
                f"convolution_k is {shown(given)}; expected a mapping such as {{'forward': {cls.forward!r}}}"
            )
        known = [x.name for x in fields(cls)]
        for name in given:
            if name not in known:
                listed = ", ".join(map(repr, known))
                raise OperandError(f"convolution_k has {shown(name)}; expected {listed}{suggestion(name, known)}")
        return cls(**{name: _checked(name, order) for name, order in given.items()})

    def in_dimensions(self, name: str, dimensions: int) -> str:
        """Return an order with the letters of one, two or three dimensions (rule 2)."""
        order, (letters, depth) = getattr(self, name), _LETTERS[name]
        rows = next(x for x in letters if x in "rp")
        if dimensions == 3 and depth not in order:
            sign = "-" if f"-{rows}" in order else ""
            return str(order).replace(f"{sign}{rows}", f"{sign}{depth}{sign}{rows}")
        gone = {3: "", 2: depth, 1: depth + rows}[dimensions]
        return "".join(f"-{x}" if f"-{x}" in order else x for x in order if x not in gone + "-")


def _checked(name: str, order: Any) -> str:
    """Return a legal order; the error names the nearest one."""
    letters, depth = _LETTERS[name]
    if isinstance(order, str):
        plain = order.replace("-", "")
        signs = all(x != "-" or order[i + 1 : i + 2] not in ("", "-") for i, x in enumerate(order))
        if signs and sorted(plain) in (sorted(letters), sorted(letters + depth)):
            return order
    given = "".join(x for x in order if x in letters + depth) if isinstance(order, str) else ""
    every = ["".join(x) for x in permutations(letters + depth * (depth in given))]
    near = suggestion(given or order, every) or f"; the default is {getattr(ConvolutionOrders, name)!r}"
    raise OperandError(
        f"convolution_k: {name!r} is {shown(order)}; expected {', '.join(letters)} once each, and {depth} or not, with "
        f"'-' before what descends{near}"
    )
