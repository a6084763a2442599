"""Words that name an instruction on the command line, and notes on the choice among several.

1. Words with the opcode of an `ldmatrix`, `stmatrix`, `movmatrix` or `wmma` name one of these; `isa.named` reads all
   others.
2. Each further word must be a qualifier of the instruction, or the type of one of its operands. Where the operand that
   is looked up is known, the instruction has it, and the types are that operand's first.
3. If several instructions are left, the plainest is taken, and the error stream says which: without state space;
   elements of 16 bits; without `.trans`; a load or a store; A by rows, B by columns; without satfinite and rounding;
   accumulators of 32 bits.
4. Shapes, numbers of matrices and types of A are never chosen: the error says what would tell instructions apart.
5. Where fragments differ between targets and no target is named, the answer is that of the newest targets, and the
   error stream says so.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence

from ..._arguments import suggestion
from ...errors import MnemonicError, shown
from ...isa import (
    FRAGMENT_OPCODES,
    MEASURED_ON,
    FragmentHolder,
    FragmentInstruction,
    MatrixInstruction,
    fragment_instructions,
    named,
    parse_fragments,
    type_named,
)
from ..output.streams import note

_Test = Callable[[FragmentInstruction], bool]


def _without(*words: str) -> _Test:
    return lambda i: not {*words} & {*i.mnemonic.split(".")}


def _by_habit(i: FragmentInstruction) -> bool:
    """Say whether A and accumulators go by rows and B by columns."""
    orders = [word for word in i.mnemonic.split(".") if word in ("row", "col")]
    return orders in ([], ["row", "col"]) or orders == (["col"] if i.operands == ("B",) else ["row"])


# Rule 3, the first of them the strongest.
_PLAIN: tuple[tuple[str, _Test], ...] = (
    ("without state space", _without("global", "shared", "shared::cta")),
    ("of 16 bits", lambda i: i.element_type(i.operands[0]) == "b16"),
    ("without .trans", _without("trans")),
    ("a load", lambda i: ".load." in i.mnemonic),
    ("a store", lambda i: ".store." in i.mnemonic),
    ("A by rows, B by columns", _by_habit),
    ("without satfinite", _without("satfinite")),
    ("without rounding", _without("rn", "rz", "rm", "rp")),
    ("accumulators of 32 bits", lambda i: i.element_type(i.operands[-1]) in ("f32", "s32", "f64")),
    ("C of D's type", lambda i: "C" not in i.operands or i.element_type("C") == i.element_type(i.operands[-1])),
)
_TOLD_APART: tuple[tuple[str, Callable[[FragmentInstruction], str]], ...] = (
    ("the instruction", lambda i: i.mnemonic.partition(".sync")[0]),
    ("the shape", lambda i: i.shape_name),
    ("the number of matrices", lambda i: next((x for x in i.mnemonic.split(".") if x in ("x1", "x2", "x4")), "")),
    ("the type", lambda i: i.element_type(i.operands[0])),
)


def add_instruction(parser: argparse.ArgumentParser, help: str = "") -> None:
    """Add the argument `instruction`: words for `instruction_of`."""
    parser.add_argument(
        "instruction", nargs="+", metavar="INSTRUCTION",
        help=help or "a mnemonic, or words that identify one, such as m16n8k16 f16",
    )  # fmt: skip


def instruction_of(words: str | Sequence[str], target: str | None = None) -> MatrixInstruction:
    """Return the instruction that words name; a choice among several is noted, and printed before the result.

    Instructions of the target are preferred; another one is returned too: the caller checks that the target has it.
    Words that fit none, or several, are a `MnemonicError` that says what would tell them apart.
    """
    found = named(words, target)
    if found.note:
        note(f"warpmma: {found.note}")
    return found.instruction


def holder_of(words: str | Sequence[str], operand: str = "", target: str | None = None) -> FragmentHolder:
    """Return the instruction that words name: a product, or one of those that move fragments (rule 1).

    As `instruction_of`; the operand is the one to look up, if it is known.

    Examples
    --------
    >>> print(holder_of("ldmatrix x4 trans", "D"))
    ldmatrix.sync.aligned.m8n8.x4.trans.b16
    """
    text = (words if isinstance(words, str) else " ".join(words)).strip()
    fragments = [word for word in re.split(r"[\s.;,]+", text.lower()) if word]
    if not {*fragments[:400]} & {*FRAGMENT_OPCODES}:
        return instruction_of(words, target)
    if "sync" in fragments and not re.search(r"\s", text):  # it is meant to be a whole mnemonic
        return parse_fragments(text)
    return _plainest(left_of(fragments, text, operand), text, target)


def left_of(fragments: Sequence[str], text: str = "", operand: str = "") -> list[FragmentInstruction]:
    """Return the instructions that words leave, one of which is an opcode (rule 2); errors quote the text."""
    text = text or " ".join(fragments)
    opcode = next(word for word in fragments if word in FRAGMENT_OPCODES)
    left = [i for i in fragment_instructions() if i.mnemonic.startswith(f"{opcode}.")]
    having = [i for i in left if operand in i.operands]
    if operand and not having:
        names = dict.fromkeys(name for i in left for name in i.operands)
        raise MnemonicError(f"{shown(text, str)}: {opcode} has no operand {operand}; expected {', '.join(names)}")
    left = having or left
    for word in fragments:
        if word == opcode:
            continue
        type_ = type_named(word)
        found = [i for i in left if type_ and operand and i.element_type(operand) == type_]
        found = found or [i for i in left if type_ and type_ in map(i.element_type, i.operands)]
        found = found or [i for i in left if word in i.mnemonic.split(".")]
        if not found:
            known = list(dict.fromkeys(x for i in left for x in i.mnemonic.split(".")[1:]))
            near = suggestion(word, known) or f"; expected one of {', '.join(known)}"
            raise MnemonicError(f"{shown(text, str)}: no {opcode} has {shown(word)}{near}")
        left = found
    return left


def _plainest(left: list[FragmentInstruction], text: str, target: str | None) -> FragmentInstruction:
    """Rules 3 and 4."""
    if len(left) == 1:
        return left[0]
    plain: list[tuple[str, _Test]] = [(f"on {target}", lambda i: target in i.targets)] if target else []
    why = []
    for name, test in (*plain, *_PLAIN):
        better = list(filter(test, left))
        if better and len(better) < len(left):
            left = better
            why.append(name)
    for what, value in _TOLD_APART:
        values = list(dict.fromkeys(map(value, left)))
        if len(values) > 1:
            raise MnemonicError(
                f"{shown(text, str)}: {len(left)} instructions are left; say {what}: {', '.join(values)}"
            )
    note(f"warpmma: {shown(text, str)} is taken as {left[0]}: {', '.join(why)}")
    return left[0]


def target_of(instruction: FragmentHolder, operand: str, target: str | None) -> str | None:
    """Return the target whose layout is looked up: the one that is named, or where it matters the newest (rule 5)."""
    if target is not None or not isinstance(instruction, FragmentInstruction):
        return target
    groups = list(instruction.fragments(operand).values())
    if len(groups) == 1:
        return None
    spans = (", ".join(targets) if len(targets) < 3 else f"{targets[0]} to {targets[-1]}" for targets in groups[:-1])
    others = "; ".join(spans)
    newest = groups[-1]
    note(f"warpmma: the fragment is that of {newest[0]} to {newest[-1]}; --target for that of {others}")
    return next((name for name in newest if name in MEASURED_ON), newest[0])
