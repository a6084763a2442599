"""The argument that names an instruction, and the note that says which one its words are taken for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ...isa import AnyInstruction, named
from ..output.streams import note


def add_instruction(parser: argparse.ArgumentParser, help: str = "") -> None:
    """Add the argument `instruction`: words for `instruction_of`."""
    parser.add_argument(
        "instruction", nargs="+", metavar="INSTRUCTION",
        help=help or "a mnemonic, or words that leave one, such as m16n8k16 f16",
    )  # fmt: skip


def instruction_of(words: str | Sequence[str], target: str | None = None) -> AnyInstruction:
    """Return the instruction that words name; what was chosen among several is noted, to be said before the result.

    Parameters
    ----------
    words : str or sequence of str
    target : str, optional
        Instructions that it has come first, and any other is an error of whoever asks the target for it.

    Raises
    ------
    MnemonicError
        No instruction is that; or several are, and what would tell them apart.
    """
    found = named(words, target)
    if found.note:
        note(f"warpmma: {found.note}")
    return found.instruction
