"""The native engine's Python side: recipes as parameters of the C++ in `warpmma/native`, and calls into it.

The engine is built with the package where a C++ compiler is found. It computes whole products, chains of one
instruction along k, from matrices of codes or from registers; its bits are those of `reference`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..._arrays import Array
from ...errors import UnsupportedError
from ...formats import FORMATS, FloatFormat, IntegerFormat, floating
from ...layouts import Layout
from ..arrays import nominal_exponents
from ..recipes import FloatChains, FmaChain, FusedDotAdd, GroupedDotAdd, IntegerSum, Popcount, Recipe, steps

try:
    from ... import _native as _native  # for the modules beside this one too
except ImportError:  # installed without a compiler
    _native = None  # type: ignore[assignment]

Ends = Sequence[tuple[int, bool]]


@dataclass(frozen=True)
class Level:
    """A build of the engine for an instruction set, with tiles of `width` lanes and `rows` rows."""

    name: str
    number: int
    width: int
    rows: int


@cache
def levels() -> tuple[Level, ...]:
    """Return the builds that this machine can run, the fastest first; none where the engine was not built.

    With `WARPMMA_DISPATCH` set to the name of one, those faster than it are left out, for tests and for measurements.

    Raises
    ------
    UnsupportedError
        If this machine cannot run a build of that name.
    """
    found = tuple(Level(*level) for level in _native.levels()) if _native else ()
    fastest = os.environ.get("WARPMMA_DISPATCH")
    if not fastest or not found:
        return found
    names = [level.name for level in found]
    if fastest not in names:
        there = ", ".join(dict.fromkeys(names))
        raise UnsupportedError(f"WARPMMA_DISPATCH={fastest} is not a build that this machine runs; there are {there}")
    return found[names.index(fastest) :]


def find_level(name: str | None = None, lanes: int = 0) -> Level:
    """Return the fastest build, or that of a name, whose vectors divide so many lanes; 0 is divided by all."""
    found = [level for level in levels() if name in (None, level.name) and lanes % level.width == 0]
    if not found:
        raise UnsupportedError(f"no native engine {name or ''}; there are {[level.name for level in levels()]}")
    return found[0]


def product(
    recipe: Recipe, a: Array, b: Array, c: Array, *, k: int, chosen: Array | None = None,
    scale_a: Array | None = None, scale_b: Array | None = None, scales: int = 0, ends: Ends = (),
    sums: Array | None = None, level: str | None = None, out: Array | None = None,
) -> Array:  # fmt: skip
    """Compute chains of instructions over batches of matrices.

    Parameters
    ----------
    recipe : Recipe
    a, b, c : ndarray of unsigned int
        Codes: A `[batch, m, K]`, B `[batch, K, n]`, C `[batch, m, n]`. Of a sparse A the stored elements, and B has
        `2 K` rows. Single bits come as words of 32.
    k : int
        How many products one instruction takes, of a sparse one how many stored ones; K is a multiple.
    chosen : ndarray of uint8, optional
        Of a sparse A: which of the `2 k` rows of its instruction each element meets, `[batch, m, K]`.
    scale_a, scale_b : ndarray of uint8, optional
        Codes of block scales, `[batch, m, scales K / k]` and `[batch, scales K / k, n]`.
    scales : int
        Block scales of one row in one instruction.
    ends : sequence of (int, bool)
        Where chains end: after how many instructions, ascending, and whether a slice of k ends there too. What comes
        next begins at +0.
    sums : ndarray of uint32, optional
        Given with `ends`: codes of f32, `[2, batch, m, n]`, the sum of this slice's chains and that of slices, to which
        chains are added as they end. A sum of nothing is -0. It is written in place.
    level : str, optional
        Name of a build, for tests; otherwise the fastest.
    out : ndarray of unsigned int, optional
        Where D goes, contiguous, in no memory of an operand.

    Returns
    -------
    ndarray of unsigned int
        Codes of D, `[batch, m, n]`; with `sums`, of the accumulator of the chain that has not ended.
    """
    of = find_level(level)
    a, b, c = (_whole_strides(x) for x in (a, b, c))
    _, m, n = c.shape
    out = np.empty(c.shape, FORMATS[recipe.d].code_dtype) if out is None else out
    plan = _plan(recipe, k, chosen is not None, scales)
    if out.size:
        _native.execute(plan, of.number, a, b, c, out, False, m, n, a.shape[2], chosen, scale_a, scale_b, ends, sums)
    return out


class Registers:
    """The execution of an instruction on batches of registers.

    `layouts` are those of "A", "B", "C" and "D", of single bits those of whole registers; `scales` is the number of
    block scales of one row. `level` is as for `product`.
    """

    def __init__(
        self, recipe: Recipe, layouts: dict[str, Layout], *, sparse: bool, scales: int, level: str | None = None
    ) -> None:
        self._d = layouts["D"]
        m, k = layouts["A"].shape[-2:]
        n = layouts["B"].shape[-1]
        self._shape = (m, n, k)
        self._level = find_level(level, n if sparse else m)
        given = _parameters(recipe, k, sparse, scales)
        given.matrices = layouts["D"].matrices
        order = np.array(given.order)
        rows, width = given.rows, given.width = self._level.rows, self._level.width
        # A and B as [matrix, k, row or column]; the columns of B lie along the vectors of a sparse product.
        of_a, of_b = ([_by_matrix(x) for x in layouts[name].slots] for name in "AB")
        of_a = [x.swapaxes(1, 2)[:, order] for x in of_a]
        of_b = of_b if sparse else [x[:, order] for x in of_b]
        given.a_table = _table(layouts["A"], [_panels(x, rows if sparse else width) for x in of_a])
        given.b_table = _table(layouts["B"], [_panels(x, width if sparse else rows) for x in of_b])
        given.c_table = _table(layouts["C"], [_tiles(_by_matrix(x), sparse, width, rows) for x in layouts["C"].slots])
        element = _tiles(np.arange(given.matrices * m * n).reshape(-1, m, n), sparse, width, rows)
        place = np.empty_like(element)
        place[element] = np.arange(len(element))
        given.registers, given.per_register = self._d.registers, self._d.packing.per_register
        given.d_flat = place[np.moveaxis(self._d.flat, 2, 0).ravel()].tolist()
        given.d_shift = self._d.packing.shifts.tolist()
        self._plan = _checked(recipe, given)

    def run(
        self, a: Array, b: Array, c: Array, out: Array, chosen: Array | None = None,
        scale_a: Array | None = None, scale_b: Array | None = None,
    ) -> None:  # fmt: skip
        """Compute registers of D, `[warp, register, 32]`, into `out`, which is contiguous.

        A, B and C are registers of uint32 or uint64 in the same shape, whose first dimension may be broadcast. `chosen`
        and the scales are as for `product`.
        """
        m, n, k = self._shape
        a, b, c = (_flat(x) for x in (a, b, c))
        _native.execute(self._plan, self._level.number, a, b, c, out, True, m, n, k, chosen, scale_a, scale_b)


def _flat(registers: Array) -> Array:
    """Return registers with a warp's own part contiguous; a broadcast batch stays one."""
    if registers.flags.c_contiguous and registers.flags.aligned:  # the usual case
        return registers
    registers = _whole_strides(registers)
    whole = registers.strides[1:] == (registers.shape[2] * registers.itemsize, registers.itemsize)
    return registers if whole else np.ascontiguousarray(registers)


