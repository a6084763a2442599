"""The command `descriptor`: the fields of 64 bits, what a `wgmma` reads with them, and which field is wrong.

1. Without an instruction the fields are printed alone.
2. With one, the bytes that are read: first and last address, and the elements outside of a window, if one is given.
3. With what was meant, the fields side by side, and those that make the difference. The status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import re
from typing import Any

from ...errors import OperandError, shown
from ...isa import WarpgroupInstruction
from ...layouts import MAJORS, MatrixDescriptor
from ...lookup import SHARED_OPERANDS, DescriptorDiagnosis, SharedReading, diagnose_descriptor, shared_reading
from ..arguments.naming import instruction_of
from ..arguments.operand_words import add_major, number, shared_facts
from ..output.output_files import add_files, files_of, write_files
from ..output.streams import write
from ..output.terminal import Paint, add_output, folded, paint_of, tabulated

_FIELDS = ("start", "leading", "stride", "swizzle", "base_offset")
_KINDS = ("svg", "csv", "json", "text")
_NAMED = 4  # elements outside of the window that are named


def add_descriptor(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.add_argument("descriptor", type=number, metavar="BITS", help="64 bits, such as 0x4000004000000040")
    parser.add_argument(
        "--instruction", nargs="+", metavar="WORD", help="a wgmma, or words that identify one: m64n64k16 f32 f16"
    )
    parser.add_argument("--operand", choices=SHARED_OPERANDS, default="B", help="by default B")
    add_major(parser)
    parser.add_argument("--meant", type=number, metavar="BITS", help="the descriptor that was meant")
    parser.add_argument("--meant-major", choices=MAJORS, help="the major-ness that was meant; by default the same")
    parser.add_argument(
        "--window", type=_window, metavar="FIRST:END", help="addresses that may be read, such as 0x400:0x2400"
    )
    add_files(parser, _KINDS, "write what is read there; a file of that name is replaced")
    add_output(parser)


def _window(words: str) -> tuple[int, int]:
    found = re.fullmatch(r"([^:]+):([^:]+)", words)
    first, end = (number(found[1]), number(found[2])) if found else (0, -1)
    if not 0 <= first <= end:
        raise argparse.ArgumentTypeError(f"{shown(words)} names no window; expected FIRST:END, such as 0x400:0x2400")
    return first, end


def run_descriptor(options: argparse.Namespace) -> int:
    """Say what the 64 bits of a matrix descriptor of wgmma mean, what they read, and which field is wrong."""
    descriptor = MatrixDescriptor.from_word(options.descriptor)
    meant = None if options.meant is None else MatrixDescriptor.from_word(options.meant)
    if options.instruction is None:
        if options.output or options.window:
            raise OperandError("what a descriptor reads depends on the instruction: pass --instruction")
        _print(options, descriptor, meant, None, None)
        return 0
    record: Any = instruction_of(options.instruction, "sm_90a")
    if not isinstance(record, WarpgroupInstruction):
        raise OperandError(f"{record} reads no operand by a descriptor; expected a wgmma, such as m64n64k16 f32 f16")
    reading = shared_reading(record, options.operand, descriptor, major=options.major)
    diagnosis = None
    if meant is not None:
        diagnosis = diagnose_descriptor(
            record, options.operand, descriptor, meant=meant, major=options.major, meant_major=options.meant_major
        )
    made = {"svg": reading.svg, "csv": reading.csv, "json": reading.json, "text": reading.text}
    if not write_files(files_of(options, _KINDS), lambda kind: made[kind]()):
        _print(options, descriptor, meant, reading, diagnosis)
    return int(diagnosis is not None and bool(diagnosis.mistakes))


def _print(
    options: argparse.Namespace, descriptor: MatrixDescriptor, meant: MatrixDescriptor | None,
    reading: SharedReading | None, diagnosis: DescriptorDiagnosis | None,
) -> None:  # fmt: skip
    if options.json:
        import json

        write(json.dumps(_facts(options, descriptor, meant, reading, diagnosis), indent=2))
        return
    lines = [_table(options, descriptor, meant, reading, paint_of(options))]
    if reading is not None:
        first, end = int(reading.addresses.min()), int(reading.addresses.max()) + max(1, reading.bits // 8)
        lines.append(f"{reading.operand} of {reading.instruction}: reads bytes {first:#x} to {end - 1:#x}")
        if options.window is not None:
            lines.append(_outside_text(reading, options.window))
    if diagnosis is not None:
        lines.append(str(diagnosis))
    write("\n".join(lines))


def _outside(reading: SharedReading, window: tuple[int, int]) -> list[list[int]]:
    import numpy as np

    found: list[list[int]] = np.argwhere(~reading.inside(window[0], window[1] - window[0])).tolist()
    return found


def _outside_text(reading: SharedReading, window: tuple[int, int]) -> str:
    found = _outside(reading, window)
    span = f"{window[0]:#x} to {window[1] - 1:#x}"
    if not found:
        return f"all of it is in {span}"
    cells = (reading.locate(row, column) for row, column in found[:_NAMED])
    named = ", ".join(f"{x.operand}[{x.row}, {x.column}] at {x.address:#x}" for x in cells)
    more = ", and others" * (len(found) > _NAMED)
    return folded(f"{len(found):,} elements are outside of {span}: {named}{more}", 2)


def _value(descriptor: MatrixDescriptor, field: str) -> str:
    value = getattr(descriptor, field)
    if field == "swizzle":
        return f"{value} bytes" if value else "none"
    return f"{value:#x}" if field == "start" else str(value)


def _table(
    options: argparse.Namespace, descriptor: MatrixDescriptor, meant: MatrixDescriptor | None,
    reading: SharedReading | None, paint: Paint,
) -> str:  # fmt: skip
    both = [descriptor] if meant is None else [descriptor, meant]
    rows = [["field", "is", "meant"][: 1 + len(both)]]
    rows += [[field.replace("_", " "), *(_value(x, field) for x in both)] for field in _FIELDS]
    if reading is not None:
        rows.append(["major", *[options.major, options.meant_major or options.major][: len(both)]])
    return tabulated(rows, paint, range(3), ["register", "", "lane"])


def _facts(
    options: argparse.Namespace, descriptor: MatrixDescriptor, meant: MatrixDescriptor | None,
    reading: SharedReading | None, diagnosis: DescriptorDiagnosis | None,
) -> dict[str, Any]:  # fmt: skip
    def fields(x: MatrixDescriptor) -> dict[str, int]:
        return {"word": x.word, **{name: getattr(x, name) for name in _FIELDS}}

    facts: dict[str, Any] = {"word": options.descriptor, "descriptor": fields(descriptor)}
    if meant is not None:
        facts["meant"] = fields(meant)
    if reading is not None:
        facts |= {"instruction": str(reading.instruction), "operand": reading.operand, "major": reading.major}
        facts["cells"] = [shared_facts(cell) for cell in reading.cells]
        if options.window is not None:
            facts |= {"window": list(options.window), "outside": _outside(reading, options.window)}
    if diagnosis is not None:
        names = ("field", "got", "meant", "text")
        facts["mistakes"] = [{name: getattr(x, name) for name in names} for x in diagnosis.mistakes]
        facts |= {"moved": diagnosis.moved, "harmless": list(diagnosis.harmless)}
    return facts
