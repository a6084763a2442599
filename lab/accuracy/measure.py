"""Errors of a block of operands, and checks of repeating octaves.

An ulp is the last place of 24 bits in the octave of the exact result, at least 2^-149. An error is the result minus the
exact one. Operands are measured if their exact result is a normal number, or subnormal for forms without `.ftz`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .forms import SIGN, Codes, Float, Form

__all__ = ["COUNTS", "Record", "measured", "repetition", "together"]

Record = dict[str, Any]
"""Results for some operands.

`operands`: how many were measured; `not_nearest`: how many results are not the exact one rounded to nearest;
`not_adjacent`: how many errors are at least an ulp; `sum`: of all errors in ulps; `low` and `high`: the least and the
largest error in ulps, with the operand's code; `absolute` and `relative`: the largest in magnitude, likewise; `steps`:
the largest distance from the nearest number, in numbers, likewise. `pairs`: neighbours in a range where the function is
monotone; `breaks`: those whose results are not; `borders`: breaks between two segments; `first_break`: the first;
`worst_break`: the largest in ulps, and its second operand.
"""

_CHUNK = 1 << 17
_EXTREMES: Final = (
    ("low", min), ("high", max), ("absolute", max), ("relative", max), ("steps", max), ("worst_break", max),
)  # fmt: skip
COUNTS = ("operands", "not_nearest", "not_adjacent", "pairs", "breaks", "borders")
_NAN = np.uint32(0x7FFFFFFF)


def _values(codes: Codes) -> Float:
    with np.errstate(invalid="ignore"):
        return codes.view(np.float32).astype(np.float64)


def measured(form: Form, first: int, end: int, negative: bool = False) -> Record:
    """Measure all operands from one code of a magnitude to the one before another."""
    parts = []
    for start in range(first, end, _CHUNK):
        stop = min(end, start + _CHUNK)
        before = start > first or 0x00800000 < start <= form.monotone_end
        codes = np.arange(start - before, stop, dtype=np.uint32) | (SIGN if negative else np.uint32(0))
        results = form.compute(codes)
        record = _errors(form, codes[int(before) :], results[int(before) :])
        if stop <= form.monotone_end:
            record |= _breaks(form, codes, results, form.rises is not negative)
        parts.append(record)
    return together(parts)


def _errors(form: Form, codes: Codes, results: Codes) -> Record:
    exact, value = form.exact(_values(codes)), _values(results)
    with np.errstate(over="ignore"):
        nearest = exact.astype(np.float32)
    inside = (np.abs(exact) >= (2.0**-149 if form.gradual else 2.0**-126)) & np.isfinite(nearest)
    if not inside.all():
        codes, results, exact, value = codes[inside], results[inside], exact[inside], value[inside]
        nearest = nearest[inside]
    record: Record = {"operands": len(codes)}
    if not len(codes):
        return record
    # Powers of two, so that the division is exact.
    octave = (exact.view(np.int64) & (0x7FF << 52)).view(np.float64)
    if form.gradual:
        octave = np.maximum(octave, 2.0**-126)
    error = value - exact
    ulps = error / octave * 2.0**23
    size = np.abs(ulps)
    steps = np.abs(results.astype(np.int64) - nearest.view(np.uint32).astype(np.int64))
    record |= {
        "not_nearest": int((size > 0.5).sum()),
        "not_adjacent": int((size >= 1).sum()),
        "sum": float(ulps.sum()),
        "low": _at(ulps, int(ulps.argmin()), codes),
        "high": _at(ulps, int(ulps.argmax()), codes),
    }
    # A result of the opposite sign has no distance; lg2, sin and cos have some near their zeros.
    same = (results ^ nearest.view(np.uint32)) >> 31 == 0
    for name, values in (("absolute", np.abs(error)), ("relative", np.abs(error / exact)), ("steps", steps * same)):
        record[name] = _at(values, int(values.argmax()), codes)
    return record


def _at(values: npt.NDArray[Any], index: int, codes: Codes) -> list[float | int]:
    return [values[index].item(), int(codes[index])]


def _breaks(form: Form, codes: Codes, results: Codes, rises: bool) -> Record:
    value = _values(results)
    with np.errstate(invalid="ignore"):
        step = np.diff(value) if rises else -np.diff(value)
    where = np.flatnonzero(step < 0)
    record: Record = {"pairs": len(step), "breaks": len(where), "borders": 0}
    if len(where):
        segments = form.positions(codes)
        octave = (value[where + 1].view(np.int64) & (0x7FF << 52)).view(np.float64)
        sizes = -step[where] / octave * 2.0**23
        record["borders"] = int((segments[where] != segments[where + 1]).sum())
        record["first_break"] = int(codes[where[0] + 1])
        record["worst_break"] = _at(sizes, int(sizes.argmax()), codes[where + 1])
    return record


def together(records: Iterable[Record]) -> Record:
    """Combine records."""
    result: Record = dict.fromkeys(COUNTS, 0) | {"sum": 0.0}
    for record in records:
        for name in (*COUNTS, "sum"):
            result[name] += record.get(name, 0)
        for name, best in _EXTREMES:
            known = [r[name] for r in (result, record) if name in r]
            if known:
                result[name] = best(known, key=lambda pair: pair[0])
        if "first_break" in record:
            result.setdefault("first_break", record["first_break"])
    return result


def repetition(form: Form, exponent: int) -> int:
    """Count results in an octave that contradict the form: its plain and repeating octaves, and its signs."""
    base, wrong = form.base(exponent), 0
    plain = next((part for part in form.plain if part.first <= exponent < part.end), None)
    for start in range(exponent << 23, exponent + 1 << 23, _CHUNK):
        codes = np.arange(start, start + _CHUNK, dtype=np.uint32)
        results, others = form.compute(codes), form.compute(codes | SIGN)
        if plain:
            wrong += int((results != (codes if plain.positive is None else plain.positive)).sum())
            wrong += int((others != (codes | SIGN if plain.negative is None else plain.negative)).sum())
        elif base != exponent:
            before = form.compute((codes.astype(np.int64) - (exponent - base << 23)).astype(np.uint32))
            wrong += int((results != _repeated(form, exponent - base, before)).sum())
        if form.negative != "own":
            sign = {"odd": results ^ SIGN, "even": results, "nan": np.full_like(results, _NAN)}[form.negative]
            wrong += int((others != sign).sum())
    return wrong


def _repeated(form: Form, octaves: int, results: Codes) -> Codes:
    """Return results shifted by some octaves; those below the least normal number are flushed."""
    if form.repeats == "added":  # exact: integers and results of 24 bits, below 2^8
        return (_values(results) + octaves).astype(np.float32).view(np.uint32)
    moved = results.astype(np.int64) + (int(octaves * form.slope) << 23)
    return np.where(moved < 0x00800000, 0, moved).astype(np.uint32)
