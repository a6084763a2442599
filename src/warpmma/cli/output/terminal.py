"""Output on a terminal: colour, and columns of its width.

1. `--color` is auto, always or never. Auto is colour where the output is a terminal that has it, and the variable
   NO_COLOR is not set or empty.
2. In a pipe a table is plain: columns two blanks apart, a line for each row, whatever the width. On a terminal, where
   rich is installed, its cells are folded to the width.
3. Colour says nothing that the text does not say.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..._text import table
from .streams import terminal_width

_WIDTH = 118  # of prose in a pipe
# Styles as codes of a terminal and as names of rich. None is yellow, which is illegible on white.
_STYLES = {
    "bold": ("1", "bold"), "dim": ("2", "dim"), "lane": ("36", "cyan"), "register": ("35", "magenta"),
    "good": ("32", "green"), "bad": ("31", "red"),
}  # fmt: skip


@dataclass(frozen=True)
class Paint:
    """Colour, or none; and whether the output is a terminal."""

    colour: bool = False
    terminal: bool = False

    def __call__(self, text: str, style: str) -> str:
        """Paint a text: "bold", "dim", "lane", "register", "good" or "bad"."""
        return f"\x1b[{_STYLES[style][0]}m{text}\x1b[0m" if self.colour and text else text


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add `--json` and `--color`."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="auto (a terminal's), always or never"
    )


def paint_of(options: argparse.Namespace) -> Paint:
    """Rule 1."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    able = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Paint(colour=options.color == "always" or (options.color == "auto" and able), terminal=terminal)


def prose_width() -> int:
    """Return the width of prose: that of the terminal, or 118 columns without one."""
    terminal = sys.stdout is not None and sys.stdout.isatty()
    return max(40, min(terminal_width(), _WIDTH)) if terminal else _WIDTH


def folded(text: str, indent: int = 0) -> str:
    """Break a line of prose at blanks; lines after the first are indented."""
    lines = textwrap.wrap(text, prose_width() - indent, break_long_words=False, break_on_hyphens=False)
    return f"\n{' ' * indent}".join(lines)


def tabulated(
    rows: Sequence[Sequence[str]], paint: Paint, left: Collection[int] = (), styles: Sequence[str] = ()
) -> str:
    """Lay out rows; the first is the heading (rule 2).

    The columns `left` are aligned to the left; `styles` are those of the columns, "" for none.

    Examples
    --------
    >>> print(tabulated([("lane", "register"), ("14", "1")], Paint()))
    lane  register
      14         1
    """
    if paint.terminal and (columns := _columns(rows, paint, left, styles)) is not None:
        return columns
    first, *rest = table(rows, left)
    return "\n".join([paint(first, "bold"), *rest])


def _columns(rows: Sequence[Sequence[str]], paint: Paint, left: Collection[int], styles: Sequence[str]) -> str | None:
    try:
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text
    except ImportError:  # rich is an extra
        return None
    shown = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for i, head in enumerate(rows[0]):
        style = _STYLES[styles[i]][1] if i < len(styles) and styles[i] else ""
        shown.add_column(Text(head), justify="left" if i in left else "right", style=style, overflow="fold")
    for row in rows[1:]:
        shown.add_row(*map(Text, row))
    out = io.StringIO()
    width = terminal_width()
    console = Console(
        file=out, width=width, force_terminal=paint.colour, no_color=not paint.colour, highlight=False,
        color_system="standard" if paint.colour else None,
    )  # fmt: skip
    console.print(shown)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
