"""What the tests compare with is asked for in one place, and missed where it is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import oracles
import pytest
from oracles import ORACLES, absent

HERE = Path(__file__).parents[1]


@pytest.mark.parametrize("path", sorted(HERE.rglob("test_*.py")), ids=lambda p: p.name)
def test_no_test_looks_for_an_oracle_itself(path: Path) -> None:
    if path != Path(__file__):
        text = path.read_text()
        assert not any(f'{call}("{name}' in text for call in ("which", "importorskip") for name in ("ptxas", "nvcc",
                       "torch", "mmasim", "gfloat", "tensor_layouts", "scipy")), path.name  # fmt: skip


def test_why_an_oracle_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(oracles, "PUBLISHED_ROWS", tmp_path / "rows.npz")
    assert ORACLES["published rows"]() == f"no file {tmp_path / 'rows.npz'}; $WARPMMA_PUBLISHED_ROWS can name it"
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("oracles.importlib.util.find_spec", lambda name: None)
    assert ORACLES["ptxas"]() == "no ptxas on the PATH"
    assert ORACLES["mmasim"]() == "torch and mmasim: not installed"


def test_a_program_of_a_wheel_is_put_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "nvidia" / "cu13" / "bin"
    folder.mkdir(parents=True)
    (folder / "ptxas").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    assert ORACLES["ptxas"]() == ""
    assert os.environ["PATH"].split(os.pathsep) == [str(tmp_path), str(folder)]
    assert ORACLES["nvcc"]() == "no nvcc on the PATH"


def test_tests_are_collected_without_the_native_engine() -> None:
    found = [str(path) for path in sorted((HERE / "arithmetic").glob("test_*native*.py"))]
    code = "import sys; sys.modules['warpmma._native'] = None; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "--collect-only", "-q", "-p", "no:cacheprovider", *found],
        cwd=HERE.parent, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert "test_native_process.py::" in done.stdout


def test_all_oracles_are_missed_before_anything_runs() -> None:
    environment = {**os.environ, "WARPMMA_PUBLISHED_ROWS": "/nowhere/rows.npz", "COLUMNS": "1000"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--all-oracles", "-p", "no:cacheprovider", __file__],
        cwd=HERE.parent, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 4, done.stdout + done.stderr
    missed = "--all-oracles: " + "; ".join(
        "published rows: no file /nowhere/rows.npz; $WARPMMA_PUBLISHED_ROWS can name it"
        if name == "published rows" else absent(name)
        for name in ORACLES if name == "published rows" or absent(name)
    )  # fmt: skip
    assert missed in done.stderr
    assert "passed" not in done.stdout
