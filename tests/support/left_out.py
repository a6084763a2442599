"""Kernels with an instruction removed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["without"]


def without(mnemonic: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose threads leave an instruction out."""
    return partial(_run, mnemonic, kernel)


def _run(missing: str, kernel: Any, t: Any, *addresses: Any, **sizes: int) -> None:
    kernel(_Threads(t, missing), *addresses, **sizes)


class _Threads:
    def __init__(self, threads: Any, mnemonic: str) -> None:
        self._threads, self._mnemonic = threads, mnemonic

    def __getattr__(self, name: str) -> Any:
        return getattr(self._threads, name)

    def __call__(self, mnemonic: str, *operands: Any) -> Any:
        return None if mnemonic == self._mnemonic else self._threads(mnemonic, *operands)
