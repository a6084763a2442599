"""What is written: citations lead somewhere, nothing outside of the repository is cited, lines are short."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPECIFICATION = ROOT / "docs" / "specification"
FOLDERS = ("src", "tests", "lab", "benchmarks", "docs", "examples")
SUFFIXES = {".py", ".pyi", ".md", ".hpp", ".cpp", ".c", ".cu", ".txt", ".toml", ".jsonl"}
PAGES = {page.name: page.read_text() for page in SPECIFICATION.glob("*.md")}

NUMBER = r"\d+(?:\.\d+)*"
# A page, in a path or in a link, then perhaps sections: "specification/ptx.md 3.1", "[ptx.md](ptx.md) 1, 3 and 5".
CITATION = re.compile(rf"(?:specification/|\]\()([\w.]+\.md)\)?(?: ({NUMBER}(?:(?:, | and | to ){NUMBER})*))?")
WIDEST = 120


def files() -> list[Path]:
    """Every file of text: those of the folders and of the root; built things stand beside them in neither."""
    inside = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    return sorted(p for p in (*inside, *ROOT.glob("*")) if p.is_file() and p.suffix in SUFFIXES)


def sections(text: str) -> set[str]:
    return set(re.findall(rf"^#+ ({NUMBER}) ", text, re.M))


def unresolved(text: str, pages: dict[str, str], *, inside: bool) -> Iterator[str]:
    """Citations in a text, of the specification or outside it, that lead nowhere."""
    for page, cited in CITATION.findall(text):
        if page in pages:
            yield from (f"{page} {n}" for n in re.findall(NUMBER, cited) if n not in sections(pages[page]))
        elif inside or "/" not in page:
            yield page


@pytest.mark.parametrize("path", [p for p in files() if p != Path(__file__)], ids=lambda p: str(p.relative_to(ROOT)))
def test_citations_of_the_specification_resolve(path: Path) -> None:
    text = path.read_text()
    inside = path.parent == SPECIFICATION
    cited = text if inside else "\n".join(re.findall(r".*specification/.*", text))
    assert list(unresolved(cited, PAGES, inside=inside)) == []
    if not inside:
        # A page's name alone leads nowhere.
        names = "|".join(re.escape(name) for name in PAGES if name != "README.md")
        assert re.findall(rf"(?<!specification/)(?<!\[)\b(?:{names})", text) == []


def test_the_check_of_citations_can_fail() -> None:
    pages = {"a.md": "# A\n\n## 1 One\n\n### 1.2 Two\n"}
    text = "docs/specification/a.md 1.2, specification/a.md 3; [a.md](specification/a.md) 1 and 1.3; specification/b.md"
    assert list(unresolved(text, pages, inside=False)) == ["a.md 3", "a.md 1.3", "b.md"]
    assert list(unresolved("[a.md](a.md) 1.2, [c.md](c.md) 4", pages, inside=True)) == ["c.md"]


def test_sections_named_within_a_page_are_there() -> None:
    for name, text in PAGES.items():
        named = set(re.findall(rf"section ({NUMBER})", text)) | set(re.findall(r"\((\d+\.\d+)\)", text))
        assert named <= sections(text), name


def test_every_page_is_listed_and_cited() -> None:
    index = PAGES["README.md"]
    rest = "\n".join(path.read_text() for path in files() if path.parent != SPECIFICATION)
    for name in PAGES.keys() - {"README.md"}:
        assert f"[{name}]({name})" in index and f"specification/{name}" in rest, name


def test_links_lead_to_files() -> None:
    for path in files():
        if path.suffix == ".md":
            # In code `kernel[grid](x)` is a launch.
            prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", path.read_text(), flags=re.M | re.S)
            links = re.findall(r"\]\((?!https?:)([^)#]+)", prose)
            assert [link for link in links if not (path.parent / link).exists()] == [], path


def test_nothing_outside_the_repository_is_cited() -> None:
    """Facts are in docs/specification; a test may look for data beside the repository, and skip without them."""
    outside = re.compile(r"\.\.[/]shared|shared[/](?:facts|ptx|rows|golden|prototypes)|\bfacts[/]|ptx[_]isa|/work[/]")
    found = {str(path.relative_to(ROOT)): outside.findall(path.read_text()) for path in files()}
    assert {path: what for path, what in found.items() if what} == {}


def test_commands_of_the_lab_are_there() -> None:
    """What a text says to run with `python -m lab.` is a command; of past releases the changelog is history."""
    changes = ROOT / "CHANGELOG.md"
    texts = [path.read_text() for path in files() if path != changes] + [changes.read_text().partition("\n## 0.")[0]]
    named = {name for text in texts for name in re.findall(r"-m (lab\.[\w.]*\w)", text)}
    assert len(named) > 30
    paths = {name: ROOT / f"{name.replace('.', '/')}.py" for name in named}
    assert [name for name, path in paths.items() if not path.exists() or "__main__" not in path.read_text()] == []


def test_lines_of_markdown_are_short() -> None:
    """Addresses do not count, for they cannot be broken."""
    for path in files():
        if path.suffix == ".md" and path.name != "CHANGELOG.md":
            lines = [re.sub(r"https?://\S+", "", line) for line in path.read_text().splitlines()]
            wide = [f"{path.relative_to(ROOT)}:{i}" for i, line in enumerate(lines, 1) if len(line) > WIDEST]
            assert wide == []
