"""Arrays to codes and back: the NumPy side of the formats' methods."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from .._arguments import check_choice
from .._arrays import Array, as_array, by_parts, frozen
from .._rounding import Float64, Rounding, check_rounding, leads_outward, on_magnitude, to_grid
from ..errors import OperandError
from .facts import Facts, FloatFacts, IntegerFacts


def codes_of(fmt: Facts, array: npt.ArrayLike) -> Array:
    """Raw codes of an array, as for `FloatFormat.codes`."""
    array = as_array(array, fmt.name)
    if array.dtype == object:
        raise OperandError(f"{fmt.name}: object arrays hold no bits; give {fmt.dtype} or {fmt.code_dtype} codes")
    if array.dtype == fmt.dtype and array.dtype.kind not in "iub":
        if isinstance(fmt, FloatFacts):
            codes = np.ascontiguousarray(array).view(fmt.code_dtype).reshape(array.shape)
            return codes & fmt.code_dtype.type(fmt.mask) if fmt.bits % 8 else codes
        return (array.astype(np.int8).view(np.uint8) & fmt.mask).astype(fmt.code_dtype)  # 4-bit ml_dtypes
    if array.dtype == fmt.code_dtype:
        return _checked(fmt, array, 0, fmt.mask).astype(fmt.code_dtype, copy=False)
    if isinstance(fmt, IntegerFacts) and array.dtype.kind in "iub":
        low, high = (0, fmt.mask) if array.dtype.kind == "u" and fmt.bits < 8 else (fmt.least, fmt.greatest)
        wide = _checked(fmt, array, low, high)
        cut: Array = wide.astype(fmt.code_dtype) & fmt.code_dtype.type(fmt.mask)  # two's complement, cut to the width
        return cut
    raise OperandError(
        f"{fmt.name}: got dtype {array.dtype}; expected {fmt.dtype}, or raw codes as {fmt.code_dtype}"
        + (f" (to round values, use warpmma.FORMATS[{fmt.name!r}].encode)" if array.dtype.kind == "f" else "")
    )


def array_of(fmt: Facts, codes: npt.ArrayLike) -> Array:
    """Array that holds these codes, as for `FloatFormat.array`."""
    checked = _as_codes(fmt, codes)
    if isinstance(fmt, IntegerFacts) and fmt.bits < 8:  # ml_dtypes keeps them sign-extended, so a view will not do
        return np.asarray(integer_values(fmt, checked), np.int8 if fmt.signed else np.uint8).astype(fmt.dtype)
    return np.asarray(checked.view(fmt.dtype))


def float_values(fmt: FloatFacts, codes: npt.ArrayLike, table: Float64 | None) -> Float64:
    """Values of codes, as for `FloatFormat.decode`; `table` has them all, for a format of at most 16 bits."""
    array = _as_codes(fmt, codes)
    if fmt.bits == 64:
        return array.view(np.float64)
    if table is not None:
        return table.take(array.astype(np.intp))  # NumPy gathers by its own index type three times as fast
    array = array & fmt.code_dtype.type(fmt.mask - (1 << fmt.padding) + 1)
    values: Float64
    with np.errstate(invalid="ignore"):  # a signalling NaN
        values = array.view(np.float32).astype(np.float64)
    # If a library has set the CPU to read subnormals as zero, floats would lose them here; integers do not.
    magnitude = array & fmt.code_dtype.type(fmt.sign_bit - 1)
    tiny = magnitude < 1 << (fmt.fraction_bits + fmt.padding)
    if tiny.any():
        values = np.where(tiny, np.copysign(magnitude * 2.0**-149, values), values)
    return values


def float_table(fmt: FloatFacts) -> Float64:
    """Value of every code of a format of at most 16 bits."""
    codes = np.arange(1 << fmt.bits, dtype=np.int64)
    magnitude = codes & ~fmt.sign_bit
    field, fraction = magnitude >> fmt.fraction_bits, magnitude & ((1 << fmt.fraction_bits) - 1)
    hidden = (field > 0) | (not fmt.subnormals)
    exponent = np.where(hidden, field, 1) - fmt.bias - fmt.fraction_bits
    values = np.ldexp((fraction + (hidden << fmt.fraction_bits)).astype(np.float64), exponent)
    if fmt.inf_code is not None:
        values[magnitude == fmt.inf_code] = np.inf
        values[magnitude > fmt.inf_code] = np.nan
    elif fmt.nan_code is not None:
        values[magnitude == fmt.nan_code] = np.nan
    return frozen(np.where(codes & fmt.sign_bit, -values, values))


def float_codes(
    fmt: FloatFacts, values: npt.ArrayLike, rounding: Rounding, overflow: Literal["infinity", "saturate"] | None
) -> Array:
    """Codes of values, rounded once, as for `FloatFormat.encode`."""
    check_rounding(rounding)
    policy = fmt.overflow if overflow is None else overflow
    check_choice("overflow", policy, ("infinity", "saturate"))
    values = _numbers(fmt, values)
    if fmt.bits == 64:
        return values.view(np.uint64)
    if policy == "infinity" and not fmt.has_infinity:
        raise OperandError(f"{fmt.name} has no infinity; overflow can only be 'saturate'")
    return by_parts(partial(_rounded, fmt, rounding, policy), values, dtype=fmt.code_dtype)


def _rounded(fmt: FloatFacts, rounding: Rounding, policy: str, values: Float64) -> Array:
    """Codes of some values."""
    negative = np.signbit(values)
    how = on_magnitude(rounding, negative)
    magnitude = to_grid(np.abs(values), fmt.fraction_bits, fmt.emin, how)
    if not fmt.subnormals:  # exponent field 0 is a normal number, which represents everything below it
        magnitude = np.maximum(magnitude - (1 << fmt.fraction_bits), 0)
    top = fmt.max_code >> fmt.padding
    beyond: Array | int = top
    if policy == "infinity":
        beyond = np.where(np.isinf(values) | leads_outward(how), top + 1, top)
    magnitude = np.where(magnitude > top, beyond, magnitude)
    if not fmt.signed:
        magnitude = np.where(negative, 0, magnitude)
    codes = (magnitude << fmt.padding) + np.where(negative, fmt.sign_bit, 0)
    canonical = fmt.max_code if fmt.nan_code is None else fmt.nan_code
    return np.where(np.isnan(values), canonical, codes).astype(fmt.code_dtype)


def integer_values(fmt: IntegerFacts, codes: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Values of codes, as int64."""
    wide = _as_codes(fmt, codes).astype(np.int64)
    # Sign extension: flipping the sign bit and taking its weight off again.
    return (wide ^ -fmt.least) + fmt.least if fmt.signed else wide


