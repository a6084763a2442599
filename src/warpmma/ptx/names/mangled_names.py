"""Names of C++ that nvcc writes into PTX mangled, by the Itanium ABI: functions with their parameters, and variables.

    name      = "_Z" (function | "Z" function "E" part ["_" number])      the second: a static variable of a function
    function  = ["L"] path [arguments] [type] {type}       only templates state the type of their result
    path      = "N" {part} "E" | part             part = length and characters | "St" | substitution | parameter
    arguments = "I" {type | "L" type number "E" | "J" {type} "E"} "E"
    type      = a letter | "D" a letter | ("P" | "R" | "O" | "K" | "V" | "r") type | path [arguments]
                | "A" number "_" type | parameter | "Dp" parameter          parameter = "T_" | "T" number "_"

1. Earlier parts are referred to by number, "S_", "S0_", ...: each prefix of a path, each template without its
   arguments, and each type that is more than a letter, in the order in which they end. Functions are not counted.
2. "T_", "T0_", ... are arguments of the function's own template; an argument that is a pack is expanded by "Dp".
3. Namespaces without a name, and those that nvcc invents for names of one file, are left out of what is returned.
4. Everything else (expressions, pointers to functions, members, compiler vectors, tags) is not read: such a name has no
   instance and no parameter types. Nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache


def instance(name: str) -> str:
    """Return an instance's name in C++, with its arguments; "" for any other name, or one that cannot be read.

    Examples
    --------
    >>> instance("_Z5scaleIfLi4EEvPT_S0_j"), instance("_ZN3bar4tmplINS_1XEPKfLb1EEEvPT_"), instance("_Z5saxpyifPfS_")
    ('scale<float, 4>', 'bar::tmpl<bar::X, const float*, true>', '')
    """
    found = function_named(name)
    return found.name if found is not None and found.name.endswith(">") else ""


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


_INVENTED = ("_GLOBAL__N", "_INTERNAL_")
_LETTERS = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double",
    "e": "long double", "g": "__float128",
}  # fmt: skip
_OF_D = {"n": "decltype(nullptr)", "h": "half", "i": "char32_t", "s": "char16_t", "u": "char8_t", "F16_": "_Float16"}
_STD = {"a": "std::allocator", "s": "std::string", "t": "std"}
_MARKS = {"P": "*", "R": "&", "O": "&&"}
_WORDS = {"K": "const", "V": "volatile", "r": "__restrict__"}
_MOST_DEPTH = 64


@dataclass(frozen=True, kw_only=True)
class MangledFunction:
    """A function, as its mangled name has it.

    Attributes
    ----------
    name : str
        With namespaces and, of a template's instance, its arguments.
    parameters : tuple of str or None
        Their types, ("void",) of a function without any; None where they are not read (rule 4).
    """

    name: str
    parameters: tuple[str, ...] | None


@lru_cache(maxsize=1024)
def function_named(name: str) -> MangledFunction | None:
    """Read the mangled name of a function; None for a name that is not mangled, or is not read (rule 4).

    Examples
    --------
    >>> function_named("_Z3cgkPKiPii")
    MangledFunction(name='cgk', parameters=('const int*', 'int*', 'int'))
    >>> function_named("_Z5scaleIfLi4EEvPT_S0_j")
    MangledFunction(name='scale<float, 4>', parameters=('float*', 'float', 'unsigned int'))
    """
    if not name.startswith("_Z"):
        return None
    reading = _Reading(name, 2)
    try:
        found = reading.function_name()
    except (_UnreadError, IndexError):
        return None
    try:
        types = reading.parameters(found)
    except (_UnreadError, IndexError):
        types = None
    return MangledFunction(name=found, parameters=types if types and reading.at == len(name) else None)


def variable_named(name: str) -> str:
    """Return the name in the source of a variable: of a static one of a function, without that function.

    Examples
    --------
    >>> variable_named("_ZZ4tilePfE2sA"), variable_named("_ZN3bar5tableE"), variable_named("buffer")
    ('sA', 'bar::table', 'buffer')
    """
    if not name.startswith("_ZZ"):
        return unmangled(name)
    reading = _Reading(name, 3)
    try:
        reading.parameters(reading.function_name())
        return reading.local()
    except (_UnreadError, IndexError):
        return name


def unmangled(name: str) -> str:
    """Return the name in the source, with its namespaces; a name that is not mangled is its own.

    It is found in names that are not read to their end, too.

    Examples
    --------
    >>> unmangled("_Z5saxpyifPfS_"), unmangled("_ZN3bar4tmplIfEEvPT_"), unmangled("scale")
    ('saxpy', 'bar::tmpl', 'scale')
    """
    if not (start := re.match(r"_ZN?L?(?=\d)", name)):
        return name
    parts, at = [], start.end()
    while length := re.compile(r"L?(\d{1,4})", re.ASCII).match(name, at):
        at = length.end() + int(length[1])
        parts.append(name[length.end() : at])
        if "N" not in start[0]:
            break
    return "::".join(x for x in parts if x and not x.startswith(_INVENTED)) or name


def meant(name: str, entries: Iterable[str]) -> list[str]:
    """List the entries that a name in the source means, with its namespaces or some of them left out.

    Examples
    --------
    >>> meant("tmpl", ["_ZN3bar4tmplIfEEvPT_", "_ZN3bar4tmplIdEEvPT_", "_Z5saxpyifPfS_"])
    ['_ZN3bar4tmplIfEEvPT_', '_ZN3bar4tmplIdEEvPT_']
    """
    return [x for x in entries if f"::{unmangled(x)}".endswith(f"::{name}")] if name else []


class _UnreadError(Exception):
    """Rule 4."""


class _Reading:
    """One name, from its beginning."""

    def __init__(self, text: str, at: int) -> None:
        self.text, self.at = text, at
        self.seen: list[str] = []  # rule 1
        self._arguments: list[list[str]] | None = None  # of the function's template: each one type, or a pack

    def function_name(self) -> str:
        self._take("L")
        return self._path(0, of_function=True)

    def parameters(self, name: str) -> tuple[str, ...]:
        """Read the types of a function's parameters, up to the end of the text or of the function."""
        if name.endswith(">"):
            self._type(0)  # its result
        found: list[str] = []
        while self.text[self.at : self.at + 1] not in ("", "E"):
            found += self._types(0)
        return tuple(found)

    def local(self) -> str:
        """Read what follows a function: the name of a static variable."""
        if not self._take("E"):
            raise _UnreadError
        name = self._source()
        if not re.fullmatch(r"(_\d|__\d+_)?", self.text[self.at :], re.ASCII):
            raise _UnreadError
        return name

    # Letters

    def _take(self, letters: str) -> str:
        """Take one of some letters, if it is next."""
        c = self.text[self.at]
        if c not in letters:
            return ""
        self.at += 1
        return c

    def _number(self) -> int:
        """Return a place: 0 of "_", 1 of "0_", and so on, to the base of 36."""
        found = re.compile(r"([0-9A-Z]{0,8})_").match(self.text, self.at)
        if found is None:
            raise _UnreadError
        self.at = found.end()
        return int(found[1], 36) + 1 if found[1] else 0

    def _source(self) -> str:
        self._take("L")
        found = re.compile(r"\d{1,4}", re.ASCII).match(self.text, self.at)
        if found is None:
            raise _UnreadError
        start = found.end()
        self.at = start + int(found[0])
        return self.text[start : self.at]

    def _substitution(self) -> str:
        """Rule 1: the reference after an "S"."""
        if word := _STD.get(self.text[self.at]):
            self.at += 1
            return word
        place = self._number()
        if place >= len(self.seen):
            raise _UnreadError
        return self.seen[place]

    def _parameter(self) -> list[str]:
        """Rule 2: the parameter after a "T"."""
        place = self._number()
        if self._arguments is None or place >= len(self._arguments):
            raise _UnreadError
        return self._arguments[place]

    # Names

    def _path(self, depth: int, *, of_function: bool = False) -> str:
        if depth > _MOST_DEPTH:
            raise _UnreadError
        if not self._take("N"):
            return self._unscoped(depth, of_function)
        while self._take("rVKRO"):
            pass
        whole, new = "", False
        while not self._take("E"):
            if new:
                self.seen.append(whole)
            new = True
            if self._take("I"):
                found = self._template_arguments(depth)
                if of_function:
                    if self._arguments is not None:
                        raise _UnreadError
                    self._arguments = found
                whole += _listed(found)
            elif self._take("S"):
                whole, new = self._substitution(), False
            elif self._take("T"):
                whole = _one(self._parameter())
            else:
                part = self._source()
                whole = whole if part.startswith(_INVENTED) else f"{whole}::{part}" if whole else part
        return whole

    def _unscoped(self, depth: int, of_function: bool) -> str:
        known = bool(self._take("S"))
        whole = self._substitution() if known else _one(self._parameter()) if self._take("T") else self._source()
        if known and whole == "std":
            whole, known = f"std::{self._source()}", False
        if self.text[self.at : self.at + 1] == "I":
            if not known:
                self.seen.append(whole)
            self.at += 1
            found = self._template_arguments(depth)
            if of_function:
                self._arguments = found
            whole += _listed(found)
        return whole

    def _template_arguments(self, depth: int) -> list[list[str]]:
        found = []
        while not self._take("E"):
            found.append(self._template_argument(depth + 1))
        return found

    def _template_argument(self, depth: int) -> list[str]:
        if self._take("J"):
            pack: list[str] = []
            while not self._take("E"):
                pack += self._template_argument(depth + 1)
            return pack
        if not self._take("L"):
            return self._types(depth)
        type_ = self._type(depth)
        found = re.compile(r"(n?)(\d+)E", re.ASCII).match(self.text, self.at)
        if found is None:
            raise _UnreadError
        self.at = found.end()
        if type_ == "bool":
            return [{"0": "false", "1": "true"}.get(found[2], found[2])]
        number = ("-" if found[1] else "") + found[2]
        return [number if type_ in _LETTERS.values() else f"({type_}){number}"]

    # Types

    def _types(self, depth: int) -> list[str]:
        """Read a type, or the types of a pack."""
        if self.text.startswith("DpT", self.at):
            self.at += 3
            return self._parameter()
        return [self._type(depth)]

    def _type(self, depth: int) -> str:
        if depth > _MOST_DEPTH:
            raise _UnreadError
        if letter := self._take("".join(_LETTERS)):
            return _LETTERS[letter]
        if self.text[self.at] == "D":
            mark = next((x for x in _OF_D if self.text.startswith(x, self.at + 1)), None)
            if mark is None:
                raise _UnreadError
            self.at += 1 + len(mark)
            return _OF_D[mark]
        made, old = self._made(depth)
        if not old:
            self.seen.append(made)
        return made

    def _made(self, depth: int) -> tuple[str, bool]:
        """Read a type that is more than a letter; return it, and whether it occurred before."""
        if mark := self._take("PRO"):
            inner = self._type(depth + 1)
            return inner.replace(" [", " (*) [", 1) if inner.endswith("]") else inner + _MARKS[mark], False
        if words := list(iter(lambda: self._take("rVK"), "")):
            return self._qualified(depth, words), False
        if self._take("A"):
            length = re.compile(r"(\d+)_", re.ASCII).match(self.text, self.at)
            if length is None:
                raise _UnreadError
            self.at = length.end()
            return f"{self._type(depth + 1)} [{length[1]}]", False
        old = self.text[self.at] == "S" and self.text[self.at + 1] != "t"
        before = self.at
        made = self._path(depth + 1)
        return made, old and "I" not in self.text[before : self.at]

    def _qualified(self, depth: int, letters: list[str]) -> str:
        made = self._type(depth + 1)
        for word in map(_WORDS.__getitem__, letters):
            if made.endswith(("*", "&", *_WORDS.values())) or " (*)" in made:
                made = made if made.endswith(f" {word}") else f"{made} {word}"
            else:
                made = made if made.startswith(f"{word} ") else f"{word} {made}"
        return made


def _one(types: list[str]) -> str:
    if len(types) != 1:
        raise _UnreadError
    return types[0]


def _listed(arguments: list[list[str]]) -> str:
    return f"<{', '.join(x for types in arguments for x in types)}>"
