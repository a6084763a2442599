"""Views of records: the one place from which the rooms above reach `show`, which is loaded when one is asked for.

A record says `view(self, "svg")`; `show.VIEWS` says, by the record's name, which function draws it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .errors import UnknownNameError

__all__ = ["view"]


def view(record: object, kind: str, *arguments: Any, **options: Any) -> str:
    """Return a record as "text", "json", "svg", "html" or "csv".

    Parameters
    ----------
    record : object
    kind : str
    *arguments, **options
        Of the function that draws it.

    Raises
    ------
    UnknownNameError
        Nothing draws such a record so.
    """
    made = import_module(f"{__package__}.show").viewer(type(record), kind)
    if made is None:
        raise UnknownNameError(f"nothing makes {kind} of a {type(record).__name__}")
    drawn: str = made(record, *arguments, **options)
    return drawn
