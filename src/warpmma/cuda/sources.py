"""What is compiled: a file or a text, with what it asks of a compiler; and what comes of it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ..errors import CompilationError, OperandError, printable, shown

__all__ = ["Compiled", "CudaSource", "refused", "source_of"]

_MOST_LINES = 60  # of a log that an error shows


@dataclass(frozen=True, kw_only=True)
class CudaSource:
    """What a compiler is given.

    Attributes
    ----------
    text : str
    name : str
        What logs, line numbers and errors call it.
    file : Path or None
        Where it lies, if it lies anywhere: what it includes is looked for beside it.
    arch : str
        Such as "sm_80".
    options : tuple of str
        As nvcc and NVRTC take them.
    names : tuple of str
        Expressions of C++ that name instances of templates.
    """

    text: str
    name: str
    file: Path | None
    arch: str
    options: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where files that it includes by quoted names are looked for."""
        return Path.cwd() if self.file is None else self.file.absolute().parent

    @property
    def folders(self) -> list[Path]:
        """Folders that options name for what is included."""
        pairs = [x for x in pairwise([*self.options, ""]) if x[0].startswith("-I") or x[0] == "--include-path"]
        return [Path(after if x in ("-I", "--include-path") else x[2:].strip()) for x, after in pairs]


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What a compiler made.

    Attributes
    ----------
    ptx : str
    names : mapping of str to str
        What the text calls the instances that were asked for.
    log : str
        Warnings.
    compiler : str
        Which one, with its version.
    left_out : tuple of str
        Functions and variables of the host, which were not compiled, with their lines.
    """

    ptx: str
    names: Mapping[str, str]
    log: str
    compiler: str
    left_out: tuple[str, ...] = ()


def source_of(
    given: object, name: str, arch: str, options: tuple[str, ...], names: tuple[str, ...]
) -> CudaSource:  # fmt: skip
    """Read a file, or take a text: what has more than one line, or a brace, is text; bytes are, too."""
    file: Path | None = None
    if isinstance(given, bytes | bytearray):
        data = bytes(given)
    elif isinstance(given, str) and ("\n" in given or "{" in given or not given):
        data = given.encode(errors="surrogatepass")
    elif isinstance(given, str | os.PathLike):
        file = Path(given)
        try:
            data = file.read_bytes()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise CompilationError(f"{printable(str(file))}: {why}", str(file)) from None
    else:
        raise OperandError(f"a source is {shown(given)}; expected a path, or the text of one")
    name = name or ("<cuda>" if file is None else str(file))
    if b"\0" in data:
        raise CompilationError(f"{printable(name)}: is no text: a byte is 0; expected CUDA C++", name)
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CompilationError(f"{printable(name)}:{line}: a byte that is no UTF-8", name, line) from None
    if not text.strip():
        raise CompilationError(f"{printable(name)}: is empty; expected CUDA C++", name)
    return CudaSource(
        text=text.replace("\r\n", "\n"), name=name, file=file, arch=arch, options=options, names=names
    )  # fmt: skip


def refused(source: CudaSource, compiler: str, log: str, hint: str = "") -> CompilationError:
    """Make the error of a source that a compiler refused: what it says, and where first."""
    log = printable(log.strip("\0\n "))
    lines = log.splitlines()
    first = re.search(r"^(.+?)\((\d+)\): (?:catastrophic )?error", log, re.MULTILINE)
    line = int(first[2]) if first and Path(first[1]).name == Path(source.name).name else 0
    cut = lines[:_MOST_LINES] + ([f"... and {len(lines) - _MOST_LINES} lines more"] if len(lines) > _MOST_LINES else [])
    place = f"{printable(source.name)}:{line}" if line else printable(source.name)
    message = f"{place}: {compiler} refuses it for {source.arch}"
    return CompilationError(
        "\n".join([message, *(f"  {x}" for x in cut), *([hint] if hint else [])]), source.name, line, log
    )
