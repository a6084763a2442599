"""Commands find the examples, which import each other by name, without their folder on Python's path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lab.programs import examples


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(examples, "EXAMPLES", tmp_path)
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    return tmp_path


def test_an_example_brings_those_that_it_imports(folder: Path) -> None:
    (folder / "of_three_upper.py").write_text("import math\nfrom of_three_middle import two\nthree = two + 1\n")
    (folder / "of_three_middle.py").write_text("import of_three_lower\ntwo = of_three_lower.one + 1\n")
    (folder / "of_three_lower.py").write_text("one = 1\n")
    found = examples.example("of_three_upper")
    assert found.three == 3 and examples.example("of_three_upper") is found is sys.modules["of_three_upper"]


def test_what_cannot_be_imported_leaves_nothing(folder: Path) -> None:
    with pytest.raises(ImportError, match="no example of_three_upper"):
        examples.example("of_three_upper")
    (folder / "of_three_upper.py").write_text("import package_that_is_absent\n")
    with pytest.raises(ModuleNotFoundError, match="package_that_is_absent"):
        examples.example("of_three_upper")
    assert "of_three_upper" not in sys.modules


def test_the_folder_is_that_of_the_examples() -> None:
    assert (examples.EXAMPLES / "attention.py").exists()