def integer_codes(fmt: IntegerFacts, values: npt.ArrayLike, rounding: Rounding) -> Array:
    """Codes of values, rounded and clamped, as for `IntegerFormat.encode`."""
    check_rounding(rounding)
    values = as_array(values, fmt.name)
    if values.dtype.kind not in "iub":
        values = _numbers(fmt, values)
        with np.errstate(invalid="ignore"):  # a signalling NaN
            rounded = {"rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil}[rounding](values)
        clamped: Array = np.nan_to_num(np.clip(rounded, fmt.least, fmt.greatest), nan=0.0)
    else:
        values = values.astype(np.uint8) if values.dtype.kind == "b" else values
        limits = np.iinfo(values.dtype)  # the type cannot represent bounds beyond its own, and has no values there
        clamped = np.clip(values, max(fmt.least, limits.min), min(fmt.greatest, limits.max))
    return (clamped.astype(np.int64) & fmt.mask).astype(fmt.code_dtype)


def _numbers(fmt: Facts, values: npt.ArrayLike) -> Float64:
    """Values to be rounded, as float64; integers only where that is exact, for they would be rounded twice."""
    array = as_array(values, fmt.name)
    if array.dtype.kind not in "iufbV" or issubclass(array.dtype.type, np.void):
        raise OperandError(f"{fmt.name}: cannot encode dtype {array.dtype}; give an integer or a float dtype")
    if array.dtype.itemsize > 8 or (
        array.dtype.kind in "iu" and array.size and max(abs(int(array.min())), int(array.max())) > 1 << 53
    ):
        raise OperandError(f"{fmt.name}: {array.dtype} values that float64 may not hold; round them to float64 first")
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return array.astype(np.float64)


def _as_codes(fmt: Facts, codes: npt.ArrayLike) -> Array:
    """Check codes that are to be decoded: any integers within the format's width."""
    array = as_array(codes, fmt.name)
    if array.dtype == fmt.code_dtype and fmt.bits == 8 * array.dtype.itemsize:
        return array
    if array.dtype.kind not in "iu":
        raise OperandError(f"{fmt.name}: codes are unsigned integers such as {fmt.code_dtype}; got dtype {array.dtype}")
    return _checked(fmt, array, 0, fmt.mask).astype(fmt.code_dtype)


def _checked(fmt: Facts, array: Array, low: int, high: int) -> Array:
    """Return `array` if all of it is in [low, high]; otherwise raise, naming the first outside."""
    if not array.size or (int(array.min()) >= low and int(array.max()) <= high):
        return array
    bad = (array.astype(object) < low) | (array.astype(object) > high)
    place = tuple(int(i) for i in np.argwhere(bad)[0])
    raise OperandError(f"{fmt.name}: {int(array[place])} at {list(place)} does not fit; expected {low} to {high}")
