"""Headers of the host that NVRTC does not have: which ones were left out, and whether that changes what is compiled.

1. Only headers of a stated list are left out (`host_headers`); any other missing header is an error.
2. What a header declares and its replacement does not is undefined: code that needs it is an error of the compiler.
3. A condition of the preprocessor is the exception: it takes an undefined macro as 0 without an error. Where one asks
   for a macro that a replaced header defines and its replacement does not, the load warns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from .host_headers import LEFT_OUT, MACROS, STANDARD_HEADERS
from .pieces import without_comments
from .sources import SourceFile, error_places

_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b(?:\\\n|[^\n])*", re.MULTILINE)
_GUARD = re.compile(r"_H(?:PP)?_*$")
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)


class LeftOutWarning(UserWarning):
    """A condition of the preprocessor asks for a macro of a header that was left out: it may choose another branch."""


def listed(files: Sequence[SourceFile], replaced: Collection[str]) -> tuple[str, ...]:
    """Name the headers that were left out, each with the first line that includes it."""
    first: dict[str, str] = {}
    for file in files:
        for _, name, line in file.includes:
            if name in replaced and name in LEFT_OUT:
                first.setdefault(name, f"line {line}" if file is files[0] else f"{file.name}:{line}")
    return tuple(f"#include <{name}> ({place})" for name, place in first.items())


def doubts(files: Sequence[SourceFile], replaced: Collection[str], defined: Collection[str]) -> tuple[str, ...]:
    """Rule 3: name the conditions that depend on a macro of a replaced header.

    Parameters
    ----------
    files : sequence of SourceFile
        The user's.
    replaced : collection of str
        Headers that were missing.
    defined : collection of str
        Macros that the user's options define.
    """
    included = sorted({name for file in files for _, name, _ in file.includes if name in replaced and name in MACROS})
    return tuple(
        f"{file.name}:{line}: {condition!r} asks for {macro} of <{header}>, which NVRTC does not have, so it is not "
        f'defined; -D{macro}=... defines it, and compiler="nvcc" has the header'
        for file in files for line, condition in _conditions(file.text)
        for macro, header in _lacking(condition, included) if macro not in defined
    )  # fmt: skip


def _conditions(text: str) -> Iterator[tuple[int, str]]:
    code = without_comments(text)
    for found in _CONDITION.finditer(code):
        words = re.sub(r"\\\n|//.*|/\*.*?\*/", " ", found[0]).split()
        yield code.count("\n", 0, found.start()) + 1, " ".join(words)


def _lacking(condition: str, headers: Sequence[str]) -> Iterator[tuple[str, str]]:
    for macro in dict.fromkeys(re.findall(r"\b[A-Za-z_]\w*", condition)):
        if _GUARD.search(macro):  # asks whether a header is there, and it is not
            continue
        for header in headers:
            if MACROS[header].fullmatch(macro) and macro not in _DEFINED.findall(STANDARD_HEADERS[header]):
                yield macro, header
                break


def about_empty_headers(files: Sequence[SourceFile], replaced: Collection[str], log: str) -> str:
    """Name the empty headers that errors come from: by undefined names, else those of the first file with an error."""
    undefined = [x.lower() for x in re.findall(r'identifier "(\w+)" is undefined', log)]
    told = [x for x in _left_out_of(files, replaced) if any(_may_declare(x, name) for name in undefined)]
    if not told and re.search(r"\bstd\b", log):
        place = [file for file, _ in error_places(log)[:1]]
        first = [x for x in files if any(file == x.name or file.endswith(f"/{x.name}") for file in place)]
        told = _left_out_of(first, replaced) or _left_out_of(files, replaced)
    if not told:
        return ""
    they = ", ".join(f"<{x}>" for x in told)
    return f'{they} {"is" if len(told) == 1 else "are"} empty for NVRTC; compiler="nvcc" has all headers of the host'


def _left_out_of(files: Sequence[SourceFile], replaced: Collection[str]) -> list[str]:
    names = [name for file in files for _, name, _ in file.includes if name in replaced and name in LEFT_OUT]
    return list(dict.fromkeys(names))


def _may_declare(header: str, name: str) -> bool:
    """Whether a name in small letters sounds like a header's: "vector" of <vector>, "mpi_comm" of <mpi.h>."""
    stem = re.split(r"[_.]", header.lower().rpartition("/")[2])[0]
    return name.startswith(stem) if "." in header else name == stem
