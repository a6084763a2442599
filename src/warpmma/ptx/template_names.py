"""Instances of templates by their names in C++, read from names that are mangled by the Itanium ABI.

    name     = "N" {part} "E" | part [arguments]                 part = length and characters | "St" | substitution
    arguments = "I" {type | "L" type number "E" | "J" ... "E"} "E"
    type     = a letter | ("P" | "R" | "O" | "K" | "V") type | name | "A" number "_" type | parameter of a template

1. What was read before may be named again by its place, "S_", "S0_", ...: every part of a nested name, every template
   and every type that is more than a letter counts, in the order in which it ends.
2. What is none of these (expressions, functions, members) is not read: such a name has no instance here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .mangled_names import INVENTED, meant, unmangled

__all__ = ["entries_meant", "instance", "plain_instance", "source_name"]

_LETTERS = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double",
    "e": "long double", "g": "__float128",
}  # fmt: skip
_TWO_LETTERS = {"Dn": "decltype(nullptr)", "Dh": "half", "Di": "char32_t", "Ds": "char16_t", "Du": "char8_t"}
_STD = {"a": "std::allocator", "s": "std::string", "t": "std"}
_MOST_DEPTH = 64


class _UnreadError(Exception):
    """Rule 2."""


def instance(name: str) -> str:
    """Return an instance's name in C++, with its arguments; "" for what is none, or is not read.

    Examples
    --------
    >>> instance("_Z5scaleIfLi4EEvPT_S0_j"), instance("_ZN3bar4tmplINS_1XEPKfLb1EEEvPT_"), instance("_Z5saxpyifPfS_")
    ('scale<float, 4>', 'bar::tmpl<bar::X, const float*, true>', '')
    """
    if not name.startswith("_Z"):
        return ""
    try:
        read = _Reading(name).name(0)
    except (_UnreadError, IndexError):
        return ""
    return read if read.endswith(">") else ""


def plain_instance(name: str) -> str:
    """Write a name as another of the same instance would be: without blanks, and suffixes of numbers.

    Examples
    --------
    >>> plain_instance("scale<unsigned int, 4u>") == plain_instance("scale<unsigned,4>")
    True
    """
    name = re.sub(r"\bunsigned int\b", "unsigned", re.sub(r"(?<=\d)[uUlL]+", "", name))
    return re.sub(r"\s", "", name)


def source_name(name: str) -> str:
    """Return the name in the source: with the arguments of a template; a name that is not mangled is its own."""
    return instance(name) or unmangled(name)


def entries_meant(name: str, entries: Iterable[str]) -> list[str]:
    """List the entries that a name in the source means: of a template without arguments, all of its instances.

    Examples
    --------
    >>> entries_meant("tmpl<float>", ["_ZN3bar4tmplIfEEvPT_", "_ZN3bar4tmplIdEEvPT_", "_Z5saxpyifPfS_"])
    ['_ZN3bar4tmplIfEEvPT_']
    """
    if "<" not in name:
        return meant(name, entries)
    return [x for x in entries if (y := instance(x)) and f"::{plain_instance(y)}".endswith(f"::{plain_instance(name)}")]


class _Reading:
    """One name, from its beginning to the end of its arguments."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.seen = text, 2, list[str]()

    def _take(self, letters: str) -> str:
        """Take one of some letters, if it is next."""
        c = self.text[self.at]
        if c not in letters:
            return ""
        self.at += 1
        return c

    def _number(self, end: str) -> int:
        found = re.compile(rf"(\d*){end}", re.ASCII).match(self.text, self.at)
        if found is None or len(found[1]) > 18:
            raise _UnreadError
        self.at = found.end()
        return int(found[1]) + 1 if found[1] else 0

    def _source(self) -> str:
        self._take("L")
        found = re.compile(r"\d{1,4}", re.ASCII).match(self.text, self.at)
        if found is None:
            raise _UnreadError
        start = found.end()
        self.at = start + int(found[0])
        return self.text[start : self.at]

    def _substitution(self) -> str:
        """Rule 1: what stands behind an "S"."""
        if word := _STD.get(self.text[self.at]):
            self.at += 1
            return word
        found = re.compile(r"([0-9A-Z]*)_").match(self.text, self.at)
        place = int(found[1], 36) + 1 if found and found[1] else 0
        if found is None or place >= len(self.seen):
            raise _UnreadError
        self.at = found.end()
        return self.seen[place]

    def name(self, depth: int) -> str:
        if depth > _MOST_DEPTH:
            raise _UnreadError
        if not self._take("N"):
            return self._unscoped(depth)
        while self._take("rVKRO"):
            pass
        whole = ""
        while not self._take("E"):
            if self._take("I"):
                whole += self._arguments(depth)
            elif self._take("S"):
                whole = self._substitution()
                continue
            else:
                part = self._source()
                whole = whole if part.startswith(INVENTED) else f"{whole}::{part}" if whole else part
            self.seen.append(whole)
        return whole

    def _unscoped(self, depth: int) -> str:
        known = self._take("S")
        whole = self._substitution() if known else self._source()
        if known and whole == "std":
            whole = f"std::{self._source()}"
            known = ""
        if self.text[self.at : self.at + 1] == "I":
            if not known:
                self.seen.append(whole)
            self.at += 1
            whole += self._arguments(depth)
        return whole

    def _arguments(self, depth: int) -> str:
        found = []
        while not self._take("E"):
            found.append(self._argument(depth + 1))
        return f"<{', '.join(x for x in found if x)}>"

    def _argument(self, depth: int) -> str:
        if self._take("J"):
            return self._arguments(depth)[1:-1]
        if not self._take("L"):
            return self.type(depth)
        type_ = self.type(depth)
        found = re.compile(r"(n?)(\d+)E", re.ASCII).match(self.text, self.at)
        if found is None:
            raise _UnreadError
        self.at = found.end()
        if type_ == "bool":
            return {"0": "false", "1": "true"}.get(found[2], found[2])
        number = ("-" if found[1] else "") + found[2]
        return number if type_ in _LETTERS.values() else f"({type_}){number}"

    def type(self, depth: int) -> str:
        if depth > _MOST_DEPTH:
            raise _UnreadError
        if letter := self._take("".join(_LETTERS)):
            return _LETTERS[letter]
        if (two := _TWO_LETTERS.get(self.text[self.at : self.at + 2])) is not None:
            self.at += 2
            return two
        if kind := self._take("PROKV"):
            inner = self.type(depth + 1)
            mark = {"P": "*", "R": "&", "O": "&&"}.get(kind)
            word = "const" if kind == "K" else "volatile"
            made = f"{inner}{mark}" if mark else f"{inner} {word}" if inner.endswith("*") else f"{word} {inner}"
        elif self._take("A"):
            length = self._number("_") - 1
            made = f"{self.type(depth + 1)} [{length}]"
        elif self.text[self.at] == "S" and self.text[self.at + 1] != "t":
            before = self.at
            made = self.name(depth + 1)
            if "I" not in self.text[before : self.at]:
                return made  # it was there already
        else:
            made = self.name(depth + 1)
            if self.seen and self.seen[-1] == made:
                return made  # a nested name, whose last part was taken in
        self.seen.append(made)
        return made
