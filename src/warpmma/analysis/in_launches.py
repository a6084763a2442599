"""The explanation of an `mma`, a `wmma.mma` or a `wgmma` inside a kernel, by its line, warp and lane.

1. A launch that was given a `Watch` has kept the operands of the executions that fit it (`watched_operands`). Layouts
   collect matrices from registers, and `explain` explains an element of D.
2. The element is named as a kernel has it, by the lane, the register of the fragment and its place in it; or by its row
   and column in D. Of a warpgroup the lane is 0 to 127, or one of the warp that is named.
3. A chain is executions of one line by one warp or warpgroup, each of which took as its C the D of an earlier one, in
   all registers of all lanes: a loop along k. Explained as a whole product, it is the same instructions in the same
   order, and so the same bits. A `wgmma` whose `scale-d` is false begins one.
4. The chain holds all kept executions if each took the D of the previous one as its C (or at least this element of it,
   not zero, if the kernel changed D in between). Else the line has several accumulators in turn, as in an unrolled
   loop: going back from the explained execution, each took its C from the nearest earlier one whose D it was, until a C
   that is zero or no D. It is an error if an execution outside the chain gave the same D from different operands, since
   the source is then ambiguous, and if nothing precedes the execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from .._arguments import is_integer
from .._text import ranges
from ..errors import OperandError, shown
from ..isa import Instruction, WarpgroupInstruction, WmmaProduct
from ..layouts import Cell
from ..machine import Launch, WatchedProduct
from ..registers import LANES
from .explaining import explain
from .explanation import Explanation
from .watched_operands import explained_by, in_registers, matrix_of, operands_of

_MULTIPLIED = Instruction | WmmaProduct | WarpgroupInstruction


def explain_launch(
    launch: Launch, *, line: int | None = None, block: int | None = None, warp: int | None = None,
    occurrence: int | None = None, lane: int | None = None, register: int = 0, index: int = 0, row: int | None = None,
    column: int | None = None, matrix: int = 0, against: str | None = None, chain: bool = False,
) -> Explanation:  # fmt: skip
    """Explain how one element of the result of an `mma`, a `wmma.mma` or a `wgmma` in a kernel was computed.

    Parameters
    ----------
    launch : Launch
        Of a kernel in Python, of PTX, CUDA C++ or Triton (`gpu.launches[0].report`), that was launched with
        `watch=Watch(...)`.
    line, block, warp, occurrence : int, optional
        Which of those that were watched; they need not be said where there is one. Of several occurrences it is the
        first. A `wgmma` is found by any of its four warps.
    lane, register, index : int
        Which element of the fragment of D. Of a `wgmma` the lane is one of the warpgroup, 0 to 127; with `warp` it may
        be that of the warp, 0 to 31.
    row, column, matrix : int, optional
        The same, by its place in D.
    against : str, optional
        Another target, to be explained beside.
    chain : bool
        Explain what the same line summed before in this accumulator, too, as far as it was kept: a loop along k,
        unrolled or not.

    Returns
    -------
    Explanation

    Raises
    ------
    OperandError
        Nothing was watched, nothing of it is meant, or several are; no element of D; no chain.

    Examples
    --------
    >>> from warpmma.kernel import Watch, launch
    >>> def kernel(t, out):
    ...     one = t.constant(0x3C003C00, "b32")
    ...     i = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    ...     d = t(i, [one] * 4, [one] * 2, [t.constant(0, "b32")] * 4)
    ...     t("st.global.b32", out + t.laneid * 4, d[0])
    >>> report = launch(kernel, 1, 32, [np.zeros(32, np.float32)], target="sm_90", watch=Watch(warp=0))
    >>> told = explain_launch(report, lane=5, register=2)
    >>> told.row, told.column, float(told.value)
    (9, 2, 16.0)
    """
    products = watched_products(launch, line, block, warp)
    product = _at(products, occurrence)
    of_warp = 0 if warp is None or not is_integer(lane) or lane >= LANES else LANES * (warp - product.warp)
    cell = _cell(product, lane if lane is None else lane + of_warp, register, index, row, column, matrix)
    parts = _chain(products, product, cell) if chain else [product]
    return replace(_explained(parts, cell, against), site=product.place)


def watched_products(launch: object, line: int | None, block: int | None, warp: int | None) -> list[WatchedProduct]:
    """Return what one warp executed at one site."""
    if not isinstance(launch, Launch):
        raise OperandError(f"launch is {shown(launch)}; expected what kernel.launch or an entry's launch returned")
    if not launch.watched:
        raise OperandError(
            f"nothing was watched; {_products_of(launch)}; expected line, block, warp and occurrence of one that is "
            "executed, as in watch=Watch(line=77, warp=0)"
        )
    for name, value in (("line", line), ("block", block), ("warp", warp)):
        if value is not None and not (is_integer(value) and value >= 0):
            raise OperandError(f"{name} is {shown(value)}; expected a number from 0 on")
    found = [
        x for x in launch.watched
        if (line is None or line in x.lines) and block in (None, x.block)
        and (warp is None or warp in x.warps)
    ]  # fmt: skip
    if not found:
        raise OperandError(f"no such product was watched; there is {_listed(launch.watched)}")
    if len({(x.site, x.block, x.warp) for x in found}) > 1:
        raise OperandError(f"several were watched, say line, block and warp: {_listed(found)}")
    return found


def _products_of(launch: Launch) -> str:
    """Name the lines at which a launch executed products."""
    sites = [site for site in launch.costs.instructions if isinstance(site.instruction, _MULTIPLIED)]
    if not sites:
        return "and no mma, wmma.mma or wgmma was executed"
    names = " and ".join(sorted({site.mnemonic.partition(".")[0] for site in sites}))
    return f"{names} were executed at {', '.join(dict.fromkeys(site.place for site in sites[:_LISTED]))}"


def _listed(products: Sequence[WatchedProduct]) -> str:
    """Name executions, together those of a warp at a line."""
    turns: dict[str, list[int]] = {}
    for x in products:
        turns.setdefault(x.place.rpartition(", occurrence ")[0], []).append(x.occurrence)
    few = [f"{place}, occurrence {ranges(which)}" for place, which in list(turns.items())[:_LISTED]]
    return "; ".join(few) + ("; ..." if len(turns) > _LISTED else "")


_LISTED = 6


def _at(products: Sequence[WatchedProduct], occurrence: int | None) -> WatchedProduct:
    for x in products:
        if occurrence in (None, x.occurrence):
            return x
    raise OperandError(f"occurrence {shown(occurrence)} was not watched; there is {_listed(products)}")


def _cell(
    product: WatchedProduct, lane: int | None, register: int, index: int, row: int | None, column: int | None,
    matrix: int,
) -> Cell:  # fmt: skip
    """Rule 2."""
    i, layout = product.instruction, product.layout("D")
    if (row is None) != (column is None) or (row is None) == (lane is None):
        raise OperandError(f"{i}: expected lane and register of D's fragment, or row and column of D")
    if row is not None and column is not None:
        return layout.cell(row, column, matrix)
    cells = layout.holds(lane, register)  # type: ignore[arg-type]
    if not is_integer(index) or not 0 <= index < len(cells):
        raise OperandError(
            f"{i}: index is {shown(index)}; a register of D holds {len(cells)}, expected 0 to {len(cells) - 1}"
        )
    cell = cells[index]
    return replace(cell, matrix=0) if isinstance(i, WmmaProduct) else cell  # its matrices are copies


def _chain(products: Sequence[WatchedProduct], last: WatchedProduct, cell: Cell) -> list[WatchedProduct]:
    """Rules 3 and 4."""
    parts = [x for x in products if x.occurrence <= last.occurrence]
    if all(_follows(after, before, cell) for before, after in pairwise(parts)):
        return parts
    chain, taken = [last], []  # a tile of zeros gave zero too: it does not go before all that begin with it
    while (of_c := in_registers(chain[0], "C")) is not None and of_c.any():
        givers = [x for x in parts if x.occurrence < chain[0].occurrence and _gave(x, chain[0])]
        if not givers:
            break
        taken.append((chain[0], givers))
        chain.insert(0, givers[-1])
    if len(chain) == 1:
        raise OperandError(
            f"{last.place}: its C is not the D of occurrence {parts[-2].occurrence}, for this element, nor of one "
            "before it; explain it without chain"
        )
    members = {x.occurrence for x in chain}
    for after, givers in taken:
        for other in givers:
            if other.occurrence not in members and not _same_operands(other, givers[-1]):
                raise OperandError(
                    f"{after.place}: its C is the D of occurrences {other.occurrence} and {givers[-1].occurrence}, of "
                    "different operands; explain it without chain"
                )
    return chain


def _follows(after: WatchedProduct, before: WatchedProduct, cell: Cell) -> bool:
    """Return True if one is the next, and took what was given: all of it, or this element."""
    if after.occurrence != before.occurrence + 1 or not _chainable(before, after):
        return False
    gave = int(matrix_of(before, "D")[_index(cell, before, "D")])
    took = int(matrix_of(after, "C")[_index(cell, after, "C")])
    return _gave(before, after) or gave == took != 0


def _chainable(before: WatchedProduct, after: WatchedProduct) -> bool:
    """Return True if D has the type of C, and C is read."""
    return before.instruction.d_type == after.instruction.c_type and in_registers(after, "C") is not None


def _gave(before: WatchedProduct, after: WatchedProduct) -> bool:
    """Return True if all of D is all of another's C."""
    return _chainable(before, after) and np.array_equal(before.registers["D"], after.registers["C"])


def _same_operands(one: WatchedProduct, other: WatchedProduct) -> bool:
    same = (np.array_equal(x, other.registers[name]) for name, x in one.registers.items())
    tiles = (np.array_equal(x.codes, other.tiles[name].codes) for name, x in one.tiles.items())
    return one.numbers == other.numbers and all(same) and all(tiles)


def _index(cell: Cell, product: WatchedProduct, operand: Any) -> tuple[int, ...]:
    where = (cell.row, cell.column)
    several = isinstance(product.instruction, Instruction) and len(product.instruction.layout(operand).shape) == 3
    return (cell.matrix, *where) if several else where


def _explained(parts: Sequence[WatchedProduct], cell: Cell, against: str | None) -> Explanation:
    """Explain one instruction, or several as a whole product."""
    i, target, rounded = explained_by(parts[0])
    a, b, c, more = operands_of(parts, cell.matrix)
    told = explain(
        i, a, b, c, row=cell.row, column=cell.column, target=target, against=against, epilogue=rounded, **more
    )
    return replace(told, matrix=cell.matrix)
