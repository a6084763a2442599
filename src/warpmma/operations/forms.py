"""Forms: lines of PTX's grammar, from which rows are made when they are first asked for.

The rules:

1.  How a form spells its mnemonics, and how these are read, are the rules of `isa.Spelling`.
2.  A form is refused if its spelling cannot be read, if PTX has no such opcode or word, if one mnemonic has two
    readings in it, or if it does not say how we know.
3.  Two forms are refused that both read some mnemonic. Words are not enumerated for that: a word that one form chooses
    is owed by the other, and a search pays such debts slot by slot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from ..arithmetic import Evidence
from ..errors import TableError
from ..isa import OPCODES, WORDS, Spelling, SpellingSlot, Words, convergence_of, kept_words, left_words, wanted
from .records import Row


@dataclass(frozen=True, kw_only=True)
class Form:
    """A line of PTX's grammar: the rows of mnemonics that differ in their qualifiers.

    Attributes
    ----------
    spelling : str
        By the rules of `isa.Spelling`.
    kind : type
        Class of its rows.
    fields : callable
        From the words of a mnemonic, in the order of the grammar, to what its row has besides the following.
    since : str
        Oldest target; some words want later ones (`isa.REQUIRED`).
    only : tuple of str
        The targets that have it, where `since` says too much.
    ptx : (int, int)
        First version of PTX; some words want later ones.
    evidence : Evidence
    left_open : str
        What PTX's text leaves open, if anything.
    """

    spelling: str
    kind: type[Row]
    fields: Callable[[Words], Mapping[str, Any]]
    since: str = "sm_70"
    only: tuple[str, ...] = ()
    ptx: tuple[int, int] = (6, 0)
    evidence: Evidence
    left_open: str = ""

    @cached_property
    def _spelling(self) -> Spelling:
        return Spelling(self.spelling)

    @property
    def heads(self) -> tuple[Words, ...]:
        """What mnemonics begin with."""
        return self._spelling.heads

    @property
    def slots(self) -> tuple[SpellingSlot, ...]:
        """What comes after the head."""
        return self._spelling.slots

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Words of the slots."""
        return self._spelling.vocabulary

    @cached_property
    def words(self) -> frozenset[str]:
        """Words of the heads and the slots."""
        return self.vocabulary.union(*self.heads)

    @cached_property
    def always(self) -> frozenset[str]:
        """Words of the slots that every mnemonic has."""
        return frozenset(word for slot in self.slots if len(slot.choices) == 1 for word in slot.choices[0])

    @property
    def mnemonics(self) -> list[str]:
        """All of them, without what changes no bit."""
        return self._spelling.mnemonics

    def match(self, words: Words) -> str | None:
        """Return the mnemonic, in the order of the grammar, that has these words; None if there is none."""
        return self._spelling.match(words)

    def row(self, mnemonic: str) -> Row:
        """Make the row of a mnemonic, which is one of the form in the order of the grammar."""
        words = tuple(mnemonic.split("."))
        since, ptx = wanted(words, self.since, self.ptx)
        return self.kind(
            mnemonic=mnemonic, since=since, only=self.only, ptx=ptx, evidence=self.evidence,
            left_open=self.left_open, convergence=convergence_of(words), **self.fields(words),
        )  # fmt: skip

    def check(self) -> None:
        """Raise `TableError` for what no table may have (rule 2)."""
        for head in self.heads:
            if head[0] not in OPCODES:
                raise TableError(f"{self.spelling}: PTX has no {head[0]!r}")
            if unknown := [word for word in (*head[1:], *sorted(self.vocabulary)) if word not in WORDS]:
                raise TableError(f"{self.spelling}: '.{unknown[0]}' is no word of `vocabulary`")
        if not isinstance(self.evidence, Evidence):
            raise TableError(f"{self.spelling}: no evidence; a row says how we know what it does")
        if found := _ambiguous(self):
            raise TableError(f"{self.spelling} reads {found} in two ways")


# Rule 3


class _Side(NamedTuple):
    """One of two forms in the search for a mnemonic of both: slots to be filled, words owed, what was chosen where."""

    slots: tuple[tuple[int, SpellingSlot], ...]
    owed: Words = ()
    chosen: tuple[tuple[int, Words], ...] = ()

    @property
    def words(self) -> Words:
        """What was chosen, in the order of the slots."""
        return tuple(word for _, choice in sorted(self.chosen) for word in choice)


def common(a: Form, b: Form) -> str | None:
    """Return a mnemonic that two forms both read; None if there is none.

    Examples
    --------
    >>> same = {"kind": Row, "fields": dict, "evidence": Evidence(kind="published", source="a text")}
    >>> common(Form(spelling="min{.ftz}.<f32 f16>", **same), Form(spelling="min{.NaN}.<f16 bf16>", **same))
    'min.f16'
    >>> common(Form(spelling="min{.ftz}.f32", **same), Form(spelling="min{.ftz}.NaN.f32", **same))
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


def _possible(a: Form, b: Form) -> bool:
    """Whether each form's slots that are always filled have a choice from the words of the other."""
    return all(
        any(other.words.issuperset(choice) for choice in slot.choices)
        for form, other in ((a, b), (b, a))
        for slot in form.slots
    )


def _meet(a: _Side, b: _Side) -> _Side | None:
    """Fill the slots of both sides with the same words, as few as there can be; return the first side, or None."""
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
    """Go on with the first filling of a slot of side n that leads to an end."""
    for place, choice in fillings:
        filled, owing = _fill(sides[n], sides[1 - n], place, choice)
        found = _meet(filled, owing) if n == 0 else _meet(owing, filled)
        if found is not None:
            return found
    return None


def _fill(side: _Side, other: _Side, place: int, choice: Words) -> tuple[_Side, _Side]:
    """Fill a slot of one side: words that it owed are paid, others the other side owes."""
    owed, owing = list(side.owed), list(other.owed)
    for word in choice:
        if word in owed:
            owed.remove(word)
        else:
            owing.append(word)
    slots = tuple(x for x in side.slots if x[0] != place)
    return _Side(slots, tuple(owed), (*side.chosen, (place, choice))), other._replace(owed=tuple(owing))


def _ambiguous(form: Form) -> str | None:
    """Return a mnemonic that a form reads in two ways, filling a slot with different words; None if there is none."""
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
