"""References of arithmetic and conversions, on integers and fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import cast

import numpy as np
import numpy.typing as npt
from arrays import Array

from lab.generators import operation_inputs
from warpmma._rounding import Rounding
from warpmma.formats import FORMATS, FloatFormat
from warpmma.kernel import operation
from warpmma.operations.arithmetic import conversions, divisions, floats

FORMS = (*floats.FORMS, *divisions.FORMS, *conversions.FORMS)
MNEMONICS = [mnemonic for form in FORMS for mnemonic in form.mnemonics]
ROWS = {mnemonic: operation(mnemonic) for mnemonic in MNEMONICS}
ROUNDINGS: tuple[Rounding, ...] = ("rn", "rz", "rm", "rp")


def run(mnemonic: str, *words: npt.ArrayLike) -> Array:
    """Execute on any number of words; registers are filled up with zeros."""
    row = operation(mnemonic)
    dtypes = {"b16": np.uint16, "b32": np.uint32, "b64": np.uint64}
    arrays = [np.atleast_1d(np.asarray(w, dtypes[k])) for w, k in zip(words, row.inputs, strict=True)]
    count = max(len(x) for x in arrays)
    padded = [np.resize(x, -(-count // 32) * 32).reshape(-1, 32) for x in arrays]
    return row(*padded)[0].reshape(-1)[:count]


def bits(value: float, name: str = "f32") -> int:
    return int(cast(FloatFormat, FORMATS[name]).encode([value])[0])


def rounded(fmt: FloatFormat, value: Fraction, rounding: str, zero_sign: int = 0) -> int:
    """Code of an exact value: the reference, on integers."""
    if value == 0:
        return fmt.sign_bit if zero_sign else 0
    sign, magnitude = value < 0, abs(value)
    exponent = max((magnitude.numerator.bit_length() - magnitude.denominator.bit_length()) - 1, fmt.emin)
    while magnitude >= Fraction(2) ** (exponent + 1):
        exponent += 1
    scaled = magnitude / Fraction(2) ** (exponent - fmt.fraction_bits)
    whole, rest = scaled.numerator // scaled.denominator, scaled - scaled.numerator // scaled.denominator
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1),
        "rz": False,
        "rm": sign and rest > 0,
        "rp": not sign and rest > 0,
    }[rounding]
    code = ((exponent - fmt.emin) << fmt.fraction_bits) + whole + up
    infinity = cast(int, fmt.inf_code)
    if code >= infinity:
        outward = rounding == "rn" or (rounding == "rm" and sign) or (rounding == "rp" and not sign)
        code = infinity if outward else infinity - 1
    return code | (fmt.sign_bit if sign else 0)


def exact(fmt: FloatFormat, code: int) -> Fraction:
    number = fmt.unpack(code)
    size = number.significand * Fraction(2) ** number.exponent
    return -size if number.sign else size


def finite(fmt: FloatFormat, codes: Array) -> Array:
    return cast(Array, (codes & fmt.code_dtype.type(fmt.mask & ~fmt.sign_bit)) <= fmt.max_code)


ELEMENTS = {"f32": ("b32", np.uint32), "f64": ("b64", np.uint64), "f16": ("b16", np.uint16), "bf16": ("b16", np.uint16)}


def operands(mnemonic: str, count: int = 512) -> list[Array]:
    """Hard operands, finite ones."""
    name = mnemonic.split(".")[-1]
    given = [x.reshape(-1) for x in operation_inputs(mnemonic, 4 * count, 3)]
    keep = np.logical_and.reduce([finite(float_format(name), x) for x in given])
    return [x[keep][:count] for x in given]


def float_format(name: str) -> FloatFormat:
    fmt = FORMATS[name]
    assert isinstance(fmt, FloatFormat)
    return fmt


def unbounded(fmt: FloatFormat, value: Fraction, rounding: str) -> Fraction:
    """Magnitude of a value, not 0, that is rounded to a format's precision near 1, so with no bound of its exponent."""
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length()
    number = fmt.unpack(rounded(fmt, value / Fraction(2) ** exponent, rounding))
    return number.significand * Fraction(2) ** (number.exponent + exponent)


def flushed(fmt: FloatFormat, code: int) -> int:
    """Operands of `.ftz`."""
    return code & fmt.sign_bit if code & ~fmt.sign_bit < 1 << fmt.fraction_bits else code


def divided(fmt: FloatFormat, x: int, y: int, rounding: str) -> int:
    """Quotient of finite codes, the divisor not 0."""
    return rounded(fmt, exact(fmt, x) / exact(fmt, y), rounding, (x ^ y) & fmt.sign_bit)


def rooted(fmt: FloatFormat, x: int, rounding: str) -> int:
    """Root of a finite code, not negative: by squares alone, halving the codes between which it is."""
    square, low, high = exact(fmt, x), 0, cast(int, fmt.inf_code)  # the square of low is at most that, high's above
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exact(fmt, middle) ** 2 <= square else (low, middle)
    if exact(fmt, low) ** 2 == square or rounding in ("rz", "rm"):
        return low
    half = (exact(fmt, low) + exact(fmt, low + 1)) / 2
    return low + (rounding == "rp" or half**2 < square)  # never half way: its square has too many bits
