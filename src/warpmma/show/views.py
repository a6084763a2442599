"""The function for each view of each record; its module is loaded on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

VIEWS: Mapping[tuple[str, str], str] = MappingProxyType({
    ("Explanation", "text"): "sums.scene_text.text",
    ("Explanation", "json"): "sums.scene_json.json",
    ("Explanation", "html"): "sums.scene_html.html",
    ("Explanation", "page"): "sums.scene_html.page",
    ("WarpWords", "svg"): "fragments.word_pictures.words_svg",
    ("WarpWords", "html"): "fragments.word_pictures.words_html",
    ("FragmentTable", "svg"): "fragments.fragment_pictures.table_svg",
    ("SharedReading", "text"): "fragments.shared_pictures.plain",
    **{("SharedReading", kind): f"fragments.shared_pictures.{kind}" for kind in ("csv", "json", "svg")},
    ("Layout", "svg"): "fragments.fragment_pictures.layout_svg",
    ("Layout", "html"): "records.record_cards.layout_html",
    ("MatrixInstruction", "svg"): "fragments.fragment_pictures.instruction_svg",
    ("MatrixInstruction", "html"): "records.record_cards.instruction_html",
    ("FragmentInstruction", "svg"): "fragments.fragment_pictures.instruction_svg",
    ("FragmentInstruction", "html"): "records.record_cards.fragments_html",
    ("FragmentInstruction", "text"): "records.instruction_page.text",
    ("FragmentInstruction", "json"): "records.instruction_page.json",
    ("Packing", "svg"): "records.record_cards.packing_svg",
    ("Packing", "html"): "records.record_cards.packing_html",
    ("Facts", "svg"): "records.record_cards.format_svg",
    ("Facts", "html"): "records.record_cards.format_html",
    ("Recipe", "html"): "records.record_cards.recipe_html",
    ("Launch", "html"): "reports.launches.launch_html",
    ("Device", "html"): "reports.launches.device_html",
    ("ModuleNeeds", "html"): "drawing.cards.text_html",
    **{("TensorMap", kind): f"records.tensor_map_views.{kind}" for kind in ("text", "json", "svg", "html")},
    ("Explanation", "svg"): "sums.scene_svg.svg",
    ("MatrixInstruction", "text"): "records.instruction_page.text",
    ("MatrixInstruction", "json"): "records.instruction_page.json",
    **{("FragmentTable", kind): f"fragments.layout_tables.{kind}" for kind in (
        "text", "csv", "markdown", "json", "html", "page",
    )},
    ("Layout", "table"): "fragments.layout_tables.layout_as",
    ("Launch", "text"): "reports.launches.text",
    ("Launch", "json"): "reports.launches.json",
    ("Launch", "svg"): "reports.conflicts.svg",
    **{("Timeline", kind): f"reports.timelines.{kind}" for kind in ("text", "json", "svg")},
    ("ModuleNeeds", "text"): "reports.needs.module_text",
    ("ModuleNeeds", "json"): "reports.needs.module_json",
    ("Advice", "text"): "reports.advice_tables.text",
    ("Advice", "json"): "reports.advice_tables.json",
    ("Advice", "html"): "drawing.cards.text_html",
    ("ErrorReport", "svg"): "reports.error_plots.svg",
    ("ErrorReport", "html"): "reports.error_plots.html",
    ("ErrorReport", "page"): "reports.error_plots.page",
    ("ErrorReport", "text"): "reports.error_tables.text",
    ("ErrorReport", "json"): "reports.error_tables.json",
    ("ErrorReport", "csv"): "reports.error_tables.csv",
})  # fmt: skip
"""By a record's name and the kind of view: the module of this room and its function, whose first argument it is."""


def viewer(record: type, kind: str) -> Callable[..., str] | None:
    """Return the function for a view of a record type or one of its bases; None without such a view."""
    for each in record.__mro__:
        if where := VIEWS.get((each.__name__, kind)):
            module, _, name = where.rpartition(".")
            found: Callable[..., str] = getattr(import_module(f".{module}", __package__), name)
            return found
    return None
