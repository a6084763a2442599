"""The glossary: each term once, and the classes that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text()


def test_each_term_is_defined_once() -> None:
    terms = [term for terms in re.findall(r"^\* \*\*(.+?)\*\*: ", PAGE, re.M) for term in terms.split(", ")]
    assert len(terms) > 60 and len(terms) == len(set(terms))


def test_classes_are_there() -> None:
    named = set(re.findall(r"`([A-Z]\w+)`", PAGE))
    sources = "\n".join(path.read_text() for path in (ROOT / "src" / "warpmma").rglob("*.py"))
    assert named and named <= set(re.findall(r"^class (\w+)", sources, re.M))
