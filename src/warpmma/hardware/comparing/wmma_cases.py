"""`wmma` of a GPU beside the simulator.

1. A block is one warp with its own memory. Loads and stores have random bytes and each of four strides; products have
   random and hard elements in their registers, also in those that no `mma` reads.
2. Memory is global or shared, as the form says; that of forms with generic addresses is shared in every second piece.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from ...formats import FORMATS
from ...operations import WmmaMove, WmmaMultiply, rows
from ...registers import LANES
from ..generators import mixed
from .kernel_parts import CHUNK, dumped, entry, filled, loaded, pointed, stored
from .launched_cases import LaunchedWork, Place

__all__ = ["WmmaForm", "wmma_forms", "wmma_fragments", "wmma_inputs", "wmma_kernel", "wmma_result"]

_MEMORY, _FRAGMENT = "memory", "fragment"
_SLACK = (16, 0, 32, 48)  # bytes between lines


def wmma_forms(target: str) -> Iterator[WmmaMove | WmmaMultiply]:
    """List the forms of a target."""
    return (x for x in rows(target, "wmma") if isinstance(x, WmmaMove | WmmaMultiply))


def wmma_fragments(form: WmmaMove | WmmaMultiply, target: str) -> dict[str, tuple[int, int]]:
    """Count the registers of each operand, and their bits."""
    if isinstance(form, WmmaMove):
        layout = form.layout(target)
        return {_FRAGMENT: (layout.registers, layout.packing.width)}
    layouts = {name: form.layout(name, target) for name in ("A", "B", "C", "D")}
    return {name: (x.registers, x.packing.width) for name, x in layouts.items()}


def wmma_result(form: WmmaMove | WmmaMultiply) -> str:
    """Name what a form writes."""
    if isinstance(form, WmmaMultiply):
        return "D"
    return _FRAGMENT if form.direction == "load" else _MEMORY


def _stride(form: WmmaMove, slack: int) -> int:
    """Elements between lines."""
    return form.line + slack * 8 // form.bits


def _size(form: WmmaMove, slack: int) -> int:
    """Bytes of the memory of a warp: whole chunks."""
    return -(-form.lines * _stride(form, slack) * form.bits // 8 // CHUNK) * CHUNK


def wmma_inputs(
    form: WmmaMove | WmmaMultiply, target: str, warps: int, rng: np.random.Generator, slack: int = _SLACK[0]
) -> dict[str, Array]:
    """Make what a form reads and writes: registers `[warp, register, lane]`, and memory `[warp, byte]` of moves.

    Parameters
    ----------
    form : WmmaMove or WmmaMultiply
    target : str
    warps : int
    rng : numpy.random.Generator
    slack : int
        Bytes between lines in memory, a multiple of 16.
    """
    given: dict[str, Array] = {}
    for name, (count, bits) in wmma_fragments(form, target).items():
        shape = (warps, count, LANES)
        if isinstance(form, WmmaMove) or name == "D":
            given[name] = rng.integers(0, 1 << 32, (*shape, bits // 32), np.uint32).view(f"u{bits // 8}")[..., 0]
        else:
            layout = form.layout(name, target)  # type: ignore[arg-type]
            type_ = form.type(name)  # type: ignore[arg-type]
            of = (*shape, layout.packing.per_register)
            few = type_ in ("s4", "u4", "b1")
            codes = rng.integers(0, layout.packing.mask + 1, of) if few else mixed(FORMATS[type_], of, rng)
            given[name] = np.ascontiguousarray(layout.packing.join(np.ascontiguousarray(codes)))
    if isinstance(form, WmmaMove):
        given[_MEMORY] = rng.integers(0, 256, (warps, _size(form, slack)), np.uint8)
    return given


def wmma_kernel(
    form: WmmaMove | WmmaMultiply, target: str, slack: int = _SLACK[0], *, shared: bool = False
) -> str:  # fmt: skip
    """Return a kernel that executes a form in every block; its parameters are the addresses of `wmma_inputs`.

    Parameters
    ----------
    form : WmmaMove or WmmaMultiply
    target : str
    slack : int
        As of `wmma_inputs`.
    shared : bool
        Whether memory is copied to shared memory for a generic address.
    """
    moved, result = wmma_fragments(form, target), wmma_result(form)
    registers = {x: [f"%{x}{i}" for i in range(count)] for x, (count, _) in moved.items()}
    declared = [f".reg .b{bits} %{x}<{count}>;" for x, (count, bits) in moved.items()]
    lines = [
        line for x, (_, bits) in moved.items() if x != result for line in loaded(x, registers[x], bits)
    ]  # fmt: skip
    listed = {x: f"{{{', '.join(some)}}}" for x, some in registers.items()}
    if isinstance(form, WmmaMultiply):
        lines.append(f"{form} {', '.join(listed[x] for x in 'DABC')};")
    else:
        lines += _moved(form, listed[_FRAGMENT], slack, shared or form.space == "shared", declared)
    if result != _MEMORY:
        lines += stored(result, registers[result], moved[result][1])
    return entry([*moved, *[_MEMORY] * isinstance(form, WmmaMove)], declared, lines)


def _moved(form: WmmaMove, fragment: str, slack: int, shared: bool, declared: list[str]) -> list[str]:
    """Write the move of a fragment, with shared memory around it if it is there."""
    size, stride = _size(form, slack), f", {_stride(form, slack)}" * bool(slack)
    place = "[%here]" if form.space == "shared" else "[%generic]"
    declared.append(".reg .b32 %here, %mine; .reg .b64 %generic;")
    lines = [pointed(_MEMORY, size), "mov.b64 %generic, %at;"]
    if shared:
        declared.append(f".shared .align 32 .b8 room[{size}];")
        lines = ["mov.u32 %here, room; mad.lo.u32 %mine, %lane, 16, %here;", *filled(_MEMORY, "%mine", size)]
        lines += ["cvt.u64.u32 %generic, %here; cvta.shared.u64 %generic, %generic;", "bar.sync 0;"]
    load = form.direction == "load"
    lines.append(f"{form} {', '.join((fragment, place) if load else (place, fragment))}{stride};")
    if shared and not load:
        lines += ["bar.sync 0;", *dumped(_MEMORY, "%mine", size)]
    return lines


@dataclass(frozen=True, kw_only=True, eq=False)
class WmmaForm(Shown):
    """One `wmma.load`, `wmma.store` or `wmma.mma`, for `LaunchComparison`."""

    form: WmmaMove | WmmaMultiply

    @property
    def name(self) -> str:
        """Return the mnemonic."""
        return str(self.form)

    @property
    def ptx(self) -> tuple[int, int]:
        """Return the version that has it."""
        return self.form.ptx

    def work(self, target: str, blocks: int, number: int, rng: np.random.Generator, place: Place) -> LaunchedWork:
        """Make the kernel and the arrays of a piece of work."""
        slack = _SLACK[number // 2 % len(_SLACK)]
        shared = isinstance(self.form, WmmaMove) and not self.form.space and bool(number % 2)
        given, result = wmma_inputs(self.form, target, blocks, rng, slack), wmma_result(self.form)
        text = wmma_kernel(self.form, target, slack, shared=shared)
        return LaunchedWork(text=text, arrays=given, compared=(result,))
