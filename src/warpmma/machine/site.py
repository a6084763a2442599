"""Where an instruction stands in the source of what runs: a line of Python, of PTX, or of a `.loc`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Site"]


@dataclass(frozen=True)
class Site:
    """A line of a kernel.

    Attributes
    ----------
    file : str
    line : int
    mnemonic : str
        What is executed there.
    """

    file: str
    line: int
    mnemonic: str

    def __str__(self) -> str:
        return f"{self.place}: {self.mnemonic}"

    @property
    def place(self) -> str:
        """The line alone, as "file:line"."""
        return f"{Path(self.file).name}:{self.line}"
