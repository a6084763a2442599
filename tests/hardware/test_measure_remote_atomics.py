"""Atomics on the shared memory of another block: an H200's words (`python -m lab.measure.remote_atomics`)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import warpmma as wm
from lab.measure.remote_atomics import CASES, FLOATS, WAYS, expected, sum_text, text
from warpmma.kernel import HazardError

FOUND = json.loads((Path(__file__).parents[1] / "data/h200_remote_atomics.json").read_text())


def launched(kernel: str, type_: str) -> int:
    """Return the word that all blocks leave, of the bits of its type."""
    y = np.zeros(4, np.uint64)
    wm.ptx.load(kernel)["k"].launch(wm.Device("sm_90"), 4, 128, [y], cluster=2)
    (word,) = set(y.tolist())
    return int(word) & ((1 << (32 if type_.endswith("x2") else int(type_.lstrip("bfsu")))) - 1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_updates_are_lost_where_a_race_is_reported(case: tuple[str, str, bool, int]) -> None:
    name, what, other, threads = case
    wrong, words = FOUND["found"][f"{name}.{what} on {'the other' if other else 'the own'} block, {threads} threads"]
    assert wrong in (0, words)
    if wrong:
        with pytest.raises(HazardError, match=r"race: .*in this very access"):
            launched(text(case), what.split(".")[1])
    else:
        assert launched(text(case), what.split(".")[1]) == expected(case)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", FLOATS)
def test_sums_of_floats(what: str, way: str) -> None:
    type_ = what.split(".")[-1]
    for element, operand in FLOATS[what]:
        kernel, word = sum_text(what, element, operand, way), FOUND["sums"][f"{what} {element:#x} {operand:#x} {way}"]
        if "the other" in way and type_.endswith("x2"):
            assert word & 0xFFFFFFFF == element + operand & 0xFFFFFFFF  # as integers
            with pytest.raises(wm.UnsupportedError, match="as one integer"):
                launched(kernel, type_)
            continue
        made, bits = launched(kernel, type_), (1 << int(type_.lstrip("bf"))) - 1 if type_[-2:] != "x2" else 0xFFFFFFFF
        several = type_ == "f64" and all(
            x & 0x7FF << 52 == 0x7FF << 52 and x << 12 & (1 << 64) - 1 for x in (element, operand)
        )
        assert several or made == word & bits  # of several NaN in f64 ptxas's order decides which one is returned
