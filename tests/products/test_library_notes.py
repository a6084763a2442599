"""`choose`, `error` and `explain` say where libraries use another instruction than `mma`, whose sums may differ."""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpmma as wm
from warpmma.arithmetic import LIBRARY_SUMS, library_note, library_sums
from warpmma.isa import TARGETS

F16, E4M3 = np.float16, ml_dtypes.float8_e4m3fn
TCGEN05 = "on {} libraries use tcgen05, whose sums are those of mma.m16n8k16"
PUBLISHED = f"{TCGEN05} (published for a B200: Xie et al., arXiv 2511.10909)"
UNKNOWN = "on {} libraries use tcgen05; whether its sums differ is not known: nothing is published for this target"
WGMMA = "on sm_90 libraries use wgmma, whose sums differ: they keep 13 fraction bits, mma 25 (measured on an H200)"


@pytest.mark.parametrize(
    ("target", "dtype", "note"),
    [
        ("sm_100", F16, PUBLISHED.format("sm_100")),
        ("sm_103a", F16, UNKNOWN.format("sm_103a")),
        ("sm_103", E4M3, UNKNOWN.format("sm_103")),
        ("sm_90", E4M3, WGMMA),
        ("sm_90", F16, ""),
        ("sm_120", F16, ""),
        ("sm_100", np.float64, ""),
    ],
)
def test_all_three_say_it(target: str, dtype: Any, note: str) -> None:
    a = np.ones((16, 16 if dtype != E4M3 else 32)).astype(dtype)
    choice = wm.choose(a, a.T, target=target)
    assert choice.note == note and (str(choice).splitlines()[-1] == note or not note)
    report = wm.error(a, a.T, target=target)
    assert (
        note in " ".join(report.text().split()) and json.loads(report.json())["products"][0]["choice"]["note"] == note
    )
    b = a.T[:, :8]
    c = np.zeros((16, 8), np.float64 if dtype == np.float64 else np.float32)
    told = wm.explain(str(choice.instruction), a, b, c, row=0, column=0, target=target)
    assert told.note == note and note in " ".join(told.text().split()) and json.loads(told.json())["note"] == note
    assert "libraries use" not in told.text() or note


def test_an_instruction_that_libraries_use_has_no_note() -> None:
    a = np.ones((64, 32), E4M3)
    wgmma = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
    assert wm.choose(a, a.T, instruction=wgmma, target="sm_90a").note == ""
    sparse = wm.parse("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    assert library_note(sparse, "sm_100") == ""


def test_one_row_answers_for_each_type_and_target() -> None:
    for target in TARGETS:
        for type_ in ("f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "f64"):
            rows = [row for row in LIBRARY_SUMS if target in row.targets and type_ in row.types]
            assert len(rows) <= 1 and library_sums(type_, type_, target) is (rows[0] if rows else None)
