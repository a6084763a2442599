"""Forms: lines of PTX's grammar, whose records are created on demand, and tables of forms.

The rules:

1.  `Spelling` defines how a form spells its mnemonics and how they are read.
2.  A form is invalid if its spelling cannot be read, if PTX has no such opcode or word, or if it can read one mnemonic
    in two ways.
3.  Two forms of a table must not read the same mnemonic. The check does not enumerate mnemonics: a word that one form
    chooses becomes a debt of the other, and a search settles these debts slot by slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any, Generic, NamedTuple, TypeVar

from ...errors import TableError
from .lines import Line, SpellingSlot, Words, kept_words, left_words
from .record import FormInstruction, convergence_of
from .vocabulary import OPCODES, WORDS, Version, wanted

InstructionT = TypeVar("InstructionT", bound=FormInstruction)


@dataclass(frozen=True, kw_only=True, eq=False)
class InstructionForm(Line, Generic[InstructionT]):
    """A line of PTX's grammar: the instructions whose mnemonics differ in their qualifiers.

    Attributes
    ----------
    fields : callable
        From the words of a mnemonic, in the order of the grammar, to the other fields of its record.
    """

    spelling: str  # by the rules of `Spelling`
    kind: type[InstructionT]  # class of its records
    fields: Callable[[Words], Mapping[str, Any]]
    since: str = "sm_70"  # oldest target; some words require later ones (`REQUIRED`)
    only: tuple[str, ...] = ()  # the targets that have it, if `since` would include others
    ptx: Version = (6, 0)  # first version of PTX; some words require later ones

    @property
    def text(self) -> str:  # type: ignore[override]
        """The line itself."""
        return self.spelling

    @cached_property
    def words(self) -> frozenset[str]:
        """Words of the heads and the slots."""
        return self.vocabulary.union(*self.heads)

    @cached_property
    def always(self) -> frozenset[str]:
        """Words of the slots that every mnemonic has."""
        return frozenset(word for slot in self.slots if len(slot.choices) == 1 for word in slot.choices[0])

    @property
    def shared(self) -> Mapping[str, Any]:
        """The fields that all its records share."""
        return {}

    def record(self, mnemonic: str) -> InstructionT:
        """Make the record of one of the form's mnemonics, its words in the order of the grammar."""
        words = tuple(mnemonic.split("."))
        since, ptx = wanted(words, self.since, self.ptx)
        return self.kind(
            mnemonic=mnemonic, since=since, only=self.only, ptx=ptx, convergence=convergence_of(words),
            **self.shared, **self.fields(words),
        )  # fmt: skip

    def check(self) -> None:
        """Raise `TableError` if the form is invalid (rule 2)."""
        for head in self.heads:
            if head[0] not in OPCODES:
                raise TableError(f"{self.spelling}: PTX has no {head[0]!r}")
            if unknown := [word for word in (*head[1:], *sorted(self.vocabulary)) if word not in WORDS]:
                raise TableError(f"{self.spelling}: '.{unknown[0]}' is not a word of `vocabulary`")
        if found := _ambiguous(self):
            raise TableError(f"{self.spelling} reads {found} in two ways")


FormT = TypeVar("FormT", bound=InstructionForm[Any])


class InstructionTable(Generic[FormT, InstructionT]):
    """Instruction forms that do not overlap, and a cache of the records made from them."""

    def __init__(self, forms: Iterable[FormT]) -> None:
        self._forms: dict[str, list[FormT]] = {}
        for form in forms:
            for opcode in dict.fromkeys(head[0] for head in form.heads):
                self._forms.setdefault(opcode, []).append(form)
        self._made: dict[str, InstructionT] = {}

    def prove(self) -> None:
        """Raise `TableError` for invalid or duplicate forms, and for two that read the same mnemonic."""
        for form in self.forms():
            form.check()
        neighbours = {(id(a), id(b)): (a, b) for same in self._forms.values() for a, b in combinations(same, 2)}
        for a, b in neighbours.values():  # once each, even if of several opcodes
            if (found := common(a, b)) is not None:
                what = "occurs in the table twice" if a.spelling == b.spelling else f"and {b.spelling} overlap"
                raise TableError(f"{a.spelling} {what}: both read {found}")

    def forms(self, opcode: str | None = None) -> tuple[FormT, ...]:
        """List the forms of an opcode, or all."""
        if opcode is not None:
            return tuple(self._forms.get(opcode, ()))
        return tuple(dict.fromkeys(form for forms in self._forms.values() for form in forms))

    def rows(self, *kinds: type[FormInstruction], opcode: str | None = None) -> Iterator[InstructionT]:
        """Make the records of some kinds, or all, one after another, without parts that change no bit."""
        for form in self.forms(opcode):
            if not kinds or issubclass(form.kind, kinds):
                for mnemonic in form.mnemonics:
                    if opcode in (None, mnemonic.partition(".")[0]):
                        yield self._row(form, mnemonic)

    def find(self, name: str) -> InstructionT | None:
        """Return the record of a mnemonic, its qualifiers in any order; None if there is none."""
        if (made := self._made.get(name)) is not None:
            return made
        words = tuple(name.split("."))
        for form in self._forms.get(words[0], ()):
            if (mnemonic := form.match(words)) is not None:
                return self._row(form, mnemonic)
        return None

    def _row(self, form: FormT, mnemonic: str) -> InstructionT:
        made = self._made.get(mnemonic)
        if made is None:
            made = self._made[mnemonic] = form.record(mnemonic)
        return made


