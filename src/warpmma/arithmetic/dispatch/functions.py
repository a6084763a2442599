"""Functions of the special-function unit on arrays, by either engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..._arrays import Array, broadcast, frozen
from ..._tasks import for_each
from ...errors import OperandError
from ...formats import floating
from ..arrays import function_on_arrays
from ..exact import SPECIAL_FUNCTIONS, find_function
from .engine import Engine, resolve
from .native_functions import run_function

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
    """Compute an array of codes part by part, on one thread or several.

    Parameters
    ----------
    compute : callable
        Is given a part of each of `codes` and of the result, which it writes: of one dimension, contiguous and aligned.
    codes : sequence of ndarray
        Of one shape and dtype.
    threads : int or None

    Returns
    -------
    ndarray
        Of that shape and dtype.
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
