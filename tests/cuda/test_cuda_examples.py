"""The examples that need NVRTC, and those of Numba, Warp and TileLang."""

from __future__ import annotations

import numpy as np
import pytest

import warpmma as wm
from warpmma.cuda import nvrtc
from warpmma.machine import HazardError

NVRTC = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())


@NVRTC
def test_the_race_is_found_and_its_mending_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    import cuda_race

    x = np.random.default_rng(3).standard_normal(500).astype(np.float32)
    with pytest.raises(HazardError, match=r"block_sum\.cu:27: .*race: .*writes it later, at .*block_sum\.cu:29"):
        cuda_race.launch(x)
    sums, report = cuda_race.launch(x, "-DSYNCWARP")
    assert report.hazards == [] and np.allclose(sums, [x[:256].sum(), x[256:].sum()], atol=1e-4)
    cuda_race.main()
    assert "With __syncwarp(), 0 hazards" in capsys.readouterr().out


@NVRTC
def test_conflicts_are_counted_and_drawn() -> None:
    import cuda_bank_conflicts

    reports = {pitch: cuda_bank_conflicts.launch(pitch) for pitch in (32, 33)}
    lost = {pitch: [x.conflicts for x in report.costs.sites.values()] for pitch, report in reports.items()}
    assert lost == {32: [0, 6 * 8 * 4 * 31], 33: [0, 0]}
    drawn = cuda_bank_conflicts.picture(reports[32])
    assert "transposed.cu:15: ld.shared.f32" in drawn and drawn.count("wavefront 31") == 1


def test_kernels_of_numba_run(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("numba.cuda")
    import numba_kernel

    numba_kernel.main()
    said = capsys.readouterr().out
    assert "greatest error is 7.7e-07" in said and "sums are right: True; lanes whose order is open: 60" in said


def test_kernels_of_warp_run(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("warp")
    import warp_kernel

    warp_kernel.main()
    said = capsys.readouterr().out
    assert "greatest error is 9.6e-07" in said and "sums are right: True" in said


def test_a_hazard_in_a_kernel_of_warp_names_the_line_of_python() -> None:
    pytest.importorskip("warp")
    import warp_kernel

    device = wm.Device("sm_90")
    x, short = (device.array(np.zeros(n, np.float32)) for n in (1000, 900))
    with pytest.raises(
        wm.WarpmmaError, match=r"^warp_kernel\.py:\d+: st\.global\.f32 .* bounds: block 3, warp 4, lane 4"
    ):
        warp_kernel.launch(warp_kernel.modules(90)["scaled_cuda_kernel_forward"], device, (1000,), [x, 3.0, short])


def test_a_product_of_tilelang_has_the_bits_of_matmul(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tilelang")
    import tilelang_kernel

    tilelang_kernel.main()
    said = capsys.readouterr().out
    assert said.splitlines()[-2:] == [f"{arch}: the bits of wm.matmul: True" for arch in ("sm_80", "sm_90a")]
