"""A compiler for no target: the one that ends at PTX takes the place of Triton's own while a device is active."""

from __future__ import annotations

from typing import Any

try:
    from triton.backends.compiler import BaseBackend
except ImportError:  # for those who look through the package without Triton
    BaseBackend = object


class NoCompiler(BaseBackend):  # type: ignore[misc]
    """Supports nothing."""

    @staticmethod
    def supports_target(target: Any) -> bool:
        """Return False."""
        return False


NoCompiler.__abstractmethods__ = frozenset()  # whatever a version asks for: this class is never instantiated
