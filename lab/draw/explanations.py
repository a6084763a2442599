"""Draw the pictures of docs/explain.md: `python -m lab.draw.explanations` writes docs/pictures/explain_*.svg.

A test compares the files with fresh drawings.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

import warpmma as wm
from warpmma.analysis import Explanation

__all__ = ["FOLDER", "PICTURES"]

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"

_F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_QGMMA = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"


def _row(values: Mapping[int, float], k: int, dtype: Any = np.float16) -> npt.NDArray[Any]:
    row: npt.NDArray[Any] = np.zeros((1, k), dtype)
    for i, value in values.items():
        row[0, i] = value
    return row


def _low_bits() -> Explanation:
    a = _row({0: 512, 1: 0.001, 2: 0.001, 3: 0.001}, 16)
    return wm.explain(_F16, a, np.ones((16, 1), np.float16), np.full((1, 1), 0.25, np.float32), target="sm_90")


def _two_gpus() -> Explanation:
    a = _row({0: 1, 7: 2**-24, 8: 2**-24}, 16)
    return wm.explain(_F16, a, np.ones((16, 1), np.float16), target="sm_90", against="sm_80")


def _fp8() -> Explanation:
    e4m3 = ml_dtypes.float8_e4m3fn
    a, b = _row(dict.fromkeys(range(3), 0.1), 32, e4m3), np.full((32, 1), 0.1, e4m3)
    return wm.explain(_QGMMA, a, b, np.full((1, 1), 40, np.float32), target="sm_90a")


PICTURES: Mapping[str, Callable[[], Explanation]] = {
    "explain_low_bits": _low_bits, "explain_two_gpus": _two_gpus, "explain_fp8": _fp8,
}  # fmt: skip
"""Drawings by the name of the file."""


def main() -> int:
    """Write the pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, explained in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(explained().svg())
    return 0


if __name__ == "__main__":
    sys.exit(main())
