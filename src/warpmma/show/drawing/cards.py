"""Cards: records in notebooks, as HTML with its own style, light and dark.

1. A card is a `<div class='warpmma'>`, with a heading, rows of names and values, and parts that open at a click. Its
   style sheet has no effect outside of it.
2. Every value is escaped; a long one is cut, with a mark. A record inside of a record opens at a click, a few levels
   deep.
3. Cards are well-formed XML too, so that a test can read them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from itertools import islice
from typing import Any

from .drawing import FONT, MONOSPACE, style_sheet

_MOST_ITEMS, _MOST_ROWS, _MOST_LETTERS, _DEEPEST = 16, 24, 600, 3
_MOST_TITLE = 80
_COLOURS = ("paper", "panel", "ink", "pale", "faint", "line")
_RULES = (
    f".warpmma-card{{background:var(--warpmma-paper);color:var(--warpmma-ink);font:13px/1.45 {FONT};"
    "border:1px solid var(--warpmma-faint);border-radius:6px;padding:10px 14px;max-width:1100px;overflow-x:auto}"
    ".warpmma-card h4{font-size:15px;margin:0 0 6px;color:inherit;overflow-wrap:anywhere}"
    ".warpmma-card table{border-collapse:collapse;margin:4px 0;color:inherit;background:none;border:0;font-size:13px}"
    ".warpmma-card tr{background:none}"
    ".warpmma-card th,.warpmma-card td{text-align:left;vertical-align:top;padding:2px 14px 2px 0;border:0;"
    "color:inherit;max-width:none;overflow-wrap:anywhere}"
    ".warpmma-card th{font-weight:normal;color:var(--warpmma-pale);white-space:nowrap}"
    ".warpmma-card thead th{border-bottom:1px solid var(--warpmma-line)}"
    f".warpmma-card code,.warpmma-card pre{{font:12px/1.45 {MONOSPACE};color:inherit;background:none;margin:0}}"
    ".warpmma-card details{margin:2px 0}.warpmma-card summary{cursor:pointer}"
    ".warpmma-card p{margin:4px 0}"
    ".warpmma-card .warpmma-numbers{overflow-x:auto}"
    ".warpmma-card .warpmma-numbers :is(th,td){white-space:nowrap;overflow-wrap:normal}"
)


def card(heading: str, rows: Iterable[tuple[str, str]] = (), parts: Iterable[str] = ()) -> str:
    """Write a card: a heading, which is text; rows of a name, which is text, and a value in HTML; HTML below them."""
    sheet = f"<style>{style_sheet(_COLOURS)}{_RULES}</style>"
    top = f"<h4>{escape(heading)}</h4>" if heading else ""
    return f"<div class='warpmma warpmma-card'>{sheet}{top}{_rows(rows)}{''.join(parts)}</div>"


def page(title: str, body: str, style: str = "") -> str:
    """Write a page of HTML around cards or tables, light or dark as the reader has it."""
    return (
        "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        f"<title>{escape(title)}</title>\n<style>\n{style_sheet()}\n{style}\n</style>\n</head>\n"
        f"<body class='warpmma'>\n{body}\n</body>\n</html>"
    )


def opened(summary: str, inside: str, *, now: bool = False) -> str:
    """Write a part that opens at a click: a summary, which is text, and HTML."""
    return f"<details{' open=' + chr(39) * 2 if now else ''}><summary>{escape(summary)}</summary>{inside}</details>"


def preformatted(words: str) -> str:
    """Write lines of text as they are."""
    return f"<pre>{_clean(words)}</pre>"


def text_html(record: Any) -> str:
    """Write a card of a record's text."""
    return card("", parts=[preformatted(record.text())])


def fields_html(record: object) -> str:
    """Write a card of a record's fields; for an object that is not a dataclass, of its `repr`."""
    name = type(record).__name__
    if not is_dataclass(record) or isinstance(record, type):
        return card(name, parts=[preformatted(_short(repr(record)))])
    return card(_titled(record), field_rows(record, 0))


def value_html(value: object, depth: int = 0) -> str:
    """Write a value of a field."""
    if isinstance(value, str):
        words = _short(value)
        return preformatted(words) if "\n" in words else _clean(words)
    if hasattr(value, "dtype") and hasattr(value, "shape") and getattr(value, "shape", ()) != ():
        return _clean(f"{value.dtype} {list(value.shape)}")
    if is_dataclass(value) and not isinstance(value, type):
        if depth >= _DEEPEST:
            return _clean(_titled(value))
        return opened(_titled(value), _rows(field_rows(value, depth + 1)))
    if isinstance(value, Mapping):
        return _mapping(value, depth)
    if isinstance(value, Sequence | Collection) and not isinstance(value, bytes | range):
        return _items(value, depth)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"<code>{_clean(value.__qualname__)}</code>"
    return _clean(_short(str(value)))


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    lines = "".join(f"<tr><th scope='row'>{_clean(name)}</th><td>{value}</td></tr>" for name, value in rows)
    return f"<table><tbody>{lines}</tbody></table>" if lines else ""


def field_rows(record: object, depth: int = 0) -> list[tuple[str, str]]:
    """Return the rows of a record's fields, except empty texts."""
    values = {field.name: getattr(record, field.name) for field in fields(record) if field.repr}  # type: ignore[arg-type]
    return [(name.replace("_", " "), value_html(x, depth)) for name, x in values.items() if not isinstance(x, str) or x]


def _titled(record: object) -> str:
    """Name a record by its type, and by its `str` if it defines one."""
    name = type(record).__name__
    said = str(record) if type(record).__str__ is not object.__str__ else ""
    return f"{name} {said}" if 0 < len(said) <= _MOST_TITLE else name


def _mapping(values: Mapping[object, object], depth: int) -> str:
    if not values:
        return "none"
    rows = [(_short(str(key), 160), value_html(x, depth + 1)) for key, x in islice(values.items(), _MOST_ROWS)]
    if len(values) > _MOST_ROWS:
        rows.append(("\N{HORIZONTAL ELLIPSIS}", f"{len(values)} in all"))
    return opened(f"{len(values)}", _rows(rows)) if depth >= 1 or len(values) > 4 else _rows(rows)


def _items(values: Collection[object], depth: int) -> str:
    if not values:
        return "none"
    some = list(islice(iter(values), _MOST_ITEMS))
    inside = [value_html(each, depth + 1) for each in some]
    more = f" \N{HORIZONTAL ELLIPSIS} {len(values)} in all" if len(values) > len(some) else ""
    if any(is_dataclass(each) for each in some):
        return "".join(inside) + f"<p>{more}</p>" * bool(more)
    return ", ".join(inside) + more


def _short(words: str, most: int = _MOST_LETTERS) -> str:
    return words if len(words) <= most else f"{words[:most]}\N{HORIZONTAL ELLIPSIS} ({len(words):,} characters)"


_UNPRINTED = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _clean(words: str) -> str:
    """Escape a text; characters that XML cannot hold become the replacement character."""
    return escape(_UNPRINTED.sub("\N{REPLACEMENT CHARACTER}", words))
