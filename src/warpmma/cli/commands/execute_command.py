"""The command `execute`: a product of matrices in files, as an instruction computes it, bit for bit.

1. Matrices of any m, n and k are multiplied as a tiled kernel does, with a chain of the instruction along k, as
   `matmul` does; matrices of the instruction's own shape are one instruction each. With `--metadata` it is one
   instruction for certain, as of `mma`.
2. What comes out is of D's type; what NumPy cannot name is written as raw codes.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from ..._arrays import Array
from ...arithmetic import Evidence, evidence_of
from ...errors import MnemonicError, OperandError, shown
from ...execution import mma
from ...formats import FORMATS
from ...isa import Instruction, MatrixInstruction, check_target
from ...layouts import OPERANDS
from ...products import FLOAT32, matmul
from ..arguments.matrix_files import add_chain, add_matrices, given, operand_file, read_npy, scale_file, words_and_files
from ..arguments.naming import instruction_of
from ..output.output_files import write_file
from ..output.streams import write
from ..output.terminal import Paint, add_output, paint_of, prose_width

_EPILOG = """Files hold arrays [..., rows, columns] of the operands' types (float16; bfloat16 and narrower as numpy.save
writes those of ml_dtypes), or raw codes as unsigned integers; C is +0 if there is none. Matrices larger than the
instruction are multiplied in tiles, k ascending: what kernels do besides is --split-k, --promote-every and
--epilogue."""
_SHOWN = 1 << 12  # elements that are printed in full
_SINGLE = ("metadata", "selector", "undefined")
_WHOLE = ("float32", "indices", "split_k", "promote_every", "epilogue")


def add_execute(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.epilog, add = _EPILOG, parser.add_argument
    add("words", nargs="+", metavar="INSTRUCTION A.npy B.npy [C.npy]",
        help="a mnemonic or words that identify one, such as m16n8k16 f16; then two or three files")  # fmt: skip
    add("--target", required=True, help="such as sm_90")
    add("-o", "--output", metavar="D.npy", help="where D goes; it is printed otherwise")
    add_matrices(parser)
    add("--metadata", metavar="FILE", help="of a sparse A's stored elements: registers, uint32 [..., 32]")
    add("--selector", type=int, help="sparsity selector (default: 0)")
    add("--undefined", choices=("error", "hardware"), help="metadata that PTX leaves undefined: refuse, or as an H200")
    add("--float32", choices=[name for name, way in FLOAT32.items() if way.tensor_cores],
        help="how an instruction for tf32 reads float32 (default: tf32-truncated)")  # fmt: skip
    add_chain(parser)
    add_output(parser)


def run_execute(options: argparse.Namespace) -> int:
    """Multiply matrices in .npy files as an instruction does on a target, bit for bit."""
    words, files = words_and_files(options.words)
    if not words:
        raise MnemonicError("no instruction; expected one before the files, such as m16n8k16 f16 A.npy B.npy")
    if options.output is not None and not options.output.endswith(".npy"):
        raise OperandError(f"--output {shown(options.output)}: expected a file *.npy")
    i = instruction_of(words, options.target)
    check_target(i, options.target)
    operands = [
        operand_file(path, name, i.format(name), options.cast) for name, path in zip(OPERANDS, files, strict=False)
    ]
    d = _product(options, i, operands)
    if options.output is not None:
        plain = _plain(d)
        write_file(options.output, lambda stream: np.save(stream, plain))
    known = evidence_of(i, options.target)
    if options.json:
        write(json.dumps(_facts(options, i, d, known), indent=2))
    else:
        write(_text(options, i, d, known, paint_of(options)))
    return 0


def _product(options: argparse.Namespace, i: MatrixInstruction, operands: list[Array]) -> Array:
    """Rule 1."""
    a, b, *rest = operands
    c = rest[0] if rest else None
    more: dict[str, Any] = {"threads": options.threads}
    for name, path in given(options, "scale_a", "scale_b").items():
        more[name] = scale_file(path, i.stype, f"scales of {name[-1].upper()}")
    single, whole = given(options, *_SINGLE), given(options, *_WHOLE)
    if single:
        if whole or not isinstance(i, Instruction):
            other = f"--{next(iter(whole)).replace('_', '-')}" if whole else "wgmma"
            raise OperandError(f"--{next(iter(single))} is for single mma, {other} is not")
        if "metadata" in single:
            single["metadata"] = read_npy(single["metadata"], "metadata")
        return mma(i, a, b, c, target=options.target, **single, **more)
    if "indices" in whole:
        whole["indices"] = read_npy(whole["indices"], "indices")
    return matmul(a, b, c, instruction=i, target=options.target, progress=True, **whole, **more)


def _plain(d: Array) -> Array:
    """Rule 2."""
    return d.view(f"u{d.dtype.itemsize}") if d.dtype.kind == "V" else d


def _text(options: argparse.Namespace, i: MatrixInstruction, d: Array, known: Evidence, paint: Paint) -> str:
    saved = ""
    if options.output is not None:
        saved = f", in {options.output}{' as raw codes' * (d.dtype.kind == 'V')}"
    lines = [paint(f"{i} on {options.target}: D is {d.dtype} {list(d.shape)}{saved}", "bold")]
    lines.append(paint(f"{known.kind}: {known.source}{f', on {known.device}' * bool(known.device)}", "dim"))
    if options.output is None:
        lines += ["", np.array2string(d, max_line_width=prose_width(), threshold=_SHOWN)]
    return "\n".join(lines)


def _facts(options: argparse.Namespace, i: MatrixInstruction, d: Array, known: Evidence) -> dict[str, Any]:
    fmt = FORMATS[options.epilogue or i.d_type]
    facts: dict[str, Any] = {
        "instruction": str(i), "target": options.target, "type": fmt.name, "dtype": str(d.dtype),
        "shape": list(d.shape), "evidence": {"kind": known.kind, "source": known.source, "device": known.device},
        "output": options.output,
    }  # fmt: skip
    if options.output is None:
        facts |= {"values": _numbers(d), "codes": fmt.codes(d).tolist()}
    return facts


def _numbers(d: Array) -> Any:
    """Return nested lists of numbers; what JSON has no number for, as text."""
    if d.ndim:
        return [_numbers(row) for row in d]
    value = d.item()
    number = value if isinstance(value, int) else float(value)
    return number if np.isfinite(number) else str(number)
