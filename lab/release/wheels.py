"""Build the wheels for Linux, with the native engine, and audit them: `python -m lab.release.wheels [--twice]`.

A wheel is made of two things. Everything but the engine is that of a pure wheel, which the package's build backend
makes (`WARPMMA_PURE=1`). The engine is built by CMake with zig's C++ compiler, which carries the headers and stubs of
every glibc, for the processor and the glibc that the wheel's tag names; LLVM's C++ library is linked into it.

The same sources give the same bytes, wherever they lie: paths are mapped, files are sorted, and have the time of the
last commit or $SOURCE_DATE_EPOCH. `--twice` builds from a copy elsewhere as well, and compares.

Tools: `pip install --group release` (pip 25.1 or later).
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from .debian import MACHINES, headers

ROOT = Path(__file__).parents[2]
WHERE = ROOT / "build" / "release"
GLIBC = "2.28"  # manylinux_2_28

# Of warpmma, and of what is linked into the engine.
LICENCES = ("LICENSE", "licenses/llvm.txt", "licenses/nanobind.txt", "licenses/robin-map.txt", "licenses/zig.txt")


@dataclass(frozen=True)
class Target:
    """A wheel to build: for a processor, and one version of CPython or, with the stable ABI, all from 3.12 on."""

    machine: str
    stable: bool

    @property
    def tag(self) -> str:
        """The wheel's tag: Python, ABI and platform."""
        abi = "cp312-abi3" if self.stable else "cp311-cp311"
        return f"{abi}-manylinux_{GLIBC.replace('.', '_')}_{self.machine}"

    @property
    def headers(self) -> str:
        """The version of CPython whose headers are used."""
        return "3.13" if self.stable else "3.11"

    @property
    def module(self) -> str:
        """The engine's file name."""
        return "_native.abi3.so" if self.stable else f"_native.cpython-311-{self.machine}-linux-gnu.so"


TARGETS = tuple(Target(machine, stable) for machine in MACHINES for stable in (False, True))


