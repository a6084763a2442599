"""Build the source distribution, twice, and look at it: `python -m lab.release.sdist [--test]`.

It is below 3 MB, has the same bytes both times, and has no file that git does not know. `--test` installs it, engine
included, into a fresh environment and runs its quick tests in the unpacked folder, which is all that they have.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
WHERE = ROOT / "build" / "release"
LIMIT = 3_000_000
"""Bytes that a source distribution has at most."""


def main(argv: Sequence[str] | None = None) -> int:
    """Build, compare, and list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--test", action="store_true", help="install it and run its quick tests")
    given = parser.parse_args(argv)
    WHERE.mkdir(parents=True, exist_ok=True)
    path = build(WHERE)
    with tempfile.TemporaryDirectory() as folder:
        if build(Path(folder)).read_bytes() != path.read_bytes():
            raise SystemExit(f"{path.name}: built again, it has other bytes")
        files = check(path)
        print(f"{path.name}: {path.stat().st_size:,} bytes, {len(files)} files, the same bytes twice")
        if given.test:
            test(path, Path(folder))
    return 0


def build(to: Path) -> Path:
    """Build it with the package's build backend."""
    when = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)
    environment = {"SOURCE_DATE_EPOCH": when.stdout.strip(), **os.environ}
    code = "import sys, build_backend; print(build_backend.build_sdist(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(to)]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return to / done.stdout.split()[-1]


def check(path: Path) -> list[str]:
    """Return the names of its files; an error if it is too large, or has what git ignores or does not know."""
    if path.stat().st_size >= LIMIT:
        raise SystemExit(f"{path.name} has {path.stat().st_size:,} bytes; below {LIMIT:,} is promised")
    with tarfile.open(path) as archive:
        files = [name.partition("/")[2] for name in archive.getnames()]
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    known = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    unknown = {*files} - {*known, "PKG-INFO"}
    if unknown:
        raise SystemExit(f"{path.name} has what git does not: {', '.join(sorted(unknown)[:10])}")
    return files


def test(path: Path, folder: Path) -> None:
    """Install it into a fresh environment and run its quick tests."""
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    tree = folder / path.name.removesuffix(".tar.gz")
    python = folder / "environment" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder / "environment"], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"{path}[test]"], check=True)
    quick = ["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "-m", "quick", "tests"]
    subprocess.run([python, *quick], cwd=tree, check=True)


if __name__ == "__main__":
    sys.exit(main())
