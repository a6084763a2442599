"""The worst error of `div.approx` and `div.full` over all pairs whose quotient is not scaled.

A quotient is a rcp(b), rounded once. If d is the relative error of rcp(b) and s in [1, 2) the exact quotient's
significand, its error is at most d s 2^23 + 1/2 ulps, which is less than d 2^24 + 1/2. So divisors are tried in
descending order of d, each with all dividends that might exceed the maximum so far, until no divisor can.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from warpmma.arithmetic import special_function

from .forms import Float, code_of

__all__ = ["worst_quotient"]


def worst_quotient() -> dict[str, Any]:
    """Return the largest error in ulps, its dividend and divisor as codes, and the distance from the nearest number."""
    codes = np.arange(code_of(1), code_of(2), dtype=np.uint32)
    divisors = codes.view(np.float32).astype(np.float64)
    reciprocals = special_function("rcp", codes).view(np.float32).astype(np.float64)
    errors = np.abs(divisors * reciprocals - 1)  # exact: products of 48 bits, and their difference from 1
    found: dict[str, Any] = {"error": 0.0}
    for at in np.argsort(-errors):
        if errors[at] * 2.0**24 + 0.5 <= found["error"]:
            break
        least = max((found["error"] - 0.5) / (errors[at] * 2.0**23), 1.0)
        dividends = _between(least * divisors[at], 2 * divisors[at])
        exact = dividends / divisors[at]
        quotients = (dividends * reciprocals[at]).astype(np.float32)  # a product of 48 bits, rounded once
        size = np.abs(quotients - exact) * 2.0**23
        worst = int(size.argmax())
        if size[worst] > found["error"]:
            steps = abs(int(quotients[worst].view(np.uint32)) - code_of(exact[worst]))
            found = {
                "error": float(size[worst]), "dividend": code_of(dividends[worst]), "divisor": int(codes[at]),
                "steps": steps,
            }  # fmt: skip
    return found


def _between(low: float, high: float) -> Float:
    """Return all 24-bit numbers from one number to below another, both from 1 to 4."""
    octaves = []
    for top in (2.0, 4.0):
        first, last = max(low, top / 2), min(high, top)
        unit = top * 2.0**-24
        octaves.append(np.arange(np.ceil(first / unit), np.ceil(last / unit)) * unit)
    return np.concatenate(octaves)
