"""The special-function unit in the native engine: tables and sequences as parameters of the C++, and calls into it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .function_arrays import function_rows
from .native import find_level
from .sequences import ApproximateForm, OperandScaling
from .special_functions import SPECIAL_FUNCTIONS, SpecialFunction

try:
    from .. import _native
except ImportError:  # installed without a compiler
    _native = None  # type: ignore[assignment]

__all__ = ["run_function", "run_sequence", "runs_sequence"]

Code = npt.NDArray[np.uint32]


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
    """Whether the native engine has a sequence as a whole: those of f32."""
    return row.fmt.bits == 32 and not row.refinement and not row.special


def run_sequence(row: ApproximateForm, codes: list[Code], out: Code, level: str | None = None) -> None:
    """Compute a sequence that `runs_sequence`, element by element.

    Parameters
    ----------
    row : ApproximateForm
    codes : list of ndarray of uint32
        Of a division the dividend first.
    out : ndarray of uint32
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
    given.dividend, given.ftz = row.dividend, row.ftz
    return given


def _scaling(scaling: OperandScaling) -> Any:
    given = _native.Scaling()
    given.mask, given.first, given.last = scaling.where.mask, scaling.where.first, scaling.where.last
    given.before, given.after, given.number = scaling.before, _native.After[scaling.after], scaling.number
    return given
