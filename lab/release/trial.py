"""Install a built wheel into an environment of its own, and try it: `python -m lab.release.trial [tests]`.

Nothing of `src` is on the path: the tests import what was installed. What runs, for each `--dispatch` (a build of the
native engine; by default all that the processor has):

1. `import warpmma`, timed;
2. `warpmma verify`, which replays registers of an H200;
3. pytest on the tests that are named, by default those of the native engine; `tests` are all.

The interpreter is this one in a fresh environment, or the one that `--python PATH` names; with `--python 3.13` and
`--machine aarch64` it is one of Debian's (`debian.py`), whose processor is emulated if it is another one (Debian's
package qemu-user). `--benchmark` runs the benchmarks instead of the tests. On a machine without a network,
`--find-links FOLDER` has the wheels of what is required, and `--packages FOLDER` adds what is installed elsewhere, such
as Triton. Other options are pytest's; a value is joined to its option: `-knumbers`.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from . import debian

ROOT = Path(__file__).parents[2]
WHERE = ROOT / "build" / "release"
HERE = platform.python_version().rpartition(".")[0]
TESTS = (
    "tests/arithmetic/test_native*.py", "tests/arithmetic/test_check_engines.py", "tests/arithmetic/test_product.py",
)  # fmt: skip
IMPORTS = """
import os, subprocess, sys
def seconds(code):  # of the processor, which other programs change little
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
print(*(seconds("import warpmma") - seconds("pass") for _ in range(9)))
"""


class Environment:
    """Where a wheel is installed: how its Python is started, and with which variables."""

    def __init__(self, python: str, machine: str, where: Path, interpreter: Path | None = None) -> None:
        """Make it: a virtual environment of an interpreter, by default this one, or a folder beside one of Debian's."""
        self.python, self.machine, self.where = python, machine, where
        self.emulated = machine != platform.machine()
        self.here = not self.emulated and (python == HERE or interpreter is not None)
        shutil.rmtree(self.where, ignore_errors=True)
        ours = ("PYTHON", "PYTEST", "WARPMMA")
        self.variables = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
        if self.here:
            # This interpreter's pip installs into it, so that it needs none: some systems' Python has no ensurepip.
            subprocess.run([interpreter or sys.executable, "-m", "venv", "--without-pip", self.where], check=True)
            self.command = self.where / "bin" / "python"
        else:
            self.command = debian.interpreter(python, machine, WHERE / "debian")
            self.variables["PYTHONPATH"] = str(self.where)

    def install(self, wheel: Path, extra: str, more: Sequence[str] = (), links: Path | None = None) -> None:
        """Install a wheel with an extra, such as "test", and more requirements; from a folder of wheels alone."""
        command = [sys.executable, "-m", "pip", "--quiet", "--quiet"]
        if self.here:
            command += ["--python", str(self.command), "install"]
        else:  # by this machine's pip, as for the other interpreter
            platforms = [f"--platform=manylinux_2_{minor}_{self.machine}" for minor in range(28, 16, -1)]
            command += ["install", f"--target={self.where}", "--only-binary=:all:", f"--python-version={self.python}"]
            command += [*platforms, f"--platform=manylinux2014_{self.machine}"]
        if links is not None:
            command += ["--no-index", f"--find-links={links}"]
        subprocess.run([*command, f"{wheel}[{extra}]", *more], env=self.variables, check=True)

    def add(self, folders: Sequence[Path]) -> None:
        """Let it find packages of other folders, after its own."""
        site = self.run("-c", "import sysconfig; print(sysconfig.get_path('purelib'))", capture=True).strip()
        (Path(site) / "packages.pth").write_text("".join(f"{folder.resolve()}\n" for folder in folders))

    def run(self, *arguments: str, dispatch: str = "", capture: bool = False) -> str:
        """Run its Python in the root of the repository, and return what it prints if that is captured."""
        variables = {**self.variables, **({"WARPMMA_DISPATCH": dispatch} if dispatch else {})}
        to = subprocess.PIPE if capture else None
        done = subprocess.run([self.command, *arguments], cwd=ROOT, env=variables, stdout=to, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments)}: exit status {done.returncode}")
        return done.stdout or ""


