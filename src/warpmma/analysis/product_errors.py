"""Errors of whole products: every element of D against the exact result.

1. The exact result is that of `exact_products`. An error is the result minus the exact one, an exact number in fixed
   point; only reported figures are rounded, to float64.
2. An ulp is the distance of two neighbours in the result's format at the exact result: 2^(e - fraction bits),
   e the exponent of its leading bit, at least that of the least normal number; of integers it is 1.
3. Errors are of elements whose result and exact result are both finite. Others are counted.
4. The largest error is the largest exact number: errors that are equal in float64 are compared as rationals. Of equal
   ones it is the first.
5. Bounds are those of `product_bounds`: float64s, not below the proved bound; infinite where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from .._arguments import members
from .._arrays import Array, as_array
from .._progress import Progressing, Watched
from ..errors import OperandError, shown
from ..formats import FloatFormat, Format
from ..products import (
    Choice,
    Given,
    Multiplicand,
    Options,
    Product,
    ProductOptions,
    choice_of,
    computed,
    is_dask,
    prepared,
)
from .error_report import BINS, ErrorPlace, ErrorReport, ProductError
from .exact_products import ExactOperands, ExactTile, exact, exact_tiles
from .fixed_point import NOTHING
from .product_bounds import bounds

Float64 = npt.NDArray[np.float64]

_NOT_HERE = ("out", "progress")
_OPERANDS = ("indices", "scale_a", "scale_b")


def error(
    a: Multiplicand, b: Multiplicand, c: npt.ArrayLike | None = None, *, target: str | None = None,
    targets: Sequence[str] | None = None, ways: Mapping[str, Mapping[str, Any]] | None = None,
    outputs: Mapping[str, npt.ArrayLike] | None = None, bound: bool = True, **more: Unpack[Options],
) -> ErrorReport:  # fmt: skip
    """Measure the error of every element of a product, as targets or ways to compute it make it.

    Parameters
    ----------
    a, b, c
        As for `matmul`, except Dask's arrays.
    target : str, optional
    targets : sequence of str, optional
        Several, beside each other.
    ways : mapping from str to mapping, optional
        Several ways to compute the product, by names of your own: for each, the options that differ from `target` and
        `more`.
    outputs : mapping from str to array_like, optional
        What else is measured, such as D of a kernel that ran on a GPU: arrays of D's shape and type, by names of your
        own. They are held against the bounds of the first target or way.
    bound : bool
        Whether every error is held against the bound that is proved for it, which takes as long as all else together.
    **more
        What else `matmul` takes, except `out`; `progress`, a bool or a function, is called after each part of the
        work.

    Returns
    -------
    ErrorReport

    Raises
    ------
    WarpmmaError
        As `matmul` does; no target, or both `targets` and `ways`; outputs of another shape or type.

    Notes
    -----
    The time is that of the products, of an exact one, and of bounds: 1024 x 1024 x 1024 of f16 takes some seconds, of
    numbers that spread over all exponents of bf16 half a minute.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A, B = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 512), (512, 32)))
    >>> report = error(A, B, targets=["sm_80", "sm_90"])
    >>> [round(product.mean_ulps) for product in report.products]
    [30, 23]
    >>> report["sm_90"].largest.index
    (29, 15)
    """
    if not isinstance(bound, bool):
        raise OperandError(f"bound is {shown(bound)}; expected True or False")
    progress: Watched = more.pop("progress", None)
    if any(is_dask(x) for x in (a, b, c)):
        raise OperandError("error takes arrays in memory; call compute() on a dask array first")
    measured = [
        _Measured.of(name, a, b, c, options) for name, options in _ways(target, targets, ways, dict(more)).items()
    ]
    measured += _given(outputs, measured[0], [each.name for each in measured])
    groups: list[list[_Measured]] = []
    for each in measured:
        for group in groups:
            if group[0].operands.same(each.operands):
                group.append(each)
                break
        else:
            groups.append([each])
    total = len(measured) + sum(len(exact_tiles(group[0].operands)) for group in groups)
    with Progressing(progress, "errors") as told:
        told.begin(total)
        for done, each in enumerate(measured, 1):
            each.compute()
            told(done, total)
        tiles = ((group, tile) for group in groups for tile in exact(group[0].operands))
        for done, (group, tile) in enumerate(tiles, len(measured) + 1):
            for each in group:
                each.compare(tile, bound=bound)
            told(done, total)
    for each in measured:
        for array in (each.ulps, each.expected, each.bounds):
            array.setflags(write=False)
    return ErrorReport(
        products=tuple(each.found() for each in measured), operands=(a, b, c),
        ways={each.name: each.options for each in measured},
        expected={each.name: each.expected.reshape(each.product.shape) for each in measured},
    )  # fmt: skip


def _given(outputs: object, first: _Measured, names: list[str]) -> list[_Measured]:
    """Take outputs that were computed elsewhere."""
    if outputs is None:
        return []
    if not isinstance(outputs, Mapping) or not all(isinstance(name, str) for name in outputs):
        raise OperandError(f"outputs is {shown(outputs)}; expected a mapping from names to arrays of D's shape")
    product, fmt, found = first.product, first.product.format, []
    for name, x in outputs.items():
        array = as_array(x, f"outputs[{shown(name)}]")
        if name in names:
            raise OperandError(f"outputs: {shown(name)} is the name of a product already; choose another")
        if array.shape != product.shape or array.dtype not in (fmt.dtype, fmt.code_dtype):
            raise OperandError(
                f"outputs[{shown(name)}] is {array.dtype} {array.shape}; expected {fmt.dtype} {product.shape}"
                + (", or epilogue= its type" if array.dtype.itemsize < fmt.dtype.itemsize else "")
            )
        found.append(replace(first, name=name, d=fmt.array(fmt.codes(array)), given=True))
    return found


def _ways(
    target: str | None, targets: Sequence[str] | None, ways: Mapping[str, Mapping[str, Any]] | None,
    more: dict[str, Any],
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """Return the options of all measured products, by name."""
    if (target is not None) + (targets is not None) > 1 or (targets is not None and ways is not None):
        raise OperandError("expected one of target and targets, or target and ways")
    if targets is not None:
        several = members(targets, 1 << 10)
        if not several or not all(isinstance(x, str) for x in several) or len(set(several)) < len(several):
            raise OperandError(
                f"targets is {shown(targets)}; expected names of targets such as ['sm_80', 'sm_90'], each once"
            )
        found = {name: {"target": name, **more} for name in several}
    elif ways is not None:
        if (
            not isinstance(ways, Mapping)
            or not ways
            or not all(isinstance(name, str) and isinstance(way, Mapping) for name, way in ways.items())
        ):
            raise OperandError(f"ways is {shown(ways)}; expected a mapping from names to the options that differ")
        shared = more if target is None else {"target": target, **more}
        found = {name: {**shared, **dict(way)} for name, way in ways.items()}
    else:
        found = {target if isinstance(target, str) else "D": {"target": target, **more}}
    for name, options in found.items():
        if options.get("target") is None:
            raise OperandError(f"{name}: no target; expected one such as target='sm_90'")
        strangers = [x for x in options if x not in Options.__annotations__ and x != "target"]
        if strangers or any(x in options for x in _NOT_HERE):
            bad = (strangers or [x for x in _NOT_HERE if x in options])[0]
            raise OperandError(f"{name}: error does not take {shown(bad)}; it takes the arguments of matmul but out")
    return found


@dataclass(eq=False)
class _Measured:
    """One product, with its measurements so far."""

    name: str
    options: dict[str, Any]
    product: Product
    operands: ExactOperands
    choice: Choice
    plain: ProductOptions
    d: Array = field(default_factory=lambda: np.empty(0))
    given: bool = False
    values: Float64 = field(default_factory=lambda: np.empty(0))
    ulps: Float64 = field(default_factory=lambda: np.empty(0))
    relative: Float64 = field(default_factory=lambda: np.empty(0))
    expected: Float64 = field(default_factory=lambda: np.empty(0))
    bounds: Float64 = field(default_factory=lambda: np.empty(0))
    largest: ErrorPlace | None = None
    counts: dict[str, int] = field(default_factory=dict)
    largest_absolute: float = 0.0
    backward: float = 0.0
    bound_ulps: float | None = None
    used: float | None = None

    @classmethod
    def of(cls, name: str, a: Any, b: Any, c: Any, options: dict[str, Any]) -> _Measured:
        beside = {x: y for x, y in options.items() if x not in _OPERANDS}
        given, plain = Given.of(a, b, c, *(options.get(x) for x in _OPERANDS)), ProductOptions(**beside)
        product = prepared(given, plain)
        choice = choice_of(product.chain, plain, product.shape)
        return cls(name, options | {"float32": choice.float32}, product, ExactOperands.of(product), choice, plain)

    def compute(self) -> None:
        """Compute D."""
        fmt, flat = self.product.format, self.product.flat
        if not self.given:
            self.d = computed(self.product, self.plain)
        self.values = fmt.decode(fmt.codes(self.d)).astype(np.float64, copy=False).reshape(flat)
        self.ulps, self.relative, self.expected, self.bounds = (np.full(flat, np.nan) for _ in range(4))
        self.counts = dict.fromkeys(
            ("compared", "exact", "rounded", "zeros", "overflowed", "undefined", "misplaced"), 0
        )

    def compare(self, tile: ExactTile, *, bound: bool) -> None:
        """Measure the errors of a tile."""
        here = tile.matrix, tile.rows
        values = self.values[here]
        finite = np.isfinite(values)
        both = finite & tile.finite
        errors = tile.total.plus(np.where(both, values, 0.0), -1)
        size, ulp = errors.to_odd(), _ulp(self.product.format, tile)
        ulps = size.over(ulp)
        nonzero = tile.leading > NOTHING
        with np.errstate(all="ignore"):
            relative = np.where(nonzero, size.over(tile.leading) / tile.total.to_odd().over(tile.leading), np.nan)
        self.ulps[here] = np.where(both, ulps, np.nan)
        self.relative[here] = np.where(both, relative, np.nan)
        self.expected[here] = tile.expected
        absolute = np.where(both, size.over(np.zeros_like(ulp)), 0.0)
        with np.errstate(all="ignore"):
            backward = np.where(both & (tile.magnitude > 0), absolute / tile.magnitude, 0.0)
        self.largest_absolute = max(self.largest_absolute, float(absolute.max(initial=0)))
        self.backward = max(self.backward, float(backward.max(initial=0)))
        self.bounds[here] = bounds(self.product, *here) if bound else np.inf
        self._bound(self.bounds[here], absolute, both, ulp)
        off = both & (ulps > 0)
        found = {
            "compared": both, "exact": both & ~off, "rounded": both & (ulps <= 0.5), "zeros": off & ~nonzero,
            "overflowed": tile.finite & ~finite, "undefined": ~tile.finite,
            "misplaced": ~tile.finite & ~((values == tile.special) | (np.isnan(values) & np.isnan(tile.special))),
        }  # fmt: skip
        for name, which in found.items():
            self.counts[name] += int(which.sum())
        self._extreme(tile, errors, np.where(both, ulps, -1.0), ulp)

    def _bound(self, bound: Float64, absolute: Float64, both: npt.NDArray[np.bool_], ulp: Array) -> None:
        """Rule 5."""
        known = both & np.isfinite(bound)
        if known.any():
            with np.errstate(all="ignore"):
                used = np.where(absolute[known] > 0, absolute[known] / bound[known], 0.0)
                in_ulps = np.ldexp(bound[known], np.clip(-ulp[known], -4096, 4096).astype(np.int32))
            self.used = max(self.used or 0.0, float(used.max()))
            self.bound_ulps = max(self.bound_ulps or 0.0, float(in_ulps.max()))

    def _extreme(self, tile: ExactTile, errors: Any, ulps: Float64, ulp: Array) -> None:
        """Rule 4."""
        top = float(ulps.max(initial=-1))
        if top < 0:
            return
        for row, column in np.argwhere(ulps >= top * (1 - 2.0**-50))[:_CANDIDATES].tolist():
            code = int(
                self.product.format.codes(self.d).reshape(self.product.flat)[tile.matrix, tile.rows][row, column]
            )
            exact_value = tile.total[row, column]
            batch = map(int, np.unravel_index(tile.matrix, self.product.shape[:-2]))
            bound = float(self.bounds[tile.matrix, tile.rows][row, column])
            place = ErrorPlace(
                index=(*batch, tile.rows.start + row, column), result=code,
                value=exact_value - errors[row, column], exact=exact_value, ulp=Fraction(2) ** int(ulp[row, column]),
                bound=Fraction(bound) if np.isfinite(bound) else None,
            )  # fmt: skip
            if self.largest is None or place.ulps > self.largest.ulps:
                self.largest = place

    def found(self) -> ProductError:
        """Put together what was measured."""
        compared = self.ulps[~np.isnan(self.ulps)]
        edges = np.array([float(x) for x in BINS])
        bins = np.bincount(np.searchsorted(edges, compared, side="left"), minlength=len(BINS) + 1)
        known = ~np.isnan(self.relative)
        at = int(np.nanargmax(self.relative)) if known.any() else 0
        shape = self.product.shape
        return ProductError(
            name=self.name, choice=self.choice, given=self.given, format=self.product.format.name,
            elements=self.values.size, **self.counts, largest=self.largest, bins=tuple(map(int, bins)),
            mean_ulps=float(compared.mean()) if compared.size else 0.0,
            mean_relative=float(self.relative[known].mean()) if known.any() else 0.0,
            largest_relative=float(self.relative.reshape(-1)[at]) if known.any() else 0.0,
            relative_at=tuple(map(int, np.unravel_index(at, shape))) if known.any() else (),
            largest_absolute=self.largest_absolute, backward=self.backward,
            bound_ulps=self.bound_ulps, used=self.used, bounds=self.bounds.reshape(shape),
            nan=int(np.isnan(self.values).sum()), infinite=int(np.isinf(self.values).sum()),
            result=self.d, ulps=self.ulps.reshape(shape),
        )  # fmt: skip


_CANDIDATES = 1 << 10


def _ulp(fmt: Format, tile: ExactTile) -> npt.NDArray[np.int64]:
    """Exponents of ulps (rule 2)."""
    if isinstance(fmt, FloatFormat):
        return np.maximum(tile.leading, fmt.emin) - fmt.fraction_bits
    return np.zeros_like(tile.leading)
