"""Explanations as text: tables of fewer than 120 columns, with the aligned bits of every addend where they fit.

What may be coloured goes through `Mark`, which gets a kind and a text of final width: "heading", "kept" and "cut" bits,
"dim" words, "loss". Without one the text is plain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from textwrap import wrap

from ..._arguments import is_integer
from ..._text import counted, table
from ...analysis import Explanation, Parting
from ...arithmetic import Popcount, SumStep
from ...errors import OperandError, shown
from ...products import FLOAT32
from .sum_bits import BitGrid, BitRow, grid_of
from .sum_cells import CHAIN_HEAD, CHAINS, addend_cells, chain_cells
from .sum_folding import PlacedStep, StepRun, chosen_addends, counterparts, folded, placed
from .sum_numbers import number_text, short
from .sum_ones import ones_lines
from .sum_summary import summary, summary_against
from .sum_words import (
    aligned_text,
    chain_text,
    factors,
    heading,
    how,
    label,
    link_of,
    listed,
    outcome_text,
    rounding_text,
    run_text,
    unpacked,
)

Mark = Callable[[str, str], str]
_WIDTH, _NARROW, _LEAST = 118, 60, 4
_TIE = "\0"  # a blank at which no line ends


def _plain(kind: str, text: str) -> str:
    return text


@dataclass(frozen=True)
class _Page:
    """Where lines are written: how wide it is, and what marks them."""

    mark: Mark
    width: int

    def lines(self, kind: str, words: str, indent: str = "") -> list[str]:
        """Wrap words; a kind of "" marks nothing."""
        found = wrap(
            words, self.width, initial_indent=indent, subsequent_indent=indent + "  " * bool(indent),
            break_on_hyphens=False, break_long_words=False,
        )  # fmt: skip
        return [self.mark(kind, line) if kind else line for line in found]


def text(explanation: Explanation, whole: bool = False, mark: Mark | None = None, width: int = _WIDTH) -> str:
    """Write an explanation.

    Parameters
    ----------
    explanation : Explanation
    whole : bool
        Show every step and every product, of long chains too.
    mark : callable, optional
        Makes of a kind and a text what is written for it; what it adds must have no width.
    width : int
        Columns that there are, at least 60; where there are few, codes are left out, then operands, then bits.

    Returns
    -------
    str
        Lines of at most so many columns.
    """
    if mark is not None and not callable(mark):
        raise OperandError(f"mark is {shown(mark)}; expected a function of a kind and a text")
    if not is_integer(width) or width < _NARROW:
        raise OperandError(f"width is {shown(width)}; expected {_NARROW} columns or more")
    page = _Page(mark or _plain, int(width))
    lines = _header(explanation, page)
    lines += _steps(explanation, whole, page)
    lines += ["", *_table(summary(explanation), page)]
    for other, parting in zip(explanation.others, explanation.partings, strict=True):
        lines += _against(explanation, other, parting, whole, page)
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Sequence[str]], page: _Page) -> list[str]:
    lines = table(rows, left=range(len(rows[0])))
    return [
        page.mark("heading", line) if row[0] in ("result", "") else line for row, line in zip(rows, lines, strict=True)
    ]


def _header(explanation: Explanation, page: _Page) -> list[str]:
    place = f"D[{explanation.row}, {explanation.column}]"
    if explanation.matrix:
        place += f" of matrix {explanation.matrix}"
    title = f"{place} of {explanation.instruction} on {explanation.target}"
    lines = page.lines("heading", title)
    words = [explanation.site] if explanation.site else []
    words += [how(explanation.recipe), str(explanation.evidence)]
    if explanation.float32 is not None and FLOAT32[explanation.float32].rounded:
        words.append(f"{FLOAT32[explanation.float32].meaning}; what that lost is no error here")
    if len(explanation.links) > 1:
        words.append(chain_text(explanation))
    if explanation.note:
        words.append(explanation.note)
    for each in words:
        lines += page.lines("dim", each)
    return lines


def _steps(explanation: Explanation, whole: bool, page: _Page) -> list[str]:
    total = len(explanation.steps)
    lines: list[str] = []
    if not total:
        return ["", "Nothing is multiplied: the result is C."]
    link = -1
    for each in _grouped(folded(explanation, whole)):
        lines.append("")
        if isinstance(each, StepRun):
            lines += page.lines("dim", run_text(each))
        elif isinstance(each, list):
            lines += _chain(explanation, each, total, page)
        else:
            if len(explanation.links) > 1 and each.link != link:
                lines += page.lines("dim", f"link {each.link + 1} of {len(explanation.links)}: {link_of(each)}")
                link = each.link
            lines += _block(explanation, each, total, whole, page)
    return lines


def _grouped(items: Iterable[PlacedStep | StepRun]) -> Iterator[PlacedStep | StepRun | list[PlacedStep | StepRun]]:
    """Put steps of few addends together, with the runs between them."""
    group: list[PlacedStep | StepRun] = []
    for each in (*items, None):
        if (isinstance(each, PlacedStep) and each.step.operation in CHAINS) or (isinstance(each, StepRun) and group):
            group.append(each)
        else:
            after = group.pop() if group and isinstance(group[-1], StepRun) else None
            yield from [found for found in (group, after, each) if found]
            group = []


# A step whose addends meet at once


def _block(explanation: Explanation, each: PlacedStep, total: int, whole: bool, page: _Page) -> list[str]:
    if isinstance(explanation.recipe.unit, Popcount):
        return _ones(explanation, each, total, page)
    choice = chosen_addends(each.step, whole)
    lines = page.lines("heading", heading(each, total)) + page.lines("", aligned_text(each))
    lines += _addends(explanation, each, choice.shown, page)
    for indices, what in ((choice.zeros, "zero"), (choice.others, "")):
        if indices:
            lines += page.lines("dim", _counted(each, indices, what), "  ")
    return lines + _members(explanation, each, page)


def _ones(explanation: Explanation, each: PlacedStep, total: int, page: _Page) -> list[str]:
    """Write bits of A, of B and of what they make, 64 in a line."""
    lines, step = page.lines("heading", heading(each, total)), each.step
    rows = []
    for k, name, bits in ones_lines(explanation, each, 64 if page.width > 95 else 32):
        made = name not in ("A", "B")
        where = f"k {k}-{k + len(bits) - 1}" if name == "A" else ""
        rows.append((where, name, bits, counted(bits.count("1"), "one") if made else ""))
    rows += [(x.source, "", "", number_text(x.number)) for x in step.addends if x.source != "product"]
    rows += [("sum", "", "", number_text(step.sum)), ("result", "", "", number_text(step.number))]
    lines += [f"  {line}" for line in table(rows, left=[0, 1, 2])]
    return [*lines, *page.lines("dim", outcome_text(each), "  ")]


def _members(explanation: Explanation, each: PlacedStep, page: _Page) -> list[str]:
    """List the products that groups are made of."""
    recipe, lines = explanation.recipe, []
    for addend in each.step.addends:
        if addend.source == "group":
            pairs = [
                f"{unpacked(f.a, recipe.a)} x {unpacked(f.b, recipe.b)}" for f in factors(explanation, each, addend)
            ]
            words = f"{label(each, addend)}: " + " + ".join(x.replace(" ", _TIE) for x in pairs)
            lines += wrap(words, page.width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
    return [line.replace(_TIE, " ") for line in lines]


def _counted(each: PlacedStep, indices: Sequence[int], what: str) -> str:
    addends = [each.step.addends[i] for i in indices]
    where = listed(sorted(each.chain.k.start + p for x in addends for p in x.products))
    if what:
        return f"{counted(len(indices), 'product')} {'is' if len(indices) == 1 else 'are'} {what}: k {where}"
    value, lost = (
        sum((x for x in parts if x is not None), Fraction(0))
        for parts in ([x.value for x in addends], [x.lost for x in addends])
    )
    return f"{counted(len(indices), 'other')}, {short(value)} together, of which {short(lost)} was cut: k {where}"


def _addends(explanation: Explanation, each: PlacedStep, shown: Sequence[int], page: _Page) -> list[str]:
    """Lay out addends, their sum and its rounding; bits stand to the right."""
    step, grid = each.step, grid_of(each.step)
    head, cells = addend_cells(explanation, each, [step.addends[i] for i in shown])
    left, canvas = _fitting(step, grid, head, cells, page.width)
    edge = max(map(len, left)) + 2
    rows = [None, *(grid.addends[i] for i in shown), grid.sum, grid.result]
    lines = []
    for i, (line, row) in enumerate(zip(left, rows, strict=True)):
        bits = canvas.ruler(page.mark) if i == 0 else canvas.drawn(row, page.mark, i >= len(left) - 2)
        lines.append(f"  {line.ljust(edge)}{bits}".rstrip() if canvas.fits else f"  {line}")
    rule = page.mark("dim", "  " + "-" * (max(map(len, left)) + (2 + canvas.width if canvas.fits else 0)))
    return [*lines[:-2], rule, *lines[-2:], *page.lines("dim", outcome_text(each), "  ")]


_LEFT_OUT = ((), ("",), ("", "a", "b", "scales", "column"), ("", "a", "b", "scales", "column", "exponent", "cut"))


def _fitting(
    step: SumStep, grid: BitGrid, head: Sequence[str], cells: Sequence[Sequence[str]], width: int
) -> tuple[list[str], _Canvas]:
    """Leave out columns until bits fit; where they never do, until the others fit."""
    tried = []
    for names in _LEFT_OUT:
        kept = [i for i, name in enumerate(head) if name not in names]
        left = _laid(step, [head[i] for i in kept], [[row[i] for i in kept] for row in cells])
        canvas = _Canvas(grid, width - 4 - max(map(len, left)))
        tried.append((left, canvas))
        if canvas.fits:
            return left, canvas
    return next((pair for pair in tried if max(map(len, pair[0])) <= width - 2), tried[-1])


def _laid(step: SumStep, head: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    at = head.index("product")
    blank = [""] * len(head)
    ends = [
        [name, *blank[1:at], number_text(number), *blank[at + 1 :]]
        for name, number in (("sum", step.sum), ("result", step.number))
    ]
    return table([head, *cells, *ends], left=[0])


class _Canvas:
    """Columns of bits: what is kept, a bar, what is cut."""

    def __init__(self, grid: BitGrid, room: int) -> None:
        self.top = grid.top
        self.quantum = grid.quantum
        self.last = grid.bottom if grid.quantum is None else grid.quantum
        self.kept = self.top - self.last + 1
        tail = 0 if grid.quantum is None else grid.quantum - grid.bottom
        self.tail = min(tail, max(0, room - self.kept - 3))
        self.bottom = self.last - self.tail
        least = 2 + max(3, min(tail, _LEAST)) if tail else 1  # a sign, a bar, and what the ruler says
        self.fits = bool(grid.rows) and self.kept + least <= room
        self.width = 1 + self.kept + (1 + max(self.tail, 3) if tail else 0)

    def ruler(self, mark: Mark) -> str:
        first, last = f"2^{self.top}", f"2^{self.last}"
        gap = self.kept - len(first) - len(last)
        words = f" {first}{' ' * gap}{last}" if gap > 0 else f" {first.ljust(self.kept)}"
        return mark("dim", words + ("|cut" if self.tail else ""))

    def drawn(self, row: BitRow | None, mark: Mark, below: bool) -> str:
        """Draw a row: dots above its digits, and `>` where there are more below than fit."""
        if row is None:
            return ""
        columns = [row.digit(w) or ("." if w > row.high else " ") for w in range(self.top, self.bottom - 1, -1)]
        kept, cut = "".join(columns[: self.kept]), "".join(columns[self.kept :])
        if row.low < self.bottom:
            cut = cut[:-1] + ">"
        bar = "" if not self.tail or (below and not cut.strip()) else "|"
        drawn = ("-" if row.negative else " ") + mark("kept", kept if bar else kept.rstrip()) + bar
        return drawn + mark("cut", cut.rstrip()) if cut.strip() else drawn


# Steps of few addends, one after the other: a line for each


def _chain(explanation: Explanation, items: Sequence[PlacedStep | StepRun], total: int, page: _Page) -> list[str]:
    head = CHAIN_HEAD
    rows: list[tuple[str, ...] | str] = [head]
    for each in items:
        rows.append(run_text(each) if isinstance(each, StepRun) else chain_cells(explanation, each))
    cells = [row for row in rows if not isinstance(row, str)]
    used = [i for i in range(len(head)) if any(row[i] for row in cells[1:])]
    laid = table([[row[i] for i in used] for row in cells], left=[1])
    for left_out in ((4, 6), (3, 4, 5, 6), (*range(3, 7), 10), (*range(3, 9), 10), (*range(3, 9), 10, 11)):
        if max(map(len, laid)) > page.width - 2:
            laid = table([[row[i] for i in used if i not in left_out] for row in cells], left=[1])
    rest = iter(laid)
    lines = [f"  {page.mark('dim', row)}" if isinstance(row, str) else f"  {next(rest)}" for row in rows]
    steps = [each for each in items if isinstance(each, PlacedStep)]
    words = " or ".join(dict.fromkeys(rounding_text(each) for each in steps))
    title = (
        f"{heading(steps[0], total)}, {words}"
        if len(items) == 1
        else f"steps {steps[0].number + 1} to {steps[-1].number + 1} of {total}, each {words}"
    )
    return [*page.lines("heading", title), *lines]


# Other targets


def _against(
    explanation: Explanation, other: Explanation, parting: Parting | None, whole: bool, page: _Page
) -> list[str]:
    lines = ["", page.mark("heading", f"{explanation.target} against {other.target}")]
    both = table(summary_against(explanation, other), left=[0])
    if max(map(len, both)) > page.width:
        both = [*_table(summary(explanation), page), "", f"on {other.target}:", *_table(summary(other), page)]
    lines += both
    if parting is None:
        return [*lines, "", "They do not part: every step gives the same."]
    [each] = [x for x in placed(explanation) if (x.link, x.place) == (parting.link, parting.step)]
    lines += ["", *page.lines("", f"They part in step {each.number + 1} of {explanation.target}: {parting.reason}")]
    if whole:
        return [*lines, "", *_header(other, page), *_steps(other, whole, page)]
    for theirs in counterparts(explanation, each, other):
        block = (
            _chain(other, [theirs], len(other.steps), page)
            if theirs.step.operation in CHAINS
            else _block(other, theirs, len(other.steps), whole, page)
        )
        lines += ["", page.mark("dim", f"on {other.target}:"), *block]
    return lines
