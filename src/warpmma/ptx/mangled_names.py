"""Names of entries as the source has them: nvcc writes names of C++ into PTX mangled, by the Itanium ABI.

    mangled   = "_Z" ["L"] (source | "N" source {source} "E") parameters
    source    = decimal length, and as many characters

1. What is read ends at the first thing that is no source name: arguments of templates ("I"), parameters, tags ("B").
2. Namespaces without a name, and those that nvcc invents for names of one file, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["INVENTED", "meant", "unmangled"]

INVENTED = ("_GLOBAL__N", "_INTERNAL_")


def unmangled(name: str) -> str:
    """Return the name in the source, with its namespaces; a name that is not mangled is its own.

    Examples
    --------
    >>> unmangled("_Z5saxpyifPfS_"), unmangled("_ZN3bar4tmplIfEEvPT_"), unmangled("scale")
    ('saxpy', 'bar::tmpl', 'scale')
    """
    if not (start := re.match(r"_ZN?L?(?=\d)", name)):
        return name
    parts, at = [], start.end()
    while length := re.compile(r"L?(\d{1,4})", re.ASCII).match(name, at):
        at = length.end() + int(length[1])
        parts.append(name[length.end() : at])
        if "N" not in start[0]:
            break
    return "::".join(x for x in parts if x and not x.startswith(INVENTED)) or name


def meant(name: str, entries: Iterable[str]) -> list[str]:
    """List the entries that a name in the source means, with its namespaces or some of them left out.

    Examples
    --------
    >>> meant("tmpl", ["_ZN3bar4tmplIfEEvPT_", "_ZN3bar4tmplIdEEvPT_", "_Z5saxpyifPfS_"])
    ['_ZN3bar4tmplIfEEvPT_', '_ZN3bar4tmplIdEEvPT_']
    """
    return [x for x in entries if f"::{unmangled(x)}".endswith(f"::{name}")] if name else []
