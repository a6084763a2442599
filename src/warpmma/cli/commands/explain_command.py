"""The command `explain`: one element of a product, step by step.

1. A and B are .npy files of matrices, from which `--row` and `--column` choose; or values that are written out, a row
   of A and a column of B. A single value is repeated for all k. If there are fewer values than the instruction's k, the
   rest is +0; more are a whole product, a chain of instructions.
2. The text, or JSON instead, goes to the output; `--output FILE` writes files.
3. Without an instruction, `--float32 ieee` explains a chain of fused multiply-adds.
"""

from __future__ import annotations

import argparse
import re
from shutil import get_terminal_size
from typing import Any

import numpy as np

from ..._views import view
from ...analysis import Explanation, explain
from ...errors import MnemonicError, OperandError
from ...formats import FORMATS, Format
from ...isa import check_target
from ...products import FLOAT32, FMA, ChainInstruction, FloatFma
from ..arguments.matrix_files import add_slices, codes_of, given, is_file, matrix_file
from ..arguments.naming import instruction_of
from ..output.output_files import add_files, files_of, write_files
from ..output.streams import write
from ..output.terminal import add_output, paint_of

_EXAMPLE = 'warpmma explain m16n8k16 f16 --target sm_90 --against sm_80 --a "1 6x0 2^-24 2^-24" --b 1'
_FILES = ("svg", "html", "text", "json")
_NARROW, _WIDE = 60, 118
_STYLES = {"heading": "bold", "dim": "dim", "cut": "bad", "kept": ""}


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.epilog = f"For example: {_EXAMPLE}"
    parser._negative_number_matcher = re.compile(r"-(\.?\d|inf|nan)")  # -2^-24 is a value, not an option
    parser.add_argument(
        "instruction", nargs="*", metavar="INSTRUCTION",
        help="a mnemonic, or words that identify one, such as m16n8k16 f16; none with --float32 ieee",
    )  # fmt: skip
    add = parser.add_argument
    add("--target", required=True, help="such as sm_90")
    add("--against", metavar="TARGET", action="append", default=[],
        help="another target, to be compared with; several times, or sm_80,sm_100")  # fmt: skip
    add("--float32", choices=tuple(FLOAT32), help="how float32 is multiplied (an instruction for tf32 truncates it)")
    values = "FILE.npy, or values such as '1 2^-24 16x0.5', one alone for all"
    add("--a", required=True, metavar="A", help=f"a row of A: {values}")
    add("--b", required=True, metavar="B", help=f"a column of B: {values}")
    add("--c", default="", metavar="C", help="an element of C, or FILE.npy; without it, +0")
    add("--scale-a", default="", metavar="SCALES", help="block scales of the row of A, or FILE.npy")
    add("--scale-b", default="", metavar="SCALES", help="block scales of the column of B, or FILE.npy")
    add("--row", type=int, default=0, help="of D, where A is a file")
    add("--column", type=int, default=0, help="of D, where B is a file")
    add_slices(parser)
    add("--all", action="store_true", help="show every step and every product of long chains")
    add_files(parser, _FILES, "write it, or draw the aligned bits", ["svg"])
    add_output(parser)


def run_explain(options: argparse.Namespace) -> int:
    """Explain how one element of D is computed.

    Every product is listed, what was truncated, how sums were rounded, and how far the result is from the exact one.
    """
    options.against = [target for names in options.against for target in names.split(",") if target]
    files = files_of(options, _FILES)
    instruction = _instruction(options)
    found = _explained(instruction, options)
    if write_files(files, lambda kind: _view(found, kind, options.all)):
        return 0
    if options.json:
        write(found.json())
    else:
        paint = paint_of(options)
        width = max(_NARROW, min(_WIDE, get_terminal_size().columns - 1)) if paint.terminal else _WIDE

        def mark(kind: str, text: str) -> str:
            return paint(text, style) if (style := _STYLES[kind]) else text

        write(found.text(whole=options.all, mark=mark, width=width).rstrip("\n"))
    return 0


