"""Hooks of MkDocs (`mkdocs.yml` names this file): generated pages, links, pictures.

1. Pages of `docs` are written for both GitHub and the site. A link out of `docs` leads to a page below `repository`: a
   copy of a page, the text of a source file, or a notebook's cells. Only linked files are there, and notebooks with the
   output of their cells: those that need nothing else are run.
2. The reference has a page for every public module of the package, generated from `__all__`. A name is documented in
   the first module that has it, the top before its packages, and is a link in the others.
3. A picture that the package drew is inlined into its page, so that it follows the page's theme, not the system's.
4. The site includes the explorer, and its page links to it: GitHub cannot open it.
5. Nested lists indented by three are indented by four, as Python-Markdown requires; and `A[x][y]` is a link
   only where its page defines `[y]:`, which leads within `docs`.
"""

from __future__ import annotations

import ast
import json
import os
import posixpath
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import cache
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

__all__ = [
    "address",
    "escaped",
    "faces",
    "links",
    "members",
    "on_config",
    "on_files",
    "on_page_content",
    "on_page_markdown",
]

ROOT = Path(__file__).parents[2]
DOCS, PACKAGE = ROOT / "docs", ROOT / "src"
LANGUAGES = {".py": "python", ".cu": "cuda", ".cpp": "cpp", ".hpp": "cpp", ".toml": "toml", ".json": "json"}
EXPLORER = "warpmma.html"
INNER = ("testing.strategies", "testing.plugin")
_MARKED = re.compile(r"<p>(output-\w+-\d+)</p>")
_SHOWN: dict[str, str] = {}
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.M | re.S)
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
_DEFINED = re.compile(r"^\[([^\]]+)\]: ", re.M)
_IMAGE = re.compile(r'<img alt="([^"]*)" src="([^":]+\.svg)" ?/?>')

# Links


def source(uri: str) -> Path:
    """Return the file in the repository of an address in the site."""
    return (
        ROOT / uri.removeprefix("repository/").removesuffix(".code.md") if uri.startswith("repository/") else DOCS / uri
    )


def address(path: Path) -> str:
    """Return the address, in the site, of a file of the repository."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    uri = "repository/" + path.relative_to(ROOT).as_posix()
    return uri if path.suffix == ".md" else f"{uri}.code.md"


def links(text: str) -> Iterator[str]:
    """Relative links of a page, outside of its code."""
    for i, part in enumerate(_CODE.split(text)):
        if not i % 2:
            yield from (link for _, link, _ in _LINK.findall(part) if "://" not in link)


def led(folder: Path, link: str) -> Path:
    """Return where a link in a page of a folder leads; for a folder, to its README."""
    target = Path(os.path.normpath(folder / link))
    return target / "README.md" if target.is_dir() else target


def redirected(text: str, uri: str) -> str:
    """Redirect a page's links to the site's copies of their files."""
    place, here = source(uri).parent, posixpath.dirname(uri)

    def lead(found: re.Match[str]) -> str:
        target = led(place, found[2])
        if "://" in found[2] or (target.is_relative_to(DOCS) and place.is_relative_to(DOCS)):
            return found[0]
        return found[1] + posixpath.relpath(address(target), here) + found[3]

    return "".join(part if i % 2 else _LINK.sub(lead, part) for i, part in enumerate(_CODE.split(text)))


def escaped(text: str, defined: set[str]) -> str:
    """Return a text outside of code in which `A[x][y]` is not a link, unless y is defined."""
    return re.sub(r"\]\[([^\]\n]*)", lambda x: x[0] if x[1] in defined else f"]\\[{x[1]}", text)


@cache
def linked() -> tuple[Path, ...]:
    """Files of the repository that pages link to, directly or indirectly."""
    found: dict[Path, None] = {}
    todo = [*sorted(DOCS.rglob("*.md")), *sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))]
    todo += [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    while todo:
        page = todo.pop(0)
        if page in found or not page.is_file():
            continue
        found[page] = None
        if page.suffix == ".md":
            todo += [Path(os.path.normpath(page.parent / link)) for link in links(page.read_text())]
            todo += [
                x / "README.md" for link in links(page.read_text()) if (x := (page.parent / link).resolve()).is_dir()
            ]
    return tuple(path for path in found if not path.is_relative_to(DOCS))


def listing(path: Path) -> str:
    """Make a page from a file's text."""
    name, language = path.relative_to(ROOT).as_posix(), LANGUAGES.get(path.suffix, "text")
    return f"# {path.name}\n\n`{name}`:\n\n````{language}\n{path.read_text()}````\n"


# Notebooks


def notebook(path: Path) -> tuple[str, dict[str, str]]:
    """Make a page from a notebook's cells, and their outputs by placeholder."""
    content = json.loads(path.read_text())
    run = not content["metadata"]["warpmma"]["needs"]
    parts, shown, names = [], {}, {"__name__": path.stem}
    for i, cell in enumerate(content["cells"]):
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        if run and cell["cell_type"] == "code":
            mark = f"output-{path.stem}-{i}"
            shown[mark] = output(text, names)
            parts.append(f"<p>{mark}</p>")
    title, _, rest = parts[0].partition("\n")
    where = f"A notebook, `{path.relative_to(ROOT).as_posix()}`."
    return "\n\n".join([title, where, rest, *parts[1:]]) + "\n", shown


