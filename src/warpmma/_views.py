"""Views of records: the one place from which the rooms above reach `show`, which is loaded when one is asked for.

A record says `view(self, "svg")`; `show.VIEWS` says, by the record's name, which function draws it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["view"]


def view(record: object, kind: str, *arguments: Any) -> str:
    """Return a record as "text", "json" or "svg".

    Parameters
    ----------
    record : object
    kind : str
    *arguments
        Of the function that draws it.
    """
    drawn: str = import_module(f"{__package__}.show").VIEWS[type(record).__name__, kind](record, *arguments)
    return drawn
