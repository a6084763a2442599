"""Forms of rows: lines of PTX's grammar with the evidence of their instructions."""

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
        What PTX leaves undefined, if anything.
    """

    evidence: Evidence
    left_open: str = ""

    @property
    def shared(self) -> Mapping[str, Any]:
        """The fields that all its rows share: the evidence, and what PTX leaves undefined."""
        return {"evidence": self.evidence, "left_open": self.left_open}

    def record(self, mnemonic: str) -> InstructionRow:
        """Make the row of a mnemonic; raise `TableError` if its signature contradicts itself."""
        made = super().record(mnemonic)
        if says := next((x.problem for x in made.signature if x.problem), ""):
            raise TableError(f"{mnemonic}: {says}")
        return made

    def check(self) -> None:
        """Raise `TableError` if the form is invalid or has no evidence."""
        super().check()
        if not isinstance(self.evidence, Evidence):
            raise TableError(f"{self.spelling}: no evidence; a row says how we know what it does")
