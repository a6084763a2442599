"""Every position of every table of the special-function unit: operands that reach it, and the V that a result implies.

Used by `lab.solve.functions` and `lab.solve.mutants`. V is in units of 2^-41 throughout; every table's V is a multiple
of that (rule 2 of `warpmma.arithmetic.exact.interpolation`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.gpu.runner import KernelGpu
from warpmma.arithmetic import Interpolator, interpolators, special_function

__all__ = [
    "MNEMONICS", "POINT", "VIEWS", "Codes", "FunctionGpu", "Run", "View", "inputs", "save_archive", "simulated",
    "turns",
]  # fmt: skip

Int = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint32]
Run = Callable[[str, Codes], Codes]
"""What computes a function of PTX, by its name in `MNEMONICS`: `FunctionGpu` or `simulated`."""

POINT = 41
FRACTION = (1 << 23) - 1
GUARD = 1 << POINT - 36  # lg2 is truncated to a multiple of 2^-36 (rule 7)
MNEMONICS: Mapping[str, str] = {
    **{x: f"{x}.approx.ftz.f32" for x in ("rcp", "rsqrt", "sqrt", "ex2", "lg2", "sin", "cos")},
    "tanh": "tanh.approx.f32",
}
"""The mnemonic whose machine code is the function of the unit, of one operand; those of sin and cos multiply first."""

_TURN = 0x22F983 | 1 << 23  # significand of 0x3E22F983, 1 / 2 pi, whose exponent field is 124


@dataclass(frozen=True, kw_only=True)
class View:
    """Operands that reach all positions of a table.

    Attributes
    ----------
    name : str
    table : str
        Name of the interpolator.
    function : str
        Of `MNEMONICS`.
    field : int
        Exponent field of the operands; 0 for ex2 and sin, which have none.
    """

    name: str
    table: str
    function: str
    field: int

    @property
    def interpolator(self) -> Interpolator:
        """The table; only its sizes are used."""
        return interpolators()[self.table]

    @property
    def segments(self) -> int:
        """Rows of the table."""
        return len(self.interpolator.rows)

    @property
    def first_told(self) -> int:
        """The first position whose result is that of its sum: those of 1 are special (rules 5 and 7)."""
        return int(self.name in ("rsqrt even", "lg2"))

    def operands(self) -> Codes:
        """Return an operand of each position."""
        position = np.arange(self.segments << self.interpolator.bits, dtype=np.int64)
        if self.function == "ex2":
            return (position * 2.0**-23).astype(np.float32).view(np.uint32)
        if self.function == "sin":
            return _reaching(position)
        step = (1 << 23) // len(position)
        return (self.field << 23 | position * step).astype(np.uint32)

    def positions(self, codes: Codes) -> Int:
        """Return the positions of operands: what `operands` takes them from."""
        if self.function == "ex2":
            return (codes.view(np.float32).astype(np.float64) * 2.0**23).astype(np.int64)
        if self.function == "sin":
            return _position(codes)
        step = (1 << 23) // (self.segments << self.interpolator.bits)
        return (codes.astype(np.int64) & FRACTION) // step

    def window(self, values: Int) -> tuple[Int, Int]:
        """Return the least and the greatest V, as an integer, that give the same result as each of some."""
        given, unit = values, 1
        if self.function == "lg2":
            whole = values // GUARD  # rule 7
            given, unit = (1 << POINT) // GUARD - 1 - whole if self.field == 126 else whole, GUARD
        power = np.frexp(given.astype(np.float64))[1].astype(np.int64)
        width = np.int64(unit) << np.maximum(power - 24, 0)  # of 24 bits (rule 3)
        least = given * unit & -width
        return self._ends(least, width)

    def bracket(self, results: Codes) -> tuple[Int, Int]:
        """Return the least and the greatest V, as an integer, that give results.

        Raises
        ------
        ValueError
            If no V gives a result.
        """
        field, fraction = (results >> 23 & 255).astype(np.int64), results.astype(np.int64) & FRACTION
        significand = np.where(field == 0, 0, fraction | 1 << 23)
        shift = np.where(field == 0, 0, field - 127 - 23 + POINT - (self.function == "sqrt"))  # which doubles (rule 5)
        left, right = np.clip(shift, 0, 40), np.clip(-shift, 0, 40)
        least, width = significand >> right << left, np.int64(1) << left
        strange = (results >> 31 != (self.field == 126 and self.function == "lg2")) | (abs(shift) > 40)
        if np.any(strange | (least << right != significand << left)):
            raise ValueError(f"{self.name}: results that the law cannot give")
        return self._ends(least, np.maximum(width, GUARD) if self.function == "lg2" else width)

    def _ends(self, least: Int, width: Int) -> tuple[Int, Int]:
        if self.function == "lg2" and self.field == 126:  # the complement of V - 1
            least = (1 << POINT) - least - width
        return least, least + width - 1


def _views() -> tuple[View, ...]:
    fields = {"rsqrt odd": 128, "sqrt odd": 128, "ex2": 0, "sin": 0}
    views = []
    for table in interpolators():
        function, _, which = table.partition(" ")
        field = int(which) if which.isdigit() else fields.get(table, 127)
        views.append(View(name=table, table=table, function=function, field=field))
        if table == "lg2":
            views.append(View(name="lg2 below 1", table=table, function=function, field=126))
    return tuple(views)


VIEWS = _views()
"""One view per table, and two of lg2: the results near 1 are the finest."""


def turns(codes: Codes) -> Codes:
    """Multiply operands of sin and cos by 1 / 2 pi, toward zero: `FMUL.RZ.FTZ` by 0x3E22F983; signs are kept."""
    sign, magnitude = codes & np.uint32(1 << 31), (codes & np.uint32(0x7FFFFFFF)).astype(np.int64)
    field = magnitude >> 23
    product = (magnitude & FRACTION | 1 << 23) * _TURN  # of 47 or 48 bits
    over = product >> 47
    result = field + 124 - 127 + over << 23 | product >> 23 + over & FRACTION
    result = np.where((field == 0) | (result < 1 << 23), 0, np.where(field == 255, magnitude, result))
    return result.astype(np.uint32) | sign


def _position(codes: Codes) -> Int:
    """Return 4 r truncated to a multiple of 2^-23, as an integer (rule 8), for r below 1/4."""
    r = turns(codes).view(np.float32).astype(np.float64)
    return np.floor(r * 2.0**25).astype(np.int64)


def _reaching(position: Int) -> Codes:
    """Return an operand of sin that reaches each position: the greatest of the codes around the quotient that does."""
    found = np.full(len(position), 1 << 23, np.int64)  # 2^-126 reaches position 0
    middle = (position / (2.0**25 * _TURN * 2.0**-26)).astype(np.float32).view(np.uint32).astype(np.int64)
    for distance in range(-2, 3):
        near = np.maximum(middle + distance, 1 << 23)
        found = np.where(_position(near.astype(np.uint32)) == position, near, found)
    codes = found.astype(np.uint32)
    if np.any(_position(codes) != position):
        raise ValueError("sin: positions that no operand reaches")
    return codes


def simulated(function: str, codes: Codes) -> Codes:
    """Compute by our own rules what `FunctionGpu` runs."""
    given = turns(codes) if function in ("sin", "cos") else codes
    result: Codes = special_function(function, given)
    return result


class FunctionGpu:
    """The functions on this machine's GPU: as a function, `Run`."""

    def __init__(self, target: str) -> None:
        kernels = {x: _kernel(mnemonic) for x, mnemonic in MNEMONICS.items()}
        self._gpu: KernelGpu[str] = KernelGpu(kernels, target, (8, 0))

    @property
    def device(self) -> str:
        """GPU and driver."""
        return self._gpu.device

    def __call__(self, function: str, codes: Codes) -> Codes:
        """Run a function on every code."""
        threads = 256
        padded = np.zeros(-(-len(codes) // threads) * threads, np.uint32)
        padded[: len(codes)] = codes
        (out,) = self._gpu.launch(function, len(padded) // threads, threads, (padded, np.empty_like(padded)), (1,))
        result: Codes = np.asarray(out)[: len(codes)]
        return result


def _kernel(mnemonic: str) -> Callable[[str], str]:
    lines = (
        ".reg .u64 %from, %to, %offset;", ".reg .u32 %t, %block, %width;", ".reg .f32 %a, %d;",
        "mov.u32 %block, %ctaid.x;", "mov.u32 %width, %ntid.x;", "mov.u32 %t, %tid.x;",
        "mad.lo.u32 %t, %block, %width, %t;", "mul.wide.u32 %offset, %t, 4;", "ld.param.u64 %from, [pa];",
        "ld.param.u64 %to, [pd];", "add.u64 %from, %from, %offset;", "add.u64 %to, %to, %offset;",
        "ld.global.f32 %a, [%from];", f"{mnemonic} %d, %a;", "st.global.f32 [%to], %d;", "ret;",
    )  # fmt: skip
    return lambda name: "\n".join([f".visible .entry {name}(.param .u64 pa, .param .u64 pd) {{", *lines, "}"])


def save_archive(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write an archive atomically."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    part.replace(path)


@cache
def inputs(bits: int) -> tuple[Int, Int]:
    """Return x and q(x) of every x."""
    table = next(t for t in interpolators().values() if t.bits == bits)
    return np.arange(1 << bits, dtype=np.int64), table.squarer.table.astype(np.int64)