def output(text: str, names: dict[str, Any]) -> str:
    """Run a cell; return what it prints and the rendering of its last expression, like a notebook."""
    tree = ast.parse(text)
    last = end if isinstance(end := tree.body[-1], ast.Expr) else None
    tree.body = tree.body[:-1] if last is not None else tree.body
    with redirect_stdout(StringIO()) as printed:
        exec(compile(tree, "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last is not None else None
    html = f"<pre>{escape(printed.getvalue())}</pre>" if printed.getvalue() else ""
    if value is not None:
        html += value._repr_html_() if hasattr(value, "_repr_html_") else f"<pre>{escape(repr(value))}</pre>"
    return f'<div class="output">{html}</div>' if html else ""


# The reference


def faces() -> tuple[str, ...]:
    """Modules of the reference: the top, its packages from the bottom up, and public modules within them."""
    layers = re.search(r"^layers = \[(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.M | re.S)
    names = re.findall(r"\w+", layers[1]) if layers else []
    rooms = [name for name in reversed(names) if not name.startswith("_")]
    inner = [name for room in rooms for name in INNER if name.startswith(f"{room}.")]
    return (
        "warpmma",
        *(f"warpmma.{name}" for name in sorted([*rooms, *inner], key=lambda x: rooms.index(x.split(".")[0]))),
    )


def file_of(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def parsed(module: str) -> tuple[tuple[str, ...], dict[str, tuple[str, str]]]:
    """`__all__` of a module, and the sources of the names that it imports, including those for type checkers."""
    path, names = file_of(module), ()
    tree = ast.parse(path.read_text())
    origins: dict[str, tuple[str, str]] = {}
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = ".".join(package.split(".")[: len(package.split(".")) + 1 - node.level])
            start = f"{base}.{node.module}" if node.module else base
            origins |= {alias.asname or alias.name: (start, alias.name) for alias in node.names}
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names = tuple(ast.literal_eval(node.value))
    return names, origins


def home(module: str, name: str) -> tuple[str, str]:
    """Return where a module's name is defined."""
    seen: set[tuple[str, str]] = set()
    while (module, name) not in seen and file_of(module).exists():
        seen.add((module, name))
        module, name = parsed(module)[1].get(name, (module, name))
    return module, name


@cache
def members() -> dict[str, dict[str, str]]:
    """For each public module its names, and for each name the full name that the reference documents."""
    first: dict[tuple[str, str], str] = {}
    return {
        face: {name: first.setdefault(home(face, name), f"{face}.{name}") for name in parsed(face)[0]}
        for face in faces()
    }


def reference(face: str) -> str:
    """Make the page of a public module."""
    options = "members: []", "show_root_heading: false", "show_root_toc_entry: false"
    title = f"# {face}\n\n::: {face}\n    options:\n" + "".join(f"      {option}\n" for option in options)
    names = members()[face]
    parts = [f"::: {full}\n" for name, full in names.items() if full == f"{face}.{name}"]
    others = [(name, full) for name, full in names.items() if full != f"{face}.{name}"]
    if others:
        found = ", ".join(f"[`{name}`]({full.rpartition('.')[0]}.md#{full})" for name, full in others)
        parts.insert(0, f"Also here: {found}.\n")
    return "\n".join([title, *parts])


def contents() -> str:
    """Make the reference's first page."""
    rows = [f"| [`{face}`]({face}.md) | {summary(face)} |" for face in faces()]
    return "\n".join(["# Reference", "", "| module | what it has |", "|---|---|", *rows, ""])


def summary(module: str) -> str:
    text = ast.get_docstring(ast.parse(file_of(module).read_text())) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


# MkDocs


def on_config(config: Any) -> Any:
    """Add the generated pages to the navigation."""
    for entry in config.nav:
        for title, pages in entry.items() if isinstance(entry, dict) else ():
            if title == "Reference":
                pages += [{face: f"api/{face}.md"} for face in faces()]
            if title == "Examples":
                pages += [x for path in linked() if path.suffix == ".ipynb" for x in [address(path)]]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    from warpmma.show import explorer_page

    made = {f"api/{face}.md": reference(face) for face in faces()} | {"api/index.md": contents()}
    for path in linked():
        if path.suffix == ".ipynb":
            made[address(path)], shown = notebook(path)
            _SHOWN.update(shown)
        else:
            made[address(path)] = path.read_text() if path.suffix == ".md" else listing(path)
    made[EXPLORER] = explorer_page()
    for uri, text in made.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """Redirect links to the site's copies of their files, and indent nested lists."""
    uri = page.file.src_uri
    if uri.startswith("api/"):
        return markdown
    if uri == "explorer.md":
        title, rest = markdown.split("\n", 1)
        markdown = f"{title}\n\n[Open the explorer]({EXPLORER}){{ .md-button .md-button--primary }}\n{rest}"
    parts = _CODE.split(re.sub(r"^ {2,3}(?=[*-] )", "    ", markdown, flags=re.M))
    defined = set(_DEFINED.findall(markdown))
    return redirected("".join(part if i % 2 else escaped(part, defined) for i, part in enumerate(parts)), uri)


def on_page_content(html: str, page: Any, config: Any, **_: object) -> str:
    """Inline pictures and the outputs of notebook cells."""
    html = _MARKED.sub(lambda found: _SHOWN[found[1]], html)
    return _IMAGE.sub(lambda found: picture(found, page.file, config), html)


def picture(found: re.Match[str], file: Any, config: Any) -> str:
    folder = posixpath.dirname(file.dest_uri)
    path = Path(config.docs_dir) / posixpath.normpath(posixpath.join(folder, found[2]))
    if not path.is_file() or "class='warpmma'" not in path.read_text()[:1000]:
        return found[0]
    text = re.sub(r"^<\?xml.*?\?>\s*|<!DOCTYPE.*?>\s*", "", path.read_text(), flags=re.S)
    return f'<figure class="picture" role="img" aria-label="{found[1]}">{text}</figure>'
