"""Outcomes of texts: each is read, checked and launched, up to a limit."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpmma import Device
from warpmma.errors import LimitError, PtxError, WarpmmaError
from warpmma.machine import Limit
from warpmma.ptx import Function, load
from warpmma.ptx.text.syntax import Variable

PLACE = re.compile(r"<ptx>:[1-9]\d*:[1-9]\d*\b")
"""A line and a column of a text."""

LIMIT = 20_000
"""Instructions of warps."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a text.

    Attributes
    ----------
    kind : str
        "ran", "limit", "refused", or "bad".
    text : str
        The error.
    """

    kind: str
    text: str = ""


def _argument(one: object, device: Device) -> Any:
    if not isinstance(one, Variable):
        return 1
    if one.dimensions is not None:
        return bytes(min(one.size, 1 << 16))
    if one.type.startswith("f"):
        return 1.0
    return device.array(np.zeros(1024, np.uint32)) if one.size == 8 else 1


def _launched(text: str, grid: int) -> None:
    module = load(text.encode(errors="surrogatepass"))
    module.check()
    for name in module.source.functions:
        _ = module.source.functions[name]
    for name in module:
        device = Device("sm_80")
        function: Function = module[name].function
        arguments = [_argument(one, device) for one in function.parameters]
        module[name].launch(device, grid, 32, arguments, limit=Limit(instructions=LIMIT, seconds=20))


def outcome(text: str, grid: int = 1) -> Outcome:
    """Return the outcome of a text: anything but success, a limit, or an error with line and column is bad."""
    try:
        _launched(text, grid)
    except PtxError as error:
        placed = error.line >= 1 and error.column >= 1 and len(str(error)) < 4000
        return Outcome("refused" if placed else "bad", str(error)[:4000])
    except LimitError as error:
        return Outcome("limit", str(error))
    except WarpmmaError as error:
        named = PLACE.search(str(error)) and len(str(error)) < 4000
        return Outcome("refused" if named else "bad", f"{type(error).__name__}: {error}"[:4000])
    except BaseException as error:  # any exception counts
        frames = "".join(traceback.format_tb(error.__traceback__)[-3:])
        return Outcome("bad", f"{type(error).__name__}: {error}\n{frames}"[:4000])
    return Outcome("ran")
