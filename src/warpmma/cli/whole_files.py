"""Files that commands write, all of one or nothing: who reads one meanwhile has the old one or the new one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ..errors import OperandError, shown

__all__ = ["write_file"]


def write_file(path: str | Path, fill: Callable[[BinaryIO], object], expected: str = "") -> None:
    """Write a file.

    Parameters
    ----------
    path : str or Path
    fill : callable
        Writes what the file is to hold to a binary stream.
    expected : str
        What an error says besides.

    Raises
    ------
    OperandError
        It cannot be written.
    """
    new = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{Path(path).name[:100]}-", dir=Path(path).parent)
        new = Path(name)
        with os.fdopen(handle, "wb") as stream:
            fill(stream)
        new.chmod(0o666 & ~_umask())  # what an ordinary file has
        new.replace(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no name of a file"
        hint = f"; expected {expected}" if expected else ""
        raise OperandError(f"{shown(str(path), str)} cannot be written: {why}{hint}") from None
    finally:
        if new is not None:
            new.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
