"""Triton's compiler for NVIDIA's GPUs, that ends at PTX.

What Triton keeps on disk is kept apart from what it compiles for a GPU: the hash of the backend says so.

Of inline assembly with several lines Triton 3.9 gives each a line of the source of its own, one behind the other; all
are the first's.

A register that nothing in a kernel writes is LLVM's undef: Triton fills up four bytes with it, of which it stores some.
It is no mistake of the kernel's, and is 0 here: poison is known of registers, not of bytes.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from .interface import TritonInterface

__all__ = ["ptx_backend"]

_REWRITTEN = 3  # which form of the text lies in the cache: one more whenever `_for_simulation` changes

_DECLARED = re.compile(r"^\s*\.reg \.[bf](16|32|64)\s+(%[a-z]+)<(\d+)>;.*$", re.MULTILINE)
_BODY = re.compile(r"^(?:\.\w+ )*\.(?:entry|func)\b", re.MULTILINE)
_FIRST_OPERAND = re.compile(r"[{}\s]*(?:@!?%?\w+\s+)?[\w.:]+\s*(\{[^}]*\}|[^,\[{]*)")
_REGISTER = re.compile(r"%[a-z]+\d+")
_NO_STATEMENT = re.compile(r"//.*$|^\s*\.(?:loc|pragma)\b.*$|^\s*[\w$]+:", re.MULTILINE)


@cache
def _compiler(base: type[Any]) -> type[Any]:
    class PtxCompiler(base):  # type: ignore[misc]
        """Writes the text where Triton's writes machine code."""

        def hash(self) -> str:
            """Name what compiles."""
            return f"warpmma-{_REWRITTEN}-{super().hash()}"

        def add_stages(self, stages: dict[str, Any], *args: Any) -> None:
            """Leave ptxas out."""
            super().add_stages(stages, *args)
            stages[self.binary_ext] = lambda text, metadata: _for_simulation(text).encode()

    return PtxCompiler


def ptx_backend(triton: TritonInterface, original: Any) -> Any:
    """Return the backend "nvidia" with a compiler that ends at PTX."""
    return type(original)(compiler=_compiler(original.compiler), driver=original.driver)


def _for_simulation(text: str) -> str:
    return _undefined_as_zero(_one_line_each(text))


def _undefined_as_zero(text: str) -> str:
    """Set registers that are read and nowhere written to 0, behind the declarations; no line of the text moves."""
    starts = [x.start() for x in _BODY.finditer(text)]
    bodies = [text[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]
    return text[: starts[0] if starts else None] + "".join(map(_body_with_zeros, bodies))


def _body_with_zeros(body: str) -> str:
    declared = list(_DECLARED.finditer(body))
    widths = {x[2]: x[1] for x in declared}
    bare = _NO_STATEMENT.sub("", body)
    firsts = (_FIRST_OPERAND.match(statement) for statement in bare.split(";"))
    written = {name for first in firsts if first for name in _REGISTER.findall(first[1])}
    undefined = dict.fromkeys(name for name in _REGISTER.findall(bare) if name not in written)
    zeros = [
        f" mov.b{width} {name}, 0;"
        for name in undefined
        if (width := widths.get(name.rstrip("0123456789"))) is not None
    ]
    end = declared[-1].end() if declared else 0
    return body[:end] + "".join(zeros) + body[end:]


def _one_line_each(text: str) -> str:
    """Make comments of all `.loc` in a piece of inline assembly but its first; no line of the text moves."""
    lines = text.split("\n")
    found: int | None = None
    for i, line in enumerate(lines):
        word = line.strip()
        if word in ("// begin inline asm", "// end inline asm"):
            found = 0 if "begin" in word else None
        elif found is not None and word.startswith(".loc"):
            lines[i] = f"//{line}" if found else line
            found += 1
    return "\n".join(lines)
