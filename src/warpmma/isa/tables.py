"""Tables of instructions: rows made records, listed by target, found by mnemonic.

1. Every combination of a row's choices is an instruction, and no two rows yield one: such a table is refused when it is
   first used.
2. A mnemonic is read by the grammar of its kind; what was read must be an instruction of the table. The error for any
   other says which parts differ from the nearest that is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

from .._records import Record
from ..errors import MnemonicError, TableError, UnsupportedError
from .grammar import Grammar, MnemonicRow, bare
from .known import check_known
from .names import SIMULATED, explained
from .record import MatrixInstruction

InstructionT = TypeVar("InstructionT", bound=MatrixInstruction)
RowT = TypeVar("RowT", bound=MnemonicRow)


@dataclass(frozen=True, kw_only=True, eq=False)
class Table(Record, Generic[InstructionT, RowT]):
    """All instructions of one kind.

    Attributes
    ----------
    record : type
        What the fields of the grammar make.
    grammar : Grammar
    """

    record: type[InstructionT]
    grammar: Grammar[RowT]

    @cached_property
    def rows(self) -> Mapping[InstructionT, RowT]:
        """The row of each instruction, in the order of the rows; `TableError` where two yield one."""
        named, known = [field.name for field in fields(self.record)], self.grammar.types  # type: ignore[arg-type]
        if sorted(named) != sorted(known):
            raise TableError(f"{self.record.__name__} has the fields {named}; its grammar spells {list(known)}")
        found: dict[InstructionT, RowT] = {}
        for row, values in self.grammar.combinations:
            instruction = self.record(**values)
            if instruction in found:
                raise TableError(f"{instruction} comes from two rows, {found[instruction]} and {row}")
            found[instruction] = row
        return found

    def listed(self, target: str | None) -> tuple[InstructionT, ...]:
        """List the instructions of a target, or all of them; an unknown target is a `TargetError`."""
        if target is None:
            return tuple(self.rows)
        check_known(target)
        return tuple(instruction for instruction, row in self.rows.items() if target in row.targets)

    def row(self, instruction: InstructionT) -> RowT:
        """Return the row that an instruction comes from; raise `MnemonicError` for a record that is none."""
        row = self.rows.get(instruction)
        if row is None:
            raise MnemonicError(self._explained(instruction))
        return row

    def parse(self, mnemonic: str | InstructionT) -> InstructionT:
        """Read a mnemonic, or check that a record is an instruction."""
        if isinstance(mnemonic, self.record):
            _ = mnemonic.family
            return mnemonic
        return self._read(bare(mnemonic), str(mnemonic))

    @cached_property
    def _read(self) -> Callable[[str, str], InstructionT]:
        return lru_cache(maxsize=4096)(self._parsed)

    def _parsed(self, text: str, mnemonic: str) -> InstructionT:
        """Read the text of a mnemonic; errors quote it as it came."""
        opcode = self.grammar.opcode
        words = text.split(".")
        start = ".".join(words[: opcode.count(".") + 1])
        if start != opcode:
            known = explained(text, SIMULATED[opcode.split(".")[0]])
            meant = f" ({known})" if known else self.grammar.hint(mnemonic)
            raise MnemonicError(f"{mnemonic}: starts with {start!r}; expected {opcode!r}{meant}")
        for word, why in self.grammar.unsupported.items():
            if word in words:
                raise UnsupportedError(f"{mnemonic}: {why}")
        instruction = self.record(**self.grammar.read(mnemonic, words[1:]))
        _ = self.row(instruction)
        return instruction

    def _explained(self, instruction: InstructionT) -> str:
        """Say why a readable mnemonic is no instruction: which parts differ from the nearest legal one.

        Among those that are as near the nearest k, then the nearest n, is named.
        """
        for refusal in self.grammar.refusals:
            if all(getattr(instruction, name) == value for name, value in refusal.fields.items()):
                return f"{instruction} is refused: {refusal.why}. Nearest legal: {refusal.nearest}"

        names = [field.name for field in fields(instruction)]  # type: ignore[arg-type]

        def differing(other: Any) -> list[str]:
            return [name for name in names if getattr(other, name) != getattr(instruction, name)]

        def distance(other: InstructionT) -> tuple[int, int, int]:
            weight = sum(self.grammar.weights.get(name, 1) for name in differing(other))
            return weight, abs(other.k - instruction.k), abs(other.n - instruction.n)

        nearest = min(self.rows, key=distance)
        parts = ", ".join(
            f"{name} is {getattr(instruction, name)!r} where {getattr(nearest, name)!r} is legal"
            for name in differing(nearest)
        )
        return f"{instruction} is no instruction: {parts}. Nearest legal: {nearest}"
