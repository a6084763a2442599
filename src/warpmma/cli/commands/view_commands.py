"""The commands `show`, `layout` and `explore`: an instruction, one of its operands, and everything as an HTML page."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..._views import view
from ...isa import FragmentHolder, FragmentInstruction, check_target, words_of
from ...layouts import ORDERS, TABLE_FORMATS
from ...lookup import FragmentTable, SharedReading, layout_table
from ..arguments.naming import add_instruction, holder_of
from ..arguments.operand_words import add_descriptor, add_operand, add_selectors, described, looked_up, selected
from ..output.output_files import add_files, kind_of, write_file, write_or_replace
from ..output.streams import say, write
from ..output.terminal import Paint, add_output, paint_of, prose_width

_PAGE = "warpmma.html"


def add_show(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    add_instruction(parser)
    parser.add_argument("--target", help="how this one computes it; by default all that have it")
    add_output(parser)


def run_show(options: argparse.Namespace) -> int:
    """Show one instruction: operands in registers, formulas both ways, how each target computes it, and evidence."""
    instruction = holder_of(options.instruction, target=options.target)
    if options.target is not None:
        check_target(instruction, options.target)
    if options.json:
        write(view(instruction, "json", options.target))
    else:
        text = f"{view(instruction, 'text', options.target, prose_width())}\n\n{_next(instruction)}"
        write(_painted(text, paint_of(options)))
    return 0


def _next(i: FragmentHolder) -> str:
    if isinstance(i, FragmentInstruction):
        first, words = i.operands[0], str(i)
        lines = [f"where {words} {first} 0 0", f"what {words} {first} --lane 0", f"layout {words} {first}"]
    else:
        words = words_of(i)
        lines = [f"where {words} A 0 0", f"what {words} A --lane 0", f"layout {words} D", f"evidence {words}"]
    return "\n".join(["Where to look next", "------------------", *(f"  warpmma {line}" for line in lines)])


def _painted(text: str, paint: Paint) -> str:
    """Make the first line and the headings bold, and the rules under headings dim."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if i == 0 or (i + 1 < len(lines) and lines[i + 1] and set(lines[i + 1]) == {"-"}):
            lines[i] = paint(line, "bold")
        elif line and set(line) == {"-"}:
            lines[i] = paint(line, "dim")
    return "\n".join(lines)


def add_layout(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    add_operand(parser)
    parser.add_argument("--by", choices=ORDERS, default="element", help="rows and columns, or lanes and registers")
    parser.add_argument("--format", choices=TABLE_FORMATS, help="by default text, or what the file's ending says")
    add_files(parser, TABLE_FORMATS, "write it there; a file of that name is replaced", once=True)
    add_selectors(parser, None)
    add_descriptor(parser)
    parser.add_argument("--json", action="store_true", help="the same as --format json")


def run_layout(options: argparse.Namespace) -> int:
    """Print an operand: every element with its lane and its place in the lane's fragment."""
    instruction, operand, target = looked_up(options)
    given = {"target": target, **described(options), **selected(options)}
    table: FragmentTable | SharedReading = layout_table(instruction, operand, by=options.by, **given)
    form = "json" if options.json else options.format
    if form is None:
        form = "text" if options.output is None else kind_of(options.output, TABLE_FORMATS)
    write_or_replace(view(table, "page" if form == "html" else form), options.output)
    return 0


def add_explore(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.add_argument("out", nargs="?", default=_PAGE, metavar="OUT.html", help=f"where to; by default {_PAGE}")
    parser.add_argument("-o", "--output", metavar="FILE", help="the same, as the other commands have it")
    parser.add_argument("--open", action="store_true", help="open it in a browser")
    parser.add_argument("--json", action="store_true", help="print where it is, and its size, as JSON")


def run_explore(options: argparse.Namespace) -> int:
    """Write the explorer: one HTML file, which needs no network and no server.

    It shows which lane holds which element of every instruction, and explains sums on two targets beside each other.
    """
    from ...show import explorer_page

    path = Path(options.output or options.out)
    if path.is_dir():
        path = path / _PAGE
    content = explorer_page().encode()
    write_file(path, lambda stream: stream.write(content), "OUT.html in a folder that is there")
    size = len(content)
    where = path.resolve()
    if options.json:
        write(json.dumps({"file": str(where), "bytes": size}, indent=2))
    else:
        write(f"{path}: {size / 1e6:.1f} MB, to be opened in a browser")
    if not options.open:
        return 0
    import webbrowser  # no other command needs it

    if not webbrowser.open(where.as_uri()):
        say(f"warpmma: no browser was found; {where} can be opened in any")
    return 0
