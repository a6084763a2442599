"""Mutants of recipes: every field of the records changed as its type says, and every rule about special codes broken.

Rules
-----
1. An integer is one more or one less; one that is a power of two, as counts of products are, also half or double.
2. A choice (`Literal`, `bool`) is each other one.
3. A format is each other one that the field has in a recipe of the same unit and whose codes are as wide: the operands
   stay the same. A format that may be absent (`convert`) also comes and goes, but not scales, which are operands.
4. What the records have no field for, since every instruction does the same, is changed in the codes: subnormals are
   read or written as zero, infinities are read as NaN and written as the largest number, a zero loses its sign or
   receives one, a NaN has another code, k descends, and a sum of integers is clamped twice.
5. A change is left out where nothing computes it: more fraction bits than D has, groups that do not divide a block of
   scales, an empty step, a conversion that is not exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from lab.generators import recipe_cases
from warpmma.arithmetic import GroupedDotAdd, IntegerSum, Recipe, compute, recipe
from warpmma.formats import FORMATS, FloatFormat
from warpmma.isa import warpgroup_instructions

__all__ = ["Mutant", "Subject", "mutants", "subjects"]

Array = npt.NDArray[Any]
Codes = dict[str, Array]


@dataclass(frozen=True)
class Subject:
    """A recipe over k products with so many block scales, named after a target and an instruction that have it."""

    name: str
    recipe: Recipe
    k: int
    blocks: int

    @property
    def unit(self) -> str:
        """Name of the unit."""
        return type(self.recipe.unit).__name__


@dataclass(frozen=True)
class Mutant:
    """A recipe with one change.

    Attributes
    ----------
    parameter, change : str
        What is changed, and how: "fraction_bits", "25 to 24".
    recipe : Recipe
    read, written : callable, optional
        What is done to the operands' codes first, and to D's at the end.
    halves : bool
        Whether the second half of k is a sum of its own, which begins with the first half's.
    """

    parameter: str
    change: str
    recipe: Recipe
    read: Callable[[Codes], Codes] | None = None
    written: Callable[[Array], Array] | None = None
    halves: bool = False

    @property
    def name(self) -> str:
        """Parameter and change."""
        return f"{self.parameter}: {self.change}"

    def compute(self, codes: Codes) -> Array:
        """Compute D, as `warpmma.arithmetic.compute` does without the change."""
        codes = self.read(codes) if self.read else codes
        if self.halves:
            half = len(codes["a"]) // 2
            first = compute(self.recipe, codes["a"][:half], codes["b"][:half], codes["c"])
            return compute(self.recipe, codes["a"][half:], codes["b"][half:], first)
        d = compute(self.recipe, **codes)
        return self.written(d) if self.written else d


@cache
def subjects() -> tuple[Subject, ...]:
    """List every recipe of `mma` and `wgmma` with each k and number of scales, as `lab.check.engines` has them."""
    found = {(case.recipe, case.k, case.blocks): str(case) for case in recipe_cases()}
    for i in warpgroup_instructions():
        for target in i.targets:
            found.setdefault((recipe(i, target), i.k // 2 if i.sparse else i.k, 0), f"{target} {i}")
    return tuple(Subject(name, *key) for key, name in found.items())


def mutants(subject: Subject) -> Iterator[Mutant]:
    """Yield every mutant of a recipe."""
    base = subject.recipe
    of_unit = [x.recipe for x in subjects() if x.unit == subject.unit]
    for name, before, after in _changes(base, of_unit):
        yield Mutant(name, f"{before} to {after}", replace(base, **{name: after}))
    for name, before, after in _changes(base.unit, [x.unit for x in of_unit]):
        changed = replace(base, unit=replace(base.unit, **{name: after}))
        if _computable(changed, subject):
            yield Mutant(name, f"{before} to {after}", changed)
    yield from _broken_rules(base)


def _changes(record: Any, others: list[Any]) -> Iterator[tuple[str, object, Any]]:
    """Yield each field of a record with its value and another one: rules 1 to 3."""
    hints = get_type_hints(type(record))
    for field in fields(record):
        before = getattr(record, field.name)
        for after in _others(hints[field.name], before, [getattr(x, field.name) for x in others]):
            if field.name != "convert" or _exact(record, after):
                yield field.name, before, after


def _others(kind: Any, before: Any, seen: list[Any]) -> list[Any]:
    """Return the other values of a field of this type."""
    if kind is bool:
        return [not before]
    if kind is int:
        count = before > 1 and before & (before - 1) == 0
        return [before - 1, before + 1, *((before // 2, before * 2) if count else ())]
    if get_origin(kind) is Literal:
        return [x for x in get_args(kind) if x != before]
    formats = [x for x in dict.fromkeys(seen) if x in FORMATS and x != before]
    if kind is str:
        return [x for x in formats if _alike(x, before)]
    if get_origin(kind) in (Union, UnionType) and get_args(kind) == (str, NoneType):
        if before is None:
            return [x for x in formats if FORMATS[x].bits > 8]  # a conversion; scales would be new operands
        return [None] if FORMATS[before].bits > 8 else [x for x in formats if _alike(x, before)]
    return []


def _alike(name: str, other: str) -> bool:
    return FORMATS[name].bits == FORMATS[other].bits and type(FORMATS[name]) is type(FORMATS[other])


def _exact(base: Recipe, converted: str | None) -> bool:
    """Whether a format holds the numbers of A and B, and may be narrower than no other: f16 is f16."""
    if converted is None:
        return True
    wide = FORMATS[converted]
    operands = [FORMATS[base.a], FORMATS[base.b]]
    return isinstance(wide, FloatFormat) and all(
        isinstance(x, FloatFormat) and x.bits < wide.bits and x.fraction_bits <= wide.fraction_bits and
        x.emax <= wide.emax and x.emin - x.fraction_bits >= wide.emin - wide.fraction_bits for x in operands
    )  # fmt: skip


def _computable(changed: Recipe, subject: Subject) -> bool:
    """Rule 5."""
    unit, d = changed.unit, FORMATS[changed.d]
    if any(getattr(unit, name, 1) < 1 for name in ("products", "length", "group")):
        return False
    if isinstance(d, FloatFormat) and getattr(unit, "result_bits", 0) > d.fraction_bits:
        return False
    return not isinstance(unit, GroupedDotAdd) or subject.k // subject.blocks % unit.group == 0


# Rule 4


def _broken_rules(base: Recipe) -> Iterator[Mutant]:
    yield Mutant("order of k", "descending", base, read=_reversed)
    if isinstance(base.unit, IntegerSum) and base.unit.saturate:
        yield Mutant("clamp", "twice", base, halves=True)
    operands = {"a": base.a, "b": base.b, "c": base.c}
    for name, fmt in ((name, FORMATS[x]) for name, x in operands.items()):
        if not isinstance(fmt, FloatFormat):
            continue
        operand = name.upper()
        yield Mutant("subnormals", f"of {operand} are zero", base, read=_read(name, _flushed(fmt)))
        yield Mutant("signs of zeros", f"of {operand} are lost", base, read=_read(name, _unsigned_zero(fmt)))
        if fmt.inf_code is not None and fmt.nan_code is not None:
            yield Mutant("infinities", f"of {operand} are NaN", base, read=_read(name, _no_infinity(fmt)))
    d = FORMATS[base.d]
    if isinstance(d, FloatFormat):
        yield Mutant("subnormals", "of D are zero", base, written=_flushed(d))
        yield Mutant("signs of zeros", "of D are changed", base, written=_signed_zero(d))
        yield Mutant("infinities", "of D are the largest number", base, written=_saturated(d))
        yield Mutant("NaN", "of D has the other sign", base, written=_other_nan(d))


def _reversed(codes: Codes) -> Codes:
    return {name: x if name == "c" else x[::-1] for name, x in codes.items()}


def _read(name: str, change: Callable[[Array], Array]) -> Callable[[Codes], Codes]:
    return lambda codes: {**codes, name: change(codes[name])}


def _magnitude(fmt: FloatFormat, x: Array) -> Array:
    """Codes without sign, padding of tf32 left out."""
    magnitude: Array = x & x.dtype.type(fmt.sign_bit - (1 << fmt.padding))
    return magnitude


def _flushed(fmt: FloatFormat) -> Callable[[Array], Array]:
    least_normal = 1 << fmt.fraction_bits + fmt.padding
    return lambda x: np.where(_magnitude(fmt, x) < least_normal, x & fmt.sign_bit, x).astype(x.dtype)


def _unsigned_zero(fmt: FloatFormat) -> Callable[[Array], Array]:
    return lambda x: np.where(_magnitude(fmt, x) == 0, 0, x).astype(x.dtype)


def _signed_zero(fmt: FloatFormat) -> Callable[[Array], Array]:
    return lambda x: np.where(_magnitude(fmt, x) == 0, x ^ x.dtype.type(fmt.sign_bit), x).astype(x.dtype)


def _no_infinity(fmt: FloatFormat) -> Callable[[Array], Array]:
    infinity, nan = fmt.inf_code, fmt.nan_code
    assert infinity is not None and nan is not None
    return lambda x: np.where(_magnitude(fmt, x) == infinity, nan, x).astype(x.dtype)


def _saturated(fmt: FloatFormat) -> Callable[[Array], Array]:
    return lambda x: np.where(_magnitude(fmt, x) == fmt.inf_code, x - x.dtype.type(1), x).astype(x.dtype)


def _other_nan(fmt: FloatFormat) -> Callable[[Array], Array]:
    assert fmt.inf_code is not None
    return lambda x: np.where(_magnitude(fmt, x) > fmt.inf_code, x ^ x.dtype.type(fmt.sign_bit), x).astype(x.dtype)
