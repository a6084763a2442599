"""Run tests on the native engine built with AddressSanitizer and UndefinedBehaviorSanitizer.

`python -m lab.check.sanitize [tests]`, with GCC on Linux: installs the package, built with CMake's WARPMMA_SANITIZE,
into a separate environment in `build/sanitize`, and runs pytest there. The first report ends the run; it is printed,
and the command fails.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
WHERE = ROOT / "build" / "sanitize"
TESTS = (
    "tests/arithmetic/test_native*.py",
    "tests/arithmetic/test_check_engines.py",
    "tests/arithmetic/test_product.py",
    "tests/products/test_*.py",
    "tests/house/test_fuzz*.py",
)
# These measure the memory of the process, which includes that of the sanitizers.
NOT_HERE = ("tests/arithmetic/test_native_process.py::test_the_process_does_not_grow",)
_ADDR_NO_RANDOMIZE = 0x0040000


def install() -> Path:
    """Build and install into a separate environment; return its interpreter."""
    python = WHERE / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", WHERE], check=True)
    options = ["cmake.define.WARPMMA_SANITIZE=ON", "cmake.build-type=Debug"]
    settings = [f"--config-settings={option}" for option in options]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *settings, ".[test]"], cwd=ROOT, check=True)
    return python


def library(name: str) -> str:
    """Find a library of the compiler's."""
    compiler = os.environ.get("CXX", "c++")
    found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
    if not Path(found.strip()).is_absolute():
        raise SystemExit(f"{compiler} has no {name}; this needs GCC with its sanitizers")
    return found.strip()


def environment() -> dict[str, str]:
    """Return environment variables that preload the sanitizers, and the C++ library that exceptions need by then.

    Leaks are ignored, because the interpreter never frees everything; failed allocations must become `MemoryError`.
    """
    common = f"halt_on_error=1:abort_on_error=1:log_path={WHERE / 'report'}"
    address = f"{common}:detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=64"
    return {
        **os.environ,
        "LD_PRELOAD": f"{library('libasan.so')} {library('libstdc++.so')}",
        "ASAN_OPTIONS": address,
        "UBSAN_OPTIONS": f"{common}:print_stacktrace=1",
    }


def _fixed_addresses() -> None:
    """Disable address randomisation, with which older sanitizers collide; continue if that is forbidden."""
    ctypes.CDLL(None).personality(_ADDR_NO_RANDOMIZE)


def main(argv: Sequence[str] | None = None) -> int:
    """Build, run, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", nargs="*", help=f"what pytest is given; by default {' '.join(TESTS)}")
    tests = parser.parse_args(argv).tests
    python, given = install(), environment()
    for old in WHERE.glob("report.*"):
        old.unlink()
    engine = "import warpmma._native as n, pathlib; print(b'__asan_init' in pathlib.Path(n.__file__).read_bytes())"
    run = partial(subprocess.run, env=given, preexec_fn=_fixed_addresses)
    done = run([python, "-c", engine], cwd=WHERE, capture_output=True, text=True)
    if done.stdout != "True\n":
        raise SystemExit(f"the native engine was not built with sanitizers:\n{done.stdout}{done.stderr}")
    found = [str(path.relative_to(ROOT)) for pattern in TESTS for path in sorted(ROOT.glob(pattern))]
    command = [python, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", *(tests or found)]
    command += [f"--deselect={test}" for test in NOT_HERE]
    code = run(command, cwd=ROOT).returncode
    reports = sorted(WHERE.glob("report.*"))
    for report in reports:
        print(report.read_text())
    print(f"{len(reports)} reports of the sanitizers")
    return 1 if code or reports else 0


if __name__ == "__main__":
    sys.exit(main())
