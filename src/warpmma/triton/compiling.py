"""Triton's compiler for NVIDIA's GPUs, that ends at PTX.

What Triton keeps on disk is kept apart from what it compiles for a GPU: the hash of the backend says so.

Of inline assembly with several lines Triton 3.9 gives each a line of the source of its own, one behind the other; all
are the first's.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .interface import TritonInterface

__all__ = ["ptx_backend"]

_REWRITTEN = 2  # which form of the text lies in the cache: one more whenever `_one_line_each` changes


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
            stages[self.binary_ext] = lambda text, metadata: _one_line_each(text).encode()

    return PtxCompiler


def ptx_backend(triton: TritonInterface, original: Any) -> Any:
    """Return the backend "nvidia" with a compiler that ends at PTX."""
    return type(original)(compiler=_compiler(original.compiler), driver=original.driver)


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
