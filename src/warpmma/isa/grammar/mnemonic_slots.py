"""Parse and print mnemonics from one description: the slots of their qualifiers, in the order of PTX's grammar.

1. A mnemonic is an opcode, then qualifiers. The values of a slot's fields are spelled as qualifiers, slot by slot.
2. The parser accepts qualifiers in any order: each qualifier alone determines its slot. The qualifiers of one slot are
   in the order of its fields.
3. A slot that `needs` something has a qualifier for each of its fields, or one for all of them. A fixed qualifier
   occurs once; if it has a partner, it occurs if and only if the partner does. Any other slot has at most one
   qualifier.
4. The rows of the table determine the legal qualifiers: the vocabulary is the set of words that they spell.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

from ..._records import Record
from ...errors import MnemonicError, TableError, nearest
from .nearest import near
from .vocabulary import Version

Choices = tuple[tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]], ...]

_NEAR = 0.5  # '.s8' must be near '.s4'


class MnemonicRow(Protocol):
    """A row of a table: every combination of its choices is an instruction, on the same targets."""

    @property
    def choices(self) -> Choices:
        """Groups of fields with the values that each group may have: the product of these, the last fastest."""
        ...

    @property
    def targets(self) -> tuple[str, ...]:
        """Targets that have the instructions, oldest first."""
        ...

    @property
    def ptx(self) -> Version:
        """First PTX version that has them."""
        ...

    @property
    def documented(self) -> bool:
        """Whether PTX's grammar has their spellings."""
        ...


