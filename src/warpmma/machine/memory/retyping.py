"""Arrays that were accessed as elements of another type than they hold.

The rules:

1. An instruction of a float type (`ld.global.f32`, `red.add.f64`, a `wmma.load` of f16) takes an array for elements of
   that type. Other instructions say no type: compilers copy numbers of any kind as .b32, .u32 or .v4.u32.
2. It is listed if that type contradicts the array's (`element_types`).
3. What counts is the memory in which the array lies: if arguments of several types share it, nobody knows which of them
   was meant, and nothing is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..._records import Shown
from ..._text import counted
from ...formats import FORMATS, FloatFormat
from ..base import Site
from ..program import RowStep
from .element_types import contradicts
from .global_memory import GlobalMemory


@dataclass(frozen=True, kw_only=True)
class Retyped(Shown):
    """An array that was accessed as elements of another type than it holds.

    Attributes
    ----------
    array : str
        Its name.
    holds : str
        Type of its elements: "float64".
    accessed : str
        PTX type as which they were accessed: "f32".
    sites : tuple of Site
        Where.
    """

    array: str
    holds: str
    accessed: str
    sites: tuple[Site, ...]

    def __str__(self) -> str:
        more = f" and {counted(len(self.sites) - 1, 'more line')}" if len(self.sites) > 1 else ""
        return f"{self.array} holds {self.holds} and was accessed as .{self.accessed}: {self.sites[0]}{more}"


def float_sites(steps: Iterable[Any]) -> dict[int, str]:
    """Return the floats that steps of a program access memory as, by the identity of their sites (rule 1)."""
    return {
        id(step.site): type_
        for step in steps
        if isinstance(step, RowStep) and isinstance(named := getattr(step.row, "type", ""), str)
        if (type_ := _float_of(named))
    }


def retyped(memory: GlobalMemory, types: Mapping[int, str]) -> tuple[Retyped, ...]:
    """List what was accessed as another type than it was given, by `float_sites` of the program."""
    found: dict[tuple[str, str, str], dict[Site, None]] = {}
    for array, those in memory.accessed() if types else ():
        for number, site in those.items():
            if (type_ := types.get(number)) and _contradicts(type_, array.dtype):
                found.setdefault((array.name, str(array.dtype), type_), {})[site] = None
    return tuple(
        Retyped(array=name, holds=holds, accessed=type_, sites=tuple(where))
        for (name, holds, type_), where in found.items()
    )


@cache
def _float_of(type_: str) -> str:
    """Return the scalar float of a PTX type, "" of others (rule 1)."""
    scalar = type_.removesuffix("x2")
    return scalar if isinstance(FORMATS.get(scalar), FloatFormat) else ""


@cache
def _contradicts(type_: str, held: np.dtype[Any]) -> bool:
    return contradicts(FORMATS[type_].dtype.name, held.name)
