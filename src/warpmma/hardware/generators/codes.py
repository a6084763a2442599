"""Codes of one format: any bits, numbers with given exponents, numbers near 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...formats import FloatFormat, Format

__all__ = ["mixed", "random_codes", "with_exponents"]

Array = npt.NDArray[Any]
Rng = np.random.Generator


def random_codes(fmt: Format, shape: tuple[int, ...], rng: Rng) -> Array:
    """Draw uniformly from all bit patterns of a format.

    Parameters
    ----------
    fmt : Format
    shape : tuple of int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of unsigned int
    """
    return rng.integers(0, fmt.mask, shape, dtype=np.uint64, endpoint=True).astype(fmt.code_dtype)


def with_exponents(fmt: FloatFormat, exponents: Array, rng: Rng, *, powers: bool = False) -> Array:
    """Draw numbers with random sign and fraction and these exponents, clipped to the format.

    Parameters
    ----------
    fmt : FloatFormat
    exponents : ndarray of int
        Of two, of any shape; clipped to those of the format's numbers, subnormal ones too.
    rng : numpy.random.Generator
    powers : bool
        Powers of two, with no fraction.

    Returns
    -------
    ndarray of unsigned int
        Codes, of the shape of `exponents`.
    """
    lowest, highest = fmt.emin - fmt.fraction_bits, fmt.emax
    exponents = np.clip(exponents, lowest, highest)
    fraction = np.zeros(exponents.shape) if powers else rng.integers(0, 1 << fmt.fraction_bits, exponents.shape)
    significand = 1 + fraction / (1 << fmt.fraction_bits)
    if fmt.name == "f64":  # subnormals need their bits put together, for their values are not exact products
        values = np.ldexp(significand, exponents)
        bits: Array = (values * rng.choice([-1.0, 1.0], exponents.shape)).view(np.uint64)
        return bits
    sign = rng.choice([-1.0, 1.0], exponents.shape)
    return fmt.encode(sign * np.ldexp(significand, exponents), "rz", overflow="saturate")


def mixed(fmt: Format, shape: tuple[int, ...], rng: Rng, rare: float = 0.005) -> Array:
    """Draw numbers near 1, and occasionally any bits; for integers, any bits.

    Parameters
    ----------
    fmt : Format
    shape : tuple of int
    rng : numpy.random.Generator
    rare : float
        The fraction of elements with any bits.

    Returns
    -------
    ndarray of unsigned int
        Codes.
    """
    bits = random_codes(fmt, shape, rng)
    if not isinstance(fmt, FloatFormat):
        return bits
    near = with_exponents(fmt, rng.integers(-3, 4, shape), rng)
    return np.where(rng.random(shape) < rare, bits, near).astype(fmt.code_dtype)
