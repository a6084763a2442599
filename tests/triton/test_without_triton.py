"""Behaviour without Triton."""

from __future__ import annotations

import inspect
import sys

import pytest

import warpmma as wm
from warpmma.triton import environment, interface, session

pytestmark = pytest.mark.quick


def test_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    interface._found.cache_clear()
    with pytest.raises(
        wm.UnsupportedError, match=r"^Triton is not installed: pip install 'warpmma\[triton\]' \(Linux\)"
    ):
        wm.triton.device("sm_90")


def test_what_triton_loads_can_be_loaded_without_it() -> None:
    """By those who look through the package: `help`, and pytest for doctests."""
    from warpmma.triton.backend import compiler, driver

    assert not compiler.NoCompiler.supports_target(None) and not inspect.isabstract(driver.EnvironmentDriver)
    assert not inspect.isabstract(compiler.NoCompiler) and not driver.EnvironmentDriver.is_active()


def test_every_target_has_a_row() -> None:
    rows = session.PTX_TARGETS
    assert set(rows) == {x.number for x in wm.isa.TARGETS.values()}
    for target in wm.TARGETS:
        written = session.ptx_numbers(target, None)
        assert sorted(written) == list(written) and written[-1] <= min(90, wm.isa.TARGETS[target].number)
        runs = session.device_target(target, written)
        assert wm.isa.TARGETS[runs].number == wm.isa.TARGETS[target].number and (runs == target or written == (90,))
    assert session.ptx_numbers("sm_90", ("sm_80", "sm_89")) == session.ptx_numbers("sm_100", None)
    with pytest.raises(wm.TargetError, match="expected a target, or several"):
        session.ptx_numbers("sm_90", ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sm_90,hazard=warn", "'hazard' is not an option; did you mean 'hazards'"),
        ("sm_90,seed=x", "seed is 'x'; expected an integer"),
    ],
)
def test_the_environment_is_read(text: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPMMA_TRITON", text)
    with pytest.raises(wm.OperandError, match=message):
        environment.described()
