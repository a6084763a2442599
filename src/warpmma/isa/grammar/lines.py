"""Spellings: lines of PTX's grammar, which enumerate and read mnemonics.

The rules:

1.  A spelling is a head followed by slots. The head is the text before the first blank, or the opcode alone. It comes
    first and exactly as written, as ptxas requires (`mul.wide`, `cp.async`). A slot is a qualifier, `<>` around
    alternatives (which may be several words), `{}` around an optional part, or `[]` around an optional part that
    changes no computed bit: it affects speed, or which threads are ordered.
2.  Qualifiers after the head may be in any order. But types keep their relative order, such as those of a result and
    an operand, and so do state spaces, such as the two of `cp.async`. ptxas accepts the same.
3.  A mnemonic is printed in the order of the spelling, which is the order of PTX's grammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

from ..._records import Shown
from ...errors import TableError
from .vocabulary import KEPT

Words = tuple[str, ...]

_SLOT = re.compile(r"\{([^{}\[\]]+)\}|\[([^{}\[\]]+)\]|\.((?:[^.<>{}\[\] ]|<[^<>]+>)+)")
_ALTERNATIVES = re.compile(r"<([^<>]*)>")


class SpellingSlot(NamedTuple):
    """A slot of a spelling: the words that may fill it, and whether they change no bit."""

    choices: tuple[Words, ...]
    mute: bool = False


def _written_out(text: str) -> list[str]:
    """List the alternatives of a text without braces."""
    match = _ALTERNATIVES.search(text)
    if match is None:
        return [text]
    before, after = text[: match.start()], text[match.end() :]
    return [x for option in match[1].split() for x in _written_out(before + option + after)]


def _words(text: str) -> tuple[Words, ...]:
    """Words of every alternative of a slot's text."""
    return tuple(tuple(x.removeprefix(".").split(".")) for x in _written_out(text))


def _read(spelling: str) -> tuple[tuple[Words, ...], tuple[SpellingSlot, ...]]:
    """Read a spelling into heads and slots (rule 1)."""
    head, blank, rest = re.sub(r"<[^<>]*>", lambda m: m[0].replace(" ", "\0"), spelling).partition(" ")
    if not blank:
        match = re.match(r"(?:[^.<>{}\[\]]|<[^<>]+>)*", head)
        end = 0 if match is None else match.end()
        head, rest = head[:end], head[end:]
    head, rest = head.replace("\0", " "), rest.replace("\0", " ")
    heads = [*_slots(spelling, f".{head}")]
    return tuple(sum(x, ()) for x in product(*(slot.choices for slot in heads))), tuple(_slots(spelling, rest))


def _slots(spelling: str, text: str) -> Iterator[SpellingSlot]:
    position = 0
    while position < len(text):
        match = _SLOT.match(text, position)
        if match is None:
            raise TableError(f"{spelling}: {text[position:]!r} is not a qualifier, {{}}, [] or <>")
        choices = _words(match[1] or match[2] or match[3])
        yield SpellingSlot(choices if match[3] else ((), *choices), bool(match[2]))
        position = match.end()


class Line(Shown):
    """A line of PTX's grammar, and the mnemonics that it enumerates and reads.

    Attributes
    ----------
    text : str
        By rule 1. If it cannot be read, its slots raise a `TableError`.
    """

    text: str

    @cached_property
    def _read(self) -> tuple[tuple[Words, ...], tuple[SpellingSlot, ...]]:
        return _read(self.text)

    @property
    def heads(self) -> tuple[Words, ...]:
        """Head of the mnemonics."""
        return self._read[0]

    @property
    def slots(self) -> tuple[SpellingSlot, ...]:
        """Slots after the head."""
        return self._read[1]

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Words of the slots."""
        return frozenset(word for slot in self.slots for choice in slot.choices for word in choice)

    @property
    def mnemonics(self) -> list[str]:
        """All mnemonics, without parts that change no bit.

        Examples
        --------
        >>> Spelling("cvt.<rn rz>{.relu}.f16.f32").mnemonics
        ['cvt.rn.f16.f32', 'cvt.rn.relu.f16.f32', 'cvt.rz.f16.f32', 'cvt.rz.relu.f16.f32']
        >>> Spelling("cp.async .<ca cg>.shared.global[.<L2::64B L2::128B>]").mnemonics
        ['cp.async.ca.shared.global', 'cp.async.cg.shared.global']
        """
        choices = [((),) if slot.mute else slot.choices for slot in self.slots]
        return [".".join(sum(words, head)) for head in self.heads for words in product(*choices)]

    def match(self, words: Words) -> str | None:
        """Return the mnemonic, in the order of the grammar, that has these words; None if there is none (rule 2)."""
        for head in self.heads:
            rest = words[len(head) :]
            if words[: len(head)] == head and self.vocabulary.issuperset(rest):
                order = kept_words(rest)
                for reading in _readings(self.slots, rest):
                    if kept_words(reading) == order:
                        return ".".join(head + reading)
        return None


@dataclass(frozen=True)
class Spelling(Line):
    """A line of PTX's grammar alone.

    Raises
    ------
    TableError
        If the text cannot be read.
    """

    text: str  # by rule 1


def kept_words(words: Words) -> list[list[str]]:
    """Words of the classes that keep their order."""
    return [[word for word in words if word in kept] for kept in KEPT]


def left_words(words: Words, taken: Words) -> Words | None:
    """Return `words` without those of `taken`; None if one of `taken` is missing."""
    for word in taken:
        if word not in words:
            return None
        at = words.index(word)
        words = words[:at] + words[at + 1 :]
    return words


def _readings(slots: tuple[SpellingSlot, ...], words: Words) -> Iterator[Words]:
    """Yield each way to assign all words to slots: the words in the order of the slots."""
    if not slots:
        if not words:
            yield ()
        return
    for choice in slots[0].choices:
        left = left_words(words, choice)
        if left is not None:
            for more in _readings(slots[1:], left):
                yield choice + more
