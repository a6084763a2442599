"""Triton's compiler for NVIDIA's GPUs, that ends at PTX.

What Triton keeps on disk is kept apart from what it compiles for a GPU: the hash of the backend says so.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .interface import TritonInterface

__all__ = ["ptx_backend"]


@cache
def _compiler(base: type[Any]) -> type[Any]:
    class PtxCompiler(base):  # type: ignore[misc]
        """Writes the text where Triton's writes machine code."""

        def hash(self) -> str:
            """Name what compiles."""
            return f"warpmma-ptx-{super().hash()}"

        def add_stages(self, stages: dict[str, Any], *args: Any) -> None:
            """Leave ptxas out."""
            super().add_stages(stages, *args)
            stages[self.binary_ext] = lambda text, metadata: text.encode()

    return PtxCompiler


def ptx_backend(triton: TritonInterface, original: Any) -> Any:
    """Return the backend "nvidia" with a compiler that ends at PTX."""
    return type(original)(compiler=_compiler(original.compiler), driver=original.driver)
