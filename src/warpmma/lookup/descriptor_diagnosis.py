"""Which field of a matrix descriptor is wrong, against the one that was meant.

1. Two descriptors read the same if every element has the same address. Fields that this instruction does not use may
   differ.
2. A mistake is a field, or leading and stride exchanged, whose correction gives the tile that was meant; or else the
   fewest of them together. Of as many the first in the order of `FIELDS` is named. Exchanged are those that both have
   the other's value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType
from typing import Literal

from .._lazy_numpy import np
from .._records import Record
from ..isa import FragmentHolder
from ..layouts import Major, MatrixDescriptor, SharedCell
from .shared_readings import SharedReading, shared_reading

Field = Literal["exchanged", "swizzle", "major", "start", "base_offset", "leading", "stride"]


@dataclass(frozen=True, kw_only=True)
class DescriptorMistake(Record):
    """A field of a descriptor that is not as meant.

    Attributes
    ----------
    field : {"exchanged", "swizzle", "major", "start", "base_offset", "leading", "stride"}
        "exchanged" of leading and stride.
    got, meant : int or str
        Of `exchanged` the leading dimension; of `major` "K" or "MN".
    text : str
        It completes "as if".
    """

    field: Field
    got: int | str
    meant: int | str
    text: str


@dataclass(frozen=True, kw_only=True)
class DescriptorDiagnosis(Record):
    """What a descriptor reads, against what was meant.

    Attributes
    ----------
    got, meant : SharedReading
    mistakes : tuple of DescriptorMistake
        What is wrong (rule 2); empty where both read the same.
    moved : int
        How many elements lie elsewhere.
    first : tuple of (SharedCell, SharedCell) or None
        The first of them, as it is read and as it was meant.
    harmless : tuple of str
        Fields that differ without effect, where there is no mistake.
    """

    got: SharedReading
    meant: SharedReading
    mistakes: tuple[DescriptorMistake, ...] = ()
    moved: int = 0
    first: tuple[SharedCell, SharedCell] | None = None
    harmless: tuple[str, ...] = ()

    def __str__(self) -> str:
        operand = self.got.operand
        if self.first is None:
            more = f"; {', '.join(self.harmless)} differ, without effect" if self.harmless else ""
            return f"{operand} is read as meant{more}"
        words = " and ".join(x.text for x in self.mistakes)
        got, meant = self.first
        return (
            f"{operand} is read as if {words}\n  {self.moved:,} of {self.got.shape[0] * self.got.shape[1]:,} elements "
            f"lie elsewhere; the first is {operand}[{got.row}, {got.column}], read at {got.address:#x}, meant at "
            f"{meant.address:#x}"
        )


_Pair = tuple[MatrixDescriptor, Major]


def _bytes_wide(swizzle: int) -> str:
    return f"{swizzle} bytes wide" if swizzle else "none"


def _swizzle(operand: str, got: _Pair, meant: _Pair) -> str:
    width = meant[0].swizzle
    if not got[0].swizzle:
        return f"the swizzle of {operand} were missing, meant {_bytes_wide(width)}"
    return f"the swizzle of {operand} were {_bytes_wide(got[0].swizzle)}, meant {_bytes_wide(width)}"


def _start(operand: str, got: _Pair, meant: _Pair) -> str:
    by = meant[0].start - got[0].start
    how = f"not advanced by {by} bytes" if by > 0 else f"advanced by {-by} bytes too many"
    return f"the start of {operand} were {how}: {got[0].start:#x}, meant {meant[0].start:#x}"


def _number(field: str, name: str) -> Callable[[str, _Pair, _Pair], str]:
    return lambda operand, got, meant: (
        f"the {name} of {operand} were {getattr(got[0], field)}, meant {getattr(meant[0], field)}"
    )


_TEXTS: Mapping[Field, Callable[[str, _Pair, _Pair], str]] = MappingProxyType({
    "exchanged": lambda operand, got, meant: f"leading and stride offsets of {operand} were exchanged",
    "swizzle": _swizzle,
    "major": lambda operand, got, meant: f"{operand} were {got[1]}-major, meant {meant[1]}-major",
    "start": _start,
    "base_offset": _number("base_offset", "base offset"),
    "leading": _number("leading", "leading dimension byte offset"),
    "stride": _number("stride", "stride dimension byte offset"),
})  # fmt: skip

FIELDS: tuple[Field, ...] = tuple(_TEXTS)
"""What can be wrong with a descriptor, the first named first."""


def _corrected(pair: _Pair, field: Field, meant: _Pair) -> _Pair:
    descriptor, major = pair
    if field == "major":
        return descriptor, meant[1]
    if field == "exchanged":
        return replace(descriptor, leading=descriptor.stride, stride=descriptor.leading), major
    return replace(descriptor, **{field: getattr(meant[0], field)}), major


def _value(pair: _Pair, field: Field) -> int | str:
    return pair[1] if field == "major" else getattr(pair[0], "leading" if field == "exchanged" else field)


def _differing(got: _Pair, meant: _Pair) -> Iterator[Field]:
    sizes = (meant[0].leading, meant[0].stride)
    exchanged = sizes == (got[0].stride, got[0].leading) and sizes[0] != sizes[1]
    for field in FIELDS:
        if exchanged if field == "exchanged" else _value(got, field) != _value(meant, field):
            yield field


def descriptor_mistake(field: Field, got: SharedReading, meant: SharedReading) -> DescriptorMistake:
    """Put in words that a field is not as meant."""
    pairs = (got.descriptor, got.major), (meant.descriptor, meant.major)
    return DescriptorMistake(
        field=field, got=_value(pairs[0], field),
        meant=pairs[0][0].stride if field == "exchanged" else _value(pairs[1], field),
        text=_TEXTS[field](got.operand, *pairs),
    )  # fmt: skip


def _mistakes(got: SharedReading, meant: SharedReading) -> tuple[DescriptorMistake, ...]:
    """Name the fewest fields whose correction gives the tile that was meant (rule 2); none if both read the same."""
    pairs = (got.descriptor, got.major), (meant.descriptor, meant.major)
    if np.array_equal(got.addresses, meant.addresses):
        return ()
    fields = tuple(_differing(*pairs))
    for count in range(1, len(fields) + 1):
        for chosen in combinations(fields, count):
            pair = pairs[0]
            for field in chosen:
                pair = _corrected(pair, field, pairs[1])
            if np.array_equal(replace(got, descriptor=pair[0], major=pair[1]).addresses, meant.addresses):
                return tuple(descriptor_mistake(field, got, meant) for field in chosen)
    raise AssertionError("all fields together are what was meant")


def diagnose_descriptor(
    instruction: str | FragmentHolder, operand: str, descriptor: int | MatrixDescriptor, *,
    meant: int | MatrixDescriptor, major: Major = "K", meant_major: Major | None = None,
) -> DescriptorDiagnosis:  # fmt: skip
    """Say what is wrong with a descriptor: which of its fields make it read another tile than the one meant.

    Parameters
    ----------
    instruction, operand, descriptor, major
        As of `shared_reading`: what the kernel does.
    meant : int or MatrixDescriptor
        What it should do; `SharedTile.descriptor` makes it of a tile.
    meant_major : {"K", "MN"}, optional
        By default as `major`.

    Returns
    -------
    DescriptorDiagnosis

    Raises
    ------
    MnemonicError, OperandError
        As of `shared_reading`.

    Examples
    --------
    >>> from warpmma.layouts import SharedTile
    >>> i = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
    >>> tile = SharedTile(rows=64, columns=64, bits=16, swizzle=128, start=0x400)
    >>> print(diagnose_descriptor(i, "B", 0x8000004000000040, meant=tile.descriptor()))
    B is read as if the swizzle of B were 64 bytes wide, meant 128 bytes wide
      896 of 1,024 elements lie elsewhere; the first is B[0, 1], read at 0x440, meant at 0x490
    """
    got = shared_reading(instruction, operand, descriptor, major=major)
    right = shared_reading(instruction, operand, meant, major=major if meant_major is None else meant_major)
    mistakes = _mistakes(got, right)
    apart = np.argwhere(got.addresses != right.addresses)
    if not len(apart):
        pairs = (got.descriptor, got.major), (right.descriptor, right.major)
        named = (x.replace("_", " ") for x in _differing(*pairs) if x != "exchanged")
        return DescriptorDiagnosis(got=got, meant=right, harmless=tuple(named))
    row, column = apart[0].tolist()
    first = got.locate(row, column), right.locate(row, column)
    return DescriptorDiagnosis(got=got, meant=right, mistakes=mistakes, moved=len(apart), first=first)
