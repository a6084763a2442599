"""Files that commands write: replaced as a whole, so that nobody reads half of one, and none is lost if it fails."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ..errors import WarpmmaError, printable
from .streams import write

__all__ = ["write_or_replace"]


def write_or_replace(text: str, path: str | None) -> None:
    """Print a text, or write it into a file; one that cannot be written is a `WarpmmaError`."""
    if path is None:
        write(text)
        return
    target = Path(path)
    try:
        if target.is_dir():
            raise IsADirectoryError(21, os.strerror(21))
        if target.exists() and not target.is_file():  # such as /dev/stdout
            target.write_text(f"{text}\n", encoding="utf-8")
            return
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"{text}\n")
            mask = os.umask(0)
            os.umask(mask)
            temporary.chmod(0o666 & ~mask)  # as `open` makes a file; mkstemp's are its owner's alone
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise WarpmmaError(f"{printable(path)} cannot be written: {why}") from None
