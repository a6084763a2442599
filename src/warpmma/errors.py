"""Errors for users: each is a `ValueError` that names what came, what was expected and the nearest legal form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self, TypeVar

__all__ = [
    "ArchiveError",
    "CompilationError",
    "KernelError",
    "LimitError",
    "MetadataError",
    "MnemonicError",
    "OperandError",
    "PtxError",
    "RegisterError",
    "ScaleError",
    "TableError",
    "TargetError",
    "UnknownNameError",
    "UnsupportedError",
    "WarpmmaError",
]

T = TypeVar("T")


class WarpmmaError(ValueError):
    """Base of every error that warpmma raises on bad input."""


class MnemonicError(WarpmmaError):
    """A mnemonic that cannot be read, or that names no instruction."""


class TargetError(WarpmmaError):
    """An unknown target, or an instruction that its target does not have."""


class OperandError(WarpmmaError):
    """A matrix or a fragment with the wrong shape, dtype or values."""


class RegisterError(WarpmmaError):
    """A register that does not exist, has another width, or was never written."""


class KernelError(WarpmmaError):
    """A kernel that ended its launch itself: an assertion that failed, or a trap."""


class MetadataError(WarpmmaError):
    """A sparse matrix that breaks its pattern, or metadata or a selector that PTX leaves undefined."""


class ScaleError(WarpmmaError):
    """Block scales, or their byte-id or thread-id, that an instruction does not take."""


class ArchiveError(WarpmmaError):
    """A file of recorded registers that cannot be used."""


class LimitError(WarpmmaError):
    """A run that reached a limit, of instructions, time or stack; the message shows where threads are.

    Attributes
    ----------
    report : Launch or None
        Of a launch: its findings so far.
    """

    report: Any = None


class TableError(WarpmmaError):
    """Rows of a table that contradict one another, such as two for one instruction."""


class PtxError(WarpmmaError):
    """A PTX text that cannot be parsed, or that uses an unsupported feature: the message begins with line and column.

    Attributes
    ----------
    file : str
        Path of the text, or a name for it.
    line, column : int
        From 1 on.
    """

    def __init__(self, message: str, file: str = "<ptx>", line: int = 0, column: int = 0):
        super().__init__(message)
        self.file, self.line, self.column = file, line, column

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, int, int]]:
        return type(self), (str(self), self.file, self.line, self.column)

    @classmethod
    def at(cls, file: str, line: int, column: int, text: str, source: str = "") -> Self:
        """Make the error of a place in a text; where the whole text is given, it shows the line.

        Examples
        --------
        >>> print(PtxError.at("a.ptx", 3, 5, "no such register"))
        a.ptx:3:5: no such register
        >>> print(PtxError.at("a.ptx", 1, 14, "expected ';'", "add.s32 a, b c;"))
        a.ptx:1:14: expected ';'
          add.s32 a, b c;
                       ^
        """
        if len(text) > _MOST:  # a name or a number of the text may be as long as the text
            text = f"{text[:_MOST]}..."
        message = f"{printable(file)}:{line}:{column}: {text}"
        lines = source.split("\n", line)  # "\n" alone ends a line of PTX; "\r" is a blank
        if 0 < line <= len(lines) and lines[line - 1].strip():
            first = max(0, column - 1 - _WINDOW)
            cut = lines[line - 1][first : column - 1 + _WINDOW]
            plain = "".join(c if c.isprintable() and c.isascii() else " " if c.isspace() else "?" for c in cut)
            message += f"\n  {plain.rstrip()}\n  {' ' * (column - 1 - first)}^"
        return cls(message, file, line, column)


class CompilationError(WarpmmaError):
    """A CUDA C++ source that does not compile, or that nothing here can compile: the message has the compiler's log.

    Attributes
    ----------
    file : str
        Path of the source, or a name for it.
    line : int
        Of the first error in it, from 1 on; 0 if it has none.
    log : str
        The complete log of the compiler.
    """

    def __init__(self, message: str, file: str = "<cuda>", line: int = 0, log: str = ""):
        super().__init__(message)
        self.file, self.line, self.log = file, line, log

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, int, str]]:
        return type(self), (str(self), self.file, self.line, self.log)


class UnknownNameError(WarpmmaError, AttributeError):
    """An attribute that something of warpmma does not have. It is an `AttributeError` too, for `hasattr`'s sake."""

    @classmethod
    def of(cls, owner: str, name: str, names: Sequence[str], hint: str = "") -> Self:
        """Make the error for an owner with certain names: list them, and the nearest one.

        Examples
        --------
        >>> print(UnknownNameError.of("t", "taneid", ["tid", "laneid"]))
        t has no 'taneid', did you mean 'laneid'? It has tid, laneid
        """
        near = nearest(name, names)
        meant = hint or (f", did you mean {near!r}?" if near else ".")
        return cls(f"{owner} has no {name!r}{meant} It has {', '.join(names)}")


class UnsupportedError(WarpmmaError):
    """A legal request that this version of warpmma does not answer."""


_LONGEST = 200
_MOST = 1000
_WINDOW = 60  # columns of a line that an error shows on either side of its place


def nearest(word: str, known: Iterable[T], least: Any = 0.6, likeness: Callable[[T], Any] | None = None) -> T | None:
    """Return the member of `known` that is most like a word, the first of equals; None if none is like it.

    `likeness` is that of letters by default, from 0 to 1; the answer has at least the likeness `least`.

    Examples
    --------
    >>> nearest("taneid", ["tid", "laneid"]), nearest("warp", ["tid", "laneid"])
    ('laneid', None)
    """
    like = likeness or letters(word)
    ranked = [(like(member), member) for member in known]
    best = max(ranked, key=lambda pair: pair[0], default=None)
    return best[1] if best is not None and best[0] >= least else None


def letters(word: str) -> Callable[..., float]:
    """Return how like a word others are by their letters, from 0 to 1; with `bound`, a quick upper bound of that."""
    from difflib import SequenceMatcher  # only errors need it

    matcher = SequenceMatcher(b=word)

    def likeness(other: str, *, bound: bool = False) -> float:
        matcher.set_seq1(other)
        return matcher.quick_ratio() if bound else matcher.ratio()

    return likeness


def printable(text: str) -> str:
    """Escape what cannot be printed: bytes of file names that are not UTF-8, which Python keeps as surrogates."""
    return text.encode(errors="backslashreplace").decode()


def shown(value: object, write: Callable[[Any], str] = repr) -> str:
    """Format a value for an error message: on one line, of limited length, even if its repr fails."""
    try:
        text = printable(" ".join(write(value).split()))
    except Exception:  # an integer of 5,000 digits, or an object whose `__repr__` fails
        return f"<{type(value).__name__} that cannot be shown>"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
