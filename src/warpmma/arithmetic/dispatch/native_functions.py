"""The special-function unit in the native engine: tables and sequences as parameters of the C++, and calls into it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import function_rows
from ..exact import SPECIAL_FUNCTIONS, SpecialFunction
from ..recipes import ApproximateForm, CodeRange, FusedStep, KeptBits, OperandScaling
from .native import find_level

try:
    from ... import _native
except ImportError:  # installed without a compiler
    _native = None  # type: ignore[assignment]

Code = npt.NDArray[np.uint32]
Codes = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]


def run_function(function: SpecialFunction, codes: Code, out: Code, level: str | None = None) -> None:
    """Compute a function of f32 or of upper words of f64, element by element.

    Parameters
    ----------
    function : SpecialFunction
    codes, out : ndarray of uint32
        Of one dimension, contiguous and aligned; `out` is written.
    level : str, optional
        Name of a build, for tests; otherwise the fastest.
    """
    _native.execute_function(_plan(function), find_level(level).number, codes, None, out)


def runs_sequence(row: ApproximateForm) -> bool:
    """Whether the native engine has a sequence: those of f32 and f64."""
    return row.fmt.bits >= 32


def run_sequence(row: ApproximateForm, codes: list[Codes], out: Codes, level: str | None = None) -> None:
    """Compute a sequence that `runs_sequence`, element by element.

    Parameters
    ----------
    row : ApproximateForm
    codes : list of ndarray of uint32 or uint64
        Of a division the dividend first.
    out : ndarray
    level : str, optional
        As for `run_function`.
    """
    *dividend, operand = codes
    _native.execute_function(
        _sequence_plan(row), find_level(level).number, operand, dividend[0] if dividend else None, out
    )


@cache
def _plan(function: SpecialFunction) -> Any:
    return _native.FunctionPlan(_parameters(function))


@cache
def _sequence_plan(row: ApproximateForm) -> Any:
    return _native.FunctionPlan(_sequence_parameters(row))


def _parameters(function: SpecialFunction) -> Any:
    tables, given = function_rows(function.law), _native.FunctionParameters()
    given.law, given.upper = _native.Law[function.law], function.fmt == "f64"
    given.bits, given.rows = tables.bits, tables.rows.ravel().tolist()
    given.first, given.drop = tables.first.tolist(), tables.drop.tolist()
    return given


def _sequence_parameters(row: ApproximateForm) -> Any:
    given = _parameters(SPECIAL_FUNCTIONS[row.function])
    given.factor = 0 if row.factor is None else float(row.fmt.decode(row.factor))
    given.scalings = [_scaling(scaling) for scaling in row.scalings]
    given.dividend, given.ftz, given.wide = row.dividend, row.ftz, row.fmt.bits == 64
    given.numbers, given.steps = _refinement(row.refinement)
    given.special = [_kept(special) for special in row.special]
    return given


def _refinement(steps: tuple[FusedStep, ...]) -> tuple[list[float], list[Any]]:
    """Return numbers, and steps in which places stand for names: the operand, the result, numbers, earlier steps."""
    terms = [(step.a, step.b, -0.0 if step.c is None else step.c) for step in steps]  # a product is that plus -0
    numbers = [x for of_one in terms for x in of_one if isinstance(x, float)]
    unused, names = iter(range(2, 2 + len(numbers))), {"x": 0, "y": 1}
    found: list[Any] = []
    for step, of_one in zip(steps, terms, strict=True):
        given = _native.Step()
        places = [next(unused) if isinstance(x, float) else names[x.removeprefix("-")] for x in of_one]
        given.a, given.b, given.c = places
        given.negate = isinstance(step.b, str) and step.b.startswith("-")
        names[step.to] = 2 + len(numbers) + len(found)
        found.append(given)
    return numbers, found


def _scaling(scaling: OperandScaling) -> Any:
    given = _ranged(_native.Scaling(), scaling.where)
    given.before, given.after, given.number = scaling.before, _native.After[scaling.after], scaling.number
    return given


def _kept(special: KeptBits) -> Any:
    given = _ranged(_native.Kept(), special.where)
    given.keep, given.put = special.keep, special.put
    return given


def _ranged(given: Any, where: CodeRange) -> Any:
    given.mask, given.first, given.last = where.mask, where.first, where.last
    return given
