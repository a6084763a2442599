"""Output files: `--output FILE`, whose ending decides the format.

1. The option can be given several times. An ending that the command does not write is an error that lists those that it
   does. `-.svg`, a dash with an ending, is the standard output.
2. A file is written as a whole or not at all: readers see the old content or the new one.
3. Older spellings, such as `--svg FILE`, are taken until the next release, with a note. They name the format, and take
   a file of any ending, or "-" for the standard output.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import BinaryIO

from ...errors import OperandError, shown
from .streams import note, write

ENDINGS: Mapping[str, str] = MappingProxyType(
    {"svg": ".svg", "html": ".html", "text": ".txt", "json": ".json", "csv": ".csv", "markdown": ".md"}
)
"""Of each format the ending of its files."""

_OLD = ("svg", "csv", "picture")


def add_files(
    parser: argparse.ArgumentParser, kinds: Sequence[str], what: str, older: Sequence[str] = (), *, once: bool = False
) -> None:
    """Add `-o` and `--output`, which may be given several times or `once`, and older spellings ("svg", "csv").

    Kinds are formats of `ENDINGS` that the command writes; `what` is the contents, for the help.
    """
    listed = " ".join(ENDINGS[kind] for kind in kinds)
    parser.add_argument(
        "-o", "--output", metavar="FILE", action="store" if once else "append", help=f"{what}; by its ending: {listed}"
    )
    # argparse would take a dash with an ending for an option.
    parser._negative_number_matcher = re.compile(rf"{parser._negative_number_matcher.pattern}|-\.[a-z]+$")
    for name in older:
        parser.add_argument(f"--{name}", metavar="OUT", help=argparse.SUPPRESS)


def kind_of(path: str, kinds: Sequence[str]) -> str:
    """Return the format of a file, by its ending (rule 1)."""
    name = PurePath(path).name
    suffix = PurePath(f"x{name[1:]}" if name.startswith("-.") else name).suffix.lower()
    for kind in kinds:
        if ENDINGS[kind] == suffix:
            return kind
    raise OperandError(f"--output {shown(path)}: expected a file *{' or *'.join(ENDINGS[kind] for kind in kinds)}")


def files_of(options: argparse.Namespace, kinds: Sequence[str]) -> list[tuple[str, str]]:
    """Return the files that were asked for, with their formats."""
    given = options.output or []
    found = [(path, kind_of(path, kinds)) for path in ([given] if isinstance(given, str) else given)]
    for name in _OLD:
        if (path := getattr(options, name, None)) is not None:
            kind = "svg" if name == "picture" else name
            note(f"warpmma: --{name} is now --output FILE{ENDINGS[kind]}; the next release does not take it")
            found.append((f"-{ENDINGS[kind]}" if path == "-" else path, kind))
    return found


def write_files(files: Sequence[tuple[str, str]], made: Callable[[str], str]) -> bool:
    """Write files, of what makes a text of a format; return whether one is the standard output."""
    printed = False
    for path, kind in files:
        text = made(kind).removesuffix("\n")
        if path == f"-{ENDINGS[kind]}":
            printed = True
            write(text)
        else:
            write_or_replace(text, path)
    return printed


def write_file(path: str | Path, fill: Callable[[BinaryIO], object], expected: str = "") -> None:
    """Write a file with a function that fills a binary stream.

    One that cannot be written is an `OperandError`, which ends with what was expected.
    """
    new, target = None, Path(path)
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():  # such as /dev/stdout
            with target.open("wb") as stream:
                fill(stream)
            return
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}-", dir=target.parent)
        new = Path(name)
        with os.fdopen(handle, "wb") as stream:
            fill(stream)
        new.chmod(0o666 & ~_umask())  # the mode of an ordinary file
        new.replace(target)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no name of a file"
        hint = f"; expected {expected}" if expected else ""
        raise OperandError(f"{shown(str(path), str)} cannot be written: {why}{hint}") from None
    finally:
        if new is not None:
            new.unlink(missing_ok=True)


def write_or_replace(text: str, path: str | None) -> None:
    """Print a text, or write it into a file, in UTF-8 and with a line's end; `OperandError` if it cannot be written."""
    if path is None:
        write(text)
    else:
        write_file(path, lambda stream: stream.write(f"{text}\n".encode()))


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
