"""Why mutants of PTX that nobody notices are harmless."""

from __future__ import annotations

from .harmless import Arguments, by_name

__all__ = ["HARMLESS"]

_ARGUMENTS: Arguments = ()

HARMLESS = by_name(_ARGUMENTS)