def _view(found: Explanation, kind: str, whole: bool) -> str:
    return found.text(whole=whole) if kind == "text" else view(found, "page" if kind == "html" else kind)


def _instruction(options: argparse.Namespace) -> ChainInstruction:
    """Rule 3."""
    if not options.instruction:
        if options.float32 is None or FLOAT32[options.float32].tensor_cores:
            raise MnemonicError("no instruction; expected one such as m16n8k16 f16, or --float32 ieee without one")
        return FMA
    found = instruction_of(options.instruction, options.target)
    for target in (options.target, *options.against):
        check_target(found, target)
    return found


def _explained(i: ChainInstruction, options: argparse.Namespace) -> Explanation:
    """Rule 1."""
    if options.row and not is_file(options.a):
        raise OperandError("--row chooses of a matrix A in a file .npy; values of --a are one row")
    if options.column and not is_file(options.b):
        raise OperandError("--column chooses of a matrix B in a file .npy; values of --b are one column")
    a, b = _multiplicands(i, options)
    more = given(options, "float32", "split_k", "promote_every", "epilogue")
    for name, operand in (("scale_a", "A"), ("scale_b", "B")):
        if text := getattr(options, name):
            more[name] = _scales(i, text, operand, f"--{name.replace('_', '-')}")
    c = _accumulator(i, options, a.shape[-2], b.shape[-1])
    named = None if isinstance(i, FloatFma) else i
    return explain(
        a, b, c, instruction=named, row=options.row, column=options.column, target=options.target,
        against=options.against, **more,
    )  # fmt: skip


def _multiplicands(i: ChainInstruction, options: argparse.Namespace) -> tuple[Any, Any]:
    """Return A and B; values that are written out become a row, and a column, of the other's k."""
    formats: dict[str, Format] = {"a": i.format("A"), "b": i.format("B")}
    found: dict[str, Any] = {}
    for name, fmt in formats.items():
        text = getattr(options, name)
        found[name] = matrix_file(text, fmt, f"--{name}") if is_file(text) else codes_of(text, fmt, f"--{name}")
        if is_file(text) and found[name].ndim != 2:
            raise OperandError(f"--{name} {text} has {found[name].ndim} dimensions; expected a matrix of two")
    written = [name for name in formats if isinstance(found[name], list)]
    shapes = [found[name].shape[-1 if name == "a" else -2] for name in formats if name not in written]
    k = shapes[0] if shapes else max(i.k, *(len(found[name]) for name in written))
    for name in written:
        values = found[name]
        if len(values) == 1:
            values = values * k
        if len(values) > k:
            raise OperandError(f"--{name} has {len(values)} values; the other matrix has k = {k}")
        fmt = formats[name]
        codes = fmt.array(np.array(values + [0] * (k - len(values)), fmt.code_dtype))
        found[name] = codes[None, :] if name == "a" else codes[:, None]
    return found["a"], found["b"]


def _accumulator(i: ChainInstruction, options: argparse.Namespace, rows: int, columns: int) -> Any:
    fmt = i.format("C")
    if not options.c:
        return None
    if is_file(options.c):
        return matrix_file(options.c, fmt, "--c")
    codes = codes_of(options.c, fmt, "--c")
    if len(codes) != 1:
        raise OperandError(f"--c has {len(codes)} values; expected one, or FILE.npy")
    return fmt.array(np.full((rows, columns), codes[0], fmt.code_dtype))


def _scales(i: ChainInstruction, text: str, operand: str, who: str) -> Any:
    if i.stype is None:
        raise OperandError(f"{who}: {i} takes no block scales")
    fmt = FORMATS[i.stype]
    if is_file(text):
        return matrix_file(text, fmt, who)
    codes = codes_of(text, fmt, who)
    count = i.scales_per_row
    if len(codes) == 1:
        codes = codes * count
    if len(codes) != count:
        raise OperandError(f"{who} has {len(codes)} values; expected {count}, one for each block of the row")
    array = np.array(codes, fmt.code_dtype)
    return array[None, :] if operand == "A" else array[:, None]
