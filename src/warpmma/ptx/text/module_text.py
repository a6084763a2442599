"""Reading of modules: everything outside functions is read; bodies are found by their braces and read later.

module   = {".version" number | ".target" name {"," name} | ".address_size" integer | file | section | alias
           | pragma | variable | function}
file     = ".file" integer string ["," integer "," integer]
section  = ".section" name "{" ... "}"
alias    = ".alias" name "," name ";"
function = [linkage] (".entry" name | ".func" [".attribute" "(" ... ")"] ["(" parameter ")"] name)
           ["(" parameters ")"] {directive} (body | ";")

Why this does not use a parser library: lark 1.3, LALR with a contextual lexer, takes 0.11 s for the tree, with
positions, of a body of 2,000 lines (76 KB, 1,337 instructions), before a record is made or a name is resolved; this
reader takes 0.03 s for all of it, a statement at a time, so that a text of any size needs no more memory than its
records. Looking for braces alone takes 0.05 s for each MB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...errors import OperandError, PtxError, shown
from .bodies import body
from .declarations import LINKAGES, SPACES, parameters, variables
from .directives import FunctionKind, attributes, pragmas, read_directives
from .syntax import Declaration, Function, Module, Position, RegisterRange, Variable
from .tokens import Cursor, Text, Token

_MAKE = "PTX text is what `nvcc -ptx -arch=sm_80 -lineinfo FILE.cu` writes"

_BEGINNINGS = {
    b"\x7fELF": f"is an ELF file (a cubin, an object or a program), which is machine code; {_MAKE}, and "
    "`cuobjdump -ptx` what a program holds of it",
    b"P\xedU\xba": f"is a fatbin; {_MAKE}, and `cuobjdump -ptx` what a fatbin holds of it",
    b"MZ": f"is a Windows program; {_MAKE}, and `cuobjdump -ptx` what a program holds of it",
    b"BC\xc0\xde": f"is LLVM bitcode; {_MAKE}",
    b"\xff\xfe": "is UTF-16, as a shell of Windows redirects text; expected UTF-8: let `nvcc -o` write the file",
    b"\xfe\xff": "is UTF-16; expected UTF-8",
}
"""First bytes of files."""

_LANGUAGES = (
    (r"__global__|__device__|^[ \t]*#[ \t]*include\b", f"is CUDA C++; {_MAKE}, and `warpmma.cuda.load` compiles it"),
    (r"^target (triple|datalayout) *=", f"is LLVM IR; {_MAKE}, and `llc -march=nvptx64` what LLVM makes"),
    (r"\btt\.func\b|\bttg?\.", 'is Triton\'s IR; its PTX is `compiled.asm["ptx"]`'),
    (r"^(import|from) \w+|^def \w+\(", "is Python; Triton has PTX in `compiled.asm['ptx']`, Numba in `inspect_asm()`"),
    (r"/\*[0-9a-f]{4,}\*/", f"is machine code as text; {_MAKE}"),
)
"""Marks of texts in other languages."""


def no_text(data: bytes) -> str:
    r"""Name the format of bytes that are not text, or "".

    Examples
    --------
    >>> no_text(b"BC\xc0\xde")
    'is LLVM bitcode; PTX text is what `nvcc -ptx -arch=sm_80 -lineinfo FILE.cu` writes'
    """
    return next((says for beginning, says in _BEGINNINGS.items() if data.startswith(beginning)), "")


def other_language(text: str) -> str:
    """Name the language of a text without `.version`, or "".

    Examples
    --------
    >>> other_language("__global__ void k() {}").partition("; ")[0]
    'is CUDA C++'
    """
    if ".version" in text:
        return ""
    if not text.strip():
        return f"is empty, without '.version'; {_MAKE}"
    return next((says for pattern, says in _LANGUAGES if re.search(pattern, text, re.MULTILINE)), "")


LONGEST = 1 << 28
"""Characters of a text."""


def read(text: str | bytes, name: str = "<ptx>") -> Module:
    """Read a PTX text: its declarations now, and each body when it is looked up.

    Parameters
    ----------
    text : str or bytes
        Bytes are UTF-8, with or without its mark; NUL characters at the end, as compilers' interfaces give them, are
        cut off.
    name : str
        What errors call it: its path.

    Returns
    -------
    Module

    Raises
    ------
    PtxError
        If the text is not PTX, or of a version that is not known; with line and column.

    Examples
    --------
    >>> module = read(".version 8.0 .target sm_80 .entry k(.param .u64 p) { ret; }")
    >>> module.target, list(module.functions), module.functions["k"].body[0].mnemonic
    ('sm_80', ['k'], 'ret')
    """
    if not isinstance(name, str):
        raise OperandError(f"the name of a text is {shown(name)}; expected a string")
    if isinstance(text, bytes):
        text = _decoded(text, name)
    if not isinstance(text, str):
        raise OperandError(f"a text is {type(text).__name__}; expected a string, or bytes")
    text = text.rstrip("\0")
    if len(text) > LONGEST:
        raise PtxError.at(name, 1, 1, f"a text of more than {LONGEST} characters is not read")
    if says := other_language(text):
        raise PtxError.at(name, 1, 1, f"this {says}")
    return _Reader(Text(text, name)).read()


def _decoded(text: bytes, name: str) -> str:
    if says := no_text(text):
        raise PtxError.at(name, 1, 1, f"this {says}")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = text[: error.start].decode()
        raise Text(before + "?", name).error("invalid UTF-8", len(before)) from None


class Bodies(Mapping[str, Function]):
    """Functions by name, each read when it is looked up first."""

    def __init__(
        self,
        source: Text,
        heads: dict[str, tuple[Function, int]],
        files: Mapping[int, str],
        outside: Mapping[str, Variable],
    ):
        self._source = source
        self._heads = heads
        self._files = files
        self._outside = outside
        self._read: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        found = self._read.get(name)
        if found is None:
            found, offset = self._heads[name]
            if offset >= 0:
                found = body(self._source, offset, found, self._files, self._outside)
            self._read[name] = found
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._heads)

    def __len__(self) -> int:
        return len(self._heads)


class _Reader:
    def __init__(self, source: Text):
        self.source = source
        self.cursor = Cursor(source)
        self.version: tuple[int, int] | None = None
        self.target = ""
        self.options: tuple[str, ...] = ()
        self.targeted = Position(0, 0)
        self.address_size = 64
        self.variables: dict[str, Variable] = {}
        self.heads: dict[str, tuple[Function, int]] = {}
        self.files: dict[int, str] = {}

    def read(self) -> Module:
        cursor = self.cursor
        while cursor.kind:
            if cursor.kind != Token.DOTTED:
                cursor.expected("a directive, such as '.entry'")
            if self.version is None and cursor.token != ".version":
                cursor.expected("'.version' first")
            self._directive()
        if self.version is None:
            cursor.expected("'.version'")
        if not self.target:
            cursor.expected("'.target'")
        return Module(
            self.source.name, self.source.text, self.version, self.target, self.address_size, self.variables,
            Bodies(self.source, self.heads, self.files, self.variables),
            {name: head.kind for name, (head, _) in self.heads.items()}, self.options, self.targeted,
        )  # fmt: skip

    def _directive(self) -> None:
        cursor = self.cursor
        readers = {
            ".version": self._version,
            ".target": self._target,
            ".address_size": self._address_size,
            ".file": self._file,
            ".section": self._section,
            ".alias": self._alias,
        }
        reader = readers.get(cursor.token)
        if reader is not None:
            cursor.advance()
            reader()
        elif cursor.token == ".pragma":
            cursor.advance()
            pragmas(cursor)
        else:
            self._declaration()

    def _version(self) -> None:
        cursor = self.cursor
        found = re.fullmatch(r"(\d{1,3})\.(\d{1,3})", cursor.token)
        if not found:
            cursor.expected("a version, such as 8.0")
        self.version = self.source.version = int(found[1]), int(found[2])
        if self.version >= (10, 0):
            cursor.fail("PTX is known up to version 9")
        cursor.advance()

    def _target(self) -> None:
        cursor = self.cursor
        start, self.targeted = cursor.start, self.source.position(cursor.start)
        self.target = cursor.name("a target, such as sm_80")
        if not re.fullmatch(r"sm_\d{2,3}[af]?", self.target):
            cursor.fail(f"expected a target, such as sm_80, found {self.target[:40]!r}", start)
        self.source.target = self.target
        while cursor.skip(","):
            self.options += (cursor.name("what a target may have, such as debug"),)

    def _address_size(self) -> None:
        start = self.cursor.start
        self.address_size = self.cursor.integer("32 or 64")
        if self.address_size not in (32, 64):
            self.cursor.fail("an address has 32 or 64 bits", start)
        if self.address_size == 32:
            self.cursor.fail("addresses of 32 bits are not simulated; 64 are what nvcc makes by default", start)

    def _file(self) -> None:
        cursor = self.cursor
        number = cursor.integer("a number")
        self.files[number] = cursor.string("a path")
        while cursor.skip(","):
            cursor.integer("a time and a size")

    def _section(self) -> None:
        cursor = self.cursor
        if cursor.kind != Token.DOTTED:
            cursor.name("a section")
        while cursor.kind == Token.DOTTED:
            cursor.advance()
        if cursor.token != "{":
            cursor.expected("'{'")
        cursor.go(self.source.closing(cursor.end) + 1)

    def _alias(self) -> None:
        cursor = self.cursor
        name = cursor.name("a function")
        cursor.take(",")
        start = cursor.start
        meant = self.heads.get(cursor.name("a function"))
        if meant is None:
            cursor.fail("an alias names a function declared before it", start)
        cursor.take(";")
        self.heads[name] = meant

    def _declaration(self) -> None:
        cursor = self.cursor
        linkage = ""
        if cursor.token in LINKAGES:
            linkage = cursor.token[1:]
            cursor.advance()
        if cursor.token in (".entry", ".func"):
            self._function(linkage)
        elif cursor.token == ".tex":  # a texture's name, of PTX 1: what reads it is found where it stands
            if self.source.version >= (1, 5):
                cursor.fail(".tex ended with PTX 1.4")
            cursor.advance()
            while cursor.kind and not cursor.skip(";"):
                cursor.advance()
        elif cursor.token in SPACES and cursor.token not in (".param", ".reg"):
            for one, start in variables(cursor, linkage, outside=True):
                self._variable(one, start)
        else:
            cursor.expected("a directive, such as '.entry'")

    def _variable(self, one: Declaration, start: int) -> None:
        if isinstance(one, RegisterRange):
            self.cursor.fail("a register outside a function", start)
        known = self.variables.get(one.name)
        if known is not None and known.linkage != "extern" and one.linkage != "extern":
            self.cursor.fail(f"{one.name!r} is declared already, at {known.position}", start)
        if known is None or known.linkage == "extern":
            self.variables[one.name] = one

    def _function(self, linkage: str) -> None:
        cursor = self.cursor
        kind: FunctionKind = "entry" if cursor.token == ".entry" else "func"
        cursor.advance()
        if kind == "func" and cursor.skip(".attribute"):
            attributes(cursor)
        results = parameters(cursor, "result") if kind == "func" and cursor.token == "(" else []
        start = cursor.start
        name = cursor.name("a function's name")
        given = parameters(cursor, kind) if cursor.token == "(" else []
        said = read_directives(cursor, kind)
        head = Function(
            kind,
            name,
            tuple(one for one, _ in given),
            tuple(one for one, _ in results),
            said,
            defined=False,
            linkage=linkage,
            position=self.source.position(start),
        )
        head = replace(head, scopes=((*head.results, *head.parameters),))
        known = self.heads.get(name)
        bare = kind == "func" and cursor.kind == Token.DOTTED  # as compilers of PTX 2 wrote prototypes
        if bare or cursor.skip(";"):
            if known is None:
                self.heads[name] = head, -1
            return
        if cursor.token != "{":
            cursor.expected("'{' or ';'")
        if known is not None and known[1] >= 0:
            cursor.fail(f"{name!r} is defined already, at {known[0].position}", start)
        offset = cursor.end
        cursor.go(self.source.closing(offset) + 1)
        self.heads[name] = replace(head, defined=True), offset
