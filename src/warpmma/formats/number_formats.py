"""Number formats: what they are, and their casts of arrays.

The casts lie in a module that needs NumPy, which is loaded when the first array comes.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from .._lazy import later
from .facts import Facts, FloatFacts, IntegerFacts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .._arrays import Array
    from .._rounding import Float64, Rounding
    from . import casts
else:
    casts = later(".casts", __package__)


class _Arrays(Facts):
    """Arrays of every format."""

    def codes(self, array: npt.ArrayLike) -> Array:
        """Raw codes of an array.

        Parameters
        ----------
        array : array_like
            Of this format's dtype; or raw codes of its code dtype, which must fit its width; for integer formats also
            of any integer dtype if the values fit.

        Returns
        -------
        ndarray of unsigned int

        Raises
        ------
        OperandError
            Another dtype, or values that do not fit: a conversion that can lose bits is the caller's to ask for, with
            `encode`.
        """
        return casts.codes_of(self, array)

    def array(self, codes: npt.ArrayLike) -> Array:
        """Array of this format's dtype that holds these codes, bit for bit: the inverse of `codes`.

        Parameters
        ----------
        codes : array_like of unsigned int
            Of any integer dtype, if they fit the format's width.

        Returns
        -------
        ndarray
            A view, where the codes are of the code dtype and an element fills its bytes.

        Raises
        ------
        OperandError
            Values, which are for `encode`; or codes that do not fit.

        Examples
        --------
        >>> from warpmma.formats import FORMATS
        >>> FORMATS["f16"].array([0x3C00, 0xC000])
        array([ 1., -2.], dtype=float16)
        """
        return casts.array_of(self, codes)


class FloatFormat(FloatFacts, _Arrays):
    """A floating-point format: its fields, which `FloatFacts` explains, and casts of arrays."""

    def decode(self, codes: npt.ArrayLike) -> Float64:
        """Values of codes, exactly, as float64.

        Parameters
        ----------
        codes : array_like of unsigned int
            Any shape. For f64 the bits are reinterpreted, payloads of NaN included.

        Returns
        -------
        ndarray of float64
            float64 holds every value of every format exactly: at most 53 significand bits, and exponents from
            -149 (f32's least) to 127 but for f64 itself.

        Examples
        --------
        >>> from warpmma.formats import FORMATS
        >>> FORMATS["e4m3"].decode([0x38, 0x7E, 0x01, 0xFF])
        array([1.000000e+00, 4.480000e+02, 1.953125e-03,          nan])
        """
        return casts.float_values(self, codes, self._table if self.bits <= 16 else None)

    @cached_property
    def _table(self) -> Float64:
        return casts.float_table(self)

    def encode(
        self,
        values: npt.ArrayLike,
        rounding: Rounding = "rn",
        *,
        overflow: Literal["infinity", "saturate"] | None = None,
    ) -> Array:
        """Codes of values, rounded once.

        Parameters
        ----------
        values : array_like of float
            Taken as float64; float32 and narrower values are exact there. f64 itself keeps their bits.
        rounding : {"rn", "rz", "rm", "rp"}
            To nearest even, toward zero, down, up.
        overflow : {"infinity", "saturate"}, optional
            Instead of what PTX `cvt` does for this format. "saturate" gives the largest finite value of that sign;
            "infinity" gives infinity where the rounding leads away from zero, and the largest value elsewhere.

        Returns
        -------
        ndarray of unsigned int
            NaN becomes the canonical NaN, and the largest finite value where the format has no NaN (PTX `cvt`).
            Negative values of an unsigned format become its least value.

        Raises
        ------
        OperandError
            An unknown rounding or overflow, infinity for a format without it, or values that are no numbers or that
            float64 may not hold.

        Examples
        --------
        >>> from warpmma.formats import FORMATS
        >>> [hex(c) for c in FORMATS["f16"].encode([1.0, 65519.0, 65520.0, float("nan")])]
        ['0x3c00', '0x7bff', '0x7c00', '0x7fff']
        """
        return casts.float_codes(self, values, rounding, overflow)


class IntegerFormat(IntegerFacts, _Arrays):
    """An integer format: its fields, which `IntegerFacts` explains, and casts of arrays."""

    def decode(self, codes: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Values of codes, as int64."""
        return casts.integer_values(self, codes)

    def encode(self, values: npt.ArrayLike, rounding: Rounding = "rn") -> Array:
        """Codes of values, rounded to integers and clamped to the range as PTX `cvt` does; NaN becomes 0.

        Parameters
        ----------
        values : array_like of int or float
        rounding : {"rn", "rz", "rm", "rp"}
        """
        return casts.integer_codes(self, values, rounding)


Format = FloatFormat | IntegerFormat
