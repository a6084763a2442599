"""Functions of the special-function unit on arrays, by either engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..._arrays import Array, broadcast, frozen
from ..._progress import for_each
from ...errors import OperandError
from ...formats import floating
from ..arrays import function_on_arrays, function_rows
from ..exact import SPECIAL_FUNCTIONS, SpecialFunction, find_function
from ..recipes import ApproximateForm, CodeRange, FusedStep
from .engine import Engine, resolve
from .native import _native, find_level

Code = npt.NDArray[np.uint32]
Codes = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]


def run_function(function: SpecialFunction, codes: Code, out: Code, level: str | None = None) -> None:
    """Compute a function of f32 or of upper words of f64, into `out`: arrays of one dimension, contiguous and aligned.

    `level` is the name of a build, for tests; the fastest by default.
    """
    _native.execute_function(_plan(function), find_level(level).number, codes, None, out)


def runs_sequence(row: ApproximateForm) -> bool:
    """Return whether the native engine has a sequence: it has those of f32 and f64."""
    return row.fmt.bits >= 32


def run_sequence(row: ApproximateForm, codes: list[Codes], out: Codes, level: str | None = None) -> None:
    """Compute a sequence that `runs_sequence`, into `out` as `run_function`; of a division the dividend comes first."""
    *dividend, operand = codes
    _native.execute_function(_plan(row), find_level(level).number, operand, dividend[0] if dividend else None, out)


@cache
def _plan(computed: SpecialFunction | ApproximateForm) -> Any:
    given = _parameters(computed) if isinstance(computed, SpecialFunction) else _sequence_parameters(computed)
    return _native.FunctionPlan(given)


def _parameters(function: SpecialFunction) -> Any:
    tables, given = function_rows(function.law), _native.FunctionParameters()
    given.law, given.upper = _native.Law[function.law], function.fmt == "f64"
    given.bits, given.rows = tables.bits, tables.rows.ravel().tolist()
    given.first, given.drop = tables.first.tolist(), tables.drop.tolist()
    return given


def _sequence_parameters(row: ApproximateForm) -> Any:
    given = _parameters(SPECIAL_FUNCTIONS[row.function])
    given.factor = 0 if row.factor is None else float(row.fmt.decode(row.factor))
    given.scalings = [
        _ranged(_native.Scaling(), x.where, before=x.before, after=_native.After[x.after], number=x.number)
        for x in row.scalings
    ]
    given.dividend, given.ftz, given.wide = row.dividend, row.ftz, row.fmt.bits == 64
    given.numbers, given.steps = _refinement(row.refinement)
    given.special = [_ranged(_native.Kept(), x.where, keep=x.keep, put=x.put) for x in row.special]
    return given


def _refinement(steps: tuple[FusedStep, ...]) -> tuple[list[float], list[Any]]:
    """Return numbers, and steps with positions in place of names: the operand, the result, numbers, earlier steps."""
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


def _ranged(given: Any, where: CodeRange, **fields: Any) -> Any:
    """Fill a record of the C++ with a range of codes and with fields."""
    for name, value in {**vars(where), **fields}.items():
        setattr(given, name, value)
    return given


_PART = 1 << 18  # codes that one thread takes at a time, and after which it can be interrupted


def special_function(name: str, codes: Array, *, engine: Engine = "auto", threads: int | None = None) -> Array:
    """Compute a function of the special-function unit, element by element.

    Parameters
    ----------
    name : str
        "rcp", "rsqrt", "sqrt", "ex2", "lg2", "tanh"; "sin" and "cos", of turns; "ex2.f16", "ex2.bf16", "tanh.f16",
        "tanh.bf16"; "rcp.f64" and "rsqrt.f64", of upper words.
    codes : ndarray of uint32, or uint16 of 16-bit functions
    engine : {"auto", "numpy", "native"}
    threads : int, optional
        One by default.

    Returns
    -------
    ndarray
        As `codes`. The bits do not depend on the engine.

    Raises
    ------
    OperandError
        There is no such function or engine; another dtype, more than memory can hold, no threads.
    UnsupportedError
        The native engine is not built.

    Examples
    --------
    >>> special_function("ex2", np.array([0, 0x3F800000, 0xBF800000], np.uint32)).view(np.float32)
    array([1. , 2. , 0.5], dtype=float32)
    """
    function, engine = find_function(name), resolve(engine)
    given = check_codes(name, np.dtype(f"uint{function.bits}"), [codes])

    def compute(codes: Array, out: Array) -> None:
        if function.bits == 16:
            np.take(_results16(name), codes, out=out)
        elif engine == "native":
            run_function(function, codes, out)
        else:
            out[...] = function_on_arrays(function, codes)

    return in_parts(compute, given, threads)


def check_codes(who: str, dtype: np.dtype[Any], codes: Sequence[Array]) -> tuple[Array, ...]:
    """Return arrays of codes in one shape, or raise `OperandError`."""
    for x in codes:
        if type(x) not in (np.ndarray, dtype.type) or x.dtype != dtype:
            came = x.dtype if type(x) is np.ndarray else type(x).__name__
            raise OperandError(f"{who}: operands are arrays of {dtype}; got {came}")
    return broadcast(who, codes)


def in_parts(compute: Callable[..., None], codes: Sequence[Array], threads: int | None) -> Array:
    """Compute an array of codes part by part, on one thread or several, from arrays of one shape and dtype.

    `compute` is given a part of each of `codes` and of the result, which it writes: of one dimension, contiguous and
    aligned.
    """
    flat = [np.require(x, requirements=["C_CONTIGUOUS", "ALIGNED"]).reshape(-1) for x in codes]
    result = np.empty_like(flat[0])
    if threads is None and len(result) <= _PART:
        compute(*flat, result)
        return result.reshape(codes[0].shape)
    parts = [slice(first, first + _PART) for first in range(0, len(result), _PART)]
    for_each(lambda part: compute(*(x[part] for x in flat), result[part]), parts, threads)
    return result.reshape(codes[0].shape)


@cache
def _results16(name: str) -> npt.NDArray[np.uint16]:
    """Results of all 65,536 codes of a 16-bit function (rule 10)."""
    function = SPECIAL_FUNCTIONS[name]
    fmt, wide = floating(function.fmt), floating("f32")
    operands = wide.encode(fmt.decode(np.arange(1 << 16, dtype=np.uint16)))
    values = wide.decode(function_on_arrays(SPECIAL_FUNCTIONS[function.law], operands))
    sign, infinity = np.where(np.signbit(values), fmt.sign_bit, 0), cast(int, fmt.inf_code)
    cut = np.where(np.abs(values) < 2.0 ** (fmt.emax + 1), fmt.encode(values, "rz"), sign | infinity)
    return frozen(np.where(np.isnan(values), cast(int, fmt.nan_code), cut).astype(np.uint16))