def version(interpreter: Path) -> str:
    """Return the version of an interpreter, such as 3.12."""
    code = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
    return subprocess.run([interpreter, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def built(python: str, machine: str, where: Path = WHERE / "wheels") -> Path:
    """Return the wheel that was built for a CPython and a processor."""
    tag = "cp311-cp311" if python == "3.11" else "cp312-abi3"
    found = sorted(where.glob(f"warpmma-*-{tag}-manylinux_*_{machine}.whl"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise SystemExit(f"{where} has no wheel {tag} for {machine}: run python -m lab.release.wheels, or name --wheel")
    return found[-1]


def main(argv: Sequence[str] | None = None) -> int:
    """Install and try."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="*", help=f"what pytest is given; by default {' '.join(TESTS)}")
    parser.add_argument("--wheel", type=Path, help="by default the one in build/release/wheels that fits")
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="where the environment is made; what is there goes")
    parser.add_argument("--python", default=HERE, help="3.11, 3.13 or 3.14, or the path of an interpreter")
    parser.add_argument("--machine", default=platform.machine(), choices=debian.MACHINES)
    known = "x86-64-v4, x86-64-v3, plain; may be repeated; all by default"
    parser.add_argument("--dispatch", action="append", metavar="BUILD", help=known)
    parser.add_argument("--benchmark", action="store_true", help="run the benchmarks instead of tests")
    parser.add_argument("--no-tests", action="store_true", help="only import and verify")
    parser.add_argument("--extra", metavar="NAMES", help="such as test,triton; by default test or benchmark")
    install = "a requirement beside the extra's; may be repeated"
    parser.add_argument("--install", action="append", default=[], metavar="REQUIREMENT", help=install)
    links = "take requirements from this folder of wheels alone"
    parser.add_argument("--find-links", type=Path, metavar="FOLDER", help=links)
    packages = "packages that are found after those that were installed; may be repeated; not with Debian's CPythons"
    parser.add_argument("--packages", type=Path, action="append", default=[], metavar="FOLDER", help=packages)
    given, more = parser.parse_known_args(argv)
    interpreter = Path(given.python) if os.sep in given.python else None
    python = version(interpreter) if interpreter else given.python
    wheel = given.wheel or built(python, given.machine)
    extra = given.extra or ("benchmark" if given.benchmark else "test")
    where = given.to or WHERE / "trials" / f"{wheel.stem}-{python}-{extra}"
    environment = Environment(python, given.machine, where, interpreter)
    if given.packages and not environment.here:
        parser.error("--packages is for an interpreter that is installed: leave it out, or name --python PATH")
    environment.install(wheel.resolve(), extra, given.install, given.find_links)
    if given.packages:
        environment.add(given.packages)
    place = environment.run("-c", "import warpmma; print(warpmma.__file__)", capture=True).strip()
    if "src" in Path(place).parts:
        raise SystemExit(f"warpmma comes from {place}, not from the wheel")
    how = f"{given.machine}, emulated" if environment.emulated else given.machine
    print(f"CPython {python}, {how}: {place}", flush=True)
    if not environment.emulated:  # an emulator's times say nothing
        times = [float(x) for x in environment.run("-c", IMPORTS, capture=True).split()]
        print(f"import warpmma: {statistics.median(times):.3f} s of the processor, median of {len(times)}", flush=True)
    code = "from warpmma.arithmetic.dispatch import native; print(*dict.fromkeys(x.name for x in native.levels()))"
    builds = environment.run("-c", code, capture=True).split()
    if not builds:
        raise SystemExit("the wheel has no native engine")
    patterns = ("benchmarks/test_*.py",) if given.benchmark else TESTS
    tests = given.tests or sorted(str(x.relative_to(ROOT)) for pattern in patterns for x in ROOT.glob(pattern))
    pytest = ["-m", "pytest", "--quiet", "-p", "no:cacheprovider", *more]
    if given.packages and not given.benchmark:  # there, pytest-benchmark warns where several workers run
        pytest += ["-p", "no:benchmark"]
    for build in given.dispatch or builds:
        print(f"\n{build}", flush=True)
        replayed = environment.run("-m", "warpmma", "verify", dispatch=build, capture=True).splitlines()
        print("\n".join(replayed[-2:]), flush=True)  # before them, a line for every instruction
        if not given.no_tests:
            environment.run(*pytest, *tests, dispatch=build)
    return 0


if __name__ == "__main__":
    sys.exit(main())
