"""What hypothesis keeps of modules between runs, for the processes that tests start."""

from __future__ import annotations

from pathlib import Path

from hypothesis.configuration import storage_directory

__all__ = ["share_constants"]


def share_constants(folder: Path) -> None:
    """Let hypothesis find in a folder, where it is going to run, which constants the modules of the package have.

    In a new folder it parses all their files again, which takes seconds. The examples that it keeps are not shared.
    """
    shared = storage_directory("constants").path
    shared.mkdir(parents=True, exist_ok=True)
    own = folder / ".hypothesis"
    own.mkdir()
    (own / "constants").symlink_to(shared.resolve(), target_is_directory=True)
