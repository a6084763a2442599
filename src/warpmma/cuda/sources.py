"""Sources: a file or a text, what it includes, and its compiler options; and the result of compiling it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from ..errors import CompilationError, OperandError, printable, shown

INSTALL = "pip install 'warpmma[cuda]'"

_MOST_LINES = 60  # of a log that an error shows
_MOST_TEXT = 1_000_000  # characters of headers that are looked through
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([\"<])([^\">\n]+)[\">]", re.MULTILINE)
_AT = r"(.+?)\((\d+)\): (?:catastrophic )?error"
_ERROR = re.compile(f"^{_AT}: ", re.MULTILINE)
_MISSING = (  # as EDG writes it (NVRTC, nvcc for the device), and GCC and Clang (nvcc for the host)
    re.compile(rf'^(?:{_AT}|Command-line error): cannot open source file "([^"\n]+)"', re.MULTILINE),
    re.compile(r"^(.+?):(\d+):\d+: fatal error: '?([^'\n]+?)'?(?:: No such file or directory| file not found)", re.M),
)
_OF_TOOLKIT = re.compile(r"(?:cub|cuda|thrust|nv|cooperative_groups)/|(?:curand|cuda_|mma\.h|cooperative_groups\.h)")


@dataclass(frozen=True, kw_only=True)
class CudaSource:
    """The input of a compiler."""

    text: str
    name: str  # in logs, line numbers and errors
    file: Path | None  # included files are searched beside it
    arch: str  # such as "sm_80"
    options: tuple[str, ...]  # as nvcc and NVRTC take them
    names: tuple[str, ...]  # expressions of C++ that name instances of templates

    @property
    def folder(self) -> Path:
        """The folder in which files that it includes by quoted names are searched."""
        return Path.cwd() if self.file is None else self.file.absolute().parent

    @property
    def folders(self) -> list[Path]:
        """Include folders from the options."""
        return [Path(x) for x in self._values("-I", "--include-path")]

    @property
    def defined(self) -> set[str]:
        """Macros that options define."""
        return {x.partition("=")[0].strip() for x in self._values("-D", "--define-macro")}

    def _values(self, short: str, long: str) -> list[str]:
        """Return the values of an option, written as "-Ix", "-I x", "--include-path x" or "--include-path=x"."""
        found = []
        for option, after in pairwise([*self.options, ""]):
            if option in (short, long):
                found.append(after)
            elif option.startswith((short, f"{long}=")):
                found.append(option.removeprefix(f"{long}=").removeprefix(short).strip())
        return found


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A text that a source is made of: its own, or a header of the user's."""

    name: str  # as logs call the source, or as `#include` names the header
    text: str
    folder: Path  # where files that it includes by quoted names are searched
    beside: bool = True  # it is the source, or beside the file that includes it; else an option names its folder

    @property
    def includes(self) -> list[tuple[str, str, int]]:
        """List what it includes: the quote or the bracket, the name, and the line."""
        return [(x[1], x[2], self.text.count("\n", 0, x.start(1)) + 1) for x in _INCLUDE.finditer(self.text)]


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """The result of a compiler."""

    ptx: str
    names: Mapping[str, str]  # of the requested instances in the text
    log: str  # warnings
    compiler: str  # with its version
    left_out: tuple[str, ...] = ()  # functions, variables and headers of the host, with their lines
    doubts: tuple[str, ...] = ()  # where the code may depend on what was left out


def source_of(given: object, name: str, arch: str, options: tuple[str, ...], names: tuple[str, ...]) -> CudaSource:
    """Read a file, or take a text: anything with several lines or a brace is text; so are bytes."""
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
        raise CompilationError(f"{printable(name)}: is not text: it contains a zero byte; expected CUDA C++", name)
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CompilationError(f"{printable(name)}:{line}: invalid UTF-8", name, line) from None
    if not text.strip():
        raise CompilationError(f"{printable(name)}: is empty; expected CUDA C++", name)
    return CudaSource(text=text.replace("\r\n", "\n"), name=name, file=file, arch=arch, options=options, names=names)


def files_of(source: CudaSource) -> list[SourceFile]:
    """Return the source, and the headers beside it or in folders that options name."""
    files, seen, total = [SourceFile(name=source.name, text=source.text, folder=source.folder)], {source.name}, 0
    for file in files:
        for mark, name, _ in file.includes:
            beside = mark == '"' and (file.folder / name).is_file()
            path = next((x / name for x in [file.folder] * beside + source.folders if (x / name).is_file()), None)
            if path is None or name in seen or total > _MOST_TEXT:
                continue
            seen.add(name)
            text = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
            total += len(text)
            files.append(SourceFile(name=name, text=text, folder=path.parent, beside=beside and file.beside))
    return files


def error_places(log: str) -> list[tuple[str, int]]:
    """List the files and lines of the errors of a log, as it calls the files."""
    return [(file, int(line)) for file, line in _ERROR.findall(log)]


@dataclass(frozen=True)
class MissingHeader:
    """A header that a compiler did not find, and the line that includes it: 0 where an option does."""

    name: str
    file: str
    line: int

    @property
    def cure(self) -> str:
        """Advice on where to get it."""
        if _OF_TOOLKIT.match(self.name):
            return f"it is part of CUDA's toolkit: {INSTALL}"
        return 'name its folder with options=["-IFOLDER"], or --option=-IFOLDER in the shell'


def missing_header(log: str) -> MissingHeader | None:
    """Find the header that a log reports as missing."""
    found = next((x for pattern in _MISSING if (x := pattern.search(log))), None)
    return found and MissingHeader(found[3], found[1] or "", int(found[2] or 0))


def refused(source: CudaSource, compiler: str, log: str, hint: str = "") -> CompilationError:
    """Make the error for a source that a compiler refused: its log, and the first position."""
    log = printable(log.strip("\0\n "))
    lines = log.splitlines()
    missing = missing_header(log)
    first = [(missing.file, missing.line)] if missing else error_places(log)[:1]
    line = first[0][1] if first and Path(first[0][0]).name == Path(source.name).name else 0
    cut = lines[:_MOST_LINES] + ([f"... and {len(lines) - _MOST_LINES} lines more"] if len(lines) > _MOST_LINES else [])
    place = f"{printable(source.name)}:{line}" if line else printable(source.name)
    message = f"{place}: {compiler} refuses it for {source.arch}"
    if missing:
        place = f"{missing.file}:{missing.line}" if missing.line else printable(source.name)
        message = f"{place}: missing header {missing.name!r}: {missing.cure}"
    return CompilationError(
        "\n".join([message, *(f"  {x}" for x in cut), *([hint] if hint else [])]), source.name, line, log
    )
