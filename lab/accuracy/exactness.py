"""Exact results: powers, squares, zeros, ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from .division import worst_quotient
from .forms import FORMS, Codes, Float, code_of

__all__ = ["facts"]


def _on(name: str, values: Any) -> Float:
    """Return results for values that f32 represents."""
    given = np.asarray(values, np.float64)
    narrow = given.astype(np.float32)
    if (narrow != given).any():
        raise ValueError(f"{name} is asked for what is no number of f32")
    result: Float = FORMS[name].compute(narrow.view(np.uint32)).view(np.float32).astype(np.float64)
    return result


def facts() -> dict[str, Any]:
    """Return counts, and the numbers from which a property holds."""
    found: dict[str, Any] = {}
    n = np.arange(-126, 128)
    found["ex2 of integers"] = _count(_on("ex2.approx.ftz.f32", n) == np.exp2(n))
    n = np.arange(-126, 127)
    found["rcp of powers of two"] = _count(_on("rcp.approx.ftz.f32", np.exp2(n)) == np.exp2(-n))
    n = np.arange(-126, 128)
    found["lg2 of powers of two"] = _count(_on("lg2.approx.ftz.f32", np.exp2(n)) == n)
    found["lg2 falls between octaves"] = _falls_between_octaves()
    n = np.arange(-63, 64)
    found["rsqrt of powers of four"] = _count(_on("rsqrt.approx.ftz.f32", np.exp2(2 * n)) == np.exp2(-n))
    found["sqrt of powers of four"] = _count(_on("sqrt.approx.ftz.f32", np.exp2(2 * n)) == np.exp2(n))
    n = np.arange(1, 4097)
    found["sqrt of squares up to 4096^2"] = _count(_on("sqrt.approx.ftz.f32", n**2) == n)
    found["rcp of integers up to 2^24, nearest"] = _count(_nearest_reciprocals())
    found["worst quotient"] = worst_quotient()
    found["tanh is 1 from"] = _first("tanh.approx.f32", lambda r: r == code_of(1))
    found["tanh is its operand up to"] = _last_identity()
    found["cos is 1 up to"] = _first("cos.approx.ftz.f32", lambda r: r != code_of(1)) - 1
    found["sin is 0 up to"] = _first("sin.approx.ftz.f32", lambda r: r != 0) - 1
    found["ex2 is 1 up to"] = _first("ex2.approx.ftz.f32", lambda r: r != code_of(1)) - 1
    codes = np.arange(code_of(1), code_of(7), dtype=np.uint32)
    for name in ("sin", "cos"):
        results = FORMS[f"{name}.approx.ftz.f32"].compute(codes).view(np.float32)
        found[f"largest {name}"] = float(results.max())
        found[f"least {name}"] = float(results.min())
    return found


def _count(holds: Any) -> list[int]:
    return [int(np.sum(holds)), len(holds)]


def _nearest_reciprocals() -> Any:
    n = np.arange(1, (1 << 24) + 1, dtype=np.float64)
    return _on("rcp.approx.ftz.f32", n) == (1 / n).astype(np.float32)


def _falls_between_octaves() -> list[int]:
    starts = np.arange(2, 255, dtype=np.uint32) << np.uint32(23)
    results = [FORMS["lg2.approx.ftz.f32"].compute(codes).view(np.float32) for codes in (starts - np.uint32(1), starts)]
    return _count(results[1] < results[0])


def _first(name: str, holds: Any) -> int:
    """Return the first code, from 2^-30 on, whose result has a property."""
    for start in range(97 << 23, 255 << 23, 1 << 23):
        codes: Codes = np.arange(start, start + (1 << 23), dtype=np.uint32)
        where = np.flatnonzero(holds(FORMS[name].compute(codes)))
        if len(where):
            return int(codes[where[0]])
    raise ValueError(f"no result of {name} is so")


def _last_identity() -> int:
    """Return the last code before the first one that tanh never returns."""
    for exponent in range(97, 255):
        codes = np.arange(exponent << 23, exponent + 1 << 23, dtype=np.uint32)
        where = np.flatnonzero(FORMS["tanh.approx.f32"].compute(codes) != codes)
        if len(where):
            return int(codes[where[0]]) - 1
    raise ValueError("tanh is the identity")
