"""Independent software that the tests compare the package with, and where it is found.

A test that needs missing software is skipped with a reason; with `pytest --all-oracles` that is an error before
anything runs.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import warpmma as wm

__all__ = ["CHROMIUM", "ORACLES", "PUBLISHED_ROWS", "absent", "needs", "skip_without"]

_PLACE = "WARPMMA_PUBLISHED_ROWS"
PUBLISHED_ROWS = Path(
    os.environ.get(_PLACE, Path(__file__).parents[3] / "shared" / "rows" / "published_rows.npz")
)  # fmt: skip
"""Results of tensor cores of six GPUs that others published; docs/evidence.md says whose, and what is in the file."""


def _program(name: str) -> str:
    if shutil.which(name) is None:
        # Wheels of NVIDIA have it, and put it on no path.
        spec = importlib.util.find_spec("nvidia")
        for folder in [] if spec is None else spec.submodule_search_locations or []:
            found = shutil.which(name, path=Path(folder) / "cu13" / "bin")
            if found:
                os.environ["PATH"] += os.pathsep + str(Path(found).parent)
                return ""
        return f"no {name} on the PATH"
    return ""


def _package(*names: str) -> str:
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return f"{' and '.join(missing)}: not installed" if missing else ""


def _browser() -> str:
    """Playwright drives the system's Chromium; one of its own it need not download."""
    missing = _package("playwright")
    return missing or ("" if CHROMIUM else "no chromium, chromium-browser or google-chrome on the PATH")


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
"""The browser in which pages are tested."""

ORACLES: dict[str, Callable[[], str]] = {
    "ptxas": lambda: _program("ptxas"),
    "nvdisasm": lambda: _program("nvdisasm"),
    "nvcc": lambda: _program("nvcc"),
    "PyTorch": lambda: _package("torch"),
    "mmasim": lambda: _package("torch", "mmasim"),
    "gfloat": lambda: _package("gfloat"),
    "tensor-layouts": lambda: _package("tensor_layouts"),
    "browser": _browser,
    "SciPy": lambda: _package("scipy"),
    "published rows": lambda: "" if PUBLISHED_ROWS.is_file() else f"no file {PUBLISHED_ROWS}; ${_PLACE} can name it",
    "native engine": lambda: "" if "native" in wm.engines() else "warpmma was installed without it",
}
"""Why each is absent; nothing if it is here."""


@cache
def absent(name: str) -> str:
    """Say why an oracle is absent; nothing if it is here."""
    why = ORACLES[name]()
    return f"{name}: {why}" if why else ""


def needs(name: str) -> pytest.MarkDecorator:
    """Mark a test, or a module as `pytestmark`, that needs an oracle."""
    return pytest.mark.skipif(bool(absent(name)), reason=absent(name))


def skip_without(name: str) -> None:
    """Skip a module while it is imported, or a test while it runs."""
    if absent(name):
        pytest.skip(absent(name), allow_module_level=True)
