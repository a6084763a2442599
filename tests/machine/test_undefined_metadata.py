"""Metadata that PTX leaves undefined, with that hazard as a warning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.kernel import Output, launch
from warpmma.machine import HazardWarning

MMA = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"


@pytest.mark.parametrize("hazards", [{"metadata": "warn"}, "off"])
@pytest.mark.filterwarnings("ignore::warpmma.machine.HazardWarning")
def test_the_instruction_does_what_an_h200_does(hazards: Any) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((4, 32, 2)).astype(np.float16).view(np.uint32)[..., 0] for _ in range(2))
    words = np.where(np.arange(32) % 3 == 0, 0, 0x4E4E4E4E).astype(np.uint32)

    def kernel(t: Any, x: Any, d: Any) -> None:
        place = x + t.laneid * 4
        given = [t("ld.global.b32", place + 128 * i) for i in range(9)]
        sums = t(MMA, given[:4], given[4:8], [t.constant(0.0)] * 4, given[8], 0)
        for i, one in enumerate(sums):
            t("st.global.f32", d + t.laneid * 4 + 128 * i, one)

    d = np.zeros((4, 32), np.float32)
    report = launch(kernel, 1, 32, [np.concatenate([a, b, words[None]]), Output(d)], target="sm_90", hazards=hazards)
    zero = np.zeros((4, 32), np.uint32)
    expected = wm.execute(MMA, a, b, zero, target="sm_90", metadata=words, selector=0, undefined="hardware")
    assert np.array_equal(d.view(np.uint32), expected)
    assert [hazard.kind for hazard in report.hazards] == ["metadata"] * (hazards != "off")


def test_it_warns() -> None:
    def kernel(t: Any) -> None:
        zero = [t.constant(0)] * 4
        t(MMA, zero, zero, [t.constant(0.0)] * 4, zero[0], 0)

    with pytest.warns(HazardWarning, match="metadata"):
        launch(kernel, 1, 32, [], target="sm_90", hazards={"metadata": "warn"})
