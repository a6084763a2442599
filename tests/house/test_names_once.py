"""One word, one meaning: no two modules and no two records share a name, and no function hides a module of its name.

Sub-rooms may share names with rooms and modules: `operations.memory`, `machine.memory`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import warpmma as wm

pytestmark = pytest.mark.quick

ROOT = Path(wm.__file__).parent


@cache
def trees() -> dict[Path, ast.Module]:
    """Parse the modules of the package."""
    return {path: ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}


def module_name(path: Path) -> str:
    """Return the last part of a module's name; a package is named by its folder."""
    return path.parent.name if path.stem == "__init__" else path.stem


def siblings(path: Path) -> set[str]:
    """Name the modules and packages in the same package as a module, itself among them; of a face, those below it."""
    return {module_name(p) for p in trees() if p.parent == path.parent and p.stem != "__init__"} | {
        p.parent.name for p in trees() if p.stem == "__init__" and p.parent.parent == path.parent
    }


def defined(tree: ast.Module) -> Iterator[str]:
    """Name the functions and classes at the top of a module."""
    return (x.name for x in tree.body if isinstance(x, ast.FunctionDef | ast.ClassDef))


def imported(tree: ast.Module) -> Iterator[str]:
    """Name what a face imports from modules, which are no modules."""
    for x in ast.walk(tree):
        if isinstance(x, ast.ImportFrom) and x.module:
            yield from (alias.asname or alias.name for alias in x.names)


def test_no_two_modules_share_a_name() -> None:
    found = defaultdict(list)
    for path in trees():
        if path.stem == "__main__" or (path.stem == "__init__" and len(path.relative_to(ROOT).parts) > 2):
            continue  # what `-m` runs has Python's name
        found[module_name(path)].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_no_two_records_share_a_name() -> None:
    found = defaultdict(list)
    for path, tree in trees().items():
        for x in tree.body:
            if isinstance(x, ast.ClassDef) and not x.name.startswith("_"):
                found[x.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_no_function_hides_a_module() -> None:
    """Neither where it is defined, beside the module or in it, nor on the face of the package that the module is in."""
    found = set()
    for path, tree in trees().items():
        package = ".".join(path.parent.relative_to(ROOT.parent).parts)
        names = {*defined(tree), *(imported(tree) if path.stem == "__init__" else ())}
        found |= {f"{package}: {name}" for name in names & siblings(path)}
    assert found == set()


def test_what_is_twice_is_found(tmp_path: Path) -> None:
    """The three look-ups see what they look for."""
    tree = ast.parse("from .evidence import evidence\nfrom . import native\ndef rows(): ...\nclass Row: ...\n")
    assert {*imported(tree)} == {"evidence"}
    assert {*defined(tree)} == {"rows", "Row"}
    assert module_name(tmp_path / "isa" / "__init__.py") == "isa" and module_name(tmp_path / "isa" / "mma.py") == "mma"
    assert {"isa", "execution", "errors", "_arrays"} <= siblings(ROOT / "errors.py")
    assert {"running", "batches"} <= siblings(ROOT / "execution" / "__init__.py")
