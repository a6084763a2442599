"""Forms of rows: lines of PTX's grammar that say how we know what their instructions do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import isa
from ..arithmetic import Evidence
from ..errors import TableError
from .records import InstructionRow


@dataclass(frozen=True, kw_only=True, eq=False)
class Form(isa.InstructionForm[InstructionRow]):
    """A line of PTX's grammar, and the evidence of its rows.

    Attributes
    ----------
    evidence : Evidence
    left_open : str
        What PTX's text leaves open, if anything.
    """

    evidence: Evidence
    left_open: str = ""

    @property
    def shared(self) -> Mapping[str, Any]:
        """What all its rows have: how we know, and what is left open."""
        return {"evidence": self.evidence, "left_open": self.left_open}

    def record(self, mnemonic: str) -> InstructionRow:
        """Make the row of a mnemonic; raise `TableError` if its signature contradicts itself."""
        made = super().record(mnemonic)
        if says := next((x.problem for x in made.signature if x.problem), ""):
            raise TableError(f"{mnemonic}: {says}")
        return made

    def check(self) -> None:
        """Raise `TableError` for what no table may have; no evidence, too."""
        super().check()
        if not isinstance(self.evidence, Evidence):
            raise TableError(f"{self.spelling}: no evidence; a row says how we know what it does")
