"""What reading mnemonics of every kind shares: sorting qualifiers by what they say, and naming what was meant."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..errors import MnemonicError

__all__ = ["Grammar", "bare", "difference"]

_LONGEST = 160
_NEAR = 0.5  # so that '.s8' is near to '.s4'


def bare(mnemonic: object) -> str:
    """Return a mnemonic without blanks and semicolon about it; raise `MnemonicError` for what cannot be one."""
    if not isinstance(mnemonic, str):
        raise MnemonicError(f"a mnemonic is a string, such as 'mma.sync...'; got {type(mnemonic).__name__}")
    if len(mnemonic) > _LONGEST:
        raise MnemonicError(f"{mnemonic[:60]}...: {len(mnemonic)} characters; no mnemonic has more than {_LONGEST}")
    if any("\ud800" <= c <= "\udfff" for c in mnemonic):  # such text cannot be printed
        raise MnemonicError(f"{mnemonic!a}: a mnemonic has no lone surrogates")
    text = mnemonic.strip().removesuffix(";").rstrip()
    if any(c in text for c in " \t\n{;"):
        raise MnemonicError(f"{mnemonic}: expected a mnemonic alone, without operands")
    return text


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """The qualifiers of one kind of mnemonic.

    Attributes
    ----------
    words : mapping of str to str
        Every qualifier, and the part of an instruction that it speaks of.
    how_many : mapping of str to tuple of int
        How often a part may be named; any other at most once.
    needs : mapping of str to str
        What a part that is needed looks like.
    legal : callable
        Returns every legal instruction.
    shape : re.Pattern, optional
        What is a shape besides those in `words`: readable, if not legal.
    """

    words: Mapping[str, str]
    how_many: Mapping[str, tuple[int, ...]]
    needs: Mapping[str, str]
    legal: Callable[[], Collection[Any]]
    shape: re.Pattern[str] | None = None

    def part(self, word: str) -> str | None:
        """Return the part of an instruction that a qualifier speaks of, if any."""
        return "shape" if self.shape and self.shape.fullmatch(word) else self.words.get(word)

    def sort(self, mnemonic: str, words: Collection[str]) -> dict[str, list[str]]:
        """Return the qualifiers by part, in order; raise `MnemonicError` for unknown, missing or repeated ones."""
        found: dict[str, list[str]] = {}
        for word in words:
            part = self.part(word)
            if part is None:
                meant = self.closest(word)
                near = f", did you mean '.{meant}'" if meant else ""
                raise MnemonicError(f"{mnemonic}: unknown qualifier '.{word}'{near}{self.hint(mnemonic)}")
            found.setdefault(part, []).append(word)
        for part, allowed in {**dict.fromkeys(found, (0, 1)), **self.how_many}.items():
            if len(found.get(part, ())) not in allowed:
                what = f"needs {self.needs[part]}" if part in self.needs else f"takes one {part} at the most"
                got = ", ".join("." + w for w in found.get(part, ())) or "none"
                raise MnemonicError(f"{mnemonic}: {what}; got {got}{self.hint(mnemonic)}")
        return found

    def hint(self, mnemonic: str) -> str:
        """Name the legal mnemonic nearest to an unreadable one; "" if none has half of its words or words like them."""
        words = Counter((self.closest(word) or word) if i else word for i, word in enumerate(mnemonic.split(".")))

        def different(instruction: object) -> int:
            legal = Counter(str(instruction).split("."))
            return (words - legal).total() + (legal - words).total()

        def likeness(instruction: object) -> float:
            return difflib.SequenceMatcher(None, mnemonic, str(instruction)).ratio()

        shortest = sorted((different(i), number, i) for number, i in enumerate(self.legal()))
        # Of 24 at the most, letter by letter, and of the nearest among them only: that is slow.
        nearest = max((i for count, _, i in shortest[:24] if count == shortest[0][0]), key=likeness)
        legal = Counter(str(nearest).split("."))
        return f". Nearest legal: {nearest}" if 2 * (words & legal).total() >= legal.total() else ""

    def closest(self, word: str) -> str | None:
        """Return the word of the vocabulary that is most like this one, if one is."""
        if word in self.words:
            return word
        return next(iter(difflib.get_close_matches(word, self.words, 1, _NEAR)), None)


def difference(instruction: Any, legal: Collection[Any], weights: Mapping[str, int]) -> str:
    """Say which parts of a readable mnemonic differ from the nearest legal one.

    Parts weigh 1 where `weights` has nothing else; among equals the nearest k, then the nearest n, is named.
    """

    def differing(other: Any) -> list[str]:
        return [f.name for f in fields(instruction) if getattr(other, f.name) != getattr(instruction, f.name)]

    def distance(other: Any) -> tuple[int, int, int]:
        weight = sum(weights.get(part, 1) for part in differing(other))
        return weight, abs(other.k - instruction.k), abs(other.n - instruction.n)

    nearest = min(legal, key=distance)
    parts = ", ".join(
        f"{part} is {getattr(instruction, part)!r} where {getattr(nearest, part)!r} is legal"
        for part in differing(nearest)
    )
    return f"{instruction} is no instruction: {parts}. Nearest legal: {nearest}"
