"""Pages, docstrings, comments and messages are plain technical English: a list of phrases that no longer occur.

The list holds what readers of this project stumbled over. A phrase is searched without regard to case, in text whose
lines are joined, outside of code.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BANNED = re.compile(
    "|".join(f"(?:{x})" for x in (ROOT / "tests" / "data" / "banned_phrases.txt").read_text().splitlines()), re.I
)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def prose(page: str) -> str:
    """A page without its code, its lines joined."""
    return " ".join(re.sub(r"`[^`]*`", "x", re.sub(r"^ *```.*?^ *```", "", page, flags=re.M | re.S)).split())


def texts(source: str) -> Iterator[str]:
    """Yield the docstrings, strings and comments of a module, each with its lines joined."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield " ".join(re.sub(r"`[^`]*`", "x", node.value).split())
    comments = [x for x in tokenize.generate_tokens(io.StringIO(source).readline) if x.type == tokenize.COMMENT]
    lines = [x.string.lstrip("# ") for x in comments]
    yield " ".join(re.sub(r"`[^`]*`", "x", "\n".join(lines)).split())


def found(text: str) -> list[str]:
    """List the phrases of a text."""
    return [x[0] for x in BANNED.finditer(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_are_plain(page: Path) -> None:
    phrases = found(prose(page.read_text()))
    assert phrases == []


def rooms() -> list[str]:
    package = ROOT / "src" / "warpmma"
    return sorted({path.relative_to(package).parts[0].removesuffix(".py") for path in package.rglob("*.py")})


@pytest.mark.parametrize("room", rooms())
def test_rooms_are_plain(room: str) -> None:
    package = ROOT / "src" / "warpmma"
    files = [package / f"{room}.py"] if (package / f"{room}.py").exists() else sorted((package / room).rglob("*.py"))
    phrases = [f"{path.relative_to(package)}: {x}" for path in files for t in texts(path.read_text()) for x in found(t)]
    assert phrases == [], "\n".join(phrases)


def test_the_list_finds_what_it_is_for() -> None:
    assert found("lane 40 is none of 32") and found("nobody waits") and not found("lane 40 is out of range")
    assert found(prose("An operand\nthat is no number.\n```\nis no code\n```")) == ["is no n"]
