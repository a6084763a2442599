"""Which builds of the native engine this processor runs, and the variable that leaves out the fastest of them."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import warpmma as wm
from warpmma.arithmetic.dispatch import native

pytestmark = pytest.mark.skipif(not native.levels(), reason="warpmma was installed without its native engine")

BUILT = tuple(dict.fromkeys(level[0] for level in native._native.levels())) if native._native else ()
# What Linux calls the features of the psABI's levels that go beyond the level below.
V3 = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "popcnt"}
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    native.levels.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    native.levels.cache_clear()


def test_builds_are_those_of_the_processor() -> None:
    cpuinfo = Path("/proc/cpuinfo")
    if platform.machine() != "x86_64":
        assert BUILT == ("plain",)
        return
    if not cpuinfo.exists():
        pytest.skip("Linux lists the features of its processor")
    line = next(line for line in cpuinfo.read_text().splitlines() if line.startswith("flags"))
    flags = {*line.split(":")[1].split()}
    expected = [name for name, needed in (("x86-64-v4", V4), ("x86-64-v3", V3), ("plain", set())) if needed <= flags]
    assert list(BUILT) == expected


@pytest.mark.parametrize("name", BUILT or ["plain"])  # without an engine it is skipped
def test_faster_builds_are_left_out(name: str, fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("WARPMMA_DISPATCH", name)
    assert tuple(dict.fromkeys(level.name for level in native.levels())) == BUILT[BUILT.index(name) :]
    assert wm.engines()["native"] == f"C++, {name}"


def test_an_empty_name_leaves_out_none(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("WARPMMA_DISPATCH", "")
    assert tuple(dict.fromkeys(level.name for level in native.levels())) == BUILT


def test_another_name_is_an_error(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("WARPMMA_DISPATCH", "avx2")
    with pytest.raises(wm.UnsupportedError, match=r"^WARPMMA_DISPATCH=avx2 is not a build .* there are .*plain$"):
        native.levels()


def test_the_command_obeys() -> None:
    environment = {**os.environ, "WARPMMA_DISPATCH": "plain"}
    command = [sys.executable, "-m", "warpmma", "targets"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "C++, plain" in done.stdout
