"""The approximate functions of f32 in PTX: their code, what they approximate, and how they repeat by octave."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.solve.positions import turns
from warpmma.arithmetic import approximate, interpolators

__all__ = ["FORMS", "GRADUAL", "Form", "Plain", "Range", "code_of"]

Codes = npt.NDArray[np.uint32]
Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]

SIGN = np.uint32(1 << 31)
LEAST, END = 0x00800000, 0x7F800000  # codes of 2^-126 and of infinity
_FRACTION = (1 << 23) - 1


def code_of(value: float) -> int:
    """Return the code of the nearest number of f32."""
    return int(np.float32(value).view(np.uint32))


class Range(NamedTuple):
    """Operands of one sign, from one code of a magnitude to the one before another.

    Attributes
    ----------
    name : str
    first, end : int
    negative : bool
    """

    name: str
    first: int = LEAST
    end: int = END
    negative: bool = False


class Plain(NamedTuple):
    """Octaves whose results are all the same, with errors below those measured elsewhere.

    Attributes
    ----------
    first, end : int
        Exponent fields.
    positive, negative : int or None
        Codes of results; None: the operand.
    """

    first: int
    end: int
    positive: int | None
    negative: int | None


@dataclass(frozen=True, kw_only=True)
class Form:
    """An instruction of f32.

    Attributes
    ----------
    mnemonic : str
    section : str
        Of the PTX ISA.
    exact : callable
        What it approximates, in float64. The error of NumPy's functions is below 4 ulps of f64, 2^-26 ulp of f32.
    negative : {"odd", "even", "nan", "own"}
        Results of negative operands: of the positive ones with the other sign; the same; NaN; their own.
    repeats : {"no", "scaled", "added"}
        What octaves share: the fractions of results, whose exponents differ by a multiple of the operands'; or the
        difference of results and operands' exponents.
    base : callable
        From exponent fields to those of the octaves that these repeat.
    slope : float
        The multiple.
    plain : tuple of Plain
        Octaves that need no measurement.
    rises : bool
        Whether it increases for positive operands; it decreases for others, or increases there too if `negative` is
        "odd".
    monotone_end : int
        The code from which on it is not monotone.
    ranges : tuple of Range
        Ranges that are summarised.
    gradual : bool
        Results may be subnormal numbers; their ulp is 2^-149.
    positions : callable
        Codes to positions in the table, and the segment's number of bits below it.
    """

    mnemonic: str
    section: str
    exact: Callable[[Float], Float] = field(repr=False)
    negative: Literal["odd", "even", "nan", "own"]
    repeats: Literal["no", "scaled", "added"] = "no"
    base: Callable[[int], int] = field(default=lambda exponent: exponent, repr=False)
    slope: float = 0
    plain: tuple[Plain, ...] = ()
    rises: bool
    monotone_end: int = END
    ranges: tuple[Range, ...] = (Range("all"),)
    gradual: bool = False
    positions: Callable[[Codes], Int] = field(repr=False)

    def compute(self, codes: Codes) -> Codes:
        """Return its results."""
        results: Codes = approximate(self.mnemonic, codes)
        return results

    def blocks(self) -> list[tuple[int, int, bool]]:
        """Return first code, end and sign of the blocks to measure: octaves, split where a range ends."""
        alike = {e for part in self.plain for e in range(part.first, part.end)}
        last = max(r.end for r in self.ranges) - 1 >> 23
        octaves = [e for e in range(1, last + 1) if e not in alike and self.base(e) == e]
        cuts = {edge for r in self.ranges for edge in (r.first, r.end)} | {self.monotone_end}
        edges = sorted({*(e << 23 for e in octaves), *(e + 1 << 23 for e in octaves), *cuts})
        signs = (False, True) if self.negative == "own" else (False,)
        parts = [(a, b) for a, b in itertools.pairwise(edges) if a >> 23 in octaves]
        return [(a, b, sign) for sign in signs for a, b in parts]


def _of_fraction(codes: Codes) -> Int:
    """Return the segment of 64."""
    return (codes.astype(np.int64) & _FRACTION) >> 17


def _of_exponential(codes: Codes) -> Int:
    x = codes.view(np.float32).astype(np.float64)
    a = np.floor(np.abs(x) * 2.0**23).astype(np.int64)
    a = np.where(x < 0, np.where(a & _FRACTION, ~a, -a), a)
    return (a & _FRACTION) >> 17


def _of_quadrant(quarter: int) -> Callable[[Codes], Int]:
    def segments(codes: Codes) -> Int:
        cut = np.floor(turns(codes & ~SIGN).view(np.float32).astype(np.float64) * 2.0**25).astype(np.int64)
        odd = (cut >> 23) + quarter & 1
        segment: Int = np.where(odd, ~cut & _FRACTION, cut & _FRACTION) >> 17
        return segment

    return segments


def _of_octave(codes: Codes) -> Int:
    """Return the segment of tanh, numbered across all octaves."""
    wide = codes.astype(np.int64)
    count = np.array([len(t.rows) if (t := interpolators().get(f"tanh {e}")) else 1 for e in range(256)])
    octave = wide >> 23 & 255
    segment: Int = octave * 16 + ((wide & _FRACTION) * count[octave] >> 23)
    return segment


_PI = math.pi


def _to(limit: float, name: str) -> Range:
    """Return the range from 0 to the last number that is not above a limit."""
    code = code_of(limit)
    return Range(name, end=code + int(float(np.uint32(code).view(np.float32)) <= limit))


_ANGLES = (_to(2 * _PI, "[0, 2 pi]"), _to(100 * _PI, "[0, 100 pi]"), Range("[0, 2^24)", end=code_of(2.0**24)))
_ONE, _TWO, _HALF = code_of(1), code_of(2), code_of(0.5)
_INFINITY = END


def _octave_of_logarithms(exponent: int) -> int:
    """Return the least exponent field with logarithms of its sign and octave: they are n + [0, 1), n an integer."""
    n = exponent - 127
    if n in (0, -1):
        return exponent
    return 127 + (1 << n.bit_length() - 1) if n > 0 else 127 - 1 - (1 << (-n - 1).bit_length() - 1)


def _even_or_odd(exponent: int) -> int:
    return 127 + (exponent - 127) % 2


def _rsqrt(x: Float) -> Float:
    root: Float = 1 / np.sqrt(x)
    return root


def _exp2(x: Float) -> Float:
    """Return 2^x, or infinity if x is far too large."""
    with np.errstate(over="ignore", under="ignore"):
        result: Float = np.exp2(np.clip(x, -1100, 1100))
    return result


_MADE = (
    Form(
        mnemonic="rcp.approx.ftz.f32", section="9.7.3.13", exact=np.reciprocal,
        negative="odd", repeats="scaled", base=lambda e: 127, slope=-1, rises=False,
        positions=lambda c: (c.astype(np.int64) & _FRACTION) >> 16,
    ),
    Form(
        mnemonic="sqrt.approx.ftz.f32", section="9.7.3.15", exact=np.sqrt,
        negative="nan", repeats="scaled", base=_even_or_odd, slope=0.5, rises=True, positions=_of_fraction,
    ),
    Form(
        mnemonic="rsqrt.approx.ftz.f32", section="9.7.3.16", exact=_rsqrt,
        negative="nan", repeats="scaled", base=_even_or_odd, slope=-0.5, rises=False, positions=_of_fraction,
    ),
    Form(
        mnemonic="sin.approx.ftz.f32", section="9.7.3.18", exact=np.sin,
        negative="odd", rises=True, plain=(Plain(1, 103, 0, 1 << 31),), monotone_end=_to(_PI / 2, "").end,
        ranges=_ANGLES, positions=_of_quadrant(0),
    ),
    Form(
        mnemonic="cos.approx.ftz.f32", section="9.7.3.19", exact=np.cos,
        negative="even", rises=False, plain=(Plain(1, 103, _ONE, _ONE),), monotone_end=_to(_PI, "").end,
        ranges=_ANGLES, positions=_of_quadrant(1),
    ),
    Form(
        mnemonic="lg2.approx.ftz.f32", section="9.7.3.20", exact=np.log2,
        negative="nan", repeats="added", base=_octave_of_logarithms, rises=True, positions=_of_fraction, ranges=(
            Range("(0.5, 2)", _HALF + 1, _TWO), Range("up to 0.5", end=_HALF + 1), Range("from 2", _TWO),
        ),
    ),
    Form(
        mnemonic="ex2.approx.ftz.f32", section="9.7.3.21", exact=_exp2,
        negative="own", rises=True, positions=_of_exponential,
        plain=(Plain(1, 103, _ONE, _ONE), Plain(134, 255, _INFINITY, 0)), ranges=(
            Range("positive"), Range("negative", negative=True),
            Range("[1, 2)", _ONE, _TWO), Range("(-2, -1]", _ONE, _TWO, negative=True),
        ),
    ),
    Form(
        mnemonic="tanh.approx.f32", section="9.7.3.22", exact=np.tanh,
        negative="odd", rises=True, positions=_of_octave,
        plain=(Plain(1, 107, None, None), Plain(132, 255, _ONE, 1 << 31 | _ONE)), ranges=(
            Range("below 2^-8", end=code_of(2.0**-8)), Range("[2^-8, 8)", code_of(2.0**-8), code_of(8)),
            Range("from 8", code_of(8)),
        ),
    ),
)  # fmt: skip
FORMS: Mapping[str, Form] = MappingProxyType({form.mnemonic: form for form in _MADE})
"""The forms with `.ftz`, and tanh, by their mnemonics, in the order of the PTX ISA."""

_SMALL = Range("subnormal operands", 1, LEAST)
_GRADUAL = {
    "rcp": (_SMALL, Range("subnormal results", code_of(2.0**126))),
    "sqrt": (_SMALL,),
    "rsqrt": (_SMALL,),
    "lg2": (_SMALL,),
    "ex2": (Range("subnormal results", code_of(126) + 1, code_of(150), negative=True),),
}
GRADUAL: Mapping[str, Form] = MappingProxyType({
    f"{name}.approx.f32": replace(
        FORMS[f"{name}.approx.ftz.f32"], mnemonic=f"{name}.approx.f32", repeats="no", ranges=ranges, gradual=True
    )
    for name, ranges in _GRADUAL.items()
})  # fmt: skip
"""The forms without `.ftz`, for the operands where they differ: subnormal operands or results."""
