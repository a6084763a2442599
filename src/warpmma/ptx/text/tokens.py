"""Tokens of PTX texts, one at a time, with their positions.

One regular expression skips what is blank and reads the next token, of the first kind that fits:

    blank  = white space | "//" to the end of the line | "/*" ... "*/" | a line that begins with "#" (a preprocessor's)
    number = 0f and 8, or 0d and 16, hexadecimal digits | 0x..., 0b..., 0..., decimal, each with U or without
           | a decimal number with a point or an exponent
    word   = a name, with what follows after dots: "%r1", "%tid.x", "ld.global.L2::128B.v4.u32"
    dotted = a point and a name: ".reg", ".v4", ".L2::128B"
    string = "..." on one line
    sign   = << >> <= >= == != && || or one character of {}()[],;:@!|<>+-*/%&^~?=
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from enum import IntEnum
from typing import NoReturn

from ...errors import PtxError
from .syntax import Position

DEEPEST = 64
"""How deep parentheses and braces of one operand or initial value may nest."""

_BLANK = r"(?:[ \t\r\n\f\v]++|//[^\n]*+|/\*(?s:.*?)\*/|(?m:^)\#[^\n]*+)*+"
_NUMBER = (
    r"0[fF][\da-fA-F]{8}(?![\w$])|0[dD][\da-fA-F]{16}(?![\w$])|0[xX][\da-fA-F]++U?(?![\w$])|0[bB][01]++U?(?![\w$])"
    r"|(?:\d++\.\d*+|\.\d++|\d++(?=[eE][-+]?\d))(?:[eE][-+]?\d++)?(?![\w$.])"
    r"|0[0-7]*+U?(?![\w$.])|[1-9]\d*+U?(?![\w$.])"
)
_WORD = r"(?:[A-Za-z_$]|%(?=[\w$]))[\w$]*+(?:::[\w$]++)*+(?:\.[\w$]++(?:::[\w$]++)*+)*+"
_DOTTED = r"\.[\w$]++(?:::[\w$]++)*+"
_STRING = r'"[^"\n]*+"'
_SIGN = r"<<|>>|<=|>=|==|!=|&&|\|\||[-{}()\[\],;:@!|<>+*/%&^~?=]"
_TOKEN = re.compile(f"{_BLANK}(?:({_NUMBER})|({_WORD})|({_DOTTED})|({_STRING})|({_SIGN})|((?s:.)))?", re.ASCII)
_BRACES = re.compile(r'//[^\n]*+|/\*(?s:.*?)\*/|"[^"\n]*+"|(?m:^)[ \t]*+\#[^\n]*+|\{[^{}"/#]*+\}|[{}]|/\*|"')


class Token(IntEnum):
    """Kind of a token: the number of its group."""

    END = 0
    NUMBER = 1
    WORD = 2
    DOTTED = 3
    STRING = 4
    SIGN = 5
    BAD = 6


class Text:
    """A text, its name, its lines, and the version and target that it names once they are read."""

    version: tuple[int, int] = (0, 0)
    target = ""

    def __init__(self, text: str, name: str):
        self.text = text
        self.name = name
        self._ends = [m.start() for m in re.finditer("\n", text)]

    def position(self, offset: int) -> Position:
        """Return line and column of a character."""
        line = bisect_right(self._ends, offset - 1)
        return Position(line + 1, offset - (self._ends[line - 1] if line else -1))

    def error(self, what: str, offset: int) -> PtxError:
        """Make the error that shows a character's line."""
        place = self.position(offset)
        return PtxError.at(self.name, place.line, place.column, what, self.text)

    def closing(self, offset: int) -> int:
        """Find the brace that closes what begins at an offset, which is just behind `{`."""
        depth = 1
        for m in _BRACES.finditer(self.text, offset):
            found = m[0]
            if found == "{":
                depth += 1
            elif found == "}":
                depth -= 1
                if not depth:
                    return m.start()
            elif found in ("/*", '"'):
                raise self.error(f"{found} is not closed", m.start())
        raise self.error("'{' is not closed", offset - 1)


