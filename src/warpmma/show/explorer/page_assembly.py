"""The page in one file: the template with style, scripts and data in it, and a policy that lets no request out.

1. Every module of the assets is plain JavaScript of ECMAScript 2020, an ES module that imports names of others of them
   and of nothing else. In the page they stand in one inline module, each behind those that it imports from; what is
   left out are the words that only files need: `import` and `export`. So no two of them may define the same name.
2. The page's Content Security Policy lets nothing be loaded from anywhere; of scripts and styles it lets in those with
   the hashes of the page's own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files

from ..drawing.drawing import style_sheet
from .page_data import explorer_data

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.M)
_EXPORT = re.compile(r"^export (?=const |let |function |class |async )", re.M)
_ENTRY = "main"


@cache
def explorer_page() -> str:
    """Return the explorer: a page of HTML that needs nothing else.

    Returns
    -------
    str
        Of less than a megabyte.

    Examples
    --------
    >>> page = explorer_page()
    >>> page.startswith("<!doctype html>"), "https://" in page, len(page) < 3_000_000
    (True, False, True)
    """
    # In JSON `<` can only stand in texts, where it may be written so; then no text can end the element.
    data = json.dumps(explorer_data(), separators=(",", ":")).replace("<", "\\u003c")
    style, script = style_sheet() + _asset("style.css"), _bundle()
    policy = (
        f"default-src 'none'; script-src {_hashed(script)}; style-src {_hashed(style)}; base-uri 'none'; "
        "form-action 'none'"
    )
    page = _asset("template.html")
    for name, text in {"policy": policy, "style": style, "data": data, "script": script}.items():
        page = page.replace(f"{{{{{name}}}}}", text, 1)
    return page


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text("utf-8")


def _bundle() -> str:
    """Put the modules behind one another, those that others import from first (rule 1)."""
    seen: set[str] = set()
    parts: list[str] = []

    def add(name: str) -> None:
        if name not in seen:
            seen.add(name)
            text = _asset(f"{name}.js")
            for other in _IMPORT.findall(text):
                add(other)
            parts.append(f"// {name}.js\n" + _EXPORT.sub("", _IMPORT.sub("", text)))

    add(_ENTRY)
    return "\n".join(parts)


def _hashed(text: str) -> str:
    """Source of a Content Security Policy: what stands between the tags, byte for byte."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
