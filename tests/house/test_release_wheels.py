"""Wheels: their tags, their bytes, and what stops a release."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from lab.release import wheels

INFO = "warpmma-9.9.dist-info"
PURE = {
    "warpmma/__init__.py": b"",
    f"{INFO}/METADATA": b"Name: warpmma\n",
    f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n\n",
    f"{INFO}/RECORD": b"old",
    **{f"{INFO}/licenses/{name}": b"text" for name in wheels.LICENCES},
}


def assembled(to: Path, files: dict[str, bytes], target: wheels.Target = wheels.TARGETS[0], when: int = 10**9) -> Path:
    to.mkdir(exist_ok=True)
    return wheels._assemble({**files, f"warpmma/{target.module}": b"\x7fELF"}, target, to, when)


def test_there_is_a_wheel_for_every_processor_and_python() -> None:
    assert [target.tag for target in wheels.TARGETS] == [
        "cp311-cp311-manylinux_2_28_x86_64", "cp312-abi3-manylinux_2_28_x86_64",
        "cp311-cp311-manylinux_2_28_aarch64", "cp312-abi3-manylinux_2_28_aarch64",
    ]  # fmt: skip
    assert [target.module for target in wheels.TARGETS[2:]] == [
        "_native.cpython-311-aarch64-linux-gnu.so", "_native.abi3.so"
    ]  # fmt: skip


@pytest.mark.parametrize("target", wheels.TARGETS, ids=lambda target: target.tag)
def test_a_wheel_says_what_it_is(target: wheels.Target, tmp_path: Path) -> None:
    path = assembled(tmp_path, PURE, target)
    assert path.name == f"warpmma-9.9-{target.tag}.whl"
    with zipfile.ZipFile(path) as wheel:
        says = wheel.read(f"{INFO}/WHEEL").decode().splitlines()
        assert f"Tag: {target.tag}" in says and "Root-Is-Purelib: false" in says
        record = [line.split(",") for line in wheel.read(f"{INFO}/RECORD").decode().splitlines()]
        names = wheel.namelist()
        assert sorted(name for name, _, _ in record) == sorted(names)
        assert all(int(size) == wheel.getinfo(name).file_size for name, _, size in record if size)
        assert ["warpmma/__init__.py", "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", "0"] in record
    first = next(i for i, name in enumerate(names) if name.startswith(INFO))
    assert all(name.startswith(INFO) for name in names[first:]) and names[:first] == sorted(names[:first])


def test_a_wheel_does_not_depend_on_order_or_clock(tmp_path: Path) -> None:
    one = assembled(tmp_path / "one", PURE)
    other = assembled(tmp_path / "other", dict(reversed(PURE.items())))
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as wheel:
        assert {entry.date_time for entry in wheel.infolist()} == {(2001, 9, 9, 1, 46, 40)}


def test_a_wheel_without_a_licence_is_refused(tmp_path: Path) -> None:
    files = {name: data for name, data in PURE.items() if not name.endswith("licenses/licenses/llvm.txt")}
    with pytest.raises(SystemExit, match=r"lacks licences of what is linked in: licenses/llvm\.txt"):
        assembled(tmp_path, files)


def test_what_differs_is_named(tmp_path: Path) -> None:
    one = assembled(tmp_path / "one", PURE)
    other = assembled(tmp_path / "other", {**PURE, "warpmma/__init__.py": b"1"})
    assert wheels._difference(one, other) == f"{INFO}/RECORD, warpmma/__init__.py"
    later = assembled(tmp_path / "later", PURE, when=10**9 + 2)
    assert wheels._difference(one, later) == "in the archive's own fields"


def test_a_wheel_that_does_not_fit_its_tag_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    said = 'x is consistent with the following\nplatform tag: "manylinux_2_24_x86_64".'
    monkeypatch.setattr(wheels, "_output", lambda *_: said)
    wheel = Path("warpmma-9.9-cp311-cp311-manylinux_2_28_x86_64.whl")
    assert "manylinux_2_24" in wheels.audit(wheel)[0]
    for worse in (said.replace("2_24", "2_31"), said.replace("x86_64", "i686"), "linux_x86_64"):
        monkeypatch.setattr(wheels, "_output", lambda *_, worse=worse: worse)
        with pytest.raises(SystemExit, match="does not fit its tag"):
            wheels.audit(wheel)


def test_more_than_the_stable_abi_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    said = 'x is consistent with the following platform tag: "manylinux_2_24_x86_64".'
    monkeypatch.setattr(wheels, "_output", lambda *_: said)
    wheel = Path("warpmma-9.9-cp312-abi3-manylinux_2_28_x86_64.whl")
    for code in (0, 1):
        done = subprocess.CompletedProcess([], code, "\x1b[1m_Py_Thing\x1b[0m is not stable\n", "")
        monkeypatch.setattr(subprocess, "run", lambda *_, done=done, **__: done)
        if not code:
            assert wheels.audit(wheel)[1] == "abi3audit: _Py_Thing is not stable"
            continue
        with pytest.raises(SystemExit, match=r"more than the stable ABI:\n_Py_Thing is not stable"):
            wheels.audit(wheel)


def test_a_tag_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        wheels.main(["--only", "riscv64"])
    assert "--only riscv64: no tag contains it; there are cp311-cp311-manylinux_2_28_x86_64" in capsys.readouterr().err


def test_an_engine_with_a_path_of_this_machine_is_refused(tmp_path: Path) -> None:
    wheels._no_paths(b"\x7fELF./src/warpmma/native/module.cpp", "x", [tmp_path])
    with pytest.raises(SystemExit, match="x: the engine holds a path of this machine"):
        wheels._no_paths(b"\x7fELF" + str(tmp_path).encode(), "x", [tmp_path])