def _whole_strides(x: Array) -> Array:
    """Return an aligned array whose strides are whole elements, as the C++ counts them; a field of records is not."""
    return x if x.flags.aligned and all(s % x.itemsize == 0 for s in x.strides) else np.array(x, order="C")


def _by_matrix(x: Array) -> Array:
    return x.reshape(-1, *x.shape[-2:])


def _panels(x: Array, lanes: int) -> Array:
    """`[matrix, k, row]` in the order of panels: `[matrix, panel, k, lane]`, flat."""
    split = x.reshape(*x.shape[:2], -1, lanes)
    return split.swapaxes(1, 2).ravel()


def _tiles(x: Array, sparse: bool, width: int, rows: int) -> Array:
    """`[matrix, m, n]` in the order of tiles: `[matrix, panel, panel, row, lane]`, flat."""
    turned = x if sparse else x.swapaxes(1, 2)  # now [matrix, what is not along the lanes, what is]
    split = turned.reshape(len(x), turned.shape[1] // rows, rows, -1, width)
    return split.transpose(0, 3, 1, 2, 4).ravel()


def _table(layout: Layout, slots: list[Array]) -> Any:
    table = _native.Table()
    word, position = slots
    table.word, table.shift = word.tolist(), layout.packing.shifts[position].tolist()
    table.mask = layout.packing.mask & (1 << 32) - 1  # of f64 all 64 bits are read, and no mask
    return table


@cache
def _plan(recipe: Recipe, k: int, sparse: bool, scales: int) -> Any:
    return _checked(recipe, _parameters(recipe, k, sparse, scales))


def _checked(recipe: Recipe, given: Any) -> Any:
    """Return a plan, which the C++ runs; it has the bounds within which its arithmetic is exact."""
    try:
        return _native.Plan(given)
    except ValueError as error:
        raise UnsupportedError(f"the native engine does not do {recipe}: {error}; use engine='numpy'") from None


def _parameters(recipe: Recipe, k: int, sparse: bool, scales: int) -> Any:
    given = _native.Parameters()
    unit = recipe.unit
    given.unit = _native.Unit[type(unit).__name__]
    given.a, given.b = (_format(name, recipe.convert or name) for name in (recipe.a, recipe.b))
    given.c, given.d = _format(recipe.c, recipe.c), _format(recipe.d, recipe.d)
    given.k, given.b_k, given.scales, given.sparse = k, 2 * k if sparse else k, scales, sparse
    cut = [list(range(k))]
    match unit:
        case FusedDotAdd():
            cut = [list(step) for step in steps(recipe.order, unit.products, k)]
            given.after = recipe.accumulate == "after"
        case GroupedDotAdd():
            cut = [list(range(first, first + unit.group)) for first in range(0, k, unit.group)]
        case FloatChains():
            cut = [list(step) for step in steps("ascending", unit.length, k)]
            given.seeded = unit.seed == "product"
        case FmaChain():
            given.rounding = _native.Rounding[unit.rounding]
        case IntegerSum():
            given.saturate = unit.saturate
        case Popcount():
            given.exclusive = unit.operation == "xor"
    if isinstance(unit, FusedDotAdd | GroupedDotAdd):
        given.fraction_bits, given.floor, given.result_bits = unit.fraction_bits, unit.floor, unit.result_bits
        given.nearest = unit.rounding == "rn"
    if len({len(step) for step in cut}) > 1:
        raise UnsupportedError(f"the native engine does not do {recipe}: its steps differ; use engine='numpy'")
    given.order = [i for step in cut for i in step]
    given.step, given.steps = len(cut[0]), len(cut)
    if recipe.scale:
        fmt = floating(recipe.scale)
        values = np.resize(fmt.decode(np.arange(fmt.mask + 1)), 256)  # the C++ looks up any byte
        given.scale_value, given.scale_exponent = values.tolist(), nominal_exponents(values, fmt.emin).tolist()
    return given


def _format(name: str, converted: str) -> Any:
    fmt = FORMATS[name]
    out = _native.Format()
    out.width = fmt.bits
    if isinstance(fmt, IntegerFormat):
        out.integer, out.is_signed = True, fmt.signed
    elif fmt.bits <= 32 and fmt.signed:
        for field, value in code_fields(fmt, converted).items():
            setattr(out, field, value)
    return out


def code_fields(fmt: FloatFormat, converted: str) -> dict[str, int]:
    """Return what decodes a signed format of at most 32 bits, as the engines' C++ names it (`WARPMMA_FORMAT`).

    `converted` is the format that elements are converted to first, or the same.
    """
    nowhere = 1 << 30  # no magnitude reaches it but of f32 and tf32, which have infinities
    return {
        "fraction_bits": fmt.fraction_bits + fmt.padding, "emin": fmt.emin, "nominal_emin": floating(converted).emin,
        "magnitude": fmt.sign_bit - (1 << fmt.padding),
        "infinity": nowhere if fmt.inf_code is None else fmt.inf_code,
        "special_from": next((x for x in (fmt.inf_code, fmt.nan_code) if x is not None), nowhere),
    }  # fmt: skip
