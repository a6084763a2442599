"""A contributor finds a test, and reads its file: no file of tests has more than 400 lines."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_no_file_of_tests_is_long() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in TESTS.rglob("*.py")}
    assert len(lines) > 100
    assert {str(path.relative_to(TESTS)): n for path, n in lines.items() if n > 400} == {}


def test_every_folder_has_quick_tests() -> None:
    quick = {
        path.parent.name
        for path in TESTS.rglob("test_*.py")
        if "\npytestmark = pytest.mark.quick\n" in path.read_text()
    }
    assert len(quick) > 25
    folders = {path.parent.name for path in TESTS.rglob("test_*.py")}
    assert folders - quick == {"explorer"}  # a browser takes longer to start; the doctests of `show` make its pages
