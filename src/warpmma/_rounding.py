"""Rounding of float64 values to a floating-point grid, on integers."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from ._arguments import check_choice
from ._arrays import Array

Float64 = npt.NDArray[np.float64]
Rounding = Literal["rn", "rz", "rm", "rp"]


def check_rounding(rounding: str) -> None:
    """Raise `OperandError` for anything but one of PTX's four roundings."""
    check_choice("rounding", rounding, ("rn", "rz", "rm", "rp"))


def on_magnitude(rounding: Rounding, negative: Array) -> Literal["rn", "rz"] | Array:
    """Return how a magnitude is rounded: "rn", "rz", or a mask of where it goes up."""
    if rounding == "rn" or rounding == "rz":
        return rounding
    return negative if rounding == "rm" else ~negative


def leads_outward(rounding: Literal["rn", "rz"] | Array) -> bool | Array:
    """Return whether a magnitude beyond the largest number becomes infinity, of what `on_magnitude` returns."""
    return rounding == "rn" if isinstance(rounding, str) else rounding


def to_grid(magnitude: Float64, fraction_bits: int, emin: int, rounding: Literal["rn", "rz"] | Array) -> Array:
    """Round non-negative float64 values to a floating-point grid, as an integer code without sign.

    The code is that of a format with `fraction_bits`, at most 51, least exponent `emin` and no greatest exponent:
    exponent field above, fraction below, ascending with the value. The caller compares it with its own largest code;
    NaN and infinity are given a code above every finite one. A mask as `rounding` is set where a value is rounded away
    from zero, and the others are rounded toward zero.

    Exact: scaling by a power of two moves the value to [2**fraction_bits, 2**(fraction_bits + 1)) or below, where
    float64 has bits to spare, and neither overflows nor loses bits; `rint` and `trunc` act on that integer grid.
    No float32 or float16 arithmetic is involved, so a flush-to-zero mode of the machine cannot reach the result.
    """
    exponent = np.maximum((magnitude.view(np.int64) >> 52) - 1023, emin)
    exponent = np.minimum(exponent, 1023)  # NaN and infinity
    scale = ((fraction_bits - exponent + 1023) << 52).view(np.float64)
    with np.errstate(invalid="ignore"):  # a signalling NaN, and infinity where the scale is 0
        scaled = np.fmin(magnitude * scale, 2.0**52)  # of NaN, and of infinity, the bound
    if isinstance(rounding, str):
        integer = np.rint(scaled) if rounding == "rn" else np.trunc(scaled)
    else:
        integer = np.where(rounding, np.ceil(scaled), np.trunc(scaled))
    codes: Array = ((exponent - emin) << fraction_bits) + integer.astype(np.int64)
    return codes
