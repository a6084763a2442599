"""Views: text, JSON and SVG of what the other rooms hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from . import conflicts, launches, needs

__all__ = ["VIEWS", "schedule"]

schedule = conflicts.schedule

VIEWS: Mapping[tuple[str, str], Callable[..., str]] = MappingProxyType({
    ("Launch", "text"): launches.text,
    ("Launch", "json"): launches.json,
    ("Launch", "svg"): conflicts.svg,
    ("ModuleNeeds", "text"): needs.module_text,
})  # fmt: skip
"""What draws a record, by its name and the kind of view."""
