"""Perceived colours, also without one kind of cones, and the distance of two colours.

The matrices are of Machado, Oliveira and Fernandes (IEEE TVCG 15(6), 2009), severity 1, for linear RGB; distances are
CIE 1976's, in L*a*b* under D65.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["EYES", "distance", "seen"]

Vector = tuple[float, float, float]
EYES: dict[str, tuple[Vector, Vector, Vector]] = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
_WHITE = (0.9505, 1.0, 1.089)


def _times(matrix: Sequence[Vector], vector: Sequence[float]) -> list[float]:
    return [sum(x * y for x, y in zip(row, vector, strict=True)) for row in matrix]


def seen(colour: str, eyes: str) -> list[float]:
    """Return the linear RGB that such eyes see of "#rrggbb"."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels]
    return [min(1.0, max(0.0, x)) for x in _times(EYES[eyes], linear)]


def distance(one: str, other: str, eyes: str) -> float:
    """Return how far apart two colours are for such eyes: 2 or 3 can just be told, side by side."""

    def lab(colour: str) -> list[float]:
        xyz = [x / w for x, w in zip(_times(_XYZ, seen(colour, eyes)), _WHITE, strict=True)]
        x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
        return [116 * y - 16, 500 * (x - y), 200 * (y - z)]

    return float(sum((x - y) ** 2 for x, y in zip(lab(one), lab(other), strict=True)) ** 0.5)
