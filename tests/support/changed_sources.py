"""Modules with one mistake: what recorded results must notice."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["changed"]


def changed(module: ModuleType, *changes: tuple[str, str]) -> dict[str, Any]:
    """Execute the source of a module with pieces of it, each there once, replaced; return what it defines."""
    source = Path(str(module.__file__)).read_text()
    for old, new in changes:
        if source.count(old) != 1:
            raise ValueError(f"{module.__name__} has {source.count(old)} times: {old}")
        source = source.replace(old, new)
    names = {"__name__": module.__name__, "__package__": module.__package__, "__file__": module.__file__}
    exec(compile(source, str(module.__file__), "exec"), names)
    return names
