"""Formats and codes that tests of formats share."""

from __future__ import annotations

import math
from typing import Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt
from arrays import Array

from warpmma.formats import FORMATS, FloatFormat, IntegerFormat, Number

Rounding = Literal["rn", "rz", "rm", "rp"]

FLOATS = {name: f for name, f in FORMATS.items() if isinstance(f, FloatFormat)}
INTEGERS = {name: f for name, f in FORMATS.items() if isinstance(f, IntegerFormat)}
SMALL = [name for name, f in FLOATS.items() if f.bits <= 16]
LISTED = [*SMALL, "tf32"]  # every value of these is listed below; f32 is sampled, f64 is the identity
TYPES = {**{n: f.dtype for n, f in FLOATS.items()}, "ue4m3": np.dtype(ml_dtypes.float8_e4m3fn)}
ROUNDINGS: tuple[Rounding, ...] = ("rn", "rz", "rm", "rp")


def codes_of(name: str, count: int = 20_000) -> Array:
    """Every code of a format of at most 16 bits; else random ones, with all exponents and the extreme two."""
    fmt = FORMATS[name]
    if fmt.bits <= 16:
        return np.arange(1 << fmt.bits).astype(fmt.code_dtype)
    codes = np.random.default_rng(1).integers(0, fmt.mask, count, np.uint64, endpoint=True)
    if isinstance(fmt, FloatFormat):
        exponent = np.uint64(((1 << fmt.exponent_bits) - 1) << (fmt.fraction_bits + fmt.padding))
        edges = np.array([0, 1, fmt.sign_bit, fmt.max_code, fmt.inf_code, fmt.nan_code], np.uint64)
        codes = np.concatenate([codes, codes & ~exponent, codes | exponent, edges])
    return codes.astype(fmt.code_dtype)


def bits_of(values: npt.ArrayLike) -> Array:
    """Bits of float64 values, all NaNs being one: tells -0 from +0."""
    values = np.asarray(values, np.float64)
    return np.where(np.isnan(values), np.nan, values).view(np.uint64)


def as_float(number: Number) -> float:
    sign = -1.0 if number.sign else 1.0
    if number.kind == "finite":
        return sign * math.ldexp(number.significand, number.exponent)
    return sign * {"infinity": math.inf, "nan": math.nan}[number.kind]
