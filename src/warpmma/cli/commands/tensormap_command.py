"""The command `tensormap`: what the 128 bytes of tensor maps say, and what a load brings.

1. A word is a file of maps, each 128 bytes; other words together are one map: hexadecimal digits in the order of the
   bytes (`xxd -p`), or 16 words of 64 bits that are 0 or begin with 0x, as debuggers print them.
2. With `--load`, the coordinates of a load are PTX's from their end: the outermost dimension first.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path

from ..._views import view
from ...errors import OperandError, shown
from ...layouts import MAP_BYTES, TensorMap
from ..arguments.operand_words import number
from ..output.output_files import add_files, files_of, write_files
from ..output.streams import write
from ..output.terminal import add_output, paint_of

_FILES = ("svg",)
_WORDS = MAP_BYTES // 8


def add_tensormap(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.epilog = "For example: warpmma tensormap map.bin --load=0,64 --at 0x400 -o load.svg"
    parser._negative_number_matcher = re.compile(r"-\d")  # -3,64 is a value, not an option
    add = parser.add_argument
    add("map", nargs="+", metavar="FILE|HEX", help="a file of 128 bytes for each map, or their hexadecimal digits")
    add("--load", metavar="C,C...", help="coordinates of a load, outermost first: count what it brings")
    add("--offsets", metavar="O,O...", default="", help="of an im2col load, outermost first")
    add("--at", type=number, default=0, metavar="ADDRESS", help="of the box in shared memory; by default 0")
    add_files(parser, _FILES, "draw what the load brings and where it lands")
    add_output(parser)


def run_tensormap(options: argparse.Namespace) -> int:
    """Print what the 128 bytes of tensor maps say, and what a load at some coordinates brings; draw it."""
    maps = [TensorMap.from_bytes(encoded) for encoded in _encoded(options.map)]
    files = files_of(options, _FILES)
    if options.load is None and (files or options.offsets or options.at):
        raise OperandError("--output, --offsets and --at are of a load; expected --load C,C... too")
    if len(maps) > 1 and options.load is not None:
        raise OperandError(f"--load with {len(maps)} maps; expected one")
    place = (
        () if options.load is None else (_numbers("--load", options.load), options.at)
    )  # fmt: skip
    offsets = _numbers("--offsets", options.offsets) if options.offsets else []
    load = maps[0].box_copy(*place, offsets=offsets) if place else None
    if write_files(files, lambda kind: view(maps[0], kind, *place, offsets=offsets)):
        return 0
    brought = {} if load is None else {
        "elements": list(load.target.shape), "filled": int((~load.inside).sum()), "bytes": load.copied_bytes,
        "at": load.at, "span": load.span,
    }  # fmt: skip
    if options.json:
        found = [json.loads(view(each, "json")) for each in maps]
        write(json.dumps([{**each, "load": brought} for each in found] if brought else found, indent=2))
        return 0
    paint = paint_of(options)
    cards = []
    for each in maps:
        first, *rest = str(each).split("\n")
        cards.append("\n".join([paint(first, "bold"), *rest]))
    if brought:
        cards.append(
            f"a load at {_numbers('--load', options.load)} brings {brought['elements']} elements, {brought['filled']} "
            f"of them filled, to shared memory {options.at:#x}; the mbarrier gets {brought['bytes']} bytes"
        )
    write("\n\n".join(cards))
    return 0


def _encoded(words: Sequence[str]) -> list[bytes]:
    """Rule 1."""
    found: list[bytes] = []
    digits: list[str] = []
    for word in words:
        path = Path(word)
        if _is_file(path):
            found += _maps_in(path)
        else:
            digits.append(word)
    return found + ([_of_digits(digits)] if digits else [])


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, as 256 digits are, or has a null character
        return False


def _maps_in(path: Path) -> list[bytes]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OperandError(f"{shown(str(path), str)} cannot be read: {error.strerror}") from None
    if not data or len(data) % MAP_BYTES:
        raise OperandError(f"{shown(str(path), str)} has {len(data)} bytes; expected {MAP_BYTES} for each tensor map")
    return [data[i : i + MAP_BYTES] for i in range(0, len(data), MAP_BYTES)]


def _of_digits(words: Sequence[str]) -> bytes:
    """Read one map, by bytes or by words."""
    parts = [x for word in words for x in re.split(r"[\s,]+", word) if x]
    if len(parts) == _WORDS and all(re.fullmatch("0x[0-9a-fA-F]{1,16}|0", x) for x in parts):
        return b"".join(int(x, 16).to_bytes(8, "little") for x in parts)
    digits = "".join(parts).removeprefix("0x")
    if not re.fullmatch("[0-9a-fA-F]*", digits) or len(digits) != 2 * MAP_BYTES:
        raise OperandError(
            f"{shown(' '.join(words), str)} is neither a file nor the digits of a map; expected a file, "
            f"{2 * MAP_BYTES} hexadecimal digits, or {_WORDS} words such as 0x7f0000000400"
        )
    return bytes.fromhex(digits)


def _numbers(option: str, text: str) -> list[int]:
    try:
        return [int(x, 0) for x in text.split(",")]
    except ValueError:
        raise OperandError(f"{option} {shown(text)}; expected integers, such as 0,64") from None
