"""`wmma` as an H200 computed it: a warp of each form."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from arrays import Array

from lab.record.wmma import Form, forms, ours
from warpmma.hardware import wmma_fragments, wmma_result

RECORDING = Path(__file__).parents[1] / "data" / "h200_wmma.npz"
FORMS = {str(form): form for form in forms("sm_90")}


@cache
def recording() -> dict[str, dict[str, Array]]:
    found: dict[str, dict[str, Array]] = defaultdict(dict)
    with np.load(RECORDING) as archive:
        for key in archive:
            name, _, part = key.partition("|")
            found[name][part] = archive[key]
    return found


def test_every_form_is_recorded() -> None:
    recorded = dict(recording())
    assert recorded.pop("device") == {"": np.array("NVIDIA H200")}
    assert set(recorded) == set(FORMS) and len(FORMS) == 252


@pytest.mark.parametrize("opcode", ["wmma.load", "wmma.store", "wmma.mma"])
def test_replay(opcode: str) -> None:
    chosen: dict[str, Form] = {name: form for name, form in FORMS.items() if name.startswith(opcode)}
    for name, form in chosen.items():
        given = {**recording()[name]}
        got, parts = given.pop("out"), wmma_fragments(form, "sm_90")
        given = {part: given.get(part, np.zeros_like(got)) for part in (*parts, *(() if "A" in parts else ("memory",)))}
        assert wmma_result(form) in given
        np.testing.assert_array_equal(ours(form, "sm_90", given), got, err_msg=name)
