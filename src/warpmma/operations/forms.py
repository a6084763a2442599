"""Forms: lines of PTX's grammar, from which rows are made when they are first asked for.

The rules:

1.  A spelling is a head and then slots. The head is what stands before the first blank, or the opcode alone; it comes
    first and as it is written, as ptxas wants it (`mul.wide`, `cp.async`). A slot is a qualifier, `<>` around
    alternatives (which may be several words), `{}` around what may be left out, `[]` around what may be left out and
    changes no bit that is computed: speed, or which threads it orders.
2.  After the head qualifiers come in any order. But types keep theirs among each other, as those of a result and an
    operand do, and so do state spaces, as the two of `cp.async`. ptxas reads the same.
3.  A mnemonic is printed in the order of the spelling, which is that of PTX's grammar.
4.  A form is refused if its spelling cannot be read, if PTX has no such opcode or word, if one mnemonic has two
    readings in it, or if it does not say how we know.
5.  Two forms are refused that both read some mnemonic. Words are not enumerated for that: a word that one form chooses
    is owed by the other, and a search pays such debts slot by slot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from ..arithmetic import Evidence
from ..errors import TableError
from ..isa import OPCODES
from .records import Row
from .vocabulary import KEPT, REQUIRED, WORDS, later

__all__ = ["Form", "common", "spellings"]

Words = tuple[str, ...]

_SLOT = re.compile(r"\{([^{}\[\]]+)\}|\[([^{}\[\]]+)\]|\.((?:[^.<>{}\[\] ]|<[^<>]+>)+)")
_ALTERNATIVES = re.compile(r"<([^<>]*)>")


class FormSlot(NamedTuple):
    """A place in a form: the words that may fill it, and whether they change no bit."""

    choices: tuple[Words, ...]
    mute: bool = False


def _written_out(text: str) -> list[str]:
    """Write out the alternatives of a text without braces."""
    match = _ALTERNATIVES.search(text)
    if match is None:
        return [text]
    before, after = text[: match.start()], text[match.end() :]
    return [x for option in match[1].split() for x in _written_out(before + option + after)]


def _words(text: str) -> tuple[Words, ...]:
    """Words of every alternative of a slot's text."""
    return tuple(tuple(x.removeprefix(".").split(".")) for x in _written_out(text))


def _read(spelling: str) -> tuple[tuple[Words, ...], tuple[FormSlot, ...]]:
    """Read a spelling into heads and slots (rule 1)."""
    head, blank, rest = re.sub(r"<[^<>]*>", lambda m: m[0].replace(" ", "\0"), spelling).partition(" ")
    if not blank:
        match = re.match(r"(?:[^.<>{}\[\]]|<[^<>]+>)*", head)
        end = 0 if match is None else match.end()
        head, rest = head[:end], head[end:]
    head, rest = head.replace("\0", " "), rest.replace("\0", " ")
    heads = [*_slots(spelling, f".{head}")]
    return tuple(sum(x, ()) for x in product(*(slot.choices for slot in heads))), tuple(_slots(spelling, rest))


def _slots(spelling: str, text: str) -> Iterator[FormSlot]:
    position = 0
    while position < len(text):
        match = _SLOT.match(text, position)
        if match is None:
            raise TableError(f"{spelling}: {text[position:]!r} is no qualifier, {{}}, [] or <>")
        choices = _words(match[1] or match[2] or match[3])
        yield FormSlot(choices if match[3] else ((), *choices), bool(match[2]))
        position = match.end()


def spellings(spelling: str) -> list[str]:
    """Write out the mnemonics of a spelling, without what changes no bit (rule 1).

    Examples
    --------
    >>> spellings("cvt.<rn rz>{.relu}.f16.f32")
    ['cvt.rn.f16.f32', 'cvt.rn.relu.f16.f32', 'cvt.rz.f16.f32', 'cvt.rz.relu.f16.f32']
    >>> spellings("cp.async .<ca cg>.shared.global[.<L2::64B L2::128B>]")
    ['cp.async.ca.shared.global', 'cp.async.cg.shared.global']
    """
    heads, slots = _read(spelling)
    choices = [((),) if slot.mute else slot.choices for slot in slots]
    return [".".join(sum(words, head)) for head in heads for words in product(*choices)]


