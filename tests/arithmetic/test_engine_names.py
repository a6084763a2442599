"""Without the native engine people learn it: from reports, from `targets`, and once from a heavy product."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import warpmma as wm
from warpmma.arithmetic import EngineWarning
from warpmma.arithmetic.dispatch import engine, native
from warpmma.cli import main

PTX = """.version 8.0 .target sm_80 .address_size 64
.entry k(.param .u64 p) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], 1; ret; }"""


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without a compiler."""
    monkeypatch.setattr(native, "levels", tuple)
    monkeypatch.setattr(engine, "_warned", False)


def _launched() -> str:
    return wm.ptx.load(PTX)["k"].launch(wm.Device("sm_80"), 1, 1, [np.zeros(1, np.uint32)]).text()


def test_reports_and_targets_name_numpy(without: None, capsys: pytest.CaptureFixture[str]) -> None:
    says = "engine: numpy (the native engine was not built)"
    assert _launched().splitlines()[-1] == says
    assert main(["targets"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == says


@pytest.mark.skipif("native" not in wm.engines(), reason="the native engine was not built")
def test_the_native_engine_is_named_among_targets_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert "engine" not in _launched()
    assert main(["targets"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"engine: native ({wm.engines()['native']})"


def test_the_first_heavy_product_warns_once(without: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "HEAVY", 2 * 16 * 32 * 8)
    a, b = np.ones((2, 16, 32), np.float16), np.ones((2, 32, 8), np.float16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wm.matmul(a, b, target="sm_90", engine="numpy")  # is a choice
        wm.matmul(a[:1], b[:1], target="sm_90")  # is half of it
    with pytest.warns(EngineWarning, match=r"^8,192 multiply-adds in NumPy, .*WARPMMA_REQUIRE_NATIVE=1") as caught:
        d = wm.matmul(a, b, target="sm_90")
    assert (d == 32).all() and [x.filename for x in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wm.matmul(a, b, target="sm_90")


@pytest.mark.skipif("native" not in wm.engines(), reason="the native engine was not built")
def test_the_native_engine_does_not_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_warned", False)
    monkeypatch.setattr(engine, "HEAVY", 1)
    a = np.ones((16, 16), np.float16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wm.matmul(a, a, target="sm_90")
