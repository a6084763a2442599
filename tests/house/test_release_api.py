"""The public names: `docs/public_api.txt` lists them, and nothing is added or removed without the list."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.release import api


def test_the_list_of_public_names_is_what_the_package_has() -> None:
    assert api.changes() == [], "python -m lab.release.api --write"


def test_the_list_has_the_names_of_every_package() -> None:
    listed = api.PAGE.read_text().splitlines()
    assert listed == sorted({*listed})
    assert {"warpmma.matmul", "warpmma.ptx.load", "warpmma.testing.strategies.matrices"} <= {*listed}
    assert not any(part.startswith("_") for name in listed for part in name.split("."))


def test_changes_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "names.txt"
    monkeypatch.setattr(api, "PAGE", page)
    monkeypatch.setattr(api, "names", lambda: ["warpmma.a", "warpmma.c"])
    page.write_text("warpmma.a\nwarpmma.b\n")
    assert api.changes(page) == ["- warpmma.b", "+ warpmma.c"]
    monkeypatch.setattr(api, "changes", lambda: ["+ warpmma.c"])
    assert api.main([]) == 1 and page.read_text() == "warpmma.a\nwarpmma.b\n"
    assert api.main(["--write"]) == 0 and page.read_text() == "warpmma.a\nwarpmma.c\n"
    assert "+ warpmma.c" in capsys.readouterr().out
