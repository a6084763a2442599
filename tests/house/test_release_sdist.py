"""The source distribution: what quick tests need is in it, and nothing that git does not know."""

from __future__ import annotations

import os
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pytest

from lab.release import sdist


def written(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_quick_tests_come_with_what_they_need(tmp_path: Path) -> None:
    import build_backend

    written(tmp_path, {
        "tests/conftest.py": "import gc",
        "tests/room/test_quick.py": "import pytest\nfrom cases import A\npytestmark = pytest.mark.quick\nX = 'x/a.npz'",
        "tests/room/test_slow.py": "from slow_cases import A",
        "tests/support/cases.py": "from lab.generators import operands\nB = 'unnamed'",
        "tests/support/slow_cases.py": "",
        "tests/room/test_much.py": "import pytest\npytestmark = pytest.mark.quick\nX = 'c.npz'",
        "tests/data/a.npz": "data",
        "tests/data/c.npz": "x" * (build_backend.RECORDINGS + 1),
        "tests/data/b.npz": "data",
        "lab/__init__.py": "",
        "lab/generators/__init__.py": "from .operands import operands",
        "lab/generators/operands.py": "import numpy",
        "lab/generators/unused.py": "",
    })  # fmt: skip
    assert [str(path.relative_to(tmp_path)) for path in build_backend.quick_tests(tmp_path)] == [
        "lab/__init__.py", "lab/generators/__init__.py", "lab/generators/operands.py", "tests/conftest.py",
        "tests/data/a.npz", "tests/room/test_quick.py", "tests/support/cases.py",
    ]  # fmt: skip


def test_what_is_included_is_named_from_the_root() -> None:
    """A pattern that is not would bring back what git ignores: `.venv` too has folders named `src` and `tests`."""
    settings = tomllib.loads((sdist.ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["sdist"]
    assert settings["inclusion-mode"] == "explicit"
    for pattern in settings["include"]:
        assert pattern.startswith("/") and any(sdist.ROOT.glob(pattern[1:].replace("/**", ""))), pattern


def packed(path: Path, names: list[str]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(f"warpmma-9.9/{name}"))
    return path


@pytest.fixture
def clone() -> None:
    if not (sdist.ROOT / ".git").exists() or subprocess.run(["git", "--version"], capture_output=True).returncode:
        pytest.skip("not a clone")


@pytest.mark.usefixtures("clone")
def test_what_git_does_not_know_is_refused(tmp_path: Path) -> None:
    assert sdist.check(packed(tmp_path / "x.tar.gz", ["PKG-INFO", "README.md"])) == ["PKG-INFO", "README.md"]
    with pytest.raises(SystemExit, match=r"has what git does not: src/warpmma/_native\.so"):
        sdist.check(packed(tmp_path / "x.tar.gz", ["README.md", "src/warpmma/_native.so"]))


def test_a_large_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "warpmma-9.9.tar.gz"
    path.write_bytes(os.urandom(sdist.LIMIT))
    with pytest.raises(SystemExit, match=r"has 3,000,000 bytes; below 3,000,000 is promised"):
        sdist.check(path)


@pytest.mark.usefixtures("clone")
def test_it_is_small_and_complete(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core")
    files = sdist.check(sdist.build(tmp_path))
    assert {"CMakeLists.txt", "build_backend.py", "licenses/llvm.txt", "src/warpmma/native/module.cpp"} <= {*files}
    assert not [name for name in files if name.startswith(("docs/", "benchmarks/")) or "__pycache__" in name]
