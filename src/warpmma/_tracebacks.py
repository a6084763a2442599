"""Tracebacks and warnings that point at the user's line: the innermost one outside the package."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from types import TracebackType

_OURS = str(Path(__file__).parent) + os.sep


def end_outside(error: BaseException, *others: str) -> None:
    """Cut off the frames of this package that an exception's traceback ends with, unless all are the package's.

    The message is for the caller, who does not need frames inside the package. Folders in `others`, whose frames lie in
    between, count as the package's.
    """
    last: TracebackType | None = None
    step = error.__traceback__
    while step is not None:
        if not step.tb_frame.f_code.co_filename.startswith((_OURS, *others)):
            last = step
        step = step.tb_next
    if last is not None:
        last.tb_next = None


def end_at_caller(error: BaseException, *others: str) -> None:
    """Cut off the frames of this package that an exception's traceback ends with; all, where all are the package's.

    Raised again, it then ends at the line of the caller, or where a function of the caller's failed.
    """
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename.startswith((_OURS, *others)):
        step = step.tb_next
    if step is None:
        error.__traceback__ = None
    else:
        end_outside(error, *others)


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line that is not the package's."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
