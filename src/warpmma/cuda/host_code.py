"""Whole programs through NVRTC, which compiles no host code: host code is left out, and listed.

1. Functions and variables without `__device__` or the like belong to the host, except `constexpr` functions, constants
   and types. They become blanks, so that lines and columns stay: in the source, and in headers beside it.
2. What still does not compile and is not marked as device code is left out, too: methods, templates, declarations and
   types that need what only the host has. Types and templates that both sides may use stay. Types go last, and whole:
   what needs them then does not compile, and never has another layout.
3. Headers of libraries, in folders that options name, are taken unchanged if they compile. As with nvcc, <cmath> and
   the like are available without being included.
4. Instances of templates that the host code launches are compiled, as far as their arguments are known without it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..errors import CompilationError
from .nvrtc import compile_with_nvrtc
from .pieces import Piece, blanked, launched, pieces_of
from .sources import Compiled, CudaSource, SourceFile, error_places, missing_header

_OPTIONS = ("-default-device", *(f"--pre-include={x}" for x in ("cmath", "cstdint", "climits", "cfloat", "cstdlib")))
_STD = re.compile(r'namespace "std" has no member|qualified name is not allowed')
_MARKED = re.compile(r"^(.+?)\(\d+\): error: A function explicitly marked as a __host__ function", re.MULTILINE)
_OF_STD = tuple(f"--pre-include={x}" for x in ("type_traits", "limits", "utility"))
"""What headers of the host's library bring along, where the source needs it: these take half a second."""

_ROUNDS = 16
_NAME = re.compile(r"#pragma nv_mangled_name (.*)$", re.MULTILINE)


@dataclass
class _Unit:
    """A text with parts left out: the source, or a header of the user."""

    name: str
    text: str
    pieces: list[Piece] = field(init=False)
    gone: list[Piece] = field(init=False)

    def __post_init__(self) -> None:
        self.pieces = pieces_of(self.text)
        self.gone = list(_of_host(self.pieces))

    @property
    def left(self) -> str:
        """The text without the parts left out."""
        return blanked(self.text, [(x.start, x.end) for x in self.gone])

    def in_the_way(self, lines: Sequence[int], types: bool) -> bool:
        """Leave out what lines with errors belong to; return whether anything was."""
        before, ends = len(self.gone), [x.start() for x in re.finditer("\n|$", self.text)]
        for line in lines:
            if 0 < line <= len(ends):
                start = ends[line - 2] + 1 if line > 1 else 0
                found = _around(self.pieces, start, ends[line - 1], self.gone)
                self.gone += [x for x in found if types or not x.constant]
        return len(self.gone) > before

    def listed(self, main: bool) -> list[str]:
        """List the parts left out, with their lines."""
        breaks = [x.start() for x in re.finditer("\n", self.text)]
        where = "line " if main else f"{self.name}:"
        placed = sorted((bisect_left(breaks, x.start) + 1, x.name) for x in self.gone)
        return [f"{name} ({where}{line})" for line, name in placed]


def has_host_code(files: Sequence[SourceFile]) -> bool:
    """Return whether a source, or a header of it, has functions or variables of the host."""
    return any(True for file in files for _ in _of_host(pieces_of(file.text)))


def compile_without_host(source: CudaSource, files: Sequence[SourceFile]) -> Compiled:
    """Compile the device code of a source and the user's headers by NVRTC; errors list what was left out."""
    errors = []
    for some in dict.fromkeys((tuple(x for x in files if x.beside), tuple(files))):  # rule 3
        try:
            return _left(source, files, [_Unit(x.name, x.text) for x in some])
        except CompilationError as error:
            errors.append(error)
            if missing_header(error.log):
                break
    raise min(errors, key=lambda error: len(error_places(error.log)))


def _left(source: CudaSource, files: Sequence[SourceFile], units: Sequence[_Unit]) -> Compiled:
    main = units[0]
    named = [x for x in launched(source.text) if x not in source.names]
    last: CompilationError | None = None
    wide = False
    for _ in range(_ROUNDS):
        options = (*source.options, *_OPTIONS, *(_OF_STD if wide else ()))
        given = replace(source, text=main.left, names=(*source.names, *named), options=options)
        try:
            made = compile_with_nvrtc(given, files, {x.name: x.left for x in units[1:]})
        except CompilationError as error:
            if missing_header(error.log):
                raise
            last = error
        else:
            return replace(made, left_out=(*_listed(units), *made.left_out))
        if not wide and _STD.search(last.log) and not _of_libraries(last.log, units):
            wide = True
            continue
        wrong = {_plain(x) for x in _NAME.findall(last.log)}
        kept = [x for x in named if _plain(x) not in wrong]
        places = error_places(last.log)
        lines = [[line for file, line in places if file == x.name] for x in units]
        for types in (False, True):
            more = [unit.in_the_way(wrong_lines, types) for unit, wrong_lines in zip(units, lines, strict=True)]
            if any(more):
                break
        else:
            if len(kept) == len(named):
                break
        named = kept
    if last is None:
        raise CompilationError(f"{source.name}: nothing was compiled", source.name)
    raise _explained(last, _listed(units))


def _of_libraries(log: str, units: Sequence[_Unit]) -> bool:
    """Return whether functions of libraries are marked as the host's: no other header, and no cut, makes that right."""
    names = {x.name for x in units}
    return any(file not in names for file in _MARKED.findall(log))


def _of_host(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Rule 1."""
    for piece in pieces:
        if piece.kind == "namespace":
            yield from _of_host(piece.inner)
        elif not piece.device and not piece.constant:
            yield piece


def _around(pieces: Sequence[Piece], start: int, end: int, gone: Sequence[Piece]) -> Iterator[Piece]:
    """Rule 2: list the innermost pieces of a line that may be left out.

    Of a class only functions may: without one of its variables, or without a virtual function, it has another layout.
    """
    for piece in pieces:
        if not (piece.start < end and start < piece.end) or piece in gone:
            continue
        inner = list(_around(piece.inner, start, end, gone))
        if piece.kind == "class" and not all(x.kind == "function" and "virtual" not in x.head for x in inner):
            inner = []
        yield from inner
        if not inner and not piece.device and piece.kind != "namespace":
            yield piece


def _listed(units: Sequence[_Unit]) -> tuple[str, ...]:
    return tuple(x for unit in units for x in unit.listed(unit is units[0]))


def _plain(name: str) -> str:
    return re.sub(r"\s", "", name)


def _explained(error: CompilationError, left_out: Sequence[str]) -> CompilationError:
    if not left_out:
        return error
    note = f"NVRTC takes code for the device alone; left out as the host's: {', '.join(left_out)}. nvcc takes all"
    return CompilationError(f"{error}\n{note}", error.file, error.line, error.log)
