"""Files that commands write, all of one or nothing: who reads one meanwhile has the old one or the new one."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ...errors import OperandError, shown
from .streams import write


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
    new, target = None, Path(path)
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():  # such as /dev/stdout
            with target.open("wb") as stream:
                fill(stream)
            return
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}-", dir=target.parent)
        new = Path(name)
        with os.fdopen(handle, "wb") as stream:
            fill(stream)
        new.chmod(0o666 & ~_umask())  # what an ordinary file has
        new.replace(target)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no name of a file"
        hint = f"; expected {expected}" if expected else ""
        raise OperandError(f"{shown(str(path), str)} cannot be written: {why}{hint}") from None
    finally:
        if new is not None:
            new.unlink(missing_ok=True)


def write_or_replace(text: str, path: str | None) -> None:
    """Print a text, or write it into a file, in UTF-8 and with a line's end; `OperandError` if it cannot be written."""
    if path is None:
        write(text)
    else:
        write_file(path, lambda stream: stream.write(f"{text}\n".encode()))


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
