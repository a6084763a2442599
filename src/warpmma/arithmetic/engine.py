"""Which engines there are, and which one a caller gets."""

from __future__ import annotations

from typing import Literal

import numpy as np

from .._arguments import check_choice
from ..errors import UnsupportedError
from . import native

__all__ = ["Engine", "Resolved", "engines", "resolve"]

Engine = Literal["auto", "numpy", "native"]
Resolved = Literal["numpy", "native"]


def engines() -> dict[str, str]:
    """Name the engines of this installation, the fastest first, and say what each is.

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
    """Return the engine to use; raise `OperandError` if there is none of that name, `UnsupportedError` if not here."""
    check_choice("engine", engine, ("auto", "numpy", "native"))
    if engine == "native" and not native.levels():
        raise UnsupportedError(
            "the native engine is not built: warpmma was installed without a C++ compiler; use engine='auto' or 'numpy'"
        )
    return "native" if engine != "numpy" and native.levels() else "numpy"
