"""Who imports whom by name: no path is inserted, no tool imports tests, and only a tool's own test imports it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "tools", "benchmarks", "examples")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
# What a script of the folder, or a test, finds there by its name alone.
HELPERS = {path.stem for path in (ROOT / "tests").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
TOOLS = {path.stem for path in (ROOT / "tools").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}

RUNS_SCRIPTS = {ROOT / "src" / "warpmma" / "triton" / "__main__.py"}
"""Who runs scripts of others as Python does: it puts their folder first."""


def imported(tree: ast.AST) -> Iterator[str]:
    """Names of the modules that a file imports, relative ones aside."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""


def searched(tree: ast.AST) -> bool:
    """Whether a file has to do with where Python looks for modules."""
    attributes = (ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    from_sys = (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == "sys")
    return "sys.path" in attributes or any(alias.name == "path" for node in from_sys for alias in node.names)


def forbidden(path: Path, tree: ast.AST) -> set[str]:
    """What a file imports and should not: a tool or an example tests, the package either, tests another's tool."""
    folder, *_, name = path.relative_to(ROOT).parts
    roots = {module.partition(".")[0] for module in imported(tree)}
    found = roots & {"tests", *(HELPERS if folder != "tests" else ())}
    if folder not in ("tests", "tools"):
        found |= roots & TOOLS
    return found | (roots & TOOLS - own(name.removesuffix(".py").removeprefix("test_")) if folder == "tests" else set())


def own(tool: str) -> set[str]:
    """Return a tool, with whose name that of its test begins, and the modules beside it that it is made of."""
    tool = max((x for x in TOOLS if f"{tool}_".startswith(f"{x}_")), key=len, default=tool)
    path = ROOT / "tools" / f"{tool}.py"
    made_of = {x.partition(".")[0] for x in imported(ast.parse(path.read_text()))} if path.exists() else set()
    return {tool, *(made_of & TOOLS)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_find_each_other_by_name(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert searched(tree) == (path in RUNS_SCRIPTS)
    assert forbidden(path, tree) == set()


def test_what_is_forbidden_is_noticed() -> None:
    assert {"arrays", "fuzzing", "oracles"} <= HELPERS and {"compare_gpu", "sanitize"} <= TOOLS
    for text in ("import sys\nsys.path.insert(0, 'x')", "import sys\nx = [*sys.path]", "from sys import path"):
        assert searched(ast.parse(text))
    assert not searched(ast.parse("import os, sys\nos.path.join(sys.prefix, 'path')"))
    wrong = [
        ("tools/a.py", "from arrays import same", {"arrays"}), ("tools/a.py", "import tests.fuzzing.plan", {"tests"}),
        ("tools/a.py", "import operator, sanitize", set()), ("src/warpmma/a.py", "import sanitize", {"sanitize"}),
        ("tests/house/test_a.py", "import arrays, sanitize", {"sanitize"}),
        ("src/a.py", "from .sanitize import x", set()),
        ("tests/house/test_sanitize.py", "from sanitize import main", set()),
        ("tests/house/test_sanitize_twice.py", "from sanitize import main", set()),
        ("tests/house/test_sanitized.py", "from sanitize import main", {"sanitize"}),
    ]  # fmt: skip
    for name, text, found in wrong:
        assert forbidden(ROOT / name, ast.parse(text)) == found, name