class Cursor:
    """The current token of a reader, "" at the end, with its offset and that of what follows."""

    __slots__ = ("_match", "depth", "end", "kind", "source", "start", "token")

    def __init__(self, source: Text, offset: int = 0):
        self.source = source
        self.depth = 0
        self._match: Callable[[str, int], re.Match[str]] = _TOKEN.match  # type: ignore[assignment]  # it matches ""
        self.go(offset)

    def go(self, offset: int) -> None:
        """Go to the token that follows an offset."""
        self.end = offset
        self.advance()

    def advance(self) -> None:
        """Go to the next token."""
        m = self._match(self.source.text, self.end)
        group = m.lastindex
        if group is None:
            self.kind, self.token, self.start, self.end = Token.END, "", m.end(), m.end()
            return
        self.kind, self.token, self.start, self.end = group, m[group], m.start(group), m.end()  # type: ignore[assignment]
        if group == Token.BAD or (m[group] == "/" and self.source.text.startswith("/*", self.start)):
            self._refuse()

    def _refuse(self) -> NoReturn:
        text, start = self.source.text, self.start
        if text.startswith("/*", start):
            self.fail("this comment does not end")
        if self.token == '"':
            self.fail("this string does not end on its line")
        if self.token.isdigit():
            number = re.compile(r"[\w$.]+", re.ASCII).match(text, start)
            self.fail(f"{(number[0] if number else self.token)[:40]!r} is not a PTX number")
        self.fail(f"{self.token!r} does not begin anything in PTX")

    def error(self, what: str, offset: int | None = None) -> PtxError:
        """Make the error that shows the token, or another offset."""
        return self.source.error(what, self.start if offset is None else offset)

    def fail(self, what: str, offset: int | None = None) -> NoReturn:
        """Refuse the text at the token, or at another offset."""
        raise self.error(what, offset)

    def requires(self, what: str, ptx: tuple[int, int] = (0, 0), target: int = 0) -> None:
        """Refuse features that the text's version of PTX, or its target, does not have."""
        of = self.source
        if of.version < ptx:
            self.fail(f"{what} requires PTX {ptx[0]}.{ptx[1]}; this text is PTX {of.version[0]}.{of.version[1]}")
        if int(of.target.removeprefix("sm_").rstrip("af") or target) < target:
            self.fail(f"{what} requires sm_{target}; this text is for {of.target}")

    def expected(self, what: str) -> NoReturn:
        """Refuse the token."""
        found = repr(self.token[:40]) if self.kind else "the text's end"
        self.fail(f"expected {what}, found {found}")

    def take(self, sign: str) -> None:
        """Go on behind a token that must be there."""
        if self.token != sign:
            self.expected(repr(sign))
        self.advance()

    def skip(self, sign: str) -> bool:
        """Go on behind a token if it is there."""
        if self.token != sign:
            return False
        self.advance()
        return True

    def name(self, what: str) -> str:
        """Take a name, which has no dots."""
        if self.kind != Token.WORD or "." in self.token or "::" in self.token:
            self.expected(what)
        name = self.token
        self.advance()
        return name

    def string(self, what: str) -> str:
        """Take the contents of a string."""
        if self.kind != Token.STRING:
            self.expected(what)
        text = self.token[1:-1]
        self.advance()
        return text

    def integer(self, what: str) -> int:
        """Take a number that is a plain integer."""
        text = self.token
        if self.kind != Token.NUMBER or not _INTEGER.fullmatch(text):
            self.expected(what)
        if len(text) > _DIGITS:
            self.fail("a number of more than 64 bits")
        value = integer_of(text)
        self.advance()
        return value

    def deeper(self) -> None:
        """Begin what may nest; `depth` is to be counted down where it ends."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"nested deeper than {DEEPEST} levels")


_INTEGER = re.compile(r"0[xX][\da-fA-F]+U?|0[bB][01]+U?|\d+U?")
_DIGITS = 70  # of the longest spelling that 64 bits can have, in binary


def integer_of(text: str) -> int:
    """Return the value of an integer literal; the caller knows that it is one, and short.

    Examples
    --------
    >>> [integer_of(text) for text in ("0x1FU", "017", "0b101", "19")]
    [31, 15, 5, 19]
    """
    digits = text.rstrip("U")
    if digits[:2] in ("0x", "0X"):
        return int(digits[2:], 16)
    if digits[:2] in ("0b", "0B"):
        return int(digits[2:], 2)
    return int(digits, 8 if digits[0] == "0" else 10)
