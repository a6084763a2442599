"""Functions of the special-function unit on arrays, by either engine."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from .._arrays import frozen
from ..errors import OperandError
from ..formats import floating
from .engine import Engine, resolve
from .function_arrays import function_on_arrays
from .special_functions import SPECIAL_FUNCTIONS, find_function

__all__ = ["special_function"]

Array = npt.NDArray[Any]


def special_function(name: str, codes: Array, *, engine: Engine = "auto") -> Array:
    """Compute a function of the special-function unit, element by element.

    Parameters
    ----------
    name : str
        "rcp", "rsqrt", "sqrt", "ex2", "lg2", "tanh"; "sin" and "cos", of turns; "ex2.f16", "ex2.bf16", "tanh.f16",
        "tanh.bf16"; "rcp.f64" and "rsqrt.f64", of upper words.
    codes : ndarray of uint32, or uint16 of 16-bit functions
    engine : {"auto", "numpy", "native"}

    Returns
    -------
    ndarray
        As `codes`. The bits do not depend on the engine.

    Raises
    ------
    OperandError
        There is no such function or engine; another dtype.
    UnsupportedError
        The native engine is not built.

    Examples
    --------
    >>> special_function("ex2", np.array([0, 0x3F800000, 0xBF800000], np.uint32)).view(np.float32)
    array([1. , 2. , 0.5], dtype=float32)
    """
    function, engine = find_function(name), resolve(engine)
    expected = np.dtype(f"uint{function.bits}")
    if type(codes) not in (np.ndarray, expected.type) or codes.dtype != expected:
        came = codes.dtype if isinstance(codes, np.ndarray) else type(codes).__name__
        raise OperandError(f"{name}: codes are an array of {expected}; got {came}")
    if function.bits == 16:
        return _results16(name)[codes]
    return function_on_arrays(function, codes)


@cache
def _results16(name: str) -> npt.NDArray[np.uint16]:
    """Results of all 65,536 codes of a 16-bit function (rule 10)."""
    function = SPECIAL_FUNCTIONS[name]
    fmt, wide = floating(function.fmt), floating("f32")
    operands = wide.encode(fmt.decode(np.arange(1 << 16, dtype=np.uint16)))
    values = wide.decode(function_on_arrays(SPECIAL_FUNCTIONS[function.law], operands))
    sign, infinity = np.where(np.signbit(values), fmt.sign_bit, 0), cast(int, fmt.inf_code)
    cut = np.where(np.abs(values) < 2.0 ** (fmt.emax + 1), fmt.encode(values, "rz"), sign | infinity)
    return frozen(np.where(np.isnan(values), fmt.nan_code, cut).astype(np.uint16))
