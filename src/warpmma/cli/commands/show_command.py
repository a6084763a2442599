"""The command `show`: all about one instruction."""

from __future__ import annotations

import argparse

from ..._views import view
from ...isa import FragmentHolder, FragmentInstruction, check_target, words_of
from ..arguments.fragment_words import holder_of
from ..arguments.naming import add_instruction
from ..output.streams import write
from ..output.terminal import Paint, add_output, paint_of, prose_width


def add_show(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "show", description="Show one instruction: its operands in registers, formulas both ways, how each target "
        "computes it, and how that is known.",
    )  # fmt: skip
    add_instruction(parser)
    parser.add_argument("--target", help="how this one computes it; by default all that have it")
    add_output(parser)
    parser.set_defaults(run=_show)


def _show(options: argparse.Namespace) -> int:
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