# Rule 3


class _Side(NamedTuple):
    """One of the two forms in the search for a common mnemonic: open slots, words owed, and the choices so far."""

    slots: tuple[tuple[int, SpellingSlot], ...]
    owed: Words = ()
    chosen: tuple[tuple[int, Words], ...] = ()

    @property
    def words(self) -> Words:
        """The choices, in the order of the slots."""
        return tuple(word for _, choice in sorted(self.chosen) for word in choice)


def common(a: InstructionForm[Any], b: InstructionForm[Any]) -> str | None:
    """Return a mnemonic that two forms both read; None if there is none.

    Examples
    --------
    >>> def form(spelling):
    ...     return InstructionForm(spelling=spelling, kind=FormInstruction, fields=dict)
    >>> common(form("min{.ftz}.<f32 f16>"), form("min{.NaN}.<f16 bf16>"))
    'min.f16'
    >>> common(form("min{.ftz}.f32"), form("min{.ftz}.NaN.f32"))
    """
    if not (a.always <= b.words and b.always <= a.words and _possible(a, b)):
        return None
    for x, y in product(a.heads, b.heads):
        length = min(len(x), len(y))
        if x[:length] == y[:length]:
            side = _Side(tuple(enumerate(a.slots)), owed=y[length:])
            other = _Side(tuple(enumerate(b.slots)), owed=x[length:])
            if (found := _meet(side, other)) is not None:
                return ".".join((*x, *found.words))
    return None


def _possible(a: InstructionForm[Any], b: InstructionForm[Any]) -> bool:
    """Whether each form's mandatory slots can be filled with words of the other."""
    return all(
        any(other.words.issuperset(choice) for choice in slot.choices)
        for form, other in ((a, b), (b, a))
        for slot in form.slots
    )


def _meet(a: _Side, b: _Side) -> _Side | None:
    """Fill the slots of both sides with the same words, as few as possible; return the first side, or None."""
    sides = (a, b)
    for n, side in enumerate(sides):
        if side.owed:
            return _try(sides, n, [(i, c) for i, slot in side.slots for c in slot.choices if side.owed[0] in c])
    for n, side in enumerate(sides):
        for i, slot in side.slots:
            if () not in slot.choices:
                return _try(sides, n, [(i, choice) for choice in slot.choices])
    return a if kept_words(a.words) == kept_words(b.words) else None


def _try(sides: tuple[_Side, _Side], n: int, fillings: list[tuple[int, Words]]) -> _Side | None:
    """Continue with the first way to fill a slot of side n that leads to a solution."""
    for place, choice in fillings:
        filled, owing = _fill(sides[n], sides[1 - n], place, choice)
        found = _meet(filled, owing) if n == 0 else _meet(owing, filled)
        if found is not None:
            return found
    return None


def _fill(side: _Side, other: _Side, place: int, choice: Words) -> tuple[_Side, _Side]:
    """Fill a slot of one side: its words settle that side's debts, or become debts of the other side."""
    owed, owing = list(side.owed), list(other.owed)
    for word in choice:
        if word in owed:
            owed.remove(word)
        else:
            owing.append(word)
    slots = tuple(x for x in side.slots if x[0] != place)
    return _Side(slots, tuple(owed), (*side.chosen, (place, choice))), other._replace(owed=tuple(owing))


def _ambiguous(form: InstructionForm[Any]) -> str | None:
    """Return a mnemonic that a form reads in two ways, with different words in a slot; None if there is none."""
    slots = tuple(enumerate(form.slots))
    for i, slot in slots:
        others = tuple(x for x in slots if x[0] != i)
        shared = {word for _, other in others for choice in other.choices for word in choice}
        choices = [c for c in slot.choices if not c or shared.intersection(c)]
        if len({tuple(sorted(c)) for c in slot.choices}) < len(slot.choices):
            choices = list(slot.choices)
        for n, x in enumerate(choices):
            for y in choices[n + 1 :]:
                a, b = _Side(others, chosen=((i, x),)), _Side(others, chosen=((i, y),))
                for word in x:
                    b = b._replace(owed=(*b.owed, word))
                for word in y:
                    if word in b.owed:
                        b = b._replace(owed=left_words(b.owed, (word,)) or ())
                    else:
                        a = a._replace(owed=(*a.owed, word))
                if (found := _meet(a, b)) is not None:
                    return ".".join((*form.heads[0], *found.words))
    return None
