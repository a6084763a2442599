"""Errors of the 16-bit functions over all operands, and of the functions on upper words of f64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np

from warpmma.arithmetic import approximate, special_function

from .forms import SIGN, Codes, Float
from .measure import Record

__all__ = ["NARROW", "UPPER", "Narrow", "Upper", "measured_narrow", "measured_upper", "repetition_upper"]


@dataclass(frozen=True, kw_only=True)
class Narrow:
    """A 16-bit instruction: its dtype, bits of a significand, least exponent, and what it approximates."""

    mnemonic: str
    section: str
    dtype: Any
    precision: int
    least: int
    exact: Callable[[Float], Float]


_F16: Mapping[str, Any] = {"dtype": np.float16, "precision": 11, "least": -14}
_BF16: Mapping[str, Any] = {"dtype": ml_dtypes.bfloat16, "precision": 8, "least": -126}
_MADE = (
    Narrow(mnemonic="tanh.approx.f16", section="9.7.4.9", exact=np.tanh, **_F16),
    Narrow(mnemonic="tanh.approx.bf16", section="9.7.4.9", exact=np.tanh, **_BF16),
    Narrow(mnemonic="ex2.approx.f16", section="9.7.4.10", exact=np.exp2, **_F16),
    Narrow(mnemonic="ex2.approx.ftz.bf16", section="9.7.4.10", exact=np.exp2, **_BF16),
)
NARROW: Mapping[str, Narrow] = MappingProxyType({n.mnemonic: n for n in _MADE})
"""The 16-bit forms; packed forms compute the same."""


def measured_narrow(form: Narrow) -> Record:
    """Measure those of all 65,536 operands that are numbers and whose result is neither subnormal nor too large."""
    codes = np.arange(1 << 16, dtype=np.uint16)
    results = approximate(form.mnemonic, codes)
    with np.errstate(all="ignore"):
        x = codes.view(form.dtype).astype(np.float64)
        exact = form.exact(x)
        nearest = exact.astype(form.dtype)
        inside = np.isfinite(x) & (np.abs(exact) >= 2.0**form.least) & np.isfinite(nearest.astype(np.float64))
    codes, results, exact, nearest = codes[inside], results[inside], exact[inside], nearest[inside]
    error = results.view(form.dtype).astype(np.float64) - exact
    octave = np.exp2(np.floor(np.log2(np.abs(exact))))
    ulps = error / octave * 2.0 ** (form.precision - 1)
    steps = np.abs(results.astype(np.int64) - nearest.view(np.uint16).astype(np.int64))
    record: Record = {
        "operands": len(codes),
        "not_nearest": int((np.abs(ulps) > 0.5).sum()),
        "not_adjacent": int((np.abs(ulps) >= 1).sum()),
        "sum": float(ulps.sum()),
    }
    kinds = {"absolute": np.abs(error), "relative": np.abs(error / exact), "steps": steps, "low": -ulps, "high": ulps}
    for name, values in kinds.items():
        at = int(values.argmax())
        record[name] = [(values[at] * (-1 if name == "low" else 1)).item(), int(codes[at])]
    return record


@dataclass(frozen=True, kw_only=True)
class Upper:
    """An instruction on upper words of f64: its function, its octaves that differ, and exponents of results for one."""

    mnemonic: str
    section: str
    function: str
    period: int
    slope: float
    exact: Callable[[Float], Float]


UPPER: Mapping[str, Upper] = MappingProxyType({
    u.mnemonic: u
    for u in (
        Upper(mnemonic="rcp.approx.ftz.f64", section="9.7.3.14", function="rcp.f64", period=1, slope=-1,
              exact=np.reciprocal),
        Upper(mnemonic="rsqrt.approx.ftz.f64", section="9.7.3.17", function="rsqrt.f64", period=2, slope=-0.5,
              exact=lambda x: 1 / np.sqrt(x)),
    )
})  # fmt: skip
"""The approximations of f64."""

_OCTAVE = 1 << 20


def _doubles(upper: Codes, lower: int) -> Float:
    return (upper.astype(np.uint64) << np.uint64(32) | np.uint64(lower)).view(np.float64)


def measured_upper(form: Upper) -> Record:
    """Measure the octaves that differ, with lower words of zeros (`words`) and with any lower words (`relative`).

    1 / x and 1 / sqrt(x) decrease, so the smallest or the largest lower word is the worst.
    """
    record: Record = {"operands": form.period * _OCTAVE}
    codes = (1023 << 20) + np.arange(form.period * _OCTAVE, dtype=np.uint32)
    value = _doubles(special_function(form.function, codes), 0)
    for name, lowers in (("words", (0,)), ("relative", (0, (1 << 32) - 1))):
        for lower in lowers:
            exact = form.exact(_doubles(codes, lower))
            size = np.abs((value - exact) / exact)
            at = int(size.argmax())
            record[name] = max(record.get(name, [0.0, 0]), [size[at].item(), int(codes[at])])
    return record


def repetition_upper(form: Upper, first: int, end: int) -> int:
    """Count results of octaves, by exponent fields, that are not those of the first octaves, shifted."""
    wrong = 0
    codes = (1023 << 20) + np.arange(form.period * _OCTAVE, dtype=np.uint32)
    base = special_function(form.function, codes).astype(np.int64)
    for exponent in range(first, end):
        phase = (exponent - 1023) % form.period
        shift = int((exponent - 1023 - phase) * form.slope) << 20
        expected = base[phase * _OCTAVE : (phase + 1) * _OCTAVE] + shift
        expected = np.where(expected < _OCTAVE, 0, expected)
        given = np.arange(exponent << 20, exponent + 1 << 20, dtype=np.uint32)
        wrong += int((special_function(form.function, given) != expected).sum())
        negative = special_function(form.function, given | SIGN)
        other = (expected.astype(np.uint32) | SIGN) if form.function == "rcp.f64" else np.uint32(0x7FFFFFFF)
        wrong += int((negative != other).sum())
    return wrong