def main(argv: Sequence[str] | None = None) -> int:
    """Build, audit and list the wheels."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="build the wheels whose tag contains it")
    parser.add_argument("--headers", type=Path, metavar="FOLDER", help="has python3.11 and python3.13, with pyconfig.h")
    parser.add_argument("--twice", action="store_true", help="build again from a copy elsewhere, and compare the bytes")
    parser.add_argument("--to", type=Path, default=WHERE / "wheels", metavar="FOLDER", help="where wheels go")
    given = parser.parse_args(argv)
    targets = [target for target in TARGETS if given.only in target.tag]
    if not targets:
        parser.error(f"--only {given.only}: no tag contains it; there are {', '.join(x.tag for x in TARGETS)}")
    given.to.mkdir(parents=True, exist_ok=True)
    built = build(ROOT, targets, given.to, WHERE / "work", given.headers)
    for wheel in built:
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        print(f"{wheel.name}\n  {wheel.stat().st_size:,} bytes, sha256 {digest}")
        print("\n".join(f"  {line}" for line in audit(wheel)))
    if given.twice:
        with tempfile.TemporaryDirectory() as folder:
            copy = _copy(Path(folder) / "elsewhere")
            again = build(copy, targets, Path(folder), Path(folder) / "work", given.headers)
            for old, new in zip(built, again, strict=True):
                if old.read_bytes() != new.read_bytes():
                    raise SystemExit(f"{old.name}: built again elsewhere, it has other bytes: {_difference(old, new)}")
        print(f"built again elsewhere: {len(built)} wheels have the same bytes")
    return 0


def build(root: Path, targets: Sequence[Target], to: Path, work: Path, given: Path | None = None) -> list[Path]:
    """Build wheels from the sources in `root` into `to`, and return their paths."""
    work.mkdir(parents=True, exist_ok=True)
    when = int(os.environ.get("SOURCE_DATE_EPOCH") or _output("git", "log", "-1", "--format=%ct", cwd=ROOT))
    files = _pure(root, work / "pure", when)
    wheels = []
    for target in targets:
        start = time.perf_counter()
        found = given or headers(target.headers, target.machine, WHERE / "debian")
        engine = _engine(root, target, found, work / target.tag)
        wheels.append(_assemble({**files, f"warpmma/{target.module}": engine}, target, to, when))
        print(f"{target.tag}: built in {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return wheels


def audit(wheel: Path) -> list[str]:
    """Return what auditwheel and abi3audit say.

    Raises
    ------
    SystemExit
        If the wheel does not fit its tag.
    """
    machine = wheel.stem.partition("_28_")[2]
    said = " ".join(_output(sys.executable, "-m", "auditwheel", "show", str(wheel)).split())
    policy = re.search(r'is consistent with the following platform tag: "manylinux_(\d+)_(\d+)_(\w+)"', said)
    if policy is None or policy[3] != machine or (int(policy[1]), int(policy[2])) > (2, 28):
        raise SystemExit(f"{wheel.name} does not fit its tag: {said}")
    lines = [f"auditwheel: {said}"]
    if "-abi3-" in wheel.name:  # exits with an error if the engine uses more than the stable ABI of 3.12
        command = [sys.executable, "-m", "abi3audit", "--strict", "--verbose", str(wheel)]
        done = subprocess.run(command, capture_output=True, text=True)
        said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
        if done.returncode:
            raise SystemExit(f"{wheel.name} uses more than the stable ABI:\n{said}")
        lines += [f"abi3audit: {line.strip()}" for line in said.splitlines() if line.strip()]
    return lines


def _pure(root: Path, where: Path, when: int) -> dict[str, bytes]:
    """Build the wheel without an engine, and return its files."""
    shutil.rmtree(where, ignore_errors=True)
    environment = {**os.environ, "WARPMMA_PURE": "1", "SOURCE_DATE_EPOCH": str(when)}
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, f"--wheel-dir={where}", str(root)], env=environment, check=True)
    [wheel] = where.glob("warpmma-*-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def _engine(root: Path, target: Target, found: Path, work: Path) -> bytes:
    """Build the native engine for a processor and a CPython, with zig."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    zig = _zig()
    for tool in ("ar", "ranlib"):
        (work / tool).write_text(f'#!/bin/sh\nexec "{zig}" {tool} "$@"\n')
        (work / tool).chmod(0o755)
    (work / "zig.cmake").write_text(
        f"set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR {target.machine})\n"
        f'set(CMAKE_CXX_COMPILER "{zig}" c++ -target {target.machine}-linux-gnu.{GLIBC})\n'
        f"set(CMAKE_AR {work / 'ar'})\nset(CMAKE_RANLIB {work / 'ranlib'})\n"
    )
    nanobind = _output(sys.executable, "-m", "nanobind", "--cmake_dir")
    library = Path(nanobind).parent
    # `__FILE__` and the like name no folder of this machine.
    maps = {root: ".", work: "build", library: "nanobind", found: "python"}
    flags = [f"-ffile-prefix-map={old}={new}" for old, new in maps.items()]
    flags.append(f"-isystem {found}")
    options = {
        "CMAKE_TOOLCHAIN_FILE": work / "zig.cmake", "CMAKE_BUILD_TYPE": "Release", "CMAKE_CXX_FLAGS": " ".join(flags),
        "nanobind_DIR": nanobind, "Python_INCLUDE_DIR": found / f"python{target.headers}",
        "SKBUILD_SOABI": f"cpython-311-{target.machine}-linux-gnu", "SKBUILD_SOSABI": "abi3",
        "SKBUILD_SABI_COMPONENT": "Development.SABIModule" if target.stable else "",
        # Thread-local variables by descriptors: before 2.40, glibc may change vector registers that callers count on.
        "NB_HAS_MTLS_GNU2": "OFF",
    }  # fmt: skip
    environment = {**os.environ, "PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])}
    given = [f"-D{name}={value}" for name, value in options.items()]
    log = work / "log.txt"
    to_build = work / "build"
    commands: list[list[str | Path]] = [
        ["cmake", "-G", "Ninja", "-S", root, "-B", to_build, *given],
        ["cmake", "--build", to_build],
    ]
    with log.open("w") as to:
        for command in commands:
            if subprocess.run(command, env=environment, stdout=to, stderr=subprocess.STDOUT).returncode:
                raise SystemExit(f"{target.tag}: the native engine was not built: see {log}\n{log.read_text()[-3000:]}")
    engine = (work / "build" / target.module).read_bytes()
    _no_paths(engine, target.tag, list(maps))
    return engine


def _no_paths(engine: bytes, tag: str, paths: Sequence[Path]) -> None:
    held = [str(path) for path in paths if str(path).encode() in engine]
    if held:
        raise SystemExit(f"{tag}: the engine holds a path of this machine: {', '.join(held)}")


def _zig() -> Path:
    spec = find_spec("ziglang")
    if spec is None or spec.origin is None:
        raise SystemExit("zig's compiler is missing: pip install --group release")
    return Path(spec.origin).parent / "zig"


def _assemble(files: dict[str, bytes], target: Target, to: Path, when: int) -> Path:
    """Write a wheel of these files, with the tag of the target, and return its path."""
    [info] = {name.split("/")[0] for name in files if ".dist-info/" in name}
    text = files[f"{info}/WHEEL"].decode()
    text = re.sub(r"(?m)^Root-Is-Purelib:.*$", "Root-Is-Purelib: false", text)
    text = re.sub(r"(?m)^Tag:.*$", f"Tag: {target.tag}", text)
    files = {**files, f"{info}/WHEEL": text.encode()}
    del files[f"{info}/RECORD"]
    absent = [name for name in LICENCES if f"{info}/licenses/{name}" not in files]
    if absent:
        raise SystemExit(f"the wheel lacks licences of what is linked in: {', '.join(absent)}")
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in sorted(files.items()))
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    path = to / f"{info.removesuffix('.dist-info')}-{target.tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        # What describes the wheel comes last, as the specification of wheels recommends.
        for name in sorted(files, key=lambda name: (".dist-info/" in name, name)):
            entry = zipfile.ZipInfo(name, time.gmtime(when)[:6])
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, files[name])
    return path


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def _copy(to: Path) -> Path:
    """Copy what is built from, without what git ignores."""
    for name in _output("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines():
        if name.partition("/")[0] in ("src", "licenses") or "/" not in name:
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    return to


def _difference(old: Path, new: Path) -> str:
    with zipfile.ZipFile(old) as one, zipfile.ZipFile(new) as other:
        names = sorted({*one.namelist(), *other.namelist()})
        files = [{name: x.read(name) for name in x.namelist()} for x in (one, other)]
    differing = [name for name in names if files[0].get(name) != files[1].get(name)]
    return ", ".join(differing) or "in the archive's own fields"


def _output(*command: str, cwd: Path | None = None) -> str:
    return subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
