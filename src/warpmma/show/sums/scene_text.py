"""Explanations as text: tables of fewer than 120 columns, with the aligned bits of every addend where they fit.

Colour goes through `Mark`, which gets a kind and a text of final width: "heading", "kept" and "cut" bits, "dim" words.
Without one the text is plain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from ..._arguments import is_integer
from ..._text import counted, table
from ...analysis import Explanation
from ...errors import OperandError, shown
from .aligned_bits import BitGrid, BitRow
from .scene import CHAIN_HEAD, Comparison, Scene, StepScene, scene_of
from .shown_steps import text_steps

Mark = Callable[[str, str], str]
_WIDTH, _NARROW, _LEAST = 118, 60, 4
_TIE = "\0"  # a blank at which no line ends


def _plain(kind: str, text: str) -> str:
    return text


@dataclass(frozen=True)
class _Page:
    """The width of lines, and the marks on them."""

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
    """Write an explanation in lines of at most `width` columns; `whole` shows every step and every product.

    Where there are few columns, codes are left out, then operands, then bits.
    """
    if mark is not None and not callable(mark):
        raise OperandError(f"mark is {shown(mark)}; expected a function of a kind and a text")
    if not is_integer(width) or width < _NARROW:
        raise OperandError(f"width is {shown(width)}; expected {_NARROW} columns or more")
    page, scene = _Page(mark or _plain, int(width)), scene_of(explanation, text_steps(explanation, whole), whole)
    lines = [*_header(scene, page), *_steps(scene, page), "", *_table(scene.summary, page)]
    for other in scene.others:
        lines += _against(scene, other, whole, page)
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Sequence[str]], page: _Page) -> list[str]:
    lines = table(rows, left=range(len(rows[0])))
    return [
        page.mark("heading", line) if row[0] in ("result", "") else line for row, line in zip(rows, lines, strict=True)
    ]


def _header(scene: Scene, page: _Page) -> list[str]:
    words = (scene.site, scene.how, str(scene.evidence), scene.reading, scene.chain, scene.note)
    title = page.lines("heading", f"{scene.whole_place} of {scene.instruction} on {scene.target}")
    return [*title, *(line for each in words if each for line in page.lines("dim", each))]


def _steps(scene: Scene, page: _Page) -> list[str]:
    if not scene.total:
        return ["", "Nothing is multiplied: the result is C."]
    lines: list[str] = []
    link = -1
    for each in _grouped(scene.items):
        lines.append("")
        if isinstance(each, str):
            lines += page.lines("dim", each)
        elif isinstance(each, list):
            lines += _chain(each, scene.total, page)
        else:
            if each.link_text and each.link != link:
                lines += page.lines("dim", each.link_text)
                link = each.link
            lines += _block(each, page)
    return lines


def _grouped(items: Iterable[StepScene | str]) -> Iterator[StepScene | str | list[StepScene | str]]:
    """Put steps of few addends together, with the runs between them."""
    group: list[StepScene | str] = []
    for each in (*items, None):
        if (isinstance(each, StepScene) and each.chain_name) or (isinstance(each, str) and group):
            group.append(each)
        else:
            after = group.pop() if group and isinstance(group[-1], str) else None
            yield from [found for found in (group, after, each) if found]
            group = []


# A step whose addends meet at once


def _block(step: StepScene, page: _Page) -> list[str]:
    lines = page.lines("heading", step.heading)
    if step.ones:
        return [*lines, *_ones(step, page), *page.lines("dim", step.outcome, "  ")]
    lines += [*page.lines("", step.aligned), *_addends(step, page), *page.lines("dim", step.zeros, "  ")]
    if x := step.others:
        cut = f"{x.value} together, {x.cut} of it was cut: k {x.k}"
        lines += page.lines("dim", f"{counted(x.number, 'other')}, {cut}", "  ")
    return lines + _members(step, page)


def _ones(step: StepScene, page: _Page) -> list[str]:
    """Write bits of A, of B and of their combination, 64 in a line."""
    rows = []
    for k, name, bits in step.lines_of_ones(64 if page.width > 95 else 32):
        made = name not in ("A", "B")
        where = f"k {k}-{k + len(bits) - 1}" if name == "A" else ""
        rows.append((where, name, bits, counted(bits.count("1"), "one") if made else ""))
    rows += [(name, "", "", value.text) for name, value in step.ends]
    return [f"  {line}" for line in table(rows, left=[0, 1, 2])]


def _members(step: StepScene, page: _Page) -> list[str]:
    """List the products that groups are made of."""
    lines = []
    for row in step.addends:
        if row.source == "group":
            words = f"{row.label}: " + " + ".join(f"{f.a}{_TIE}x{_TIE}{f.b}" for f in row.factors)
            lines += page.lines("", words, "  ")
    return [line.replace(_TIE, " ") for line in lines]


def _addends(step: StepScene, page: _Page) -> list[str]:
    """Lay out addends, their sum and its rounding; bits stand to the right."""
    left, canvas = _fitting(step, page.width)
    edge = max(map(len, left)) + 2
    rows = [None, *(row.bits for row in step.addends), step.sum.bits, step.result.bits]
    lines = []
    for i, (line, row) in enumerate(zip(left, rows, strict=True)):
        bits = canvas.ruler(page.mark) if i == 0 else canvas.drawn(row, page.mark, i >= len(left) - 2)
        lines.append(f"  {line.ljust(edge)}{bits}".rstrip() if canvas.fits else f"  {line}")
    rule = page.mark("dim", "  " + "-" * (max(map(len, left)) + (2 + canvas.width if canvas.fits else 0)))
    return [*lines[:-2], rule, *lines[-2:], *page.lines("dim", step.outcome, "  ")]


_LEFT_OUT = ((), ("",), ("", "a", "b", "scales", "column"), ("", "a", "b", "scales", "column", "exponent", "cut"))


def _fitting(step: StepScene, width: int) -> tuple[list[str], _Canvas]:
    """Leave out columns until bits fit; where they never do, until the others fit."""
    tried = []
    head, *_ = rows = step.table
    for names in _LEFT_OUT:
        kept = [i for i, name in enumerate(head) if name not in names]
        left = table([[row[i] for i in kept] for row in rows], left=[0])
        canvas = _Canvas(step.grid, width - 4 - max(map(len, left)))
        tried.append((left, canvas))
        if canvas.fits:
            return left, canvas
    return next((pair for pair in tried if max(map(len, pair[0])) <= width - 2), tried[-1])


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


def _chain(items: Sequence[StepScene | str], total: int, page: _Page) -> list[str]:
    steps = [each for each in items if isinstance(each, StepScene)]
    cells = [CHAIN_HEAD, *(each.chain_cells for each in steps)]
    used = [i for i in range(len(CHAIN_HEAD)) if any(row[i] for row in cells[1:])]
    for left_out in ((), (4, 6), (3, 4, 5, 6), (*range(3, 7), 10), (*range(3, 9), 10), (*range(3, 9), 10, 11)):
        laid = table([[row[i] for i in used if i not in left_out] for row in cells], left=[1])
        if max(map(len, laid)) <= page.width - 2:
            break
    rest = iter(laid)
    lines = [f"  {page.mark('dim', row)}" if isinstance(row, str) else f"  {next(rest)}" for row in (None, *items)]
    words = " or ".join(dict.fromkeys(each.rounded for each in steps))
    title = (
        f"{steps[0].heading}, {words}"
        if len(items) == 1
        else f"steps {steps[0].number + 1} to {steps[-1].number + 1} of {total}, each {words}"
    )
    return [*page.lines("heading", title), *lines]


# Other targets


def _against(scene: Scene, comparison: Comparison, whole: bool, page: _Page) -> list[str]:
    other, parting, number = comparison
    lines = ["", page.mark("heading", f"{scene.target} against {other.target}")]
    both = table(scene.beside(other), left=[0])
    if max(map(len, both)) > page.width:
        both = [*_table(scene.summary, page), "", f"on {other.target}:", *_table(other.summary, page)]
    lines += both
    if parting is None or number is None:
        return [*lines, "", "They do not differ: every step gives the same."]
    lines += ["", *page.lines("", f"They first differ in step {number + 1} of {scene.target}: {parting.reason}")]
    if whole:
        return [*lines, "", *_header(other, page), *_steps(other, page)]
    for step in other.steps:
        block = _chain([step], other.total, page) if step.chain_name else _block(step, page)
        lines += ["", page.mark("dim", f"on {other.target}:"), *block]
    return lines
