"""Advice on tolerances for one product: its faults are computed, held against a tolerance, and one is recommended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arguments import is_integer
from .._progress import Progressing, Watched
from ..errors import OperandError, shown
from ..products import prepare
from .faults import FAULTS, right_output, wrong_output
from .tolerances import Advice, Judged, judge, recommend

Float64 = npt.NDArray[np.float64]


def advise(
    operands: tuple[Any, Any, Any], options: Mapping[str, Any], name: str, *, expected: Float64,
    results: Mapping[str, Float64], bounds: Float64 | None, rtol: float | None, atol: float | None, progress: Watched,
) -> Advice:  # fmt: skip
    """Judge right and wrong outputs of a product.

    Parameters
    ----------
    operands, options
        What `matmul` takes.
    name : str
        Of this product among `results`.
    expected : ndarray of float64
        Exact results, rounded.
    results : mapping from str to ndarray of float64
        Right outputs.
    bounds : ndarray of float64, optional
        Of errors of all of them.
    rtol, atol : float, optional
    progress

    Raises
    ------
    OperandError
        A tolerance that is no number of at least 0, or one without the other.
    """
    rtol, atol = _checked(rtol, atol)
    product = prepare(*operands, **options)
    right = right_output(product).reshape(expected.shape)
    counts = np.isfinite(expected)
    true = expected[counts]
    judged = [
        judge(f"right: {each}", "all as it should be", output[counts], true, differing=0, right=True, rtol=rtol,
              atol=atol)
        for each, output in results.items()
    ]  # fmt: skip
    faulty: dict[str, Float64] = {}
    with Progressing(progress, "faults") as told:
        for done, fault in enumerate(FAULTS, 1):
            if (wrong := wrong_output(fault, product, right.reshape(product.flat))) is not None:
                output = wrong.reshape(expected.shape)
                differing = int((~((output == right) | (np.isnan(output) & np.isnan(right))))[counts].sum())
                judged.append(judge(fault.name, fault.meaning, output[counts], true, differing=differing, right=False,
                                    rtol=rtol, atol=atol))  # fmt: skip
                if differing:
                    faulty[fault.name] = output[counts]
            told(done, len(FAULTS))
    needs = [("measured", 2 * np.max([np.abs(output[counts] - true) for output in results.values()], axis=0))]
    if bounds is not None:
        needs.insert(0, ("bound", bounds[counts]))
    recommended, reaches = recommend(true, faulty, needs)
    size = np.abs(true)
    return Advice(
        product=name, rtol=rtol, atol=atol, recommended=recommended,
        judged=tuple(_reached(x, reaches) for x in judged),
        largest=float(size.max(initial=0.0)), least=float(size.min(initial=math.inf)) if size.size else 0.0,
    )  # fmt: skip


def _reached(judged: Judged, reaches: Mapping[str, float]) -> Judged:
    return replace(judged, reach=reaches[judged.name]) if judged.name in reaches else judged


def _checked(rtol: float | None, atol: float | None) -> tuple[float | None, float | None]:
    """Check a tolerance: two numbers, or none."""
    for name, x in (("rtol", rtol), ("atol", atol)):
        number = isinstance(x, float | np.floating) or is_integer(x)
        if x is not None and not (number and 0 <= x < math.inf):
            raise OperandError(f"{name} is {shown(x)}; expected a number of at least 0")
    if (rtol is None) != (atol is None):
        given, lacking = ("atol", "rtol") if rtol is None else ("rtol", "atol")
        raise OperandError(f"{given} is given without {lacking}; expected both, such as rtol=1e-3, atol=1e-5")
    return (None, None) if rtol is None or atol is None else (float(rtol), float(atol))
