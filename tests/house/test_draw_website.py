"""The documentation's site: it builds without a warning, has every page and public name, and asks no network."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from oracles import needs

import warpmma
from lab.draw.website import address, escaped, faces, links, members
from warpmma.show import explorer_page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SETTINGS = (ROOT / "mkdocs.yml").read_text()
PAGES = sorted([*DOCS.rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md"))])


# Without MkDocs


def test_navigation_has_every_page() -> None:
    listed = re.findall(r"^ +- (?:[^:#\n]+: )?([\w/]+\.md)$", SETTINGS, re.M)
    assert len(listed) == len(set(listed))
    written = {path for path in listed if not path.startswith(("api/", "repository/"))}
    assert written == {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}


def test_gallery_leads_to_every_picture() -> None:
    """Each is on the page itself, or on one that it links to."""
    gallery = (DOCS / "gallery.md").read_text()
    pages = [gallery, *((DOCS / name).read_text() for name in re.findall(r"[^!]\[[^\]]+\]\((\w+\.md)", gallery))]
    shown = {name for text in pages for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)}
    assert shown == {path.relative_to(DOCS).as_posix() for kind in ("svg", "png") for path in DOCS.rglob(f"*.{kind}")}


def anchors(text: str) -> set[str]:
    """Of a page's headings, as GitHub makes them."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", prose, re.M)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain}


def test_anchors_lead_to_headings() -> None:
    for page in PAGES:
        prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)
        for link, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", prose):
            there = page.parent / link if link else page
            assert there.suffix != ".md" or anchor in anchors(there.read_text()), (page, link, anchor)


def test_anchors_are_those_of_github() -> None:
    assert anchors("# A `b.c` D's\n## [How](x.md) we, know it\n```\n# no\n```\n") == {"a-bc-ds", "how-we-know-it"}


def test_reference_has_every_face_and_name() -> None:
    rooms = {name for name in dir(warpmma) if isinstance(getattr(warpmma, name, None), type(warpmma))}
    assert {f"warpmma.{name}" for name in rooms if not name.startswith("_")} <= set(faces())
    for face in faces():
        if face.rpartition(".")[2] in ("plugin", "strategies"):
            continue  # which import pytest and hypothesis as they are loaded
        assert set(members()[face]) == set(importlib.import_module(face).__all__), face
    assert set(members()["warpmma"]) == set(warpmma.__all__)


def test_links_are_those_outside_of_code() -> None:
    assert list(links("[a](b.md#c) `[d](e)` [f](https://g)\n\n```text\n[h](i)\n```\n")) == ["b.md"]
    assert address(DOCS / "functions" / "errors.svg") == "functions/errors.svg"
    assert address(ROOT / "examples" / "row_sums.py") == "repository/examples/row_sums.py.code.md"


def test_indices_are_not_links() -> None:
    assert escaped("A[x][y], [a figure][page]", {"page"}) == "A[x]\\[y], [a figure][page]"


# With MkDocs


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, once for all of pytest-xdist's processes; a warning is an error."""
    if not all(find_spec(name) for name in ("mkdocs", "material", "mkdocstrings")):
        pytest.skip("needs the extra docs")
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return built(place / "site")
    import fcntl

    with (place.parent / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever comes second finds it built
        return built(place.parent / "site")


def built(folder: Path) -> Path:
    if not (folder / "built").exists():
        done = subprocess.run(
            [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
            cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        (folder / "built").touch()
    return folder


class Read(HTMLParser):
    """What a page loads, where it leads, and what can be led to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.names: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.names |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.leads.append(values["href"])
        else:
            self.loads += [values[name] for name in ("src", "href", "data", "poster", "srcset") if name in values]


@cache
def parsed(page: Path) -> Read:
    """Read a page once for all tests."""
    return Read(page)


def local(pages: dict[Path, Read]) -> Iterator[tuple[Path, str, Path, str]]:
    """Links of pages that stay in the site: the page, the link, where it leads, and to which name."""
    for page, read in pages.items():
        for link in read.leads:
            if not re.match(r"[a-z]+:|//", link):
                target, _, name = link.partition("#")
                yield page, link, (page.parent / unquote(target)).resolve() if target else page, unquote(name)


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        read = parsed(page)
        assert [x for x in read.loads if re.match(r"(?!data:)[a-z]+:|//", x) and "rel=canonical" not in x] == [], page
        assert "mermaid" not in page.read_text().lower() and "mathjax" not in page.read_text().lower(), page
    for sheet in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import )['\"]?(?:https?:)?//", sheet.read_text()) == [], sheet


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {page.resolve(): parsed(page) for page in site.rglob("*.html") if page.name != "404.html"}
    for page, link, target, name in local(pages):
        assert target.exists(), (page, link)
        assert not name or target not in pages or name in pages[target].names | {"__tabbed"}, (page, link)


def test_the_explorer_can_be_opened(site: Path) -> None:
    assert (site / "warpmma.html").read_text() == explorer_page()
    assert "warpmma.html" in Read(site / "explorer.html").leads


def test_every_name_is_in_the_built_reference(site: Path) -> None:
    for face, names in members().items():
        page = (site / "api" / f"{face}.html").read_text()
        for name, full in names.items():
            assert (f'id="{full}"' if full == f"{face}.{name}" else f'#{full}"') in page, (face, name)


# In a browser


@contextmanager
def opened(browser: Any, path: Path, width: int, scheme: Any) -> Iterator[Any]:
    """Open a page of the site from the file system; it may ask for files alone, and complain of nothing."""
    said: list[str] = []
    own = "file:", "data:", "blob:", "about:"
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.on("request", lambda request: said.extend([request.url] * (not request.url.startswith(own))))
    page.on("console", lambda message: said.extend([message.text] * (message.type in ("error", "warning"))))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    yield page
    context.close()
    assert said == []


@needs("browser")
@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (900, "light"), (1600, "dark")])
def test_pages_are_no_wider_than_the_window(browser: Any, site: Path, width: int, scheme: str) -> None:
    """Tables, blocks of code and pictures scroll by themselves."""
    names = ["index", "tutorial", "gallery", "api/warpmma.machine", "specification/ptx", "explain", "error"]
    with opened(browser, site / "index.html", width, scheme) as page:
        for name in [*names, "repository/examples/notebooks/tour.ipynb.code"]:
            page.goto((site / f"{name}.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name


@needs("browser")
def test_search_and_theme_work_from_the_file_system(browser: Any, site: Path) -> None:
    with opened(browser, site / "gallery.html", 1300, "light") as page:
        ground = "getComputedStyle(document.querySelector('figure.picture svg')).getPropertyValue('--warpmma-paper')"
        light = page.evaluate(ground)
        page.locator("label[title=Dark]").click()
        assert page.evaluate(ground) != light
        page.locator(".md-search__input").first.fill("swizzle")
        page.locator(".md-search-result__item").first.wait_for(timeout=20_000)
