"""Names that are imported when they are first used: at run time, and as type checkers see them."""

from __future__ import annotations

import ast
import pickle
import pydoc
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import warpmma as wm
from warpmma import _lazy, lookup, show, testing

LAZY = [wm, testing, show, lookup]
each_package = pytest.mark.parametrize("package", LAZY, ids=lambda p: p.__name__)


def typed(package: ModuleType) -> dict[str, set[str]]:
    """Return what a package imports for type checkers: what it writes after `import`, by what it writes before."""
    tree = ast.parse(Path(str(package.__file__)).read_text())
    (block,) = (x for x in tree.body if isinstance(x, ast.If) and ast.unparse(x.test) == "TYPE_CHECKING")
    found: dict[str, set[str]] = {}
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom)
        names = {x.name if x.asname in (None, x.name) else f"{x.name} as {x.asname}" for x in statement.names}
        found.setdefault("." * statement.level + (statement.module or ""), set()).update(names)
    return found


def here(written: str) -> str:
    return written.rpartition(" as ")[2]


@each_package
def test_names_at_run_time_are_those_that_type_checkers_see(package: ModuleType) -> None:
    origins = package._ORIGINS
    assert {origin: set(names) for origin, names in origins.items()} == typed(package)
    every = [here(written) for names in origins.values() for written in names]
    assert len(every) == len(set(every))


@each_package
def test_the_face_is_what_is_listed(package: ModuleType) -> None:
    names = {here(written) for origin, those in package._ORIGINS.items() if origin != "." for written in those}
    assert names == set(package.__all__)
    assert names | set(package._ORIGINS.get(".", ())) <= set(dir(package))


@each_package
def test_each_name_is_what_its_module_has(package: ModuleType) -> None:
    for origin, names in package._ORIGINS.items():
        for written in names:
            there = written.partition(" as ")[0]
            if origin == ".":
                expected = import_module(f"{package.__name__}.{there}")
            else:
                expected = getattr(import_module(origin, package.__name__), there)
            assert getattr(package, here(written)) is expected
            assert vars(package)[here(written)] is expected  # so Python asks no second time


def test_all_of_them_are_there_in_a_new_process() -> None:
    """Not only where tests have imported everything; in either order of a name and a module that it needs."""
    code = """
import pickle, warpmma as wm
from warpmma import *
assert all(name in globals() for name in wm.__all__)
assert "matmul(" in __import__("pydoc").render_doc(wm) and pickle.loads(pickle.dumps(mma)) is wm.mma
"""
    for first in ("", "import warpmma.isa, warpmma.testing.plugin", "import warpmma; warpmma.testing.Gpu"):
        done = subprocess.run([sys.executable, "-c", f"{first}\n{code}"], capture_output=True, text=True)
        assert not done.returncode, done.stderr


def test_help_shows_the_face() -> None:
    page = pydoc.plain(pydoc.render_doc(wm))
    for name in wm.__all__:
        assert name in page


@pytest.mark.parametrize("name", ["mma", "Instruction", "RegisterFile", "TARGETS", "UnknownNameError"])
def test_what_was_loaded_late_is_pickled_by_its_own_module(name: str) -> None:
    x = getattr(wm, name)
    assert pickle.loads(pickle.dumps(x)) is x or pickle.loads(pickle.dumps(x)) == x


def test_what_no_package_has() -> None:
    with pytest.raises(AttributeError, match=r"^module 'warpmma.testing' has no attribute 'strategy'") as caught:
        testing.strategy  # type: ignore[attr-defined]  # noqa: B018
    assert caught.value.name == "strategy" and caught.value.obj is testing


def test_what_a_name_s_module_lacks_is_said_by_its_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is no attribute where it is unknown; where its module cannot be imported, that is what users must read."""
    package = ModuleType("made_up")
    package.__path__ = []
    monkeypatch.setitem(sys.modules, "made_up", package)
    get, names = _lazy.on_demand("made_up", {".": ("part",), ".lost": ("thing",)})
    assert {"part", "thing"} <= set(names())
    with pytest.raises(AttributeError, match=r"^module 'made_up' cannot load 'part': No module named 'made_up.part'$"):
        get("part")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'made_up.lost'$"):
        get("thing")


def test_a_module_that_is_imported_later(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("made_up")
    module.one = 1  # type: ignore[attr-defined]
    made = _lazy.later("made_up")
    with pytest.raises(ModuleNotFoundError, match="No module named 'made_up'"):
        made.one  # noqa: B018
    monkeypatch.setitem(sys.modules, "made_up", module)
    assert made.one == 1 and vars(made)["one"] == 1
    with pytest.raises(AttributeError, match="made_up"):
        made.two  # noqa: B018
