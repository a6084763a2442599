"""WARPMMA_TRITON: the simulated device of a process that does not name one itself.

A target, and options of `device` behind it: `WARPMMA_TRITON=sm_90,hazards=warn,ptx_target=sm_80/sm_89`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from .._arguments import suggestion
from ..errors import OperandError, shown

VARIABLE = "WARPMMA_TRITON"


def _targets(value: str) -> str | tuple[str, ...]:
    """Read one target, or several with "/" between them."""
    return tuple(value.split("/")) if "/" in value else value


OPTIONS: Mapping[str, Callable[[str], Any]] = MappingProxyType({
    "ptx_target": _targets, "hazards": str, "contract": str, "engine": str, "threads": int, "resident": int,
    "limit": int, "seed": int, "cuda": str,
})  # fmt: skip


def described(text: str | None = None) -> tuple[str, dict[str, Any]]:
    """Read a target and options; by default the environment's.

    Raises
    ------
    OperandError
        An unknown option or an invalid value.

    Examples
    --------
    >>> described("sm_90,hazards=warn,seed=3")
    ('sm_90', {'hazards': 'warn', 'seed': 3})
    """
    written = os.environ.get(VARIABLE, "") if text is None else text
    target, *pairs = (part.strip() for part in written.split(","))
    options = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name not in OPTIONS:
            raise OperandError(
                f"{VARIABLE}={written}: {shown(name)} is not an option{suggestion(name, OPTIONS)}; there are "
                f"{', '.join(OPTIONS)}"
            )
        try:
            options[name] = OPTIONS[name](value)
        except ValueError:
            raise OperandError(f"{VARIABLE}={written}: {name} is {shown(value)}; expected an integer") from None
    return target, options
