"""The command `error`: errors of a whole product of matrices in files, and the faults that a tolerance misses.

1. Matrices are read as `execute` reads them. Without an instruction each target takes the one that `matmul` takes for
   the types of the files; what NumPy cannot name, such as e4m3, needs words.
2. With `--rtol` and `--atol` the status is 1 if the tolerance lets a wrong output pass or does not let a right one.
3. `--output FILE` writes the report. A file *.npy is what `--measure` takes, as in earlier releases; with a note.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from ..._views import view
from ...analysis import Advice, ErrorReport, error
from ...errors import OperandError, shown
from ...isa import MatrixInstruction, check_target
from ...layouts import OPERANDS
from ...products import FLOAT32
from ..arguments.matrix_files import add_chain, add_matrices, given, operand_file, read_npy, words_and_files
from ..arguments.naming import instruction_of
from ..output.output_files import add_files, files_of, write_files
from ..output.streams import note, noted, write
from ..output.terminal import Paint, add_output, paint_of

_FILES = ("svg", "html", "text", "json", "csv")

_EPILOG = """Files hold matrices [..., rows, columns], as of `warpmma execute`. Errors are those of what the instruction
reads: what was lost when a matrix was rounded to its type does not count. With --rtol and --atol the exit status is 1
if that tolerance lets a wrong output pass, or does not let a right one."""


def add_error(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.epilog, add = _EPILOG, parser.add_argument
    add("words", nargs="+", metavar="[INSTRUCTION] A.npy B.npy [C.npy]",
        help="two or three files, and a mnemonic or words that identify one, where it is not the default")  # fmt: skip
    add("--target", "--targets", required=True, metavar="TARGETS", help="such as sm_90, or sm_80,sm_90")
    add("--rtol", type=float, help="a tolerance: an element passes if |output - expected| <= atol + rtol |expected|")
    add("--atol", type=float, help="as numpy.allclose and torch.testing.assert_close take them")
    add("--advise", action="store_true", help="recommend a tolerance, whatever others are")
    add("--measure", metavar="D.npy", help="measure this D, too, such as that of a kernel on a GPU")
    add("--no-bound", action="store_true", help="leave the bounds of errors out, which takes half the time")
    add("--worst", action="store_true", help="explain the element with the largest error, on the first target")
    add_matrices(parser)
    add_chain(parser)
    add("--float32", choices=tuple(FLOAT32), help="how files of float32 are multiplied")
    add_files(parser, _FILES, "write the report, or draw its distribution of errors", ("csv", "svg"))
    add_output(parser)


def run_error(options: argparse.Namespace) -> int:
    """Measure the error of every element of a product against the exact result, target beside target.

    Say also which wrong outputs a tolerance would let pass.
    """
    files = _files(options)
    report = _measured(options)
    asked = options.rtol is not None or options.atol is not None
    advice = report.advise(options.rtol, options.atol, progress=True) if asked or options.advise else None
    if write_files(files, lambda kind: _view(report, advice, options.worst, kind)):
        return _status(advice)
    if options.json:
        write(_json(report, advice, options.worst))
    else:
        write(_text(report, advice, options.worst, paint_of(options)))
    return _status(advice)


def _status(advice: Advice | None) -> int:
    return int(advice is not None and advice.good is False)


def _view(report: ErrorReport, advice: Advice | None, worst: bool, kind: str) -> str:
    if kind == "json":
        return _json(report, advice, worst)
    if kind == "text":
        return _text(report, advice, worst, Paint())
    return view(report, "page" if kind == "html" else kind)


def _files(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Rule 3."""
    files = options.output or []
    if measured := [path for path in files if path.endswith(".npy")]:
        note("warpmma: the D that is measured is now --measure D.npy; the next release does not take --output for it")
        options.measure, options.output = measured[-1], [path for path in files if path not in measured]
    return files_of(options, _FILES)


def _measured(options: argparse.Namespace) -> ErrorReport:
    """Rule 1."""
    targets = [target for target in options.target.split(",") if target]
    words, files = words_and_files(options.words)
    if not targets:
        raise OperandError("--target is empty; expected such as sm_90, or sm_80,sm_90")
    i = _instruction(words, targets)
    operands = [
        _untyped(path, name) if i is None else operand_file(path, name, i.format(name), options.cast)
        for name, path in zip(OPERANDS, files, strict=False)
    ]
    more = given(options, "float32", "split_k", "promote_every", "epilogue", "threads")
    more |= {
        name: read_npy(path, f"--{name.replace('_', '-')}")
        for name, path in given(options, "scale_a", "scale_b", "indices").items()
    }
    if options.measure is not None:
        more["outputs"] = {options.measure: read_npy(options.measure, "--measure")}
    with noted():
        return error(*operands, instruction=i, targets=targets, bound=not options.no_bound, progress=True, **more)


def _instruction(words: Sequence[str], targets: Sequence[str]) -> MatrixInstruction | None:
    if not words:
        return None
    i = instruction_of(words, targets[0])
    for target in targets:
        check_target(i, target)
    return i


def _untyped(path: str, name: str) -> Any:
    array = read_npy(path, name)
    if array.dtype.kind == "V":
        raise OperandError(
            f"{name}: {shown(path, str)} holds {array.dtype.itemsize} bytes an element of a type that NumPy does not "
            "name; expected words of the instruction before the files, such as m16n8k32 e4m3"
        )
    return array


def _json(report: ErrorReport, advice: Advice | None, worst: bool) -> str:
    found = json.loads(report.json())
    if advice is not None:
        found["advice"] = json.loads(advice.json())
    if worst:
        found["worst"] = json.loads(report.worst().json())
    return json.dumps(found, indent=2)


def _text(report: ErrorReport, advice: Advice | None, worst: bool, paint: Paint) -> str:
    first, rest = report.text().split("\n", 1)
    parts = [f"{paint(first, 'bold')}\n{rest}"]
    if advice is not None:
        first, rest = advice.text().split("\n", 1)
        parts.append(f"{paint(first, 'bold')}\n{rest}")
    if worst:
        parts.append(report.worst().text())
    return "\n".join(parts).rstrip("\n")
