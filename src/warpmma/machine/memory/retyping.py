"""Element types: what a kernel declares or accesses, compared with what an array holds.

Types are named as NumPy and ml_dtypes name them. The rules:

1. Two scalar floats contradict each other if they are different formats: float32 and float64, float16 and bfloat16.
2. A float and an integer contradict each other if their widths differ. An integer of the same width holds codes.
3. A signed integer contradicts a declared integer that is narrower: the kernel would read each number as several, as
   with NumPy's default, int64, for an `int *`. A narrower integer is packed data; an unsigned one is words of bits.
4. Nothing else is compared: bytes (`char`), `void`, vectors and structs; elements of other kinds; empty arrays.
5. An instruction of a float type (`ld.global.f32`, `red.add.f64`, a `wmma.load` of f16) accesses elements of that type;
   if that type contradicts the array's, the launch lists it (`Retyped`). Other instructions state no type: compilers
   copy numbers of any kind as .b32, .u32 or .v4.u32.
6. The memory that holds the array decides: if arguments of several types share it, the intended type is unknown, and
   nothing is listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..._records import Shown
from ..._text import counted
from ...formats import FORMATS, FloatFormat
from ..base import Site
from ..program import InstructionStep
from .global_memory import GlobalMemory

_WIDTHS = (8, 16, 32, 64, 128)


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
        PTX type of the access: "f32".
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
        if isinstance(step, InstructionStep) and isinstance(named := getattr(step.row, "type", ""), str)
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
    """Return the scalar float type of a PTX type, "" for others (rule 5)."""
    scalar = type_.removesuffix("x2")
    return scalar if isinstance(FORMATS.get(scalar), FloatFormat) else ""


@cache
def _contradicts(type_: str, held: np.dtype[Any]) -> bool:
    return contradicts(FORMATS[type_].dtype.name, held.name)


# Types of elements


def contradicts(declared: str, held: str) -> bool:
    """Whether elements of a type cannot be meant for a kernel that expects another type.

    Parameters
    ----------
    declared : str
        The type that the kernel expects: "float32", "bfloat16", "int32"; "" if unknown.
    held : str
        The type of the array.

    Examples
    --------
    >>> [contradicts("float16", x) for x in ("float16", "uint16", "float32", "int64")]
    [False, False, True, True]
    """
    mine, its = _number_kind(declared), _number_kind(held)
    if mine is None or its is None:
        return False
    (kind, bits), (other, other_bits) = mine, its
    if kind == other == "float":
        return declared != held
    if "float" in (kind, other):
        return bits != other_bits
    return other == "int" and other_bits > bits


def expected(declared: str) -> str:
    """Describe the arrays that a kernel expects.

    Examples
    --------
    >>> expected("float16"), expected("int32")
    ('float16, or uint16 for codes', 'int32 or uint32')
    """
    kind, bits = _number_kind(declared) or ("", 0)
    return f"{declared}, or uint{bits} for codes" if kind == "float" else f"int{bits} or uint{bits}"


def _number_kind(name: str) -> tuple[str, int] | None:
    """Return "float", "int" or "uint", and the width."""
    if name == "bool":
        return "uint", 8
    found = re.fullmatch(r"(?:b?(float)|(u?int))(\d+)(?:_\w+)?", name)
    if found is None or int(found[3]) not in _WIDTHS:  # narrower types of ml_dtypes do not fill bytes
        return None
    return found[1] or found[2], int(found[3])
