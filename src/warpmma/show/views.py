"""Which function makes which view of which record; its module is loaded when a view is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

__all__ = ["VIEWS", "viewer"]

VIEWS: Mapping[tuple[str, str], str] = MappingProxyType({
    ("Explanation", "text"): "sum_text.text",
    ("Explanation", "json"): "sum_json.json",
    ("Explanation", "html"): "sum_html.html",
    ("Explanation", "page"): "sum_html.page",
    ("WarpWords", "svg"): "word_pictures.words_svg",
    ("WarpWords", "html"): "word_pictures.words_html",
    ("FragmentTable", "svg"): "fragment_pictures.table_svg",
    ("Layout", "svg"): "fragment_pictures.layout_svg",
    ("Layout", "html"): "record_cards.layout_html",
    ("MatrixInstruction", "svg"): "fragment_pictures.instruction_svg",
    ("MatrixInstruction", "html"): "record_cards.instruction_html",
    ("FragmentInstruction", "svg"): "fragment_pictures.instruction_svg",
    ("FragmentInstruction", "html"): "record_cards.fragments_html",
    ("FragmentInstruction", "text"): "fragment_page.text",
    ("FragmentInstruction", "json"): "fragment_page.json",
    ("Packing", "svg"): "record_cards.packing_svg",
    ("Packing", "html"): "record_cards.packing_html",
    ("Facts", "svg"): "record_cards.format_svg",
    ("Facts", "html"): "record_cards.format_html",
    ("Recipe", "html"): "record_cards.recipe_html",
    ("Launch", "html"): "machine_cards.launch_html",
    ("Device", "html"): "machine_cards.device_html",
    ("ModuleNeeds", "html"): "machine_cards.needs_html",
    ("Explanation", "svg"): "sum_svg.svg",
    ("MatrixInstruction", "text"): "instruction_page.text",
    ("MatrixInstruction", "json"): "instruction_page.json",
    **{("FragmentTable", kind): f"layout_tables.{kind}" for kind in (
        "text", "csv", "markdown", "json", "html", "page",
    )},
    ("Layout", "table"): "layout_tables.layout_as",
    ("Launch", "text"): "launches.text",
    ("Launch", "json"): "launches.json",
    ("Launch", "svg"): "conflicts.svg",
    ("ModuleNeeds", "text"): "needs.module_text",
    ("ModuleNeeds", "json"): "needs.module_json",
    ("Advice", "text"): "advice_tables.text",
    ("Advice", "json"): "advice_tables.json",
    ("Advice", "html"): "error_plots.advice_html",
    ("ErrorReport", "svg"): "error_plots.svg",
    ("ErrorReport", "html"): "error_plots.html",
    ("ErrorReport", "page"): "error_plots.page",
    ("ErrorReport", "text"): "error_tables.text",
    ("ErrorReport", "json"): "error_tables.json",
    ("ErrorReport", "csv"): "error_tables.csv",
})  # fmt: skip
"""By a record's name and the kind of view: the module of this room and its function, whose first argument it is."""


def viewer(record: type, kind: str) -> Callable[..., str] | None:
    """Return what makes this kind of view of a record, or of what it inherits from; None where nothing does."""
    for each in record.__mro__:
        if where := VIEWS.get((each.__name__, kind)):
            module, _, name = where.partition(".")
            found: Callable[..., str] = getattr(import_module(f".{module}", __package__), name)
            return found
    return None