@dataclass(frozen=True, kw_only=True)
class MnemonicSlot:
    """One slot of a mnemonic.

    Attributes
    ----------
    part : str
        Its name in errors: the qualifier itself, if that is fixed or a field says whether it is present.
    holds : {str, int, bool, None}
        Type of its fields' values: text or None; numbers; whether the qualifier is present; None for a fixed qualifier.
    spelling : str
        A qualifier, with braces for the value of a field, or for the value of each field if it has several.
    readable : tuple of str
        Qualifiers that are read although no row has them, so that the error says what is legal instead.
    """

    part: str
    holds: type[str] | type[int] | type[bool] | None = str
    fields: tuple[str, ...] = ()  # by default one with the name of the part
    spelling: str = "{}"
    needs: str = ""  # what it looks like, if it is mandatory
    partner: str = ""  # the part that a fixed qualifier accompanies
    follows: bool = False  # whether it must come after its partner, whatever the order of the others
    readable: tuple[str, ...] = ()
    any_number: bool = False  # whether any numbers are read

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of its fields."""
        return self.fields or ((self.part,) if self.holds else ())

    @cached_property
    def joined(self) -> bool:
        """Whether one qualifier holds all its fields."""
        return self.spelling.count("{}") > 1

    @cached_property
    def required(self) -> int:
        """How many qualifiers it must have; 0 if it is optional."""
        if self.needs:
            return 1 if self.joined else len(self.names)
        return int(self.holds is None and not self.partner)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Regular expression of its qualifiers."""
        value = r"([1-9]\d{0,3})" if self.holds is int else "(.+)"
        return re.compile(re.escape(self.spelling).replace(r"\{\}", value))

    def spelled(self, values: Mapping[str, Any]) -> list[str]:
        """Spell the fields that are among some values."""
        if self.holds is bool:
            return [self.part] if values.get(self.part) else []
        if self.joined:
            return [self.spelling.format(*map(values.__getitem__, self.names))] if self.names[0] in values else []
        held = (values.get(name) for name in self.names)
        return [self.spelling.format(value) for value in held if value is not None]

    def read(self, words: list[str]) -> dict[str, Any]:
        """Return the values of the fields that qualifiers spell."""
        if self.holds is None or self.holds is bool:
            return dict.fromkeys(self.names, True)
        found = [self.holds(value) for match in map(self.pattern.fullmatch, words) if match for value in match.groups()]
        return dict(zip(self.names, found, strict=True))


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A combination that parses but is refused, with the reason.

    Attributes
    ----------
    fields : mapping of str to object
        Values of the fields.
    why : str
    nearest : str
        Legal mnemonic.
    """

    fields: Mapping[str, Any]
    why: str
    nearest: str


RowT = TypeVar("RowT", bound=MnemonicRow)


@dataclass(frozen=True, kw_only=True, eq=False)
class Grammar(Record, Generic[RowT]):
    """Mnemonics of one kind.

    Attributes
    ----------
    opcode : str
        The fixed beginning of every mnemonic, before the qualifiers that may be in any order.
    slots : tuple of MnemonicSlot
        In the order in which they are printed.
    rows : tuple of MnemonicRow
    weights : mapping of str to int
        Weights of fields in the search for the nearest legal mnemonic, if not 1.
    unsupported : mapping of str to str
        Qualifiers of PTX that this package does not simulate, each with the reason.
    """

    opcode: str
    slots: tuple[MnemonicSlot, ...]
    rows: tuple[RowT, ...]
    weights: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    unsupported: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    refusals: tuple[Refusal, ...] = ()

    @cached_property
    def types(self) -> Mapping[str, type]:
        """Value of each field."""
        return {name: slot.holds for slot in self.slots for name in slot.names if slot.holds}

    @cached_property
    def words(self) -> Mapping[str, str]:
        """Every qualifier with the part of an instruction that it specifies; `TableError` if that is ambiguous."""
        found = dict.fromkeys(self.opcode.split(".")[1:], "name")
        for slot in self.slots:
            for word in (*self._legal_words[slot.part], *slot.readable):
                if found.setdefault(word, slot.part) != slot.part:
                    raise TableError(f"{self.opcode}: .{word} could be of {found[word]} and of {slot.part}")
        return found

    @cached_property
    def _legal_words(self) -> dict[str, list[str]]:
        """Qualifiers of each part that rows have, in the order of the rows."""
        held = dict.fromkeys((names, value) for row in self.rows for names, values in row.choices for value in values)
        choices = [dict(zip(names, value, strict=True)) for names, value in held]
        return {
            slot.part: list(dict.fromkeys(word for values in choices for word in slot.spelled(values)))
            if slot.holds
            else [slot.part]
            for slot in self.slots
        }

    @property
    def combinations(self) -> Iterator[tuple[RowT, dict[str, Any]]]:
        """Every row with the fields of each of its instructions."""
        for row in self.rows:
            names = [name for group, _ in row.choices for name in group]
            for values in product(*(values for _, values in row.choices)):
                yield row, dict(zip(names, chain.from_iterable(values), strict=True))

    @cached_property
    def legal(self) -> tuple[str, ...]:
        """Every legal mnemonic, in the order of the rows."""
        return tuple(self.printed(values) for _, values in self.combinations)

    def printed(self, values: Mapping[str, Any]) -> str:
        """Print a mnemonic from the values of its fields."""
        words: dict[str, list[str]] = {slot.part: slot.spelled(values) for slot in self.slots}
        for slot in self.slots:
            if slot.holds is None and (not slot.partner or words[slot.partner]):
                words[slot.part] = [slot.part]
        return ".".join([self.opcode, *chain.from_iterable(words.values())])

    def read(self, mnemonic: str, words: Collection[str]) -> dict[str, Any]:
        """Return the values of the fields from a mnemonic's qualifiers; errors quote the mnemonic as given."""
        found = self._sorted(mnemonic, words)
        order = list(found)
        values: dict[str, Any] = {}
        for slot in self.slots:
            if slot.part in found:
                values |= slot.read(found[slot.part])
            if slot.partner:
                both = [part for part in order if part in (slot.part, slot.partner)]
                if len(both) == 1 or (slot.follows and both == [slot.part, slot.partner]):
                    legal = " or ".join(f".{word}" for word in self._legal_words[slot.partner])
                    first = ", which comes first" * slot.follows
                    raise MnemonicError(f"{mnemonic}: .{slot.part} goes with {legal}{first}{self.hint(mnemonic)}")
        return values

    def part(self, word: str) -> str | None:
        """Return the part of an instruction that a qualifier specifies, if any."""
        if part := self.words.get(word):
            return part
        return next((slot.part for slot in self.slots if slot.any_number and slot.pattern.fullmatch(word)), None)

    @cached_property
    def _required(self) -> dict[str, MnemonicSlot]:
        return {slot.part: slot for slot in self.slots if slot.required}

    def _sorted(self, mnemonic: str, words: Collection[str]) -> dict[str, list[str]]:
        """Return the qualifiers by part, in order; raise `MnemonicError` for unknown, missing or repeated ones."""
        found: dict[str, list[str]] = {}
        for word in words:
            part = self.part(word)
            if part is None:
                meant = self.closest(word)
                near = f", did you mean '.{meant}'" if meant else ""
                raise MnemonicError(f"{mnemonic}: unknown qualifier '.{word}'{near}{self.hint(mnemonic)}")
            found.setdefault(part, []).append(word)
        for part in dict.fromkeys((*found, *self._required)):
            slot, came = self._required.get(part), found.get(part, [])
            if len(came) != slot.required if slot else len(came) > 1:
                what = f"needs {slot.needs or f'.{part}'}" if slot else f"takes one {part} at the most"
                got = ", ".join(f".{word}" for word in came) or "none"
                raise MnemonicError(f"{mnemonic}: {what}; got {got}{self.hint(mnemonic)}")
        return found

    def hint(self, mnemonic: str) -> str:
        """Name the legal mnemonic that is nearest to an unreadable one; "" if none is similar."""
        words = mnemonic.removeprefix(self.opcode).strip(".").split(".")
        found = near(".".join([self.opcode, *(self.closest(word) or word for word in words)]), self.legal)
        return f". Nearest legal: {found}" if found else ""

    def closest(self, word: str) -> str | None:
        """Return the most similar word of the vocabulary, if there is one; of equals a type."""
        types_first = sorted(self.words, key=lambda known: self.words[known] != "type")
        return word if word in self.words else nearest(word, types_first, _NEAR)
