"""Who imports whom by name: no path is inserted, the package needs no lab, and only a command's own test imports it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "lab", "benchmarks", "examples")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
# What a script of the folder, or a test, finds there by its name alone.
HELPERS = {
    path.stem
    for folder in (ROOT / "tests", ROOT / "tests" / "support")
    for path in folder.iterdir()
    if path.suffix == ".py" or (path / "__init__.py").exists()
}
MODULES = {f"lab.{path.parent.name}.{path.stem}": path for path in (ROOT / "lab").glob("*/*.py")}
COMMANDS = {name for name, path in MODULES.items() if '\nif __name__ == "__main__":' in path.read_text()}
SHARED = {"lab.gpu", "lab.generators"}  # with all tests

RUNS_SCRIPTS = {ROOT / "src" / "warpmma" / "triton" / "__main__.py"}
"""Who runs scripts of others as Python does: it puts their folder first."""


@lru_cache(1)
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """All nodes of a file."""
    return tuple(ast.walk(tree))


def imported(tree: ast.AST) -> Iterator[str]:
    """Names of the modules that a file imports, relative ones aside; of `lab`, what it imports from packages too."""
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
            yield from {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()


def searched(tree: ast.AST) -> bool:
    """Whether a file has to do with where Python looks for modules."""
    paths = (n.value for n in nodes(tree) if isinstance(n, ast.Attribute) and n.attr == "path")
    from_sys = (n for n in nodes(tree) if isinstance(n, ast.ImportFrom) and n.module == "sys")
    return any(isinstance(whose, ast.Name) and whose.id == "sys" for whose in paths) or any(
        alias.name == "path" for node in from_sys for alias in node.names
    )


def forbidden(path: Path, tree: ast.AST) -> set[str]:
    """What a file imports and should not: any file `tests`, the package `lab`, a test what is another command's."""
    folder, *_, name = path.relative_to(ROOT).parts
    modules = set(imported(tree))
    roots = {module.partition(".")[0] for module in modules}
    if folder == "tests":
        of_lab = {module for module in modules if module.startswith("lab.")}
        return roots & {"tests"} | of_lab - own(name.removesuffix(".py").removeprefix("test_"))
    return roots & {"tests", *HELPERS, *(["lab"] if folder in ("src", "examples") else ())}


def own(test: str) -> set[str]:
    """Return what a test may import of `lab`: the module of its name, packages that it is made of, what is shared."""
    tested = max((x for x in MODULES if f"{test}_".startswith(spelled(x))), key=len, default=None)
    packages = SHARED | ({package(tested), *made_of(tested)} if tested else set())
    inside = {name for name in MODULES.keys() - COMMANDS if package(name) in packages}
    return {*packages, *inside, *([tested] if tested else ())}


def spelled(module: str) -> str:
    """Return how the name of a module's test begins."""
    return module.removeprefix("lab.").replace(".", "_") + "_"


def package(module: str) -> str:
    return module.rpartition(".")[0]


@cache
def made_of(module: str) -> set[str]:
    """Return the packages of `lab` that a module imports from."""
    return {package(name) for name in imported(ast.parse(MODULES[module].read_text())) if name in MODULES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_find_each_other_by_name(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert searched(tree) == (path in RUNS_SCRIPTS)
    assert forbidden(path, tree) == set()


def test_what_is_forbidden_is_noticed() -> None:
    assert {"arrays", "fuzzing", "oracles"} <= HELPERS
    assert {"lab.compare.banks", "lab.check.sanitize"} <= COMMANDS and "lab.gpu.driver" in MODULES.keys() - COMMANDS
    for text in ("import sys\nsys.path.insert(0, 'x')", "import sys\nx = [*sys.path]", "from sys import path"):
        assert searched(ast.parse(text))
    assert not searched(ast.parse("import os, sys\nos.path.join(sys.prefix, 'path')"))
    command, library = "from lab.check.sanitize import main", "from lab.gpu.driver import Driver"
    wrong = [
        ("lab/a.py", "from arrays import same", {"arrays"}), ("lab/a.py", "import tests.fuzzing.plan", {"tests"}),
        ("lab/a.py", f"import operator\n{command}", set()), ("src/warpmma/a.py", command, {"lab"}),
        ("src/warpmma/a.py", "import lab", {"lab"}), ("examples/a.py", library, {"lab"}),
        ("tests/house/test_a.py", f"import arrays\n{command}", {"lab.check.sanitize"}),
        ("tests/house/test_a.py", "from lab.check import sanitize as tool", {"lab.check", "lab.check.sanitize"}),
        ("tests/house/test_a.py", library, set()), ("benchmarks/test_a.py", library, set()),
        ("tests/house/test_a.py", "from lab.programs.launches import words", {"lab.programs.launches"}),
        ("tests/house/test_record_programs.py", "from lab.programs.launches import words", set()),
        ("src/a.py", "from .sanitize import x", set()),
        ("tests/house/test_check_sanitize.py", command, set()),
        ("tests/house/test_check_sanitize_twice.py", command, set()),
        ("tests/house/test_check_sanitized.py", command, {"lab.check.sanitize"}),
        ("tests/house/test_check_lookups.py", command, {"lab.check.sanitize"}),
    ]  # fmt: skip
    for name, text, found in wrong:
        assert forbidden(ROOT / name, ast.parse(text)) == found, name