@dataclass(frozen=True, kw_only=True)
class Form:
    """A line of PTX's grammar: the rows of mnemonics that differ in their qualifiers.

    Attributes
    ----------
    spelling : str
        By rule 1.
    kind : type
        Class of its rows.
    fields : callable
        From the words of a mnemonic, in the order of the grammar, to what its row has besides the following.
    since : str
        Oldest target; some words want later ones (`vocabulary.REQUIRED`).
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
    def _read(self) -> tuple[tuple[Words, ...], tuple[FormSlot, ...]]:
        return _read(self.spelling)

    @property
    def heads(self) -> tuple[Words, ...]:
        """What mnemonics begin with."""
        return self._read[0]

    @property
    def slots(self) -> tuple[FormSlot, ...]:
        """What comes after the head."""
        return self._read[1]

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Words of the slots."""
        return frozenset(word for slot in self.slots for choice in slot.choices for word in choice)

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
        return spellings(self.spelling)

    def match(self, words: Words) -> str | None:
        """Return the mnemonic, in the order of the grammar, that has these words; None if there is none (rule 2)."""
        for head in self.heads:
            rest = words[len(head) :]
            if words[: len(head)] == head and self.vocabulary.issuperset(rest):
                order = _kept(rest)
                for reading in _readings(self.slots, rest):
                    if _kept(reading) == order:
                        return ".".join(head + reading)
        return None

    def row(self, mnemonic: str) -> Row:
        """Make the row of a mnemonic, which is one of the form in the order of the grammar."""
        words = tuple(mnemonic.split("."))
        since, ptx = self.since, self.ptx
        for word in words:
            if word in REQUIRED:
                since, ptx = later(since, REQUIRED[word][0]), max(ptx, REQUIRED[word][1])
        return self.kind(
            mnemonic=mnemonic, since=since, only=self.only, ptx=ptx, evidence=self.evidence,
            left_open=self.left_open, **self.fields(words),
        )  # fmt: skip

    def check(self) -> None:
        """Raise `TableError` for what no table may have (rule 4)."""
        for head in self.heads:
            if head[0] not in OPCODES:
                raise TableError(f"{self.spelling}: PTX has no {head[0]!r}")
            if unknown := [word for word in (*head[1:], *sorted(self.vocabulary)) if word not in WORDS]:
                raise TableError(f"{self.spelling}: '.{unknown[0]}' is no word of `vocabulary`")
        if not isinstance(self.evidence, Evidence):
            raise TableError(f"{self.spelling}: no evidence; a row says how we know what it does")
        if found := _ambiguous(self):
            raise TableError(f"{self.spelling} reads {found} in two ways")


def _kept(words: Words) -> list[list[str]]:
    """Words of the classes that keep their order."""
    return [[word for word in words if word in kept] for kept in KEPT]


def _without(words: Words, taken: Words) -> Words | None:
    """Words but for some of them; None if those are not among them."""
    for word in taken:
        if word not in words:
            return None
        at = words.index(word)
        words = words[:at] + words[at + 1 :]
    return words


def _readings(slots: tuple[FormSlot, ...], words: Words) -> Iterator[Words]:
    """Fill slots with words, all of them: what stands there, in the order of the slots."""
    if not slots:
        if not words:
            yield ()
        return
    for choice in slots[0].choices:
        left = _without(words, choice)
        if left is not None:
            for more in _readings(slots[1:], left):
                yield choice + more


# Rule 5


class _Side(NamedTuple):
    """One of two forms in the search for a mnemonic of both: slots to be filled, words owed, what was chosen where."""

    slots: tuple[tuple[int, FormSlot], ...]
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
    return a if _kept(a.words) == _kept(b.words) else None


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
                        b = b._replace(owed=_without(b.owed, (word,)) or ())
                    else:
                        a = a._replace(owed=(*a.owed, word))
                if (found := _meet(a, b)) is not None:
                    return ".".join((*form.heads[0], *found.words))
    return None
