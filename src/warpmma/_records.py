"""Records: frozen dataclasses that compute what follows from their fields once, and draw themselves in notebooks."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from . import _views


class Shown:
    """A record that renders itself in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return _views.html(self)


class Record(Shown):
    """A dataclass whose copies, pickled ones too, carry its fields alone.

    What was computed from them is left behind: an array that comes out of a pickle could be written.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
