"""pytest under `python -m warpmma.triton`, and with WARPMMA_TRITON, where its warnings are errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import warpmma

pytest.importorskip("triton.language")

TEST = """
import numpy as np
import triton

def test_it():
    assert triton.runtime.driver.active.get_current_target().arch == 90
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of tests, and warpmma as pip installs it: its package is in the list of the plugin's files."""
    site, info = tmp_path / "site", tmp_path / "site" / "warpmma-1.dist-info"
    info.mkdir(parents=True)
    (site / "warpmma").symlink_to(Path(warpmma.__file__).parent)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: warpmma\nVersion: 1\n")
    (info / "RECORD").write_text("warpmma/__init__.py,,\nwarpmma/testing/plugin.py,,\n")
    (info / "entry_points.txt").write_text(
        "[pytest11]\nwarpmma = warpmma.testing.plugin\n[triton.backends]\nwarpmma = warpmma.triton.backend\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (tmp_path / "test_it.py").write_text(TEST)
    return tmp_path


@pytest.mark.parametrize("start", [["-m", "warpmma.triton", "-m", "pytest"], ["-m", "pytest"]])
def test_no_warning_and_no_error(folder: Path, start: list[str]) -> None:
    paths = os.pathsep.join([str(folder / "site"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = {**os.environ, "PYTHONPATH": paths, "WARPMMA_TRITON": "sm_90"}
    done = subprocess.run(
        [sys.executable, *start, "-p", "no:cacheprovider"], cwd=folder, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert "= 1 passed in" in done.stdout, done.stdout + done.stderr  # "1 passed, 1 warning in" where one is no error
