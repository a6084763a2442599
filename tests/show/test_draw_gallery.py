"""Pictures of docs/pictures.md are what the code draws now, and the page shows each."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from picture_places import overlaps

from lab.draw.gallery import FOLDER, PICTURES, main, outdated


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_what_is_drawn(name: str) -> None:
    drawn = PICTURES[name]()
    assert (FOLDER / f"{name}.svg").read_text() == drawn, "run: python -m lab.draw.gallery"
    assert overlaps(ElementTree.fromstring(drawn)) == []


def test_the_page_shows_each() -> None:
    page = (FOLDER.parent / "pictures.md").read_text()
    assert set(re.findall(r"!\[[^\]]+\]\(pictures/(\w+)\.svg\)", page)) == set(PICTURES)
    drawn = {path.stem for path in FOLDER.glob("*.svg")}
    assert {name for name in drawn if not name.startswith(("explain_", "timeline_"))} == set(PICTURES)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_700_000


def test_the_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("lab.draw.gallery.PICTURES", {"one": lambda: "<svg/>"})
    monkeypatch.setattr("lab.draw.gallery.FOLDER", tmp_path)
    monkeypatch.setattr("sys.argv", ["gallery.py", "--check"])
    assert main() == 1 and outdated() == ["one"] and capsys.readouterr().out == "one\n"
    monkeypatch.setattr("sys.argv", ["gallery.py"])
    assert main() == 0 and outdated() == []
    monkeypatch.setattr("sys.argv", ["gallery.py", "--check"])
    assert main() == 0 and "1 pictures are what" in capsys.readouterr().out
