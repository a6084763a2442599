"""Comparisons of what needs kernels of several instructions: `wmma`, atomics, asynchronous forms, loads and stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from ...isa import warpgroup_instructions
from ...operations import Access, Atomic, rows
from .access_cases import AccessForm, access_forms
from .atomic_cases import AtomicForm, atomic_forms
from .copy_cases import AsyncForm, async_forms
from .findings import ComparedGroup
from .launched_cases import LaunchComparison, LaunchedForm
from .mbarrier_cases import MbarrierForm, mbarrier_forms
from .tensor_cases import TensorForm, tensor_forms
from .wmma_cases import WmmaForm, wmma_forms

__all__ = ["LAUNCHED_PARTS", "launched_groups", "launched_left_out"]

LAUNCHED_PARTS: Mapping[str, int] = MappingProxyType(
    {"wmma": 100, "atomic": 1000, "asynchronous": 2000, "access": 4000}
)
"""Kinds of the report, and by what the outputs that are asked for are divided: those of moves depend on little."""


def _forms(target: str) -> Iterator[tuple[LaunchedForm, str, int, Sequence[str]]]:
    """Give each form, its kind, the blocks of a piece of work at most, and its mnemonics."""
    yield from ((WmmaForm(form=x), "wmma", 1024, (str(x),)) for x in wmma_forms(target))
    yield from ((AtomicForm(row=x), "atomic", 1024, (x.mnemonic,)) for x in atomic_forms(target))
    yield from ((AsyncForm(row=x), "asynchronous", 64, (x.mnemonic,)) for x in async_forms(target))
    yield from ((MbarrierForm(row=x), "asynchronous", 16, (x.mnemonic,)) for x in mbarrier_forms(target))
    yield from ((TensorForm(row=x), "asynchronous", 16, (x.mnemonic,)) for x in tensor_forms(target))
    for some in access_forms(target):
        yield AccessForm(rows=some), "access", 64, [row.mnemonic for row in some]


def launched_groups(target: str, blocks: int, seed: int, fits: Callable[[str], bool]) -> list[ComparedGroup]:
    """List comparisons of the forms whose names fit, each in kernels of up to so many blocks, a power of two from 2."""
    return [
        LaunchComparison(form=form, kind=kind, part=LAUNCHED_PARTS[kind], blocks=min(blocks, most), seed=seed)
        for form, kind, most, names in _forms(target) if any(map(fits, names))
    ]  # fmt: skip


def launched_left_out(target: str) -> dict[str, str]:
    """Say which instructions, except operations, are not compared, and why: by opcode, or by mnemonic."""
    every = list(rows(target))
    kept = {row.mnemonic for row in atomic_forms(target)} | {x.mnemonic for some in access_forms(target) for x in some}
    others = {row.mnemonic: _WHY[type(row).__name__] for row in every if type(row).__name__ in _WHY}
    others |= {x.mnemonic: _WRONG[type(x)] for x in every if type(x) in _WRONG and x.mnemonic not in kept}
    compared = [*(row.mnemonic for row in every), *map(str, warpgroup_instructions(target))]
    mixed = {name.partition(".")[0] for name in compared if name not in others}
    found = {}
    for name, why in others.items():
        opcode = name.partition(".")[0]
        found[name if opcode in mixed else opcode] = why
    return found


_WRONG: Mapping[type, str] = MappingProxyType({
    Atomic: "ptxas makes one sum of integers of it, whose bits are those of no sum of floats",
    Access: "ptxas 13.0 makes the upper 64 bits 0",
})  # fmt: skip
"""What ptxas makes wrong, by the class of its rows."""

_ORDER, _NOTHING, _MAPS = "it orders others", "it has no result", "of tensor maps: lab.record.tensor_maps has them"
_WHY: Mapping[str, str] = MappingProxyType({
    "Barrier": "of several warps: lab.record has them", "Fence": _ORDER, "WarpgroupGroup": _ORDER,
    "MapReplacement": _MAPS, "MapPublication": _MAPS, "CacheControl": _NOTHING, "Hint": _NOTHING, "Exit": _NOTHING,
    "Trap": "it ends the kernel", "CachePolicy": "its result is opaque, and changes no bit",
    "Stack": "results depend on where memory lies",
})  # fmt: skip
