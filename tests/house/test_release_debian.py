"""CPythons from Debian's packages: what is fetched already is not fetched again, and the mirror is this machine's."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from lab.release import debian


def told(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], 0, text, "")


def test_headers_that_are_there_are_used(tmp_path: Path) -> None:
    found = tmp_path / "headers-3.11-aarch64" / "usr" / "include"
    (found / "python3.11").mkdir(parents=True)
    (found / "python3.11" / "Python.h").touch()
    assert debian.headers("3.11", "aarch64", tmp_path) == found


@pytest.mark.parametrize("machine", debian.MACHINES)
def test_an_interpreter_starts_as_itself(machine: str, tmp_path: Path) -> None:
    """By its own loader or by an emulator, under the name of the command, so that it can start itself again."""
    root = tmp_path / f"root-3.13-{machine}"
    for name in ("usr/bin/python3.13", f"usr/lib/{machine}-linux-gnu/ld-linux-x.so.2"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    command = debian.interpreter("3.13", machine, tmp_path)
    text = command.read_text()
    assert command.stat().st_mode & 0o111 and f'PYTHONHOME="{root}/usr"' in text
    if machine == platform.machine():
        assert '--argv0 "$0"' in text
    else:  # the emulator looks for the loader under /lib
        assert f'qemu-{machine} -L "{root}" -0 "$0"' in text
        assert (root / "lib" / f"{machine}-linux-gnu" / "ld-linux-x.so.2").exists()


def test_the_mirror_is_that_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: told("Debian-Security there/security\nDebian there/all\n"))
    assert debian._mirror() == "there/all"
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: told("Ubuntu there\n"))
    with pytest.raises(SystemExit, match="no mirror of Debian"):
        debian._mirror()


def test_what_cannot_be_fetched_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise FileNotFoundError("apt-get")

    monkeypatch.setattr(debian, "_mirror", lambda: "there")
    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(SystemExit, match=r"libpython3\.13-dev of Debian trixie for x86_64: apt-get"):
        debian.headers("3.13", "x86_64", tmp_path)
