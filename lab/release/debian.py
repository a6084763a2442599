"""CPythons that this machine does not have: headers to build for, and interpreters to run on, from Debian's packages.

Debian has CPython 3.11 in bookworm, 3.13 in trixie and 3.14 in sid, for x86-64 and aarch64; no suite has 3.12. The
limited API of 3.12 (`Py_LIMITED_API`) is a part of 3.13's headers, and abi3audit checks that a wheel uses no more than
that. Packages come from the mirror of Debian that this machine's apt uses. They are unpacked, not installed: into
`build/release/debian`, apt's lists of those suites included.
"""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

__all__ = ["MACHINES", "SUITES", "headers", "interpreter"]

KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITES = {"3.11": "bookworm", "3.13": "trixie", "3.14": "sid"}
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def headers(python: str, machine: str, where: Path) -> Path:
    """Return the folder that holds `pythonX.Y/Python.h`, fetched if it is not in `where` yet.

    Raises
    ------
    SystemExit
        If apt is absent or has no such package. `--headers FOLDER` names headers that are here already.
    """
    to = where / f"headers-{python}-{machine}"
    found = to / "usr" / "include"
    if not (found / f"python{python}" / "Python.h").exists():
        _unpack(["download"], f"libpython{python}-dev", python, machine, where, to)
    return found


def interpreter(python: str, machine: str, where: Path) -> Path:
    """Return a command that starts an interpreter, fetched with all libraries that it needs if `where` lacks it.

    Another processor's is emulated by qemu's user mode (Debian's package qemu-user). This one's is started by its own
    loader, since its glibc may be newer than this machine's. Both see the files of this machine; `sys.executable` is
    the command.
    """
    to = where / f"root-{python}-{machine}"
    command, program = to / "python", to / "usr" / "bin" / f"python{python}"
    if not program.exists():
        # With no package installed yet, everything needed is fetched.
        install = ["install", "--download-only", "--yes", "--no-install-recommends"]
        install += ["-o", "Dir::State::status=/dev/null"]
        _unpack(install, f"python{python} libstdc++6", python, machine, where, to)
    if machine == platform.machine():
        folders = [str(to / above / f"{machine}-linux-gnu") for above in ("usr/lib", "lib")]
        [loader] = {path.resolve() for path in (to / "usr" / "lib").rglob("ld-linux-*") if path.exists()}
        start = f'"{loader}" --library-path "{":".join(folders)}" --argv0 "$0"'
    else:
        if not (to / "lib").exists():  # later suites have all in usr; this link is in a package that none depends on
            (to / "lib").symlink_to("usr/lib")
        start = f'qemu-{machine} -L "{to}" -0 "$0"'
    command.write_text(f'#!/bin/sh\nPYTHONHOME="{to}/usr" exec {start} "{program}" "$@"\n')
    command.chmod(0o755)
    return command


def _unpack(how: list[str], packages: str, python: str, machine: str, where: Path, to: Path) -> None:
    """Fetch packages with lists of their suite's, which need not be this machine's, and unpack them."""
    state = where / f"apt-{python}-{machine}"
    for folder in ("lists/partial", "cache/archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    architecture, suite = MACHINES[machine], SUITES[python]
    (state / "sources.list").write_text(f"deb [signed-by={KEYS} arch={architecture}] {_mirror()} {suite} main\n")
    (state / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{state}/sources.list"; Dir::Etc::sourceparts "/dev/null";\n'
        f'Dir::State::lists "{state}/lists"; Dir::Cache "{state}/cache"; APT::Sandbox::User "root";\n'
        f'APT::Architecture "{architecture}"; APT::Architectures {{ "{architecture}"; }};\n'
    )
    archives = state / "cache" / "archives"
    environment = {**os.environ, "APT_CONFIG": str(state / "apt.conf"), "DEBIAN_FRONTEND": "noninteractive"}
    try:
        for arguments in (["update"], [*how, *packages.split()]):
            run = ["apt-get", "-qq", *arguments]
            subprocess.run(run, cwd=archives, env=environment, check=True, stdout=subprocess.DEVNULL)
        to.mkdir(parents=True, exist_ok=True)
        for package in sorted(archives.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", package, to], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"{packages} of Debian {suite} for {machine}: {error}") from None


def _mirror() -> str:
    lists = ["apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages"]
    known = subprocess.run(lists, capture_output=True, text=True, check=True).stdout.splitlines()
    mirror = next((line.split()[1] for line in known if line.startswith("Debian ")), None)
    if mirror is None:
        raise SystemExit("apt knows no mirror of Debian: run apt-get update, on Debian, or name --headers")
    return mirror
