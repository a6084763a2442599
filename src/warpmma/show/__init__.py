"""Views: text, JSON, SVG and HTML of the records of other rooms.

Every name is loaded when it is first used: a picture of a layout needs no machine, and no NumPy.
"""

from typing import TYPE_CHECKING

from .._lazy import on_demand as _on_demand

if TYPE_CHECKING:  # the same as `_ORIGINS`
    from .drawing.cards import fields_html
    from .drawing.drawing import THEMES, style_sheet
    from .drawing.palette import PALETTE, Colour, contrast
    from .explorer import explorer_data, explorer_page
    from .reports.conflicts import schedule
    from .views import VIEWS, viewer

__all__ = [
    "PALETTE", "THEMES", "VIEWS", "Colour", "contrast", "explorer_data", "explorer_page", "fields_html", "schedule",
    "style_sheet", "viewer",
]  # fmt: skip

_ORIGINS = {
    ".drawing.cards": ("fields_html",),
    ".reports.conflicts": ("schedule",),
    ".drawing.drawing": ("THEMES", "style_sheet"),
    ".explorer": ("explorer_data", "explorer_page"),
    ".drawing.palette": ("PALETTE", "Colour", "contrast"),
    ".views": ("VIEWS", "viewer"),
}

if not TYPE_CHECKING:  # else every name would be valid for mypy
    __getattr__, __dir__ = _on_demand(__name__, _ORIGINS)
