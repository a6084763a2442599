"""Where a kernel in Python is: the line of its source that called."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..machine import Site

_OURS = str(Path(__file__).parents[1]) + os.sep


def caller(mnemonic: str) -> Site:
    """Return the line of the kernel that runs: that of the innermost frame outside of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return Site(frame.f_code.co_filename, frame.f_lineno, mnemonic)
