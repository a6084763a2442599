"""Builds the package: scikit-build-core on all cores, quick tests in the source distribution, and a word to pytest.

CMake's makefiles build one file after the other unless they are told otherwise; $CMAKE_BUILD_PARALLEL_LEVEL, where it
is set, says how many at a time.

A source distribution has the sources of the package, and what `pytest -m quick` needs: `quick_tests` says what that is.

The module that makes an editable install work finds the sources and the built engine; Python imports it at every start.
pytest rewrites the assertions of its plugins' modules, takes it for one of them, and warns that it is imported already,
which `pytest -W error` makes an error at the start of every run. With PYTEST_DONT_REWRITE in its docstring, pytest
leaves a module alone.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import os
import re
import shutil
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scikit_build_core import build

ROOT = Path(__file__).parent
RECORDINGS = 65_536
"""Bytes of data that a test in the source distribution may need."""
_HOOK = re.compile(r"_editable_\w+\.py")
_LINE = '\n__doc__ = "PYTEST_DONT_REWRITE"\n'


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel, and return its name."""
    _use_all_cores()
    name: str = build.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel that refers to the sources, and return its name."""
    _use_all_cores()
    name: str = build.build_editable(wheel_directory, config_settings, metadata_directory)
    wheel = Path(wheel_directory) / name
    changed = wheel.with_suffix(".changed")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        hooks = {each: old.read(each) + _LINE.encode() for each in old.namelist() if _HOOK.fullmatch(each)}
        for each in old.infolist():
            data = hooks.get(each.filename, old.read(each))
            if each.filename.endswith(".dist-info/RECORD"):
                data = _recorded(data.decode(), hooks).encode()
            new.writestr(each, data)
    shutil.move(changed, wheel)
    return name


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    """Build a source distribution, and return its name."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["scikit-build"]["sdist"]
    files = [*settings["include"], *(f"/{path.relative_to(ROOT).as_posix()}" for path in quick_tests())]
    name: str = build.build_sdist(sdist_directory, {"sdist.include": ";".join(files), **(config_settings or {})})
    return name


def quick_tests(root: Path = ROOT) -> list[Path]:
    """Return files of tests marked `quick`, with what they import, directly or not, and the data that they name.

    Those that need more than `RECORDINGS` bytes of data are left out: a source distribution is small.
    """
    tests = root / "tests"
    marked = [path for path in sorted(tests.rglob("test_*.py")) if "mark.quick" in path.read_text("utf-8")]
    found = _needed(tests / "conftest.py", root)
    for path in marked:
        needed = _needed(path, root)
        if sum(x.stat().st_size for x in needed if x.is_relative_to(tests / "data")) <= RECORDINGS:
            found |= needed
    return sorted(found)


def _needed(test: Path, root: Path) -> set[Path]:
    """Return a file, those that it imports, and the files in `tests/data` that one of them names."""
    tests = root / "tests"
    data = {path.name: path for path in sorted((tests / "data").rglob("*")) if path.is_file()}
    todo, found = [test], set[Path]()
    while todo:
        path = todo.pop()
        if path in found or not path.is_file():
            continue
        found.add(path)
        if path.suffix == ".py":
            tree = ast.parse(path.read_text("utf-8"))
            todo += _imported(tree, path, [root, tests, tests / "support", root / "examples"])
            texts = [x.value for x in ast.walk(tree) if isinstance(x, ast.Constant) and isinstance(x.value, str)]
            todo += [data[name] for text in texts if (name := text.rpartition("/")[2]) in data]
    return found


def _imported(tree: ast.Module, path: Path, roots: list[Path]) -> Iterator[Path]:
    """Yield the files in these folders that a module's imports could mean, packages on the way included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names, folders = [alias.name for alias in node.names], roots
        elif isinstance(node, ast.ImportFrom):
            above = [node.module] if node.module else []
            names = [".".join([*above, alias.name]) for alias in node.names]
            folders = [path.parents[node.level - 1]] if node.level else roots
        else:
            continue
        for name in names:
            parts = name.split(".")
            for folder in folders:
                for n in range(1, len(parts) + 1):
                    base = folder.joinpath(*parts[:n])
                    yield from (base.with_suffix(".py"), base / "__init__.py")


def __getattr__(name: str) -> Any:
    """Give the other hooks of a build backend as scikit-build-core has them."""
    return getattr(build, name)


def _use_all_cores() -> None:
    """Let CMake run as many compilers as this process may use cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(cores))


def _recorded(record: str, files: dict[str, bytes]) -> str:
    """Return a wheel's list of files with the hashes and sizes of these."""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        record = re.sub(rf"(?m)^{re.escape(name)},.*$", f"{name},sha256={digest},{len(data)}", record)
    return record
