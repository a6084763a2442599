"""The engines of this installation, and the choice of one."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..._arguments import check_choice
from ..._tracebacks import warn_caller
from ...errors import UnsupportedError
from . import native

Engine = Literal["auto", "numpy", "native"]
Resolved = Literal["numpy", "native"]

HEAVY = 2**28
"""Multiply-adds for which NumPy takes seconds."""

_warned = False


class EngineWarning(UserWarning):
    """A heavy product is computed by NumPy, since the native engine was not built."""


def engines() -> dict[str, str]:
    """Name the engines of this installation, the fastest first, with descriptions.

    `matmul` has two more, which need an NVIDIA GPU: "cuda" and "hardware".

    Returns
    -------
    dict
        From "native" (where it was built) and "numpy" to a description.

    Examples
    --------
    >>> list(engines())[-1]
    'numpy'
    """
    found = {}
    if native.levels():
        found["native"] = f"C++, {native.levels()[0].name}"
    return {**found, "numpy": f"NumPy {np.__version__}"}


def resolve(engine: str) -> Resolved:
    """Return the engine to use; raise `OperandError` for an unknown name, `UnsupportedError` if it is not built."""
    check_choice("engine", engine, ("auto", "numpy", "native"))
    if engine == "native" and not native.levels():
        raise UnsupportedError(
            "the native engine is not built: warpmma was installed without a C++ compiler; use engine='auto' or 'numpy'"
        )
    return "native" if engine != "numpy" and native.levels() else "numpy"


def engine_text() -> str:
    """Name the engine that "auto" takes, and note a native one that was not built."""
    name, what = next(iter(engines().items()))
    return f"{name} ({what})" if native.levels() else f"{name} (the native engine was not built)"


def warn_of_numpy(multiply_adds: int) -> None:
    """Warn, once per process, where "auto" takes NumPy for a heavy product."""
    global _warned
    if _warned or multiply_adds < HEAVY or native.levels():
        return
    _warned = True
    warn_caller(
        f"{multiply_adds:,} multiply-adds in NumPy, since the native engine was not built: install again with a C++ "
        "compiler (WARPMMA_REQUIRE_NATIVE=1 makes a failed build an error); it is tens of times as fast",
        EngineWarning,
    )
