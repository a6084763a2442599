"""`warpmma explore`: a page, whole or not at all, and where it is."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest
from cli_cases import Capture, Patch

from warpmma.cli import main
from warpmma.show import explorer_page


def test_the_page_is_written_where_it_is_asked_for(tmp_path: Path, capsys: Capture, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for argument, name in (("", "warpmma.html"), ("page.html", "page.html"), ("folder", "folder/warpmma.html")):
        assert main(["explore", *filter(None, [argument])]) == 0
        assert (tmp_path / name).read_text(encoding="utf-8") == explorer_page()
        assert capsys.readouterr().out == f"{name}: 0.6 MB, to be opened in a browser\n"
    assert sorted(x.name for x in tmp_path.iterdir()) == ["folder", "page.html", "warpmma.html"]  # and nothing else


def test_json_says_where_and_how_large(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "page.html"
    path.write_text("what was here before")
    assert main(["explore", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(path), "bytes": path.stat().st_size}
    assert path.stat().st_size == len(explorer_page().encode())


@pytest.mark.parametrize("name", ["none/page.html", "a\0b.html"])
def test_what_cannot_be_written_is_one_line(tmp_path: Path, capsys: Capture, name: str) -> None:
    assert main(["explore", f"{tmp_path}/{name}"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert "cannot be written" in err and "expected OUT.html in a folder that is there" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("found", [True, False])
def test_a_browser_is_opened(tmp_path: Path, capsys: Capture, monkeypatch: Patch, found: bool) -> None:
    opened: list[str] = []

    def opens(address: str) -> bool:
        opened.append(address)
        return found

    monkeypatch.setattr(webbrowser, "open", opens)
    path = tmp_path / "page.html"
    assert main(["explore", str(path), "--open"]) == 0
    assert opened == [path.as_uri()]
    assert ("no browser was found" in capsys.readouterr().err) is not found
