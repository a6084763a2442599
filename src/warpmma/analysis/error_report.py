"""Records of the errors of whole products, as `error` measures them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _views
from .._arguments import suggestion
from .._arrays import as_array
from .._progress import Watched
from .._records import Record
from ..errors import OperandError, UnknownNameError, shown
from ..formats import FORMATS
from ..products import Choice, FloatFma
from ..scaling import Quantized
from .advising import advise as advising
from .explaining import explain
from .explanation import Explanation
from .tolerances import Advice

# What `explain` takes of what `matmul` does, with the dimensions of one matrix.
_MATRICES = {"indices": 3, "scale_a": 2, "scale_b": 2}
_PLAIN = ("target", "float32", "split_k", "promote_every", "epilogue")


def explain_one(
    operands: tuple[Any, Any, Any], options: Mapping[str, Any], choice: Choice, batch: tuple[int, ...], row: int,
    column: int, *, against: str | None = None,
) -> Explanation:  # fmt: skip
    """Explain an element of D, of one matrix of the batch; `operands` and `options` are those of `matmul`."""
    shape = choice.shape[:-2]
    a, b, c = (_matrix(x, shape, batch, 2) for x in operands)
    more = {name: _matrix(x, shape, batch, _MATRICES[name]) for name, x in options.items() if name in _MATRICES}
    more |= {name: options[name] for name in _PLAIN if name in options}
    named = None if isinstance(choice.instruction, FloatFma) else choice.instruction
    return explain(named, a, b, c, row=row, column=column, against=against, **more)


def _matrix(x: Any, shape: tuple[int, ...], batch: tuple[int, ...], dimensions: int) -> Any:
    """Take one matrix of a batch, or of what broadcasts to it."""
    if x is None:
        return None
    if isinstance(x, Quantized):
        scale = x.tensor_scale if x.tensor_scale is None else np.broadcast_to(x.tensor_scale, shape)[batch]
        return replace(
            x, elements=_matrix(x.elements, shape, batch, 2), scales=_matrix(x.scales, shape, batch, 2),
            tensor_scale=scale,
        )  # fmt: skip
    array = as_array(x, "operand")
    last = ((1,) * dimensions + array.shape)[-dimensions:]
    return np.broadcast_to(array, (*shape, *last))[batch]


BINS: tuple[Fraction, ...] = (Fraction(0), *(Fraction(2) ** i for i in range(-1, 25)))
"""Upper ends of the bins of a histogram, in ulps: 0, 1/2, 1, 2, 4, ..., 2^24."""


@dataclass(frozen=True, kw_only=True)
class ErrorPlace(Record):
    """One element of D, and its error; every number is exact.

    Attributes
    ----------
    index : tuple of int
        In D: of the batch, row, column.
    result : int
        Its code.
    value, exact : Fraction
        The result, and the exact result.
    ulp : Fraction
        The distance of neighbours in the result's format, where the exact result is.
    bound : Fraction, optional
        What the error cannot exceed: docs/specification/bounds.md.
    """

    index: tuple[int, ...]
    result: int
    value: Fraction
    exact: Fraction
    ulp: Fraction
    bound: Fraction | None = None

    @property
    def error(self) -> Fraction:
        """The result less the exact one."""
        return self.value - self.exact

    @property
    def ulps(self) -> Fraction:
        """Magnitude of the error, in ulps."""
        return abs(self.error) / self.ulp

    @property
    def relative(self) -> Fraction | None:
        """Magnitude of the error over that of the exact result; None where that is zero and the result is not."""
        return abs(self.error / self.exact) if self.exact else (None if self.error else Fraction(0))


@dataclass(frozen=True, kw_only=True, eq=False)
class ProductError(Record):
    """Errors of one product: of one way to compute it, on one target.

    Counts are of elements of D. Means and arrays are float64s, of errors that are exact: each is right to 15 digits.

    Attributes
    ----------
    name : str
        The target, or what the caller called it.
    choice : Choice
        How it was computed, or, if it was given, what its bounds are of.
    given : bool
        Whether it is an output that was made elsewhere.
    format : str
        Of the result.
    elements, compared : int
        How many there are, and of how many both the result and the exact result are finite: all below is of these.
    exact, rounded : int
        Results without an error; results that are the exact one, rounded (an error of at most half an ulp).
    largest : ErrorPlace, optional
        The largest error in ulps; None where nothing was compared.
    mean_ulps, mean_relative : float
    largest_relative : float
        Where the exact result is not zero.
    relative_at : tuple of int
        Where that is.
    zeros : int
        Results other than zero where the exact one is zero: they have no relative error.
    largest_absolute : float
    backward : float
        The largest error over the sum of the magnitudes of its addends, |A| |B| + |C|.
    bound_ulps, used : float, optional
        The largest bound of an error, in ulps; the largest part of its bound that an error took, at most 1, but of an
        output that was given.
    bins : tuple of int
        A histogram: how many errors are above the bin before and at most `BINS` ulps; and how many are larger.
    nan, infinite : int
        Results that are NaN, or infinite.
    overflowed : int
        Results that are infinite or NaN though the exact one is finite.
    undefined : int
        Exact results that are NaN or infinite, since an operand is.
    misplaced : int
        Those of them to which the result is not equal.
    result : ndarray
        D.
    ulps : ndarray of float64
        Magnitudes of all errors in ulps, in the shape of D; NaN without one.
    bounds : ndarray of float64
        What the magnitudes of errors cannot exceed; infinite where nothing is proved.
    """

    name: str
    choice: Choice
    given: bool = False
    format: str
    elements: int
    compared: int
    exact: int
    rounded: int
    largest: ErrorPlace | None
    mean_ulps: float
    mean_relative: float
    largest_relative: float
    relative_at: tuple[int, ...]
    zeros: int
    largest_absolute: float
    backward: float
    bound_ulps: float | None = None
    used: float | None = None
    bins: tuple[int, ...]
    nan: int
    infinite: int
    overflowed: int
    undefined: int
    misplaced: int
    result: npt.NDArray[Any] = field(repr=False)
    ulps: npt.NDArray[np.float64] = field(repr=False)
    bounds: npt.NDArray[np.float64] = field(repr=False)

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """D as float64, exactly."""
        fmt = FORMATS[self.format]
        return fmt.decode(fmt.codes(self.result)).astype(np.float64, copy=False)

    @property
    def histogram(self) -> tuple[tuple[Fraction | None, int], ...]:
        """Bins with their upper ends in ulps, of the last one None."""
        return tuple(zip((*BINS, None), self.bins, strict=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class ErrorReport(Record):
    """Errors of a product, one way or target beside the other.

    Attributes
    ----------
    products : tuple of ProductError
    operands : tuple
        A, B and C, as they were given.
    ways : mapping from str to mapping
        By name, what each product takes beside them: `target`, and what `matmul` takes.
    expected : mapping from str to ndarray of float64
        By name, the exact results, rounded to float64.
    """

    products: tuple[ProductError, ...]
    operands: tuple[Any, Any, Any] = field(repr=False)
    ways: Mapping[str, Mapping[str, Any]] = field(repr=False)
    expected: Mapping[str, npt.NDArray[np.float64]] = field(repr=False)

    @cached_property
    def by_name(self) -> Mapping[str, ProductError]:
        """Products by name."""
        return {product.name: product for product in self.products}

    def __getitem__(self, name: str) -> ProductError:
        """Return the product of a target, or of a name.

        Raises
        ------
        UnknownNameError
            No such product was measured.
        """
        if not isinstance(name, str) or name not in self.by_name:
            raise UnknownNameError(
                f"no product {shown(name)} was measured{suggestion(name, self.by_name)}; "
                f"there is {', '.join(self.by_name)}"
            )
        return self.by_name[name]

    def worst(self, name: str | None = None, *, against: str | None = None) -> Explanation:
        """Explain the element with the largest error in ulps, step by step.

        Parameters
        ----------
        name : str, optional
            Of the product; the first one by default.
        against : str, optional
            Another target, to be explained beside.

        Returns
        -------
        Explanation

        Raises
        ------
        OperandError, UnknownNameError
            No element was compared; a product that was not measured.
        """
        product = self.products[0] if name is None else self[name]
        if product.largest is None:
            raise OperandError(f"{product.name}: there is no element whose result and exact result are finite")
        *batch, row, column = product.largest.index
        return explain_one(
            self.operands, self.ways[product.name], product.choice, (*batch,), row, column, against=against
        )

    def advise(
        self, rtol: float | None = None, atol: float | None = None, *, name: str | None = None, progress: Watched = None
    ) -> Advice:
        """Report what a tolerance accepts, and recommend one.

        Outputs of kernels with a fault are computed from the same operands, bit for bit: one that wrote nothing, one
        whose lanes have each other's fragments, one that reads B in the other order, one that sums in f16, and others.

        Parameters
        ----------
        rtol, atol : float, optional
            A tolerance as `numpy.allclose` and `torch.testing.assert_close` take it.
        name : str, optional
            Of the product whose kernel has the faults; the first one by default. Right outputs are all of them that
            were not given.
        progress : bool or callable, optional
            As for `error`.

        Returns
        -------
        Advice

        Raises
        ------
        OperandError, UnknownNameError
            A tolerance that is not a number of at least 0, or one without the other; a product that was not measured.

        Examples
        --------
        >>> import warpmma as wm
        >>> tiny = np.full((16, 16), 1e-3, np.float16)
        >>> advice = wm.error(tiny, tiny, target="sm_90").advise(rtol=1e-3, atol=1e-3)
        >>> [fault.name for fault in advice.missed][:2]
        ['all zero', 'last row zero']
        """
        product = self.products[0] if name is None else self[name]
        if product.given:
            raise OperandError(f"{product.name} was given; faults are of what was computed: {self.products[0].name}")
        expected = self.expected[product.name]
        alike = [
            x for x in self.products if not x.given and np.array_equal(self.expected[x.name], expected, equal_nan=True)
        ]
        bounds = np.max([x.bounds for x in alike], axis=0)
        return advising(
            self.operands, self.ways[product.name], product.name, expected=expected,
            results={x.name: x.values for x in alike}, bounds=bounds, rtol=rtol, atol=atol, progress=progress,
        )  # fmt: skip

    def text(self) -> str:
        """Write tables of fewer than 120 columns."""
        return _views.view(self, "text")

    def json(self) -> str:
        """Write a JSON document: all but the arrays."""
        return _views.view(self, "json")

    def csv(self) -> str:
        """Write the histograms as comma-separated values: a row for each bin, a column for each product."""
        return _views.view(self, "csv")

    def svg(self, *, theme: str = "auto") -> str:
        """Draw which part of the elements has at most which error, a line for each product.

        Parameters
        ----------
        theme : {"auto", "light", "dark"}
            "auto" is the reader's.
        """
        return _views.view(self, "svg", theme=theme)

    def __str__(self) -> str:
        return self.text()
