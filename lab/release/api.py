"""The list of public names, `docs/public_api.txt`: `python -m lab.release.api` prints changes, `--write` writes it."""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

import warpmma

PAGE = Path(__file__).parents[2] / "docs" / "public_api.txt"
INNER = ("testing.strategies",)
"""Public modules within packages."""


def names() -> list[str]:
    """Return the full names of what the package and its public modules have in `__all__`, in alphabetical order."""
    folder = Path(warpmma.__file__).parent
    paths = [path for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    modules = ["warpmma", *(f"warpmma.{name}" for name in (*sorted(path.stem for path in paths), *INNER))]
    public = [name for name in modules if not any(part.startswith("_") for part in name.split("."))]
    return sorted(f"{name}.{each}" for name in public for each in importlib.import_module(name).__all__)


def changes(page: Path = PAGE) -> list[str]:
    """Return what was added (+) and removed (-) since the list was written."""
    lines = list(difflib.ndiff(page.read_text().splitlines() if page.exists() else [], names()))
    return [line for line in lines if line[0] in "+-"]


def main(argv: Sequence[str] | None = None) -> int:
    """Compare or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the list")
    given = parser.parse_args(argv)
    found = changes()
    print("\n".join(found) or "no changes")
    if given.write:
        PAGE.write_text("\n".join(names()) + "\n")
    return 1 if found and not given.write else 0


if __name__ == "__main__":
    sys.exit(main())
