"""Where and why two targets differ: the first step in which their computations differ."""

from __future__ import annotations

import numpy as np
import pytest

import warpmma as wm
from warpmma.formats import FORMATS

HALF = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
QUAD = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"


def told(instruction: str, a: list[float], targets: tuple[str, str], c: float = 0.0) -> wm.analysis.Explanation:
    """Explain the sum of some numbers, by an instruction whose B is of ones."""
    fmt = FORMATS["e4m3" if "e4m3" in instruction else "f16"]
    row = fmt.array(fmt.encode(np.array([a])))
    ones = fmt.array(fmt.encode(np.ones((len(a), 1))))
    return wm.explain(instruction, row, ones, np.array([[c]], np.float32), target=targets[0], against=targets[1])


@pytest.mark.parametrize(
    ("instruction", "targets", "a", "place", "reason"),
    [
        (HALF, ("sm_90", "sm_80"), [1] * 16, (0, 0), "a step takes 16 products on sm_90, and 8 on sm_80"),
        (FP8, ("sm_89", "sm_120"), [1] * 32, (0, 0), "a step takes 16 products on sm_89, and 32 on sm_120"),
        (FP8, ("sm_90", "sm_89"), [1] * 16, (0, 0), "sm_90 adds C after all products, sm_89 with the first of them"),
        (QUAD, ("sm_70", "sm_80"), [1] * 4, (0, 0), "sm_70 adds all products of a step at once where sm_80 adds one "
                                                      "product after the other"),
        (QUAD, ("sm_70", "sm_75"), [1] * 4, None, ""),
        (HALF, ("sm_80", "sm_89"), [1, 2.0**-24] * 8, None, ""),
    ],
)  # fmt: skip
def test_reasons(
    instruction: str, targets: tuple[str, str], a: list[float], place: tuple[int, int] | None, reason: str
) -> None:
    found = told(instruction, a, targets, 2.0**-30)
    assert found.against is not None and found.against.target == targets[1]
    if place is None:
        assert found.parting is None and found.result == found.against.result
    else:
        assert found.parting == wm.analysis.FirstDifference(link=place[0], step=place[1], reason=reason)


def test_bits_that_are_kept() -> None:
    """16 products of e4m3 are one step on both; C is cut at 2^-13 on one, and at 2^-25 on the other."""
    instruction = FP8.replace("m16n8k32", "m16n8k16")
    assert told(instruction, [1] * 16, ("sm_89", "sm_120")).parting is None
    found = told(instruction, [1] * 16, ("sm_89", "sm_120"), 2.0**-20).parting
    assert found is not None
    assert found.reason == "sm_89 keeps 13 bits of an addend below the largest exponent, sm_120 25"


def test_a_sum_that_is_rounded_to_fewer_bits() -> None:
    found = told(FP8.replace("m16n8k32", "m16n8k16"), [16, 2.0**-9] + [0] * 14, ("sm_89", "sm_120"), 8.0).parting
    assert found is None  # 2^-9 is kept by both, and 24 + 2^-9 has 13 bits
    found = told(FP8.replace("m16n8k32", "m16n8k16"), [448] * 15 + [2.0**-5], ("sm_89", "sm_120")).parting
    assert found is not None
    assert (
        found.reason == "sm_89 rounds the sum toward zero to 13 fraction bits, sm_120 toward zero to 23 fraction bits"
    )


def test_other_instructions() -> None:
    """Without a name, each target takes its own instruction; two of k = 8 are one of k = 16 in steps of 8."""
    a, b = np.ones((2, 16), np.float16), np.ones((16, 2), np.float16)
    told = wm.explain(None, a, b, target="sm_75", against="sm_80")
    assert told.against is not None and told.instruction != told.against.instruction
    assert told.parting is None
    found = wm.explain(None, a, b, target="sm_75", against="sm_90").parting
    assert found is not None and found.reason == "a step takes 8 products on sm_75, and 16 on sm_90"


def test_further_steps() -> None:
    """Padding is zeros: the second step of one target adds nothing that the other would not have had."""
    found = told(FP8, [1] * 16, ("sm_89", "sm_120")).parting
    assert found == wm.analysis.FirstDifference(link=0, step=1, reason="sm_89 takes further steps, sm_120 does not")


def test_later_links() -> None:
    """The first step in which another number of bits is kept, of a chain."""
    instruction = FP8.replace("m16n8k32", "m16n8k16")
    found = told(instruction, [1] * 40 + [2.0**-9] + [0] * 7, ("sm_89", "sm_120"), 512.0).parting
    assert found is not None and (found.link, found.step) == (2, 0)
