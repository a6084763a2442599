"""Atomics of floats as an H200 left memory: pairs of special codes, of every form (python -m lab.record.atomics)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from warpmma.operations import Atomic, row

_FILE = Path(__file__).parents[1] / "data" / "h200_atomics.npz"

with np.load(_FILE) as _archive:
    _RECORDED = {name: _archive[name] for name in _archive.files}


@pytest.mark.parametrize("mnemonic", _RECORDED)
def test_floats_in_memory_are_those_of_an_h200(mnemonic: str) -> None:
    form = row(mnemonic)
    assert isinstance(form, Atomic)
    old, given, left = _RECORDED[mnemonic]
    assert np.array_equal(form.combine(form.space, old, given), left)


def test_all_forms_were_recorded() -> None:
    assert len(_RECORDED) == 52
