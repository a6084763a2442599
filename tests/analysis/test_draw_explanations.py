"""Pictures of docs/explain.md are what the code draws now."""

from __future__ import annotations

import re

import pytest

from lab.draw.explanations import FOLDER, PICTURES


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_what_is_drawn(name: str) -> None:
    drawn = PICTURES[name]().svg()
    assert (FOLDER / f"{name}.svg").read_text() == drawn, "run: python -m lab.draw.explanations"


def test_the_page_shows_each() -> None:
    page = (FOLDER.parent / "explain.md").read_text()
    assert sorted(re.findall(r"\]\(pictures/(\w+)\.svg\)", page)) == sorted(PICTURES)
    assert {path.stem for path in FOLDER.glob("explain_*.svg")} == set(PICTURES)
