"""The outputs that a tolerance accepts, correct and faulty ones, and the tolerance to use.

1. An output passes rtol and atol if |output - expected| <= atol + rtol |expected| for every element: the rule of
   `numpy.allclose` and of `torch.testing.assert_close`. Expected are the exact results, rounded to float64; elements
   whose exact result is NaN or infinite are left out.
2. Right outputs are those in the report. Wrong ones are those of `advising.FAULTS`, computed for the same inputs on one
   of the products. No tolerance finds one that equals the right output bit for bit: these inputs do not show it.
3. A tolerance must accept `need` at each element: the largest bound of its error where there is one ("bound": then no
   kernel fails that orders k as one of the products does), or twice the largest error of the right outputs
   ("measured").
4. For an rtol the least atol is the largest of need - rtol |expected|, rounded up to two digits. The *reach* of a fault
   is its largest |output - expected| / (atol + rtol |expected|): above 1 it is found.
5. Recommended is, of rtol 0 and 1, 2, 5 times powers of ten, the one that finds most faults, and of these the one whose
   least reach is largest. Bounds are taken if they find all that measured errors do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context

import numpy as np
import numpy.typing as npt

from .. import _views
from .._records import Record

Float64 = npt.NDArray[np.float64]

_RTOLS = (0.0, *(digit * 10.0**exponent for exponent in range(-9, 0) for digit in (1, 2, 5)))


@dataclass(frozen=True, kw_only=True)
class Judged(Record):
    """One output under a tolerance.

    Attributes
    ----------
    name, meaning : str
        Of a fault; of a right output, of what product it is.
    right : bool
        Whether it is a right output.
    elements, differing : int
        How many are compared; how many are not those of the right output.
    outside : int, optional
        How many are outside the tolerance: of none, it passes. None where no tolerance was given.
    largest : float
        The largest |output - expected|.
    below : float, optional
        Below which atol, with the given rtol, some element is outside; 0 if at no atol.
    reach : float, optional
        How far outside the recommended tolerance the worst element is, times: above 1 it is found.
    """

    name: str
    meaning: str
    right: bool = False
    elements: int
    differing: int
    outside: int | None = None
    largest: float
    below: float | None = None
    reach: float | None = None

    @property
    def passes(self) -> bool | None:
        """True if the tolerance accepts it; None without a tolerance."""
        return None if self.outside is None else not self.outside

    @property
    def hidden(self) -> bool:
        """True for a fault that does not change the output for these inputs."""
        return not self.right and not self.differing


@dataclass(frozen=True, kw_only=True)
class Tolerance(Record):
    """A tolerance that is recommended.

    Attributes
    ----------
    rtol, atol : float
    basis : {"bound", "measured"}
        What it lets pass (rule 3).
    reach : float
        The least of those faults that it finds.
    missed : tuple of str
        Faults that it does not find, those aside that these inputs do not show.
    """

    rtol: float
    atol: float
    basis: str
    reach: float
    missed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Advice(Record):
    """The result of `ErrorReport.advise`.

    Attributes
    ----------
    product : str
        The product that contains the faults.
    rtol, atol : float, optional
        The tolerances to judge.
    judged : tuple of Judged
        Correct outputs, then those with a fault.
    recommended : Tolerance
    largest, least : float
        The largest and the least expected magnitude.
    """

    product: str
    rtol: float | None
    atol: float | None
    judged: tuple[Judged, ...]
    recommended: Tolerance
    largest: float
    least: float

    @property
    def elements(self) -> int:
        """Number of elements that were compared."""
        return self.judged[0].elements

    @property
    def rejected(self) -> tuple[Judged, ...]:
        """Right outputs that the tolerance rejects."""
        return tuple(x for x in self.judged if x.right and x.outside)

    @property
    def missed(self) -> tuple[Judged, ...]:
        """Faults that the tolerance accepts though the output differs."""
        return tuple(x for x in self.judged if not x.right and not x.hidden and x.passes)

    @property
    def good(self) -> bool | None:
        """True if the tolerance accepts right outputs and no other; None without a tolerance.

        It is False where no element has a finite exact result: nothing was compared.
        """
        return None if self.rtol is None else self.elements > 0 and not (self.rejected or self.missed)

    def text(self) -> str:
        """Write it as a table of fewer than 120 columns, and what follows from it in sentences."""
        return _views.view(self, "text")

    def json(self) -> str:
        """Write it as a JSON document."""
        return _views.view(self, "json")

    def __str__(self) -> str:
        return self.text()


def judge(
    name: str, meaning: str, output: Float64, expected: Float64, *, differing: int, right: bool, rtol: float | None,
    atol: float | None,
) -> Judged:  # fmt: skip
    """Compare one output with the expected values (rule 1); both without excluded elements."""
    apart = distance(output, expected)
    outside = below = None
    if rtol is not None and atol is not None:
        relative = rtol * np.abs(expected)
        outside = int((~(apart <= atol + relative)).sum())
        below = float(max(0.0, np.max(apart - relative, initial=0.0)))
    return Judged(
        name=name, meaning=meaning, right=right, elements=expected.size, differing=differing, outside=outside,
        largest=float(apart.max(initial=0.0)), below=below,
    )  # fmt: skip


def distance(output: Float64, expected: Float64) -> Float64:
    """|output - expected|, infinite where the output is NaN."""
    with np.errstate(all="ignore"):
        return np.nan_to_num(np.abs(output - expected), nan=np.inf, posinf=np.inf)


def recommend(
    expected: Float64, faults: dict[str, Float64], needs: Sequence[tuple[str, Float64]]
) -> tuple[Tolerance, dict[str, float]]:
    """Choose a tolerance (rules 3 to 5), and return it with the reach of every fault under it.

    `faults` are outputs of the faults that change something, by name; `needs` what must pass, by basis, the strictest
    for faults first.
    """
    apart = {name: distance(output, expected) for name, output in faults.items()}
    size = np.abs(expected)
    best: tuple[tuple[int, float], Tolerance, dict[str, float]] | None = None
    for basis, need in needs:
        tried = []
        for rtol in _RTOLS:
            atol = _up(float(np.max(need - rtol * size, initial=0.0)))
            if math.isfinite(atol):
                reaches = {name: reach(far, atol + rtol * size) for name, far in apart.items()}
                found = [x for x in reaches.values() if x > 1]
                score = len(found), min(found, default=0.0)
                missed = tuple(name for name, x in reaches.items() if x <= 1)
                made = Tolerance(rtol=rtol, atol=atol, basis=basis, reach=score[1], missed=missed)
                tried.append((score, made, reaches))
        here = max(tried, key=lambda x: x[0], default=None)
        if here is not None and (best is None or here[0][0] > best[0][0]):
            best = here
    if best is None:  # errors of right outputs are infinite
        none = Tolerance(rtol=math.inf, atol=math.inf, basis="measured", reach=0.0, missed=tuple(faults))
        return none, dict.fromkeys(faults, 0.0)
    return best[1], best[2]


def reach(apart: Float64, allowed: Float64) -> float:
    """Return the largest ratio of a distance to the one that is allowed."""
    with np.errstate(all="ignore"):
        return float(np.max(np.where(apart > 0, apart / allowed, 0.0), initial=0.0))


def _up(number: float) -> float:
    """Round up to two digits, as they are written."""
    if not math.isfinite(number):
        return number
    return float(Context(prec=2, rounding=ROUND_CEILING).create_decimal(repr(number)))
