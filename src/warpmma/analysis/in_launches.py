"""The explanation of an `mma` inside a kernel, by its line, warp and lane.

1. A launch that was given a `Watch` has kept the operands' registers of the executions that fit it. Layouts collect
   matrices from them, and `explain` explains an element of D.
2. The element is named as a kernel has it, by the lane, the register of the fragment and its place in it; or by its row
   and column in D.
3. A chain is executions of one line by one warp, each of which took as its C the D of an earlier one, in all registers
   of all lanes: a loop along k. Explained as a whole product, it is the same instructions in the same order, and so the
   same bits.
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
from .._arrays import Array
from .._text import ranges
from ..errors import OperandError, shown
from ..execution import store
from ..isa import Instruction
from ..layouts import Cell
from ..machine import Launch, WatchedProduct
from ..scaling import unpack_scales
from ..sparsity import unpack_metadata
from .explaining import explain
from .explanation import Explanation


def explain_launch(
    launch: Launch, *, line: int | None = None, block: int | None = None, warp: int | None = None,
    occurrence: int | None = None, lane: int | None = None, register: int = 0, index: int = 0, row: int | None = None,
    column: int | None = None, matrix: int = 0, against: str | None = None, chain: bool = False,
) -> Explanation:  # fmt: skip
    """Explain how one element of the result of an `mma` in a kernel was computed.

    Parameters
    ----------
    launch : Launch
        Of a kernel in Python or of PTX, that was launched with `watch=Watch(...)`.
    line, block, warp, occurrence : int, optional
        Which of those that were watched; they need not be said where there is one. Of several occurrences it is the
        first.
    lane, register, index : int
        Which element of the fragment of D.
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
    products = _watched(launch, line, block, warp)
    product = _at(products, occurrence)
    cell = _cell(product.instruction, lane, register, index, row, column, matrix)
    parts = _chain(products, product, cell) if chain else [product]
    return replace(_explained(parts, cell, against), site=product.place)


def _watched(launch: object, line: int | None, block: int | None, warp: int | None) -> list[WatchedProduct]:
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
        if (line is None or line in x.lines) and block in (None, x.block) and warp in (None, x.warp)
    ]  # fmt: skip
    if not found:
        raise OperandError(f"no such mma was watched; there is {_listed(launch.watched)}")
    if len({(x.site, x.block, x.warp) for x in found}) > 1:
        raise OperandError(f"several were watched, say line, block and warp: {_listed(found)}")
    return found


def _products_of(launch: Launch) -> str:
    """Name the lines at which a launch executed an `mma`."""
    sites = [site for site in launch.costs.instructions if isinstance(site.instruction, Instruction)]
    if not sites:
        return "and no mma was executed"
    return f"mma were executed at {', '.join(dict.fromkeys(site.place for site in sites[:_LISTED]))}"


def _listed(products: Sequence[WatchedProduct]) -> str:
    """Name executions, together those of a warp at a line."""
    turns: dict[str, list[int]] = {}
    for x in products:
        turns.setdefault(f"{x.site.place}, block {x.block}, warp {x.warp}", []).append(x.occurrence)
    few = [f"{place}, occurrence {ranges(which)}" for place, which in list(turns.items())[:_LISTED]]
    return "; ".join(few) + ("; ..." if len(turns) > _LISTED else "")


_LISTED = 6


def _at(products: Sequence[WatchedProduct], occurrence: int | None) -> WatchedProduct:
    for x in products:
        if occurrence in (None, x.occurrence):
            return x
    raise OperandError(f"occurrence {shown(occurrence)} was not watched; there is {_listed(products)}")


def _cell(
    i: Instruction, lane: int | None, register: int, index: int, row: int | None, column: int | None, matrix: int
) -> Cell:
    """Rule 2."""
    layout = i.layout("D")
    if (row is None) != (column is None) or (row is None) == (lane is None):
        raise OperandError(f"{i}: expected lane and register of D's fragment, or row and column of D")
    if row is not None and column is not None:
        return layout.cell(row, column, matrix)
    cells = layout.holds(lane, register)  # type: ignore[arg-type]
    if not is_integer(index) or not 0 <= index < len(cells):
        raise OperandError(
            f"{i}: index is {shown(index)}; a register of D holds {len(cells)}, expected 0 to {len(cells) - 1}"
        )
    return cells[index]


def _chain(products: Sequence[WatchedProduct], last: WatchedProduct, cell: Cell) -> list[WatchedProduct]:
    """Rules 3 and 4."""
    parts = [x for x in products if x.occurrence <= last.occurrence]
    if all(_follows(after, before, cell) for before, after in pairwise(parts)):
        return parts
    chain, taken = [last], []  # a tile of zeros gave zero too: it does not go before all that begin with it
    while chain[0].registers["C"].any():
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
    if after.occurrence != before.occurrence + 1 or before.instruction.d_type != after.instruction.c_type:
        return False
    gave, took = (int(_matrix(x, name)[_index(cell, x, name)]) for x, name in ((before, "D"), (after, "C")))
    return _gave(before, after) or gave == took != 0


def _gave(before: WatchedProduct, after: WatchedProduct) -> bool:
    """Return True if all of D is all of another's C."""
    alike = before.instruction.d_type == after.instruction.c_type
    return alike and np.array_equal(before.registers["D"], after.registers["C"])


def _same_operands(one: WatchedProduct, other: WatchedProduct) -> bool:
    same = (np.array_equal(x, other.registers[name]) for name, x in one.registers.items())
    return one.numbers == other.numbers and all(same)


def _matrix(product: WatchedProduct, operand: Any) -> Array:
    """Codes of a whole operand."""
    i = product.instruction
    return np.asarray(i.format(operand).codes(store(i, operand, product.registers[operand])))


def _index(cell: Cell, product: WatchedProduct, operand: Any) -> tuple[int, ...]:
    where = (cell.row, cell.column)
    return (cell.matrix, *where) if len(product.instruction.layout(operand).shape) == 3 else where


def _explained(parts: Sequence[WatchedProduct], cell: Cell, against: str | None) -> Explanation:
    """Explain one instruction, or several as a whole product."""
    first, i = parts[0], parts[0].instruction
    several = len(i.layout("D").shape) == 3

    def whole(operand: Any, axis: int) -> Array:
        codes = [_matrix(x, operand) for x in parts]
        return np.concatenate([x[cell.matrix] if several else x for x in codes], axis=axis)

    more: dict[str, Any] = {}
    if i.sparse:
        words = [unpack_metadata(x.registers["metadata"], i, selector=x.numbers["selector"]) for x in parts]
        more["indices"] = np.concatenate(words, axis=1)
    if i.block_scale:
        for name, operand, axis in (("scale_a", "A", 1), ("scale_b", "B", 0)):
            side = operand.lower()
            more[name] = np.concatenate([
                unpack_scales(x.registers[name], i, operand,  # type: ignore[arg-type]
                              byte_id=x.numbers[f"byte_id_{side}"], thread_id=x.numbers[f"thread_id_{side}"])
                for x in parts
            ], axis=axis)  # fmt: skip
    c = _matrix(first, "C")
    told = explain(
        i, whole("A", 1), whole("B", 0), c[cell.matrix] if several else c, row=cell.row, column=cell.column,
        target=first.target, against=against, **more,
    )  # fmt: skip
    return replace(told, matrix=cell.matrix)
