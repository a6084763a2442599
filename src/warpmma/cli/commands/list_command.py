"""The command `list`: instructions by what they are, each in words that name it again.

1. Words and options each narrow the list. Words are those of `isa.names.instruction_words`; `--type` is of A or of B,
   given twice of both, and where neither ever is that, of D.
2. A row is an instruction: typed as words, it names that instruction. Only `wgmma`, which has many n, has rows of
   all n from the first to the last. `--mnemonics` and `--json` leave nothing out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from ..._arguments import suggestion
from ..._text import counted
from ...errors import MnemonicError, shown
from ...isa import (
    MatrixInstruction,
    WarpgroupInstruction,
    check_known,
    every_fitting,
    find,
    instructions,
    qualifiers,
    type_named,
    warpgroup_instructions,
)
from ..output.streams import write
from ..output.terminal import add_output, paint_of, tabulated

_HEAD = ("shape", "D A B C", "qualifiers", "since", "PTX")
_STYLES = ("bold", "", "", "register", "dim")


def add_list(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.epilog = "A row, typed as words, names its instruction: `warpmma show m16n8k16 f32 f16 f16 f32`."
    add = parser.add_argument
    add("words", nargs="*", metavar="WORD", help="of the mnemonic, such as m16n8k16, e4m3 f16, sp, wgmma, satfinite")
    add("--target", help="those that this target has, such as sm_90a")
    add("--type", action="append", default=[], help="of A or B, such as e4m3; twice for both")
    for operand in "abcd":
        add(f"--{operand}", metavar="TYPE", help=f"of {operand.upper()}")
    add("--kind", help="such as mxf4")
    sparse = parser.add_mutually_exclusive_group()
    sparse.add_argument("--sparse", action="store_true", default=None, help="those whose A is sparse")
    sparse.add_argument("--dense", dest="sparse", action="store_false", help="those whose A is not")
    add("--mnemonics", action="store_true", help="print mnemonics alone, a line each")
    add_output(parser)


def run_list(options: argparse.Namespace) -> int:
    """List the instructions that are simulated: all, or those that fit."""
    found = _found(options)
    if options.json:
        write(json.dumps([_facts(i) for i in found], indent=2))
    elif options.mnemonics:
        if found:
            write("\n".join(map(str, found)))
    else:
        paint = paint_of(options)
        mma = sum(not isinstance(i, WarpgroupInstruction) for i in found)
        on = f" on {options.target}" * bool(options.target)
        numbers = {"mma": mma, "wgmma": len(found) - mma}
        counts = [f"{counted(number, 'instruction')} of {name}" for name, number in numbers.items() if number]
        below = paint(f"{' and '.join(counts) or 'no instruction'}{on}", "dim")
        write(f"{tabulated([_HEAD, *_rows(found)], paint, range(5), _STYLES)}\n\n{below}" if found else below)
    return 0


def _found(options: argparse.Namespace) -> list[MatrixInstruction]:
    """Rule 1."""
    if options.target is not None:
        check_known(options.target)
    asked = {name: getattr(options, name) for name in ("a", "b", "c", "d", "kind", "sparse")}
    left = set(find(**asked, target=options.target))
    for type_ in options.type:
        left &= _of_type(type_)
    every = every_fitting(options.words) if options.words else (*instructions(), *warpgroup_instructions())
    return [i for i in every if i in left]


def _of_type(name: str) -> set[MatrixInstruction]:
    """Return the instructions with a type for A or B; if there are none, those with the type for D."""
    type_ = type_named(name)
    every: tuple[MatrixInstruction, ...] = (*instructions(), *warpgroup_instructions())
    found: set[MatrixInstruction] = {i for i in every if type_ in (i.a_type, i.b_type)}
    found = found or {i for i in every if i.d_type == type_}
    if not found:
        known = sorted({type_ for i in every for type_ in (i.a_type, i.b_type, i.d_type)})
        near = suggestion(name, known) or f"; expected one of {', '.join(known)}"
        raise MnemonicError(f"no instruction has type {shown(name, str)}{near}")
    return found


def _rows(found: Sequence[MatrixInstruction]) -> list[tuple[str, ...]]:
    rows: dict[tuple[str, ...], list[int]] = {}
    for i in found:
        shape = i.shape.replace(f"n{i.n}", "n{}") if isinstance(i, WarpgroupInstruction) else i.shape
        types = f"{i.d_type} {i.a_type} {i.b_type} {i.c_type}"
        row = (shape, types, " ".join(qualifiers(i)), i.targets[0], ".".join(map(str, i.ptx)))
        rows.setdefault(row, []).append(i.n)
    return [(shape.format(_span(n)), *rest) for (shape, *rest), n in rows.items()]


def _span(n: list[int]) -> str:
    return str(n[0]) if len(n) == 1 else f"{n[0]}..{n[-1]}"


def _facts(i: MatrixInstruction) -> dict[str, Any]:
    return {
        "mnemonic": str(i), "m": i.m, "n": i.n, "k": i.k, "d": i.d_type, "a": i.a_type, "b": i.b_type, "c": i.c_type,
        "sparsity": i.sparsity, "kind": i.kind, "scale_vec": i.scale_vec, "stype": i.stype, "satfinite": i.satfinite,
        "rounding": i.rounding, "bit_op": i.bit_op, "targets": list(i.targets), "ptx": list(i.ptx),
        "documented": i.documented,
    }  # fmt: skip
