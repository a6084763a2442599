"""A place in the source of what runs: a line of Python, of PTX, or of a `.loc`."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from ..._records import Shown
from ...errors import MnemonicError
from ...isa import PtxInstruction
from ...operations import row


@dataclass(frozen=True)
class Site(Shown):
    """A line of a kernel.

    Attributes
    ----------
    file : str
    line : int
    mnemonic : str
        What is executed there.
    text : str
        Its position in the text that was compiled from the source, "kernel.ptx:12:5"; "" if they are the same. It does
        not distinguish sites: one line of the source is one site for each mnemonic.
    column : int
        In that text, for PTX, from 1; 0 for Python. Neither does it distinguish sites.
    """

    file: str
    line: int
    mnemonic: str
    text: str = field(default="", compare=False)
    column: int = field(default=0, compare=False)

    def __str__(self) -> str:
        if self.text:
            return f"{self.place}: {self.mnemonic} at {self.text}"
        return f"{self.in_text}: {self.mnemonic}"

    @property
    def instruction(self) -> PtxInstruction | None:
        """The record of its mnemonic; None if that names no instruction of the tables, such as "launch"."""
        return _instruction(self.mnemonic)

    @property
    def in_text(self) -> str:
        """Its position in the text, with the column: "kernel.ptx:12:5"; for Python only the line."""
        return self.text or f"{self.place}{f':{self.column}' if self.column else ''}"

    @property
    def place(self) -> str:
        """The line, as "file:line"."""
        return f"{Path(self.file).name}:{self.line}"

    @property
    def what(self) -> str:
        """The line and what is executed there: "kernel.cu:12 (st.shared.u32)"."""
        return f"{self.place} ({self.mnemonic})"


@lru_cache(4096)
def _instruction(mnemonic: str) -> PtxInstruction | None:
    try:
        return row(mnemonic)
    except MnemonicError:
        return None
