"""What a wheel is tried in: the wheel that fits, and an environment in which nothing of the sources is found."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from lab.release import trial

MACHINE = "aarch64"


def touch(folder: Path, name: str, when: int) -> Path:
    path = folder / name
    path.touch()
    os.utime(path, (when, when))
    return path


def test_the_wheel_that_fits_is_found(tmp_path: Path) -> None:
    old = touch(tmp_path, f"warpmma-1-cp311-cp311-manylinux_2_28_{MACHINE}.whl", 1)
    stable = touch(tmp_path, f"warpmma-1-cp312-abi3-manylinux_2_28_{MACHINE}.whl", 1)
    touch(tmp_path, "warpmma-2-cp312-abi3-manylinux_2_28_x86_64.whl", 2)
    assert trial.built("3.11", MACHINE, tmp_path) == old
    assert trial.built("3.12", MACHINE, tmp_path) == trial.built("3.14", MACHINE, tmp_path) == stable
    newer = touch(tmp_path, f"warpmma-2-cp312-abi3-manylinux_2_28_{MACHINE}.whl", 2)
    assert trial.built("3.13", MACHINE, tmp_path) == newer


def test_a_wheel_that_is_not_built_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="has no wheel cp312-abi3 for aarch64: run python"):
        trial.built("3.13", MACHINE, tmp_path)


def test_variables_that_change_the_trial_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "PYTEST_ADDOPTS", "WARPMMA_DISPATCH"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: None)
    environment = trial.Environment(trial.HERE, platform.machine(), tmp_path / "x")
    assert environment.command == tmp_path / "x" / "bin" / "python" and not environment.emulated
    assert not {"PYTHONPATH", "PYTEST_ADDOPTS", "WARPMMA_DISPATCH"} & {*environment.variables}


def test_another_interpreter_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs no pip of its own, and nothing but the folder of wheels; packages of others come after its own."""
    other, elsewhere = Path(sys.executable), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "of_trial_elsewhere.py").write_text("x = 3\n")
    assert trial.version(other) == trial.HERE
    environment = trial.Environment("3.99", platform.machine(), tmp_path / "x", other)
    assert environment.here and environment.command.exists() and not environment.command.with_name("pip").exists()
    environment.add([elsewhere])
    assert environment.run("-c", "import of_trial_elsewhere as x; print(x.x)", capture=True) == "3\n"
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: commands.append(command))
    environment.install(tmp_path / "w.whl", "test,triton", ["more>=1"], elsewhere)
    [[*_, no_index, links, wheel, more]] = commands
    assert (no_index, links, more) == ("--no-index", f"--find-links={elsewhere}", "more>=1")
    assert wheel == f"{tmp_path}/w.whl[test,triton]"


def test_packages_of_others_are_not_for_debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "WHERE", tmp_path)
    monkeypatch.setattr("lab.release.debian.interpreter", lambda *_: tmp_path / "python")
    options = ["--wheel", str(tmp_path / "x.whl"), "--python", "3.99", "--packages", str(tmp_path)]
    with pytest.raises(SystemExit):
        trial.main(options)


def test_sources_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the package is that of this interpreter, which in a clone is the sources'."""
    monkeypatch.setattr(trial.Environment, "__init__", lambda *_: None)
    monkeypatch.setattr(trial.Environment, "install", lambda *_: None)
    monkeypatch.setattr(trial.Environment, "run", lambda *_, **__: f"{tmp_path}/src/warpmma/__init__.py\n")
    with pytest.raises(SystemExit, match="not from the wheel"):
        trial.main(["--wheel", str(tmp_path / "x.whl")])


@pytest.mark.parametrize(
    ("options", "left_out"), [([], False), (["--packages=x"], True), (["--packages=x", "--benchmark"], False)]
)
def test_a_plugin_of_other_packages_is_left_out(
    options: list[str], left_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The benchmarks', which warns where several workers run; unless benchmarks run."""
    given: list[tuple[str, ...]] = []

    def ran(_: object, *arguments: str, **__: object) -> str:
        given.append(arguments)
        return "1 2\n"

    monkeypatch.setattr(trial.Environment, "__init__", lambda it, *_: it.__dict__.update(here=True, emulated=False))
    monkeypatch.setattr(trial.Environment, "install", lambda *_: None)
    monkeypatch.setattr(trial.Environment, "add", lambda *_: None)
    monkeypatch.setattr(trial.Environment, "run", ran)
    assert trial.main(["--wheel=x.whl", "--dispatch=plain", *options, "-n2"]) == 0
    assert given[-1][:2] == ("-m", "pytest") and "-n2" in given[-1] and ("no:benchmark" in given[-1]) == left_out
