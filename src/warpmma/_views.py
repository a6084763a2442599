"""Views of records: the one place from which lower rooms reach `show`, which is loaded on first use.

A record calls `view(self, "svg")`; `show.VIEWS` has, by the record's name, the function that draws it.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

from .errors import UnknownNameError


def view(record: object, kind: str, *arguments: Any, **options: Any) -> str:
    """Return a record as "text", "json", "svg", "html" or "csv"; `UnknownNameError` if it has no such view."""
    made = import_module(f"{__package__}.show").viewer(type(record), kind)
    if made is None:
        raise UnknownNameError(f"a {type(record).__name__} has no {kind} view")
    drawn: str = made(record, *arguments, **options)
    return drawn


def html(record: object) -> str:
    """Return the HTML of a record for notebooks: its own view as "html", or a table of its fields.

    It never raises: if a view fails, the next plainer one is used, the last being an escaped `repr`.
    """
    from html import escape  # only notebooks need it

    try:
        show = import_module(f"{__package__}.show")
        made = show.viewer(type(record), "html") or show.fields_html
        for draw in (made, show.fields_html):
            with suppress(Exception):  # else a notebook shows the traceback of a picture in place of the value
                return str(draw(record))
        words = repr(record)
    except Exception:
        words = object.__repr__(record)
    return f"<pre>{escape(words)}</pre>"
