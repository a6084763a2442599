"""Behaviour without the CuTe DSL, or with another version of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import warpmma as wm
from warpmma.cute import cute_device, cute_interface

pytestmark = pytest.mark.quick


@pytest.fixture(autouse=True)
def _looked_up_again() -> Iterator[None]:
    cute_interface._found.cache_clear()
    yield
    cute_interface._found.cache_clear()


def test_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cutlass", None)
    with pytest.raises(
        wm.UnsupportedError, match=r"^the CuTe DSL is not installed: pip install 'warpmma\[cute\]' \(Linux\)$"
    ):
        wm.cute.device("sm_90")


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cute_interface, "find_spec", lambda name: object())
    monkeypatch.setattr(cute_interface, "installed_version", lambda: "4.9.0")
    with pytest.raises(wm.UnsupportedError, match=r"nvidia-cutlass-dsl 4\.9\.0 is installed; .* knows 4\.8\.1: pip"):
        wm.cute.device("sm_90")


def test_a_missing_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {**cute_interface.PRIVATE, "compiler": ("ctypes", "Compiler")}
    monkeypatch.setattr(cute_interface, "PRIVATE", parts)
    with pytest.raises(wm.UnsupportedError, match=r"has no ctypes\.Compiler; warpmma\.cute knows 4\.8\.1: pip install"):
        cute_interface.private_part("compiler")


def test_targets() -> None:
    """From sm_90 on the DSL compiles for the target's own features."""
    for target, arch in (("sm_80", "sm_80"), ("sm_89", "sm_89"), ("sm_90", "sm_90a"), ("sm_100a", "sm_100a")):
        assert cute_device.arch_of(target) == arch
    with pytest.raises(wm.TargetError, match="does not compile for sm_75; expected sm_80 or a later target"):
        cute_device.arch_of("sm_75")
    with pytest.raises(wm.TargetError, match="sm_91"):
        cute_device.arch_of("sm_91")


def test_the_package_names_what_it_has() -> None:
    assert {"device", "CuteDevice", "CuteLaunch"} <= set(dir(wm.cute))
